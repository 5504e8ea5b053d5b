/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower.h"

/* One run of source dimensions that merge into one stretch of memory: `elements` of them, `stride` apart. */
typedef struct stretch {
    int64_t elements, stride;
} stretch;

static size_t find_stretches(const rnl_view *view, stretch *out)
{
    size_t count = 0;
    for (size_t i = 0; i < view->rank; i++) {
        if (view->shape[i] == 1)
            continue;
        stretch *last = count ? &out[count - 1] : NULL;
        if (last && last->stride == view->stride[i] * view->shape[i]) {
            last->elements *= view->shape[i];
            last->stride = view->stride[i];
        } else {
            out[count++] = (stretch){view->shape[i], view->stride[i]};
        }
    }
    return count;
}

bool rnl_view_reshape(const rnl_view *view, size_t rank, const int64_t *shape, rnl_view *out_view)
{
    stretch stretches[RNL_MAX_RANK];
    rnl_view result = rnl_view_row_major(view->slot, view->dtype, rank, shape);
    result.offset = view->offset;
    if (rnl_view_elements(view) == 0) {
        *out_view = result;
        return true;
    }
    size_t left = find_stretches(view, stretches);
    for (size_t i = rank; i-- > 0;) {
        if (shape[i] == 1)
            continue;
        while (left > 0 && stretches[left - 1].elements == 1)
            left--;
        if (left == 0 || stretches[left - 1].elements % shape[i] != 0)
            return false;
        result.stride[i] = stretches[left - 1].stride;
        stretches[left - 1].stride *= shape[i];
        stretches[left - 1].elements /= shape[i];
    }
    *out_view = result;
    return true;
}

bool rnl_view_pieces(const rnl_view *view, size_t rank, const int64_t *shape, size_t *out_count, int64_t *out_sizes)
{
    int64_t left = 1, right = 1, reversed[RNL_MAX_RANK]; /* of the two dimensions that are being split */
    size_t i = view->rank, j = rank, count = 0;
    for (;;) {
        while (left == 1 && i > 0)
            left = view->shape[--i];
        while (right == 1 && j > 0)
            right = shape[--j];
        int64_t piece = left < right ? left : right;
        if (piece <= 1)
            break;
        if (left % piece != 0 || right % piece != 0 || count == RNL_MAX_RANK)
            return false;
        reversed[count++] = piece;
        left /= piece;
        right /= piece;
    }
    for (size_t k = 0; k < count; k++)
        out_sizes[k] = reversed[count - 1 - k];
    *out_count = count;
    return left == right;
}

rnl_view rnl_view_permute(const rnl_view *view, const size_t *permutation)
{
    rnl_view result = *view;
    for (size_t i = 0; i < view->rank; i++) {
        result.shape[i] = view->shape[permutation[i]];
        result.stride[i] = view->stride[permutation[i]];
    }
    return result;
}

void rnl_view_slice(rnl_view *view, size_t axis, int64_t start, int64_t count, int64_t step)
{
    if (count > 0)
        view->offset += start * view->stride[axis];
    view->shape[axis] = count;
    view->stride[axis] *= step;
}

rnl_view rnl_view_expand(const rnl_view *view, size_t rank, const int64_t *shape)
{
    rnl_view result = *view;
    size_t added = rank - view->rank;
    result.rank = rank;
    for (size_t i = 0; i < rank; i++) {
        bool repeated = i < added || view->shape[i - added] != shape[i];
        result.shape[i] = shape[i];
        result.stride[i] = repeated ? 0 : view->stride[i - added];
    }
    return result;
}

bool rnl_view_is_same(const rnl_view *a, const rnl_view *b)
{
    if (a->slot != b->slot || a->dtype != b->dtype || a->rank != b->rank || a->offset != b->offset)
        return false;
    for (size_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i] || (a->shape[i] != 1 && a->stride[i] != b->stride[i]))
            return false;
    return true;
}
