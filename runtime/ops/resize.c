/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/resize.h"
#include "ops/implementation.h"
#include "ops/resize_plan.h"
#include <math.h>

#define MAX_AXES RNL_RESIZE_MAX_AXES
#define MAX_SIZE (1 << 24)    /* positions are floats */
#define MAX_STRETCH (1 << 20) /* source elements that one result of an antialiased axis takes in */

static float symmetric_offset(float scale, int64_t from, int64_t to)
{
    const float adjustment = (float)to / (scale * (float)from);
    return (float)from / 2 * (1 - adjustment);
}

static rnl_position_map map_of(const rnl_resize_params *params, size_t axis, int64_t from, int64_t to)
{
    const float scale = params->scale[axis], last = (float)(from - 1), to_last = (float)(to - 1);
    const float begin = params->roi_begin[axis], end = params->roi_end[axis];
    const rnl_position_map start = {.divide = 1}, half_pixel = {1, 0.5f, scale, 0, 0.5f, {0}};
    switch (params->coordinates) {
    case RNL_RESIZE_HALF_PIXEL:
        break;
    case RNL_RESIZE_HALF_PIXEL_SYMMETRIC:
        return (rnl_position_map){1, 0.5f, scale, symmetric_offset(scale, from, to), 0.5f, {0}};
    case RNL_RESIZE_PYTORCH_HALF_PIXEL:
        return to > 1 ? half_pixel : start;
    case RNL_RESIZE_ALIGN_CORNERS:
        return to > 1 ? (rnl_position_map){last, 0, to_last, 0, 0, {0}} : start;
    case RNL_RESIZE_ASYMMETRIC:
        return (rnl_position_map){1, 0, scale, 0, 0, {0}};
    case RNL_RESIZE_TF_HALF_PIXEL_FOR_NN:
        return (rnl_position_map){1, 0.5f, scale, 0, 0, {0}};
    case RNL_RESIZE_TF_CROP_AND_RESIZE:
        return to > 1 ? (rnl_position_map){(end - begin) * last, 0, to_last, begin * last, 0, {0}}
                      : (rnl_position_map){0, 0, 1, 0.5f * (begin + end) * last, 0, {0}};
    }
    return half_pixel;
}

static bool is_resized(const rnl_resize_params *params, size_t axis, const rnl_view *src, const rnl_view *dst)
{
    const bool crops = params->coordinates == RNL_RESIZE_TF_CROP_AND_RESIZE &&
                       (params->roi_begin[axis] != 0 || params->roi_end[axis] != 1);
    return src->shape[axis] != dst->shape[axis] || params->scale[axis] != 1 || crops;
}

static rnl_status check_axis(const rnl_resize_params *params, size_t axis, int64_t size)
{
    const float scale = params->scale[axis];
    if (!isfinite(scale) || scale <= 0)
        return FAIL(RNL_INVALID_ARGUMENT, "Resize's scale of axis %zu is %g", axis, (double)scale);
    if (params->coordinates == RNL_RESIZE_TF_CROP_AND_RESIZE &&
        (!isfinite(params->roi_begin[axis]) || !isfinite(params->roi_end[axis])))
        return FAIL(RNL_INVALID_ARGUMENT, "Resize's roi of axis %zu is not finite", axis);
    if (size == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "Resize of axis %zu, which has size 0", axis);
    if (size > MAX_SIZE || (params->antialias && scale < 1.0f / MAX_STRETCH))
        return FAIL(RNL_UNIMPLEMENTED, "Resize of axis %zu of size %lld by %g", axis, (long long)size, (double)scale);
    return RNL_OK;
}

/* The axes that are resized, outermost first. */
static rnl_status find_axes(const rnl_resize_params *params, const rnl_view *src, const rnl_view *dst,
                            size_t out_axes[MAX_AXES], size_t *out_count)
{
    *out_count = 0;
    for (size_t i = 0; i < src->rank; ++i) {
        if (!is_resized(params, i, src, dst))
            continue;
        TRY(check_axis(params, i, src->shape[i]));
        if (*out_count == MAX_AXES)
            return FAIL(RNL_UNIMPLEMENTED, "Resize of more than %d axes", MAX_AXES);
        out_axes[(*out_count)++] = i;
    }
    if (*out_count == 0 && src->rank) /* the kernel takes at least one */
        out_axes[(*out_count)++] = 0;
    return RNL_OK;
}

static rnl_status check(const rnl_resize_params *params, const rnl_view *src, const rnl_view *dst)
{
    if ((unsigned)params->mode > RNL_RESIZE_CUBIC || (unsigned)params->nearest > RNL_RESIZE_CEIL ||
        (unsigned)params->coordinates > RNL_RESIZE_TF_CROP_AND_RESIZE)
        return FAIL(RNL_INVALID_ARGUMENT, "unknown mode of Resize");
    if (src->rank != dst->rank || src->dtype != dst->dtype || src->rank == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "Resize's result has its operand's type and rank, of at least 1");
    if (params->mode != RNL_RESIZE_NEAREST && !rnl_dtype_is_float(src->dtype))
        return FAIL(RNL_UNIMPLEMENTED, "Resize of %s in linear or cubic mode", rnl_dtype_name(src->dtype));
    if (params->mode == RNL_RESIZE_NEAREST && params->antialias)
        return FAIL(RNL_INVALID_ARGUMENT, "Resize in nearest mode does not antialias");
    return RNL_OK;
}

/* Views: dst, src without the resized axes, then one for each of those that gives its coordinate. */
static rnl_dims walk_of(const rnl_view *src, const rnl_view *dst, const size_t *axes, size_t count)
{
    rnl_dims dims = {.rank = dst->rank, .views = 2 + MAX_AXES};
    for (size_t i = 0; i < dst->rank; ++i) {
        dims.shape[i] = dst->shape[i];
        dims.stride[0][i] = dst->stride[i];
        dims.stride[1][i] = src->stride[i];
    }
    for (size_t a = 0; a < count; ++a) {
        dims.stride[1][axes[a]] = 0;
        dims.stride[2 + a][axes[a]] = 1;
    }
    rnl_dims_coalesce(&dims);
    return dims;
}

rnl_position_map rnl_resize_map(const rnl_resize_problem *problem, size_t axis)
{
    const rnl_view *src = problem->src, *dst = problem->dst;
    if (is_resized(problem->params, axis, src, dst))
        return map_of(problem->params, axis, src->shape[axis], dst->shape[axis]);
    return (rnl_position_map){.multiply = 1, .divide = 1};
}

static void add_axes(rnl_step_builder *step, const rnl_resize_problem *problem)
{
    const rnl_resize_params *params = problem->params;
    int64_t size[4] = {1, 1, 1, 1}, stride[4] = {0};
    float stretch[4] = {1, 1, 1, 1};
    rnl_position_map maps[MAX_AXES] = {{.divide = 1}, {.divide = 1}, {.divide = 1}};
    for (size_t a = 0; a < problem->count; ++a) {
        const size_t i = problem->axes[a];
        size[a] = problem->src->shape[i];
        stride[a] = problem->src->stride[i];
        stretch[a] = params->antialias && params->scale[i] < 1 ? 1 / params->scale[i] : 1;
        maps[a] = rnl_resize_map(problem, i);
    }
    rnl_step_indices(step, 4, size, 4, 1);
    rnl_step_indices(step, 4, stride, 4, 0);
    rnl_step_value(step, stretch, sizeof stretch);
    for (size_t a = 0; a < MAX_AXES; ++a)
        rnl_step_value(step, &maps[a], sizeof maps[a]);
}

static void add_defines(rnl_step_builder *step, const rnl_resize_params *params, rnl_dtype dtype, size_t axes)
{
    const bool nearest = params->mode == RNL_RESIZE_NEAREST;
    const bool crop = params->coordinates == RNL_RESIZE_TF_CROP_AND_RESIZE;
    rnl_step_type(step, "T", nearest && !crop ? rnl_dtype_bits(dtype) : dtype);
    rnl_step_define(step, "AXES=%zu", axes);
    rnl_step_define(step, "MODE=%d", (int)params->mode);
    rnl_step_define(step, "CROP=%d", crop);
    rnl_step_define(step, "EXCLUDE_OUTSIDE=%d", !nearest && params->exclude_outside);
    rnl_step_define(step, "NEAREST=%d", nearest ? (int)params->nearest : 0);
}

static rnl_status append_portable(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_resize_problem *problem = data;
    const rnl_resize_params *params = problem->params;
    const uint64_t elements = (uint64_t)rnl_view_elements(problem->dst);
    const rnl_dims dims = walk_of(problem->src, problem->dst, problem->axes, problem->count);
    rnl_step_builder step;
    rnl_step_begin(&step, list, name, problem->index64);
    add_defines(&step, params, problem->src->dtype, problem->count);
    rnl_step_view(&step, problem->dst);
    rnl_step_view(&step, problem->src);
    add_axes(&step, problem);
    rnl_step_float(&step, params->cubic_a);
    rnl_step_float(&step, params->extrapolation_value);
    rnl_step_rows(&step, &dims);
    step.step.bytes = (elements + (uint64_t)rnl_view_elements(problem->src)) * rnl_dtype_bytes(problem->src->dtype);
    step.step.flops = elements * (params->mode == RNL_RESIZE_NEAREST ? 0 : 4 * (uint64_t)params->mode * problem->count);
    rnl_step_writes(&step, problem->dst->slot);
    return rnl_step_end(&step, "resize.cl", "resize");
}

rnl_status rnl_op_resize(rnl_step_list *list, const rnl_resize_params *params, const rnl_view *src, const rnl_view *dst)
{
    static const rnl_implementation implementations[] = {
        {"resize:vectors", rnl_resize_vectors_apply, NULL, rnl_resize_vectors_append},
        {"resize:portable", NULL, NULL, append_portable},
    };
    rnl_resize_problem problem = {.params = params, .src = src, .dst = dst};
    TRY(rnl_views_check((const rnl_view *[]){src, dst}, 2, &problem.index64), "operands of Resize");
    TRY(check(params, src, dst));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    TRY(find_axes(params, src, dst, problem.axes, &problem.count));
    return rnl_implementation_append(implementations, 2, NULL, list, &problem);
}
