/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/qconv.h"
#include "ops/implementation.h"
#include "ops/step_build.h"

#define SPATIAL RNL_MAX_SPATIAL
#define CHANNELS 8     /* of a work-item, and … */
#define MAX_TAPS 64    /* … as in qconv_depthwise.cl */
#define MAX_ROWS 32768 /* in the range's second dimension */

static bool is_byte(rnl_dtype dtype)
{
    return dtype == RNL_U8 || dtype == RNL_I8;
}

/* The spatial numbers of fewer dimensions, with `fill` before them. */
static void spread(const int64_t *values, size_t spatial, int64_t fill, int64_t out_values[4])
{
    for (size_t i = 0; i < 4; ++i)
        out_values[i] = i < SPATIAL - spatial || i >= SPATIAL ? fill : values[i - (SPATIAL - spatial)];
}

static void add_spatial(rnl_step_builder *step, const int64_t *values, size_t spatial, int64_t fill)
{
    int64_t spread_values[4];
    spread(values, spatial, fill, spread_values);
    rnl_step_indices(step, 4, spread_values, 4, fill);
}

/* What a window moves over, and how. */
static void add_window(rnl_step_builder *step, const rnl_qconv_params *params, const rnl_view *src)
{
    add_spatial(step, &src->shape[2], params->spatial, 1);
    add_spatial(step, params->kernel, params->spatial, 1);
    add_spatial(step, params->stride, params->spatial, 1);
    add_spatial(step, params->dilation, params->spatial, 1);
    add_spatial(step, params->pad_begin, params->spatial, 0);
}

/* The strides of N, C and three spatial dimensions. */
static void add_strides(rnl_step_builder *step, const rnl_view *view)
{
    int64_t strides[5] = {view->stride[0], view->stride[1]};
    for (size_t i = 0; i < view->rank - 2; ++i)
        strides[2 + SPATIAL - (view->rank - 2) + i] = view->stride[2 + i];
    rnl_step_indices(step, 8, strides, 5, 0);
}

/* Coordinates within the padded source do not fit in 31 bits. */
static bool is_far(const rnl_qconv_params *params, const int64_t *output)
{
    for (size_t i = 0; i < params->spatial; ++i) {
        int64_t span, reach;
        if (__builtin_mul_overflow(params->kernel[i], params->dilation[i], &span) ||
            __builtin_mul_overflow(output[i], params->stride[i], &reach) || span > INT32_MAX / 4 ||
            reach > INT32_MAX / 4 || params->pad_begin[i] > INT32_MAX / 4)
            return true;
    }
    return false;
}

static rnl_status check_zero_point(const rnl_view *zero, rnl_dtype dtype, int64_t most)
{
    if (!rnl_view_exists(zero))
        return RNL_OK;
    const int64_t count = rnl_view_elements(zero);
    if (zero->dtype == dtype && (count == 1 || (zero->rank == 1 && count == most)))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT,
                "an integer convolution's zero point of %lld elements of %s; it has 1 or %lld of %s", (long long)count,
                rnl_dtype_name(zero->dtype), (long long)most, rnl_dtype_name(dtype));
}

static rnl_status check_shapes(const rnl_qconv_params *params, const rnl_view *src, const rnl_view *weight,
                               const rnl_view *dst)
{
    const size_t rank = params->spatial + 2;
    const int64_t groups = params->groups;
    bool fits = params->spatial >= 1 && params->spatial <= SPATIAL && src->rank == rank && weight->rank == rank &&
                dst->rank == rank && groups >= 1;
    fits = fits && src->shape[1] % groups == 0 && src->shape[1] / groups == weight->shape[1] &&
           dst->shape[0] == src->shape[0] && dst->shape[1] == weight->shape[0] && weight->shape[0] % groups == 0;
    for (size_t i = 0; fits && i < params->spatial; ++i)
        fits = weight->shape[2 + i] == params->kernel[i] && params->stride[i] >= 1 && params->dilation[i] >= 1 &&
               params->pad_begin[i] >= 0;
    if (fits)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "an integer convolution's shapes do not fit each other");
}

static rnl_status check(const rnl_qconv_params *params, const rnl_view *src, const rnl_view *weight,
                        const rnl_view *dst, bool *out_index64)
{
    const rnl_view *views[] = {src, weight, dst, params->src_zero_point, params->weight_zero_point};
    TRY(rnl_views_check(views, sizeof views / sizeof *views, out_index64), "operands of an integer convolution");
    if (!is_byte(src->dtype) || !is_byte(weight->dtype) || dst->dtype != RNL_I32)
        return FAIL(RNL_INVALID_ARGUMENT, "an integer convolution of %s and %s into %s", rnl_dtype_name(src->dtype),
                    rnl_dtype_name(weight->dtype), rnl_dtype_name(dst->dtype));
    TRY(check_shapes(params, src, weight, dst));
    TRY(check_zero_point(params->src_zero_point, src->dtype, 1));
    return check_zero_point(params->weight_zero_point, weight->dtype, dst->shape[1]);
}

/* `inner` work-items side by side for each of `rows`; large ones are a work-group each. */
static void add_range(rnl_step_builder *step, int64_t inner, int64_t rows, bool large)
{
    const size_t row_range = (size_t)(rows < MAX_ROWS ? rows : MAX_ROWS);
    rnl_step_range(step, 3, (size_t[3]){(size_t)inner, row_range, ((size_t)rows + row_range - 1) / row_range},
                   large         ? (size_t[3]){1, 1, 1}
                   : inner >= 32 ? (size_t[3]){32, 2, 1}
                                 : (size_t[3]){4, 16, 1});
}

/* Of one channel a group, which are neighbours: in vectors, on CPUs. */
static bool is_depthwise(const rnl_device *device, const rnl_qconv_params *params, const rnl_view *src,
                         const rnl_view *dst)
{
    int64_t taps = 1;
    for (size_t i = 0; i < params->spatial; ++i)
        if (__builtin_mul_overflow(taps, params->kernel[i], &taps))
            return false;
    return rnl_device_is_cpu(device) && params->groups == src->shape[1] && params->groups == dst->shape[1] &&
           dst->shape[1] >= CHANNELS && src->stride[1] == 1 && dst->stride[1] == 1 && taps <= MAX_TAPS;
}

rnl_status rnl_op_qconv(rnl_step_list *list, const rnl_qconv_params *params, const rnl_view *src,
                        const rnl_view *weight, const rnl_view *dst)
{
    bool index64;
    rnl_step_builder step;
    TRY(check(params, src, weight, dst, &index64));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    const rnl_view *zero = params->src_zero_point, *weight_zero = params->weight_zero_point;
    const bool has_zeros = rnl_view_exists(weight_zero);
    int64_t outputs[4], sizes[8] = {dst->shape[0], dst->shape[1]};
    spread(&dst->shape[2], params->spatial, 1, outputs);
    for (size_t i = 0; i < SPATIAL; ++i)
        sizes[2 + i] = outputs[i];
    sizes[5] = weight->shape[1];
    sizes[6] = dst->shape[1] / params->groups;
    sizes[7] = has_zeros && rnl_view_elements(weight_zero) > 1 ? weight_zero->stride[0] : 0;
    const int32_t flags[4] = {src->dtype == RNL_I8, weight->dtype == RNL_I8, rnl_view_exists(zero), has_zeros};

    const bool depthwise = is_depthwise(list->device, params, src, dst);
    rnl_step_begin(&step, list, depthwise ? "qconv:depthwise" : "qconv:portable",
                   index64 || is_far(params, &dst->shape[2]));
    const rnl_view *views[] = {dst, src, weight, zero, weight_zero};
    for (size_t i = 0; i < sizeof views / sizeof *views; ++i)
        rnl_step_view(&step, views[i]);
    rnl_step_indices(&step, 8, sizes, 8, 0);
    add_window(&step, params, src);
    for (size_t i = 0; i < 3; ++i)
        add_strides(&step, views[i]);
    rnl_step_value(&step, flags, sizeof flags);
    if (depthwise)
        add_range(&step, (sizes[1] + CHANNELS - 1) / CHANNELS, sizes[0] * sizes[2] * sizes[3], true);
    else
        add_range(&step, sizes[1], rnl_view_elements(dst) / sizes[1], false);
    step.step.flops = 2 * (uint64_t)rnl_view_elements(dst) * (uint64_t)(rnl_view_elements(weight) / weight->shape[0]);
    step.step.bytes =
        (uint64_t)rnl_view_elements(src) + (uint64_t)rnl_view_elements(weight) + 4 * (uint64_t)rnl_view_elements(dst);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, depthwise ? "qconv_depthwise.cl" : "qconv.cl", depthwise ? "qconv_depthwise" : "qconv");
}

static rnl_status check_columns(const rnl_qconv_params *params, const rnl_view *src, const rnl_view *dst)
{
    int64_t taps = 1;
    bool fits = src->rank == params->spatial + 2 && dst->rank == params->spatial + 3 && is_byte(src->dtype) &&
                dst->dtype == src->dtype && dst->shape[0] == src->shape[0] && rnl_view_is_row_major(dst) &&
                dst->shape[dst->rank - 1] == src->shape[1];
    for (size_t i = 0; fits && i < params->spatial; ++i)
        fits = params->kernel[i] >= 1 && !__builtin_mul_overflow(taps, params->kernel[i], &taps);
    if (fits && dst->shape[dst->rank - 2] == taps)
        return check_zero_point(params->src_zero_point, src->dtype, 1);
    return FAIL(RNL_INVALID_ARGUMENT, "an integer convolution's windows do not fit the tensor for them");
}

rnl_status rnl_op_qconv_columns(rnl_step_list *list, const rnl_qconv_params *params, const rnl_view *src,
                                const rnl_view *dst)
{
    bool index64;
    rnl_step_builder step;
    const rnl_view *zero = params->src_zero_point;
    TRY(rnl_views_check((const rnl_view *[]){src, dst, zero}, 3, &index64), "windows of an integer convolution");
    TRY(check_columns(params, src, dst));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    const int64_t taps = dst->shape[dst->rank - 2], channels = src->shape[1];
    int64_t outputs[4], sizes[8] = {dst->shape[0]};
    spread(&dst->shape[1], params->spatial, 1, outputs);
    for (size_t i = 0; i < SPATIAL; ++i)
        sizes[1 + i] = outputs[i];
    sizes[4] = channels;

    rnl_step_begin(&step, list, "qconv:columns", index64 || is_far(params, &dst->shape[1]));
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_view(&step, zero);
    rnl_step_indices(&step, 8, sizes, 8, 0);
    add_window(&step, params, src);
    add_strides(&step, src);
    rnl_step_int(&step, rnl_view_exists(zero));
    /* On CPUs a work-item takes a row, so that what it finds out of it is worth it. */
    const bool takes_rows = rnl_device_is_cpu(list->device);
    const int64_t columns = sizes[3], each = takes_rows ? columns : 1;
    rnl_step_int(&step, (int32_t)each);
    add_range(&step, columns / each, rnl_view_elements(dst) / taps / channels / columns, takes_rows);
    step.step.bytes = (uint64_t)rnl_view_elements(src) + (uint64_t)rnl_view_elements(dst);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "qconv_columns.cl", "qconv_columns");
}
