/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op.h"
#include "base/memory.h"
#include "ops/step_build.h"

/* Leaves room for a kernel to round an index up to its group's size. */
#define INDEX32_LIMIT (INT32_MAX - 65536)

static rnl_view view_of(uint32_t slot, rnl_dtype dtype, size_t rank, const int64_t *shape)
{
    rnl_view view = {.slot = slot, .dtype = dtype, .rank = rank};
    for (size_t i = 0; i < rank; ++i)
        view.shape[i] = shape[i];
    return view;
}

static int64_t at_least_one(int64_t size)
{
    return size > 0 ? size : 1;
}

rnl_view rnl_view_row_major(uint32_t slot, rnl_dtype dtype, size_t rank, const int64_t *shape)
{
    rnl_view view = view_of(slot, dtype, rank, shape);
    int64_t stride = 1;
    for (size_t i = rank; i-- > 0;) {
        view.stride[i] = stride;
        if (__builtin_mul_overflow(stride, at_least_one(shape[i]), &stride))
            stride = INT64_MAX; /* rnl_views_check refuses it */
    }
    return view;
}

rnl_view rnl_view_channels_last(uint32_t slot, rnl_dtype dtype, size_t rank, const int64_t *shape)
{
    if (rank < 3)
        return rnl_view_row_major(slot, dtype, rank, shape);
    int64_t moved[RNL_MAX_RANK] = {shape[0]};
    for (size_t i = 2; i < rank; ++i)
        moved[i - 1] = shape[i];
    moved[rank - 1] = shape[1];
    const rnl_view dense = rnl_view_row_major(slot, dtype, rank, moved);
    rnl_view view = view_of(slot, dtype, rank, shape);
    view.stride[0] = dense.stride[0];
    view.stride[1] = dense.stride[rank - 1];
    for (size_t i = 2; i < rank; ++i)
        view.stride[i] = dense.stride[i - 1];
    return view;
}

bool rnl_view_is_row_major(const rnl_view *view)
{
    int64_t expected = 1;
    for (size_t i = view->rank; i-- > 0;) {
        if (view->shape[i] <= 1)
            continue;
        if (view->stride[i] != expected)
            return false;
        expected *= view->shape[i];
    }
    return true;
}

int64_t rnl_view_elements(const rnl_view *view)
{
    int64_t count = 0;
    return rnl_shape_elements(view->shape, view->rank, &count) ? count : -1;
}

bool rnl_shapes_equal(const rnl_view *a, const rnl_view *b)
{
    if (a->rank != b->rank)
        return false;
    for (size_t i = 0; i < a->rank; ++i)
        if (a->shape[i] != b->shape[i])
            return false;
    return true;
}

/* The lowest and highest index of an element; false on overflow. */
static bool view_reach(const rnl_view *view, int64_t *out_low, int64_t *out_high)
{
    *out_low = *out_high = view->offset;
    for (size_t i = 0; i < view->rank; ++i) {
        int64_t reach = 0;
        if (__builtin_mul_overflow(view->shape[i] - 1, view->stride[i], &reach))
            return false;
        int64_t *end = reach < 0 ? out_low : out_high;
        if (__builtin_add_overflow(*end, reach, end))
            return false;
    }
    return true;
}

static rnl_status view_check(const rnl_view *view, bool *index64)
{
    int64_t count = 0, low = 0, high = 0;
    if (!rnl_dtype_bytes(view->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "tensor of unknown type %d", (int)view->dtype);
    if (view->rank > RNL_MAX_RANK)
        return FAIL(RNL_UNIMPLEMENTED, "tensor of rank %zu; at most %d are supported", view->rank, RNL_MAX_RANK);
    if (!rnl_shape_elements(view->shape, view->rank, &count))
        return FAIL(RNL_INVALID_ARGUMENT, "tensor with a negative dimension or too many elements");
    if (count == 0)
        return RNL_OK;
    if (!view_reach(view, &low, &high) || low < 0 || high > INT64_MAX / 16)
        return FAIL(RNL_INVALID_ARGUMENT, "tensor whose strides leave its memory");
    if (count > INDEX32_LIMIT || high > INDEX32_LIMIT)
        *index64 = true;
    for (size_t i = 0; i < view->rank; ++i) /* of dimensions of size 1 too: they are passed to kernels */
        if (view->stride[i] > INDEX32_LIMIT || view->stride[i] < -INDEX32_LIMIT)
            *index64 = true;
    return RNL_OK;
}

rnl_status rnl_views_check(const rnl_view *const *views, size_t count, bool *out_index64)
{
    *out_index64 = false;
    for (size_t i = 0; i < count; ++i)
        if (rnl_view_exists(views[i]))
            TRY(view_check(views[i], out_index64));
    return RNL_OK;
}

rnl_status rnl_view_broadcast(const rnl_view *view, size_t rank, const int64_t *shape, int64_t out_stride[RNL_MAX_RANK])
{
    for (size_t i = 0; i < RNL_MAX_RANK; ++i)
        out_stride[i] = 0;
    for (size_t i = 0; i < view->rank; ++i) {
        const size_t at = rank - 1 - i, from = view->rank - 1 - i;
        if (view->shape[from] == 1)
            continue;
        if (i >= rank || view->shape[from] != shape[at])
            return FAIL(RNL_INVALID_ARGUMENT, "dimension of size %lld does not broadcast",
                        (long long)view->shape[from]);
        out_stride[at] = view->stride[from];
    }
    return RNL_OK;
}

void rnl_step_list_init(rnl_step_list *list, rnl_device *device)
{
    *list = (rnl_step_list){.device = device};
}

void rnl_step_list_free(rnl_step_list *list)
{
    if (!list)
        return;
    rnl_free(list->steps);
    rnl_free(list->args);
    rnl_free(list->values);
    rnl_free(list->gemms);
    *list = (rnl_step_list){0};
}
