/* SPDX-License-Identifier: Apache-2.0 */
/* Resize and Upsample: one step, or some where the operation takes fewer axes or only floats. */
#include "model/lower_list.h"

#include "model/compose.h"
#include "ops/resize.h"
#include <string.h>

#define STEP_AXES 3 /* that one step resizes */

static bool is_resized(const rnl_resize *resize, const rnl_view *source, size_t axis)
{
    return resize->output[axis] != source->shape[axis] || resize->scale[axis] != 1 || resize->roi_begin[axis] != 0 ||
           resize->roi_end[axis] != 1;
}

/* Axes that the next step can take, of those that are not `done`. Opset 10 rounds by whether an axis shrinks. */
static uint32_t next_axes(const rnl_lowering *lowering, const rnl_resize *resize, const rnl_view *source, uint32_t done)
{
    bool by_shrinking = lowering->context.node->opset < 11 && resize->mode == 0, first_shrinks = false;
    uint32_t axes = 0;
    size_t count = 0;
    for (size_t i = 0; i < source->rank && count < STEP_AXES; i++) {
        bool shrinks = resize->scale[i] < 1;
        if (done >> i & 1 || !is_resized(resize, source, i) || (by_shrinking && count > 0 && shrinks != first_shrinks))
            continue;
        first_shrinks = count == 0 ? shrinks : first_shrinks;
        axes |= 1u << i;
        count++;
    }
    return axes;
}

static rnl_resize_params params_of(const rnl_lowering *lowering, const rnl_resize *resize, size_t rank, uint32_t axes)
{
    rnl_resize_params params = {.mode = (rnl_resize_mode)resize->mode,
                                .coordinates = (rnl_resize_coordinates)resize->coordinates,
                                .nearest = (rnl_resize_nearest)resize->nearest,
                                .cubic_a = resize->cubic_a,
                                .exclude_outside = resize->exclude_outside,
                                .antialias = resize->antialias,
                                .extrapolation_value = resize->extrapolation_value};
    bool shrinks = false;
    for (size_t i = 0; i < rank; i++) {
        bool taken = axes >> i & 1;
        shrinks = shrinks || (taken && resize->scale[i] < 1);
        params.scale[i] = taken ? resize->scale[i] : 1;
        params.roi_begin[i] = taken ? resize->roi_begin[i] : 0;
        params.roi_end[i] = taken ? resize->roi_end[i] : 1;
    }
    if (lowering->context.node->opset < 11)
        params.nearest = shrinks ? RNL_RESIZE_CEIL : RNL_RESIZE_FLOOR;
    return params;
}

/* From `source` to `target`, by way of memory of the node's own. */
static rnl_status append_steps(rnl_lowering *lowering, const rnl_resize *resize, rnl_view source,
                               const rnl_view *target)
{
    const rnl_view original = source;
    uint32_t done = 0, axes;
    do {
        axes = next_axes(lowering, resize, &original, done);
        done |= axes;
        const rnl_resize_params params = params_of(lowering, resize, source.rank, axes);
        rnl_view next = *target;
        if (next_axes(lowering, resize, &original, done)) {
            int64_t shape[RNL_MAX_RANK];
            for (size_t i = 0; i < source.rank; i++)
                shape[i] = axes >> i & 1 ? resize->output[i] : source.shape[i];
            TRY(rnl_lower_scratch(lowering, source.dtype, source.rank, shape, RNL_LAYOUT_ROW_MAJOR, &next));
        }
        TRY(rnl_op_resize(lowering->list, &params, &source, &next));
        source = next;
    } while (next_axes(lowering, resize, &original, done));
    return RNL_OK;
}

/* Integers are interpolated in float32, as onnxruntime does with those that it takes. */
static rnl_dtype work_type(const rnl_lowering *lowering, rnl_dtype dtype)
{
    bool wide = dtype == RNL_U32 || dtype == RNL_I64 || dtype == RNL_U64;
    return wide && rnl_device_get_info(lowering->list->device)->has_fp64 ? RNL_F64 : RNL_F32;
}

rnl_status rnl_lower_resize(rnl_lowering *lowering)
{
    rnl_resize resize;
    rnl_view source, target, wide;
    TRY(rnl_resize_resolve(&lowering->context, &resize));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    bool is_float = (RNL_TYPES_FLOAT_64 & RNL_TYPE_BIT(source.dtype)) != 0;
    if (rnl_view_elements(&target) == 0)
        return RNL_OK;
    if (is_float || resize.mode == 0)
        return append_steps(lowering, &resize, source, &target);
    rnl_dtype dtype = work_type(lowering, source.dtype);
    TRY(rnl_compose_cast(lowering, &source, dtype, &source));
    TRY(rnl_lower_scratch(lowering, dtype, target.rank, target.shape, RNL_LAYOUT_ROW_MAJOR, &wide));
    TRY(append_steps(lowering, &resize, source, &wide));
    return rnl_lower_copy(lowering, &wide, &target);
}
