/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_direct.h"
#include "ops/step_build.h"

static rnl_status check_types(const rnl_view *src, const rnl_view *weight, const rnl_view *bias, const rnl_view *dst)
{
    if (rnl_dtype_is_float(src->dtype) && weight->dtype == src->dtype && dst->dtype == src->dtype &&
        (!rnl_view_exists(bias) || bias->dtype == src->dtype))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "convolution of %s with weights of %s into %s", rnl_dtype_name(src->dtype),
                rnl_dtype_name(weight->dtype), rnl_dtype_name(dst->dtype));
}

static rnl_status check_shapes(const rnl_conv_params *params, bool transposed, const rnl_view *src,
                               const rnl_view *weight, const rnl_view *bias, const rnl_view *dst)
{
    const size_t rank = params->spatial + 2;
    if (params->spatial < 1 || params->spatial > RNL_MAX_SPATIAL || src->rank != rank || weight->rank != rank ||
        dst->rank != rank || params->groups < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "convolution of rank %zu by rank %zu into rank %zu", src->rank, weight->rank,
                    dst->rank);
    const int64_t in = transposed ? weight->shape[0] : weight->shape[1] * params->groups;
    const int64_t out = transposed ? weight->shape[1] * params->groups : weight->shape[0];
    if (src->shape[0] != dst->shape[0] || src->shape[1] != in || dst->shape[1] != out || in % params->groups != 0 ||
        out % params->groups != 0 || (rnl_view_exists(bias) && (bias->rank != 1 || bias->shape[0] != out)))
        return FAIL(RNL_INVALID_ARGUMENT, "convolution of %lld channels into %lld with weights for %lld into %lld",
                    (long long)src->shape[1], (long long)dst->shape[1], (long long)in, (long long)out);
    int64_t pixels = 1;
    for (size_t i = 0; i < params->spatial; ++i) {
        const int64_t size = dst->shape[i + 2] > src->shape[i + 2] ? dst->shape[i + 2] : src->shape[i + 2];
        int64_t extent, reach;
        if (params->stride[i] < 1 || params->dilation[i] < 1 ||
            __builtin_mul_overflow(weight->shape[i + 2], params->dilation[i], &extent) ||
            __builtin_mul_overflow(size, params->stride[i], &reach) || __builtin_add_overflow(reach, extent, &reach) ||
            __builtin_add_overflow(reach, params->pad_begin[i], &reach) || reach > INT32_MAX ||
            __builtin_mul_overflow(pixels, dst->shape[i + 2], &pixels) || pixels > INT32_MAX)
            return FAIL(RNL_UNIMPLEMENTED, "convolution over more than 2^31 pixels");
    }
    return in > INT32_MAX || out > INT32_MAX || src->shape[0] > INT32_MAX
               ? FAIL(RNL_UNIMPLEMENTED, "convolution of more than 2^31 channels or images")
               : RNL_OK;
}

/* Spatial values as (d, h, w), absent ones `fill`, and a fourth. */
static void add_int4(rnl_step_builder *step, const int64_t *values, size_t spatial, int32_t fill, int64_t fourth)
{
    int32_t all[4] = {fill, fill, fill, (int32_t)fourth};
    for (size_t i = 0; i < spatial; ++i)
        all[i + 3 - spatial] = (int32_t)values[i];
    rnl_step_value(step, all, sizeof all);
}

static void add_strides(rnl_step_builder *step, const rnl_view *view, bool swapped)
{
    int64_t stride[5] = {view->stride[swapped ? 1 : 0], view->stride[swapped ? 0 : 1], 0, 0, 0};
    for (size_t i = 2; i < view->rank; ++i)
        stride[i + 5 - view->rank] = view->stride[i];
    rnl_step_indices(step, 8, stride, 5, 0);
}

static void add_arguments(rnl_step_builder *step, const rnl_conv_params *params, bool transposed, const rnl_view *src,
                          const rnl_view *weight, const rnl_view *dst)
{
    const size_t spatial = params->spatial;
    add_int4(step, src->shape + 2, spatial, 1, src->shape[1] / params->groups);
    add_int4(step, dst->shape + 2, spatial, 1, dst->shape[1] / params->groups);
    add_int4(step, weight->shape + 2, spatial, 1, params->groups);
    add_int4(step, params->stride, spatial, 1, 0);
    add_int4(step, params->dilation, spatial, 1, 0);
    add_int4(step, params->pad_begin, spatial, 0, 0);
    add_strides(step, src, false);
    add_strides(step, weight, transposed);
    add_strides(step, dst, false);
    rnl_step_int(step, (int32_t)src->shape[0]);
}

rnl_status rnl_op_conv_direct(rnl_step_list *list, const rnl_conv_params *params, bool transposed, const rnl_view *src,
                              const rnl_view *weight, const rnl_view *bias, const rnl_view *dst)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){src, weight, bias, dst}, 4, &index64), "operands of a convolution");
    TRY(check_types(src, weight, bias, dst));
    TRY(check_shapes(params, transposed, src, weight, bias, dst));
    const uint64_t count = (uint64_t)rnl_view_elements(dst);
    if (count == 0)
        return RNL_OK;
    rnl_step_begin(&step, list, transposed ? "conv-transpose:direct" : "conv:direct", index64);
    rnl_step_type(&step, "T", src->dtype);
    if (transposed)
        rnl_step_define(&step, "TRANSPOSED");
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_view(&step, weight);
    rnl_step_view(&step, bias);
    rnl_step_index(&step, rnl_view_exists(bias) ? bias->stride[0] : 0);
    add_arguments(&step, params, transposed, src, weight, dst);
    const size_t images = (size_t)dst->shape[0], filters = (size_t)dst->shape[1];
    rnl_step_range(&step, 3, (size_t[3]){count / images / filters, filters, images}, (size_t[3]){64, 1, 1});
    step.step.flops = count * 2 * (uint64_t)rnl_view_elements(weight) / filters;
    step.step.bytes =
        (count + (uint64_t)(rnl_view_elements(src) + rnl_view_elements(weight))) * rnl_dtype_bytes(src->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "conv_direct.cl", "conv_direct");
}
