/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/implementation.h"
#include "ops/sample.h"
#include "ops/step_build.h"

#define ITEM_CHANNELS 8 /* that a work-item makes on a GPU */

static rnl_status check_types(const rnl_grid_sample_params *params, const rnl_view *src, const rnl_view *grid,
                              const rnl_view *dst)
{
    if (params->mode != RNL_SAMPLE_NEAREST && !rnl_dtype_is_float(src->dtype))
        return FAIL(RNL_UNIMPLEMENTED, "GridSample interpolates floats, not %s", rnl_dtype_name(src->dtype));
    if (!rnl_dtype_is_float(grid->dtype) || dst->dtype != src->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "GridSample of %s at positions of %s into %s", rnl_dtype_name(src->dtype),
                    rnl_dtype_name(grid->dtype), rnl_dtype_name(dst->dtype));
    return RNL_OK;
}

static rnl_status check_shapes(const rnl_view *src, const rnl_view *grid, const rnl_view *dst)
{
    int64_t positions = 1;
    if (src->rank < 3 || src->rank > 5 || dst->rank != src->rank || grid->rank != src->rank)
        return FAIL(RNL_UNIMPLEMENTED, "GridSample of rank %zu; 1 to 3 spatial dimensions are supported", src->rank);
    bool fits = src->shape[0] == dst->shape[0] && src->shape[1] == dst->shape[1] && grid->shape[0] == dst->shape[0] &&
                grid->shape[grid->rank - 1] == (int64_t)src->rank - 2;
    bool empty = false;
    for (size_t i = 2; i < src->rank && fits; ++i) {
        fits = grid->shape[i - 1] == dst->shape[i];
        empty = empty || src->shape[i] == 0;
    }
    if (!fits || empty)
        return FAIL(RNL_INVALID_ARGUMENT, empty ? "GridSample of images without pixels"
                                                : "GridSample's operands have shapes that do not belong together");
    for (size_t i = 2; i < src->rank; ++i)
        if (src->shape[i] > INT32_MAX / 4 || __builtin_mul_overflow(positions, dst->shape[i], &positions) ||
            positions > INT32_MAX)
            return FAIL(RNL_UNIMPLEMENTED, "GridSample of or into more than 2^31 pixels");
    if (src->shape[0] > INT32_MAX || src->shape[1] > INT32_MAX / 2)
        return FAIL(RNL_UNIMPLEMENTED, "GridSample of more than 2^31 images or channels");
    return RNL_OK;
}

/* The sizes of the spatial dimensions from `first` on as (d, h, w). */
static void add_sizes(rnl_step_builder *step, const rnl_view *view, int64_t w)
{
    int32_t sizes[4] = {1, 1, 1, (int32_t)w};
    for (size_t i = 2; i < view->rank; ++i)
        sizes[i + 3 - view->rank] = (int32_t)view->shape[i];
    rnl_step_value(step, sizes, sizeof sizes);
}

/* `leading` dimensions, then three spatial ones, then what follows. */
static void add_strides(rnl_step_builder *step, const rnl_view *view, size_t leading, size_t spatial)
{
    int64_t stride[8] = {0};
    for (size_t i = 0; i < leading; ++i)
        stride[i] = view->stride[i];
    for (size_t i = 0; i < spatial; ++i)
        stride[leading + 3 - spatial + i] = view->stride[leading + i];
    for (size_t i = leading + spatial; i < view->rank; ++i)
        stride[i + 3 - spatial] = view->stride[i];
    rnl_step_indices(step, 8, stride, 8, 0);
}

rnl_status rnl_op_grid_sample(rnl_step_list *list, const rnl_grid_sample_params *params, const rnl_view *src,
                              const rnl_view *grid, const rnl_view *dst)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){src, grid, dst}, 3, &index64), "operands of GridSample");
    TRY(check_types(params, src, grid, dst));
    const uint64_t count = (uint64_t)rnl_view_elements(dst);
    if (count == 0)
        return RNL_OK;
    TRY(check_shapes(src, grid, dst));
    const bool nearest = params->mode == RNL_SAMPLE_NEAREST;
    const size_t spatial = src->rank - 2;
    const int64_t channels = src->shape[1], positions = (int64_t)count / channels / src->shape[0];
    const int64_t each = rnl_device_is_cpu(list->device) || channels < ITEM_CHANNELS ? channels : ITEM_CHANNELS;
    const int32_t flags[4] = {params->padding, params->align_corners, (int32_t)src->shape[0], 0};
    rnl_step_begin(&step, list, "grid_sample:portable", index64);
    rnl_step_type(&step, "T", nearest ? rnl_dtype_bits(src->dtype) : src->dtype);
    rnl_step_type(&step, "T_GRID", grid->dtype);
    rnl_step_define(&step, "MODE=%d", (int)params->mode);
    rnl_step_define(&step, "DIMS=%zu", spatial);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_view(&step, grid);
    add_sizes(&step, src, channels);
    add_sizes(&step, dst, each);
    rnl_step_value(&step, flags, sizeof flags);
    add_strides(&step, src, 2, spatial);
    add_strides(&step, dst, 2, spatial);
    add_strides(&step, grid, 1, spatial);
    const size_t items[3] = {(size_t)positions, (size_t)((channels + each - 1) / each), (size_t)src->shape[0]};
    rnl_step_range(&step, 3, items, (size_t[3]){64, 1, 1});
    step.step.bytes =
        2 * count * rnl_dtype_bytes(dst->dtype) + (uint64_t)rnl_view_elements(grid) * rnl_dtype_bytes(grid->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "grid_sample.cl", "grid_sample");
}
