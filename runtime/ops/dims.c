/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/step_build.h"

static void copy_dim(rnl_dims *dims, size_t to, size_t from)
{
    dims->shape[to] = dims->shape[from];
    for (size_t v = 0; v < dims->views; ++v)
        dims->stride[v][to] = dims->stride[v][from];
}

static void swap_dims(rnl_dims *dims, size_t a, size_t b)
{
    const int64_t shape = dims->shape[a];
    dims->shape[a] = dims->shape[b];
    dims->shape[b] = shape;
    for (size_t v = 0; v < dims->views; ++v) {
        const int64_t stride = dims->stride[v][a];
        dims->stride[v][a] = dims->stride[v][b];
        dims->stride[v][b] = stride;
    }
}

static void drop_ones(rnl_dims *dims)
{
    size_t kept = 0;
    for (size_t i = 0; i < dims->rank; ++i)
        if (dims->shape[i] != 1)
            copy_dim(dims, kept++, i);
    dims->rank = kept;
}

static int64_t magnitude(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

static void sort_by_first(rnl_dims *dims)
{
    for (size_t i = 1; i < dims->rank; ++i)
        for (size_t j = i; j > 0 && magnitude(dims->stride[0][j - 1]) < magnitude(dims->stride[0][j]); --j)
            swap_dims(dims, j - 1, j);
}

static bool is_one_run(const rnl_dims *dims, size_t outer, size_t inner)
{
    for (size_t v = 0; v < dims->views; ++v)
        if (dims->stride[v][outer] != dims->stride[v][inner] * dims->shape[inner])
            return false;
    return true;
}

void rnl_dims_coalesce(rnl_dims *dims)
{
    drop_ones(dims);
    sort_by_first(dims);
    size_t last = 0; /* the run that is being grown */
    for (size_t i = 1; i < dims->rank; ++i) {
        if (is_one_run(dims, last, i)) {
            const int64_t size = dims->shape[last];
            copy_dim(dims, last, i);
            dims->shape[last] *= size;
        } else {
            copy_dim(dims, ++last, i);
        }
    }
    if (dims->rank)
        dims->rank = last + 1;
}

int64_t rnl_dims_elements(const rnl_dims *dims)
{
    int64_t count = 1;
    for (size_t i = 0; i < dims->rank; ++i)
        count *= dims->shape[i];
    return count;
}

void rnl_dims_select(rnl_dims *dims, const rnl_view *const *views, size_t count, uint32_t axes)
{
    *dims = (rnl_dims){.views = count};
    for (size_t i = 0; i < views[count - 1]->rank; ++i) {
        if (!(axes >> i & 1))
            continue;
        dims->shape[dims->rank] = views[count - 1]->shape[i];
        for (size_t v = 0; v < count; ++v)
            dims->stride[v][dims->rank] = views[v]->stride[i];
        ++dims->rank;
    }
    rnl_dims_coalesce(dims);
}
