/* SPDX-License-Identifier: Apache-2.0 */
/* Col2Im, MaxUnpool, DeformConv, CenterCropPad, GlobalLpPool. */
#include "model/lower_list.h"

#include "model/compose.h"
#include "ops/patch.h"
#include <string.h>

rnl_status rnl_lower_col2im(rnl_lowering *lowering)
{
    rnl_col2im c;
    rnl_col2im_params params = {0};
    rnl_view source, target;
    TRY(rnl_col2im_resolve(&lowering->context, &c));
    memcpy(params.block, c.block, sizeof params.block);
    memcpy(params.blocks, c.blocks, sizeof params.blocks);
    memcpy(params.stride, c.stride, sizeof params.stride);
    memcpy(params.dilation, c.dilation, sizeof params.dilation);
    memcpy(params.pad_begin, c.pad_begin, sizeof params.pad_begin);
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    return rnl_op_col2im(lowering->list, &params, &source, &target);
}

rnl_status rnl_lower_max_unpool(rnl_lowering *lowering)
{
    int64_t shape[RNL_MAX_RANK];
    rnl_view source, indices, target, zero;
    TRY(rnl_max_unpool_shape(&lowering->context, shape));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &indices));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(rnl_lower_scalar(lowering, target.dtype, 0, &zero));
    TRY(rnl_lower_copy(lowering, &zero, &target));
    return rnl_op_max_unpool(lowering->list, shape, &source, &indices, &target);
}

/* The columns of each group times the group's weights. */
static rnl_status multiply_columns(rnl_lowering *lowering, int64_t groups, const rnl_view *columns,
                                   const rnl_view *weight, const rnl_view *bias, const rnl_view *target)
{
    rnl_gemm_params params = {.alpha = 1, .beta = 1};
    rnl_view a, b, c = {.slot = RNL_NO_SLOT}, result;
    int64_t images = target->shape[0], filters = target->shape[1] / groups,
            pixels = target->shape[2] * target->shape[3];
    int64_t terms = columns->shape[1] / groups * columns->shape[2];
    TRY(rnl_compose_reshape(lowering, weight, 3, (const int64_t[]){groups, filters, terms}, &a));
    TRY(rnl_compose_reshape(lowering, columns, 4, (const int64_t[]){images, groups, terms, pixels}, &b));
    if (!rnl_view_reshape(target, 4, (const int64_t[]){images, groups, filters, pixels}, &result))
        return FAIL(RNL_INTERNAL, "a row-major tensor cannot be reshaped");
    if (rnl_view_exists(bias))
        TRY(rnl_compose_reshape(lowering, bias, 3, (const int64_t[]){groups, filters, 1}, &c));
    return rnl_compose_product(lowering, &params, &a, &b, &c, &result);
}

rnl_status rnl_lower_deform_conv(rnl_lowering *lowering)
{
    rnl_window window;
    rnl_view sources[5], target, columns;
    TRY(rnl_window_deform(&lowering->context, &window));
    rnl_deform_params params = {.offset_groups = rnl_node_int(lowering->context.node, "offset_group", 1)};
    memcpy(params.kernel, window.kernel, sizeof params.kernel);
    memcpy(params.stride, window.stride, sizeof params.stride);
    memcpy(params.dilation, window.dilation, sizeof params.dilation);
    memcpy(params.pad_begin, window.pad_begin, sizeof params.pad_begin);
    for (size_t i = 0; i < 5; i++)
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &sources[i]));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    const int64_t shape[] = {target.shape[0], sources[0].shape[1], window.kernel[0] * window.kernel[1], target.shape[2],
                             target.shape[3]};
    TRY(rnl_lower_scratch(lowering, target.dtype, 5, shape, RNL_LAYOUT_ROW_MAJOR, &columns));
    TRY(rnl_op_deform(lowering->list, &params, &sources[0], &sources[2], &sources[4], &columns));
    return multiply_columns(lowering, window.groups, &columns, &sources[1], &sources[3], &target);
}

rnl_status rnl_lower_center_crop_pad(rnl_lowering *lowering)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    rnl_view source, target, core, zero;
    bool pads = false;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    for (size_t i = 0; i < source.rank; i++) {
        int64_t more = source.shape[i] - output->shape[i];
        pads = pads || more < 0;
        if (more > 0)
            rnl_view_slice(&source, i, more / 2, output->shape[i], 1);
    }
    if (!pads) {
        rnl_lower_alias(lowering, 0, &source);
        return RNL_OK;
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    core = target;
    for (size_t i = 0; i < source.rank; i++)
        rnl_view_slice(&core, i, (target.shape[i] - source.shape[i]) / 2, source.shape[i], 1);
    TRY(rnl_lower_scalar(lowering, target.dtype, 0, &zero));
    TRY(rnl_lower_copy(lowering, &zero, &target));
    return rnl_lower_copy(lowering, &source, &core);
}

/* The p-th root of the sum of p-th powers. */
rnl_status rnl_lower_global_lp_pool(rnl_lowering *lowering)
{
    int64_t p = rnl_node_int(lowering->context.node, "p", 2);
    rnl_view source, target, wide;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    uint32_t axes = ((1u << source.rank) - 1) & ~3u;
    if (p == 1 || p == 2)
        return rnl_op_reduce(lowering->list, p == 1 ? RNL_REDUCE_L1 : RNL_REDUCE_L2, axes, &source, &target);
    TRY(rnl_compose_cast(lowering, &source, source.dtype == RNL_F64 ? RNL_F64 : RNL_F32, &wide));
    TRY(rnl_compose_unary(lowering, RNL_MAP_ABS, &wide, &wide));
    TRY(rnl_compose_with(lowering, RNL_MAP_POW, &wide, (double)p, &wide));
    TRY(rnl_compose_reduce(lowering, RNL_REDUCE_SUM, axes, &wide, &wide));
    TRY(rnl_compose_with(lowering, RNL_MAP_POW, &wide, 1 / (double)p, &wide));
    return rnl_lower_copy(lowering, &wide, &target);
}
