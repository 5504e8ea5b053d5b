/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_problem.h"
#include "base/memory.h"
#include "ops/conv_amx.h"
#include "ops/conv_fip.h"
#include "ops/conv_pairs.h"
#include "ops/conv_strassen.h"
#include "ops/conv_weight.h"
#include "ops/conv_winograd.h"
#include "ops/step_build.h"

static rnl_status check_params(const rnl_conv_params *params, const rnl_view *src, const rnl_view *weight,
                               const rnl_view *dst)
{
    if (params->spatial < 1 || params->spatial > RNL_MAX_SPATIAL)
        return FAIL(RNL_UNIMPLEMENTED, "convolution over %zu spatial dimensions; 1 to %d are supported",
                    params->spatial, RNL_MAX_SPATIAL);
    const size_t rank = params->spatial + 2;
    if (src->rank != rank || weight->rank != rank || dst->rank != rank)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "convolution of rank %zu with weights of rank %zu into rank %zu; expected %zu", src->rank,
                    weight->rank, dst->rank, rank);
    if (params->groups < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "convolution with %lld groups", (long long)params->groups);
    for (size_t i = 0; i < params->spatial; ++i)
        if (params->stride[i] < 1 || params->dilation[i] < 1)
            return FAIL(RNL_INVALID_ARGUMENT, "convolution with stride %lld, dilation %lld",
                        (long long)params->stride[i], (long long)params->dilation[i]);
    return RNL_OK;
}

/* What weights of a special form stand for. */
static rnl_status check_form(const rnl_conv_params *params, const rnl_view *weight)
{
    if (params->fip && !rnl_conv_fip_takes(false, weight->rank, weight->shape, params->groups, weight->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "weights for Winograd's inner product in a convolution that has none");
    if (params->strassen && !rnl_conv_strassen_takes(weight->rank, weight->shape, params->groups, weight->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "weights for Strassen's algorithm in a convolution that has none");
    if (params->amx &&
        (weight->dtype != RNL_U32 || !rnl_conv_amx_takes(params->amx, weight->rank, weight->shape, params->groups)))
        return FAIL(RNL_INVALID_ARGUMENT, "weights for matrix tiles in a convolution that has none");
    bool fits = (params->winograd == 4 || params->winograd == 2) && params->spatial == 2 && params->groups == 1 &&
                weight->dtype == RNL_F32;
    for (size_t i = 0; fits && i < 2; ++i)
        fits = weight->shape[i + 2] == 3 && params->stride[i] == 1 && params->dilation[i] == 1;
    return fits || !params->winograd
               ? RNL_OK
               : FAIL(RNL_INVALID_ARGUMENT, "weights for Winograd's way in a convolution that has none");
}

static rnl_status check_pairs(const rnl_conv_params *params, bool transposed, const rnl_view *src,
                              const rnl_view *weight)
{
    const bool fits = !transposed && !params->winograd && src->dtype == RNL_BF16 && weight->dtype == RNL_U32 &&
                      weight->shape[1] >= 4 && weight->shape[1] % 2 == 0;
    return fits || !params->pairs
               ? RNL_OK
               : FAIL(RNL_INVALID_ARGUMENT, "weights of pairs of channels in a convolution that has none");
}

/* Kernels that spend little time on their weights read them as float32, and the image as bfloat16. */
static bool may_mix(const rnl_conv_params *params, bool transposed, const rnl_view *src, const rnl_view *weight)
{
    return src->dtype == RNL_BF16 && weight->dtype == RNL_F32 &&
           (params->winograd ||
            rnl_conv_find_layout(transposed, params->groups, weight->rank, weight->shape).depthwise);
}

static bool is_storage(rnl_dtype dtype)
{
    return dtype == RNL_F32 || dtype == RNL_F16 || dtype == RNL_BF16;
}

static rnl_status check_types(const rnl_conv_params *params, bool transposed, const rnl_view *src,
                              const rnl_view *weight, const rnl_view *bias, const rnl_view *dst)
{
    if (!is_storage(src->dtype) || !is_storage(dst->dtype) || (rnl_view_exists(bias) && !is_storage(bias->dtype)))
        return FAIL(RNL_UNIMPLEMENTED, "convolution of %s into %s; float32, float16 and bfloat16 are supported",
                    rnl_dtype_name(src->dtype), rnl_dtype_name(dst->dtype));
    if (weight->dtype != src->dtype && !params->pairs && !params->amx && !may_mix(params, transposed, src, weight))
        return FAIL(RNL_INVALID_ARGUMENT, "convolution of %s with weights of %s", rnl_dtype_name(src->dtype),
                    rnl_dtype_name(weight->dtype));
    return RNL_OK;
}

static rnl_status check_shapes(const rnl_conv_problem *problem)
{
    const rnl_view *src = problem->src, *weight = problem->weight, *bias = problem->bias, *dst = problem->dst;
    const int64_t channels = problem->groups * problem->channels, filters = problem->groups * problem->filters;
    if (src->shape[0] != dst->shape[0])
        return FAIL(RNL_INVALID_ARGUMENT, "convolution of a batch of %lld into one of %lld", (long long)src->shape[0],
                    (long long)dst->shape[0]);
    if (src->shape[1] != channels || dst->shape[1] != filters)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "convolution of %lld channels into %lld with weights for %lld into %lld in %lld groups",
                    (long long)src->shape[1], (long long)dst->shape[1], (long long)channels, (long long)filters,
                    (long long)problem->groups);
    if ((channels > 1 && src->stride[1] != 1) || (filters > 1 && dst->stride[1] != 1))
        return FAIL(RNL_INVALID_ARGUMENT, "convolution of images that are not channels last");
    if (rnl_view_exists(bias) &&
        (bias->rank != 1 || bias->shape[0] != filters || (filters > 1 && bias->stride[0] != 1)))
        return FAIL(RNL_INVALID_ARGUMENT, "convolution's bias is not a dense vector of %lld elements",
                    (long long)filters);
    for (size_t i = 0; i < weight->rank; ++i)
        if (weight->stride[i] != 0)
            return FAIL(RNL_INVALID_ARGUMENT, "convolution's weights are not in rnl_conv_weight_layout's layout");
    return RNL_OK;
}

/* All coordinates that the kernel computes, in and around the images, fit in its int. */
static rnl_status check_reach(const rnl_conv_problem *problem)
{
    int64_t rows = problem->batch, taps = 1;
    for (size_t i = 0; i < 3; ++i) {
        int64_t out = 0, in = 0, sum = 0;
        const int64_t pad = problem->pad[i] < 0 ? -(problem->pad[i] + 1) : problem->pad[i];
        bool fits = !__builtin_mul_overflow(problem->dst_size[i] + 64, problem->stride[i], &out) &&
                    !__builtin_mul_overflow(problem->taps[i], problem->dilation[i], &in) &&
                    !__builtin_add_overflow(out, in, &sum) && !__builtin_add_overflow(sum, pad, &sum) &&
                    !__builtin_mul_overflow(taps, problem->taps[i], &taps) &&
                    !(i < 2 && __builtin_mul_overflow(rows, problem->dst_size[i], &rows));
        if (!fits || sum > INT32_MAX || taps > INT32_MAX || rows > INT32_MAX || problem->src_size[i] > INT32_MAX)
            return FAIL(RNL_UNIMPLEMENTED, "convolution over images or windows larger than 2^31 pixels");
    }
    if (problem->batch > INT32_MAX || problem->src->shape[1] > INT32_MAX || problem->dst->shape[1] > INT32_MAX - 64)
        return FAIL(RNL_UNIMPLEMENTED, "convolution of more than 2^31 channels or images");
    return RNL_OK;
}

static void spread(rnl_conv_problem *problem, const rnl_conv_params *params)
{
    const rnl_view *src = problem->src, *dst = problem->dst;
    problem->src_stride[0] = src->stride[0];
    problem->dst_stride[0] = dst->stride[0];
    for (size_t i = 0; i < 3; ++i) {
        const bool present = i + params->spatial >= 3;
        const size_t from = present ? i + params->spatial - 3 : 0, axis = from + 2;
        problem->src_size[i] = present ? src->shape[axis] : 1;
        problem->dst_size[i] = present ? dst->shape[axis] : 1;
        problem->taps[i] = present ? problem->weight->shape[axis] : 1;
        problem->stride[i] = present ? params->stride[from] : 1;
        problem->dilation[i] = present ? params->dilation[from] : 1;
        problem->pad[i] = present ? params->pad_begin[from] : 0;
        problem->src_stride[i + 1] = present ? src->stride[axis] : 0;
        problem->dst_stride[i + 1] = present ? dst->stride[axis] : 0;
    }
}

static rnl_status find_weights(rnl_conv_problem *problem, const rnl_conv_params *params)
{
    const rnl_view *weight = problem->weight;
    rnl_conv_layout layout = rnl_conv_find_layout(problem->transposed, params->groups, weight->rank, weight->shape);
    int64_t end = 0;
    if (problem->winograd) {
        const rnl_winograd_layout winograd = rnl_winograd_find_layout(problem->winograd, weight->shape);
        layout = (rnl_conv_layout){.tap_stride = winograd.transform_stride,
                                   .panel_stride = winograd.panel_stride,
                                   .zeros_at = winograd.zeros_at,
                                   .elements = winograd.elements};
    }
    if (problem->pairs)
        layout = rnl_conv_find_pairs(params->groups, weight->rank, weight->shape);
    if (problem->fip) {
        const rnl_fip_layout fip = rnl_conv_fip_find_layout(false, weight->rank, weight->shape);
        layout = (rnl_conv_layout){
            .tap_stride = fip.chunk_stride, .panel_stride = fip.panel_stride, .elements = fip.elements};
    }
    if (problem->strassen) {
        const rnl_strassen_layout strassen = rnl_strassen_find_layout(problem->filters, problem->channels);
        layout = (rnl_conv_layout){
            .tap_stride = strassen.block_stride, .panel_stride = strassen.pair_stride, .elements = strassen.elements};
    }
    if (problem->amx) {
        const rnl_amx_layout amx = rnl_amx_find_layout(problem->amx, problem->transposed, weight->rank, weight->shape);
        layout = (rnl_conv_layout){.panel_stride = amx.block_stride, .elements = amx.elements};
    }
    if (__builtin_add_overflow(layout.elements, weight->offset, &end) || end > INT64_MAX / 16)
        return FAIL(RNL_INVALID_ARGUMENT, "convolution's weights exceed the address space");
    problem->depthwise = layout.depthwise;
    problem->weight_stride[0] = layout.tap_stride;
    problem->weight_stride[1] = layout.group_stride;
    problem->weight_stride[2] = layout.panel_stride;
    problem->weight_stride[3] = layout.zeros_at;
    problem->index64 = problem->index64 || end > INT32_MAX - 65536;
    return RNL_OK;
}

/* The chain's operands, as they lie beside the destination's pixels. */
static rnl_status find_operands(rnl_conv_problem *problem, const rnl_conv_params *params)
{
    const rnl_view *dst = problem->dst;
    int64_t stride[RNL_MAX_RANK];
    if (!params->chain)
        return RNL_OK;
    TRY(rnl_chain_check(params->chain, dst));
    problem->chain = params->chain;
    for (size_t i = 0; i < params->chain->operand_count; ++i) {
        bool index64 = false;
        TRY(rnl_views_check((const rnl_view *[]){&params->chain->operands[i]}, 1, &index64));
        TRY(rnl_chain_broadcast(params->chain, i, dst, stride));
        problem->index64 = problem->index64 || index64;
        problem->operand_step[i] = dst->shape[1] > 1 ? stride[1] : 0;
        if (problem->operand_step[i] != 0 && problem->operand_step[i] != 1)
            return FAIL(RNL_INVALID_ARGUMENT,
                        "operand %zu of the chain behind a convolution has a channel stride of %lld; expected 0 or 1",
                        i, (long long)stride[1]);
        problem->operand_stride[i][0] = stride[0];
        for (size_t j = 0; j < 3; ++j)
            problem->operand_stride[i][j + 1] = j + params->spatial >= 3 ? stride[j + params->spatial - 1] : 0;
    }
    return RNL_OK;
}

/* Dimension i (n, d, h, w) of every tensor beside the pixels goes on where a row of `width` pixels ends. */
static bool continues_row(const rnl_conv_problem *problem, size_t i, int64_t width)
{
    const size_t operands = problem->chain ? problem->chain->operand_count : 0;
    for (size_t k = 0; k < operands; ++k)
        if (problem->operand_stride[k][i] != problem->operand_stride[k][3] * width)
            return false;
    return problem->src_stride[i] == problem->src_stride[3] * width &&
           problem->dst_stride[i] == problem->dst_stride[3] * width;
}

/* A convolution of single pixels does not care for rows: makes as long a row as the strides allow. */
static void flatten(rnl_conv_problem *problem)
{
    for (size_t i = 0; i < 3; ++i)
        if (problem->taps[i] != 1 || problem->stride[i] != 1 || problem->pad[i] != 0 ||
            problem->src_size[i] != problem->dst_size[i])
            return;
    for (size_t i = 3; i-- > 0;) {
        int64_t *outer_src = i ? &problem->src_size[i - 1] : &problem->batch;
        int64_t outer = *outer_src, width = 0;
        if (outer == 1)
            continue;
        if (!continues_row(problem, i, problem->src_size[2]) ||
            __builtin_mul_overflow(problem->src_size[2], outer, &width) || width > INT32_MAX - 64)
            return;
        problem->src_size[2] = problem->dst_size[2] = width;
        *outer_src = 1;
        if (i)
            problem->dst_size[i - 1] = 1;
    }
}

rnl_status rnl_conv_describe(const rnl_conv_params *params, bool transposed, const rnl_view *src,
                             const rnl_view *weight, const rnl_view *bias, const rnl_view *dst,
                             rnl_conv_problem *out_problem)
{
    TRY(check_params(params, src, weight, dst));
    TRY(check_types(params, transposed, src, weight, bias, dst));
    TRY(check_form(params, weight));
    TRY(check_pairs(params, transposed, src, weight));
    rnl_conv_problem problem = {.src = src, .weight = weight, .bias = bias, .dst = dst, .transposed = transposed};
    problem.winograd = params->winograd;
    problem.pairs = params->pairs;
    problem.fip = params->fip;
    problem.strassen = params->strassen;
    problem.amx = params->amx;
    problem.scratch = rnl_view_exists(params->scratch) ? params->scratch : NULL;
    TRY(rnl_views_check((const rnl_view *[]){src, weight, bias, dst}, 4, &problem.index64));
    problem.batch = src->shape[0];
    problem.groups = params->groups;
    problem.channels = transposed ? weight->shape[0] / params->groups : weight->shape[1];
    problem.filters = transposed ? weight->shape[1] : weight->shape[0] / params->groups;
    if (weight->shape[0] % params->groups)
        return FAIL(RNL_INVALID_ARGUMENT, "convolution's weights for %lld channels in %lld groups",
                    (long long)weight->shape[0], (long long)params->groups);
    TRY(check_shapes(&problem));
    spread(&problem, params);
    TRY(check_reach(&problem));
    TRY(find_operands(&problem, params));
    TRY(find_weights(&problem, params));
    flatten(&problem);
    *out_problem = problem;
    return RNL_OK;
}
