/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and pooling: operators on images, channels last. */
#include "model/lower_list.h"

#include "model/fuse.h"
#include "ops/conv_direct.h"
#include "ops/pool.h"
#include <string.h>

static rnl_conv_params conv_params(const rnl_window *window)
{
    rnl_conv_params params = {.spatial = window->spatial, .groups = window->groups};
    memcpy(params.stride, window->stride, sizeof params.stride);
    memcpy(params.dilation, window->dilation, sizeof params.dilation);
    memcpy(params.pad_begin, window->pad_begin, sizeof params.pad_begin);
    return params;
}

/* The window's padding is that of a Pad before it, too. */
static bool pads_itself(const rnl_lowering *lowering)
{
    uint32_t source;
    return rnl_fuse_pad_of(lowering->planner, lowering->context.node->inputs[0], &source) != NULL;
}

/* What the window moves over; a Pad before it is added to the window's own (pad_end may be NULL). */
static rnl_status lower_source(rnl_lowering *lowering, size_t spatial, int64_t *pad_begin, int64_t *pad_end,
                               rnl_view *out_view)
{
    uint32_t source;
    const rnl_pad *pad = rnl_fuse_pad_of(lowering->planner, lowering->context.node->inputs[0], &source);
    for (size_t i = 0; pad && i < spatial; i++) {
        pad_begin[i] += pad->begin[i + 2];
        if (pad_end)
            pad_end[i] += pad->end[i + 2];
    }
    return rnl_lower_value(lowering, source, RNL_LAYOUT_CHANNELS_LAST, out_view);
}

/* Memory of the convolution's own, where that makes it faster. */
static rnl_status lower_own_memory(rnl_lowering *lowering, rnl_conv_params *params, const rnl_view *source,
                                   const rnl_view *weight, const rnl_view *bias, const rnl_view *target,
                                   rnl_view *out_scratch)
{
    int64_t floats;
    TRY(rnl_conv_scratch(lowering->list->device, params, source, weight, bias, target, &floats));
    if (floats == 0)
        return RNL_OK;
    TRY(rnl_lower_scratch(lowering, RNL_F32, 1, &floats, RNL_LAYOUT_ROW_MAJOR, out_scratch));
    params->scratch = out_scratch;
    return RNL_OK;
}

/* Of float64, which packs no weights and ends with nothing. */
static rnl_status lower_direct(rnl_lowering *lowering, rnl_conv_params *params, bool transposed)
{
    rnl_view source, weight, bias, target;
    TRY(lower_source(lowering, params->spatial, params->pad_begin, NULL, &source));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &weight));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &bias));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_CHANNELS_LAST, &target));
    return rnl_op_conv_direct(lowering->list, params, transposed, &source, &weight, &bias, &target);
}

/* Weights for Winograd's way are made while planning; so those that a step computes have others. */
static rnl_status choose_weights(rnl_lowering *lowering, rnl_conv_params *params, const rnl_view *source)
{
    const rnl_tensor_desc *weight = &lowering->context.inputs[1], *target = &lowering->context.outputs[0];
    if (!lowering->planner->model->constants.tensors[lowering->context.node->inputs[1]])
        return RNL_OK;
    rnl_view weights = {.slot = RNL_NO_SLOT, .dtype = weight->dtype, .rank = weight->rank};
    memcpy(weights.shape, weight->shape, sizeof weights.shape);
    const rnl_view result = rnl_view_channels_last(RNL_NO_SLOT, target->dtype, target->rank, target->shape);
    return rnl_conv_prefers_winograd(lowering->list->device, params, source, &weights, &result, &params->winograd);
}

static rnl_status lower_convolution(rnl_lowering *lowering, const rnl_window *window, bool transposed)
{
    rnl_conv_params params = conv_params(window);
    rnl_packing packing = transposed ? RNL_PACKING_CONV_TRANSPOSE : RNL_PACKING_CONV;
    rnl_view source, weight, bias, target, scratch;
    rnl_chain *chain = NULL;
    if (lowering->context.inputs[0].dtype == RNL_F64)
        return lower_direct(lowering, &params, transposed);
    TRY(lower_source(lowering, params.spatial, params.pad_begin, NULL, &source));
    if (!transposed)
        TRY(choose_weights(lowering, &params, &source));
    if (params.winograd)
        packing = RNL_PACKING_CONV_WINOGRAD;
    TRY(rnl_lower_anchor_weights(lowering, packing, window->groups, &weight, &bias));
    TRY(rnl_lower_result(lowering, RNL_LAYOUT_CHANNELS_LAST, &target, &chain));
    params.chain = chain;
    if (transposed)
        return rnl_op_conv_transpose(lowering->list, &params, &source, &weight, &bias, &target);
    TRY(lower_own_memory(lowering, &params, &source, &weight, &bias, &target, &scratch));
    return rnl_op_conv(lowering->list, &params, &source, &weight, &bias, &target);
}

rnl_status rnl_lower_conv(rnl_lowering *lowering)
{
    rnl_window window;
    TRY(rnl_window_conv(&lowering->context, 1, &window));
    return lower_convolution(lowering, &window, false);
}

rnl_status rnl_lower_conv_transpose(rnl_lowering *lowering)
{
    rnl_window window;
    TRY(rnl_window_conv_transpose(&lowering->context, &window));
    return lower_convolution(lowering, &window, true);
}

rnl_status rnl_lower_pool(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_window window;
    rnl_view source, target, indices = {.slot = RNL_NO_SLOT};
    TRY(rnl_window_pool(&lowering->context, &window));
    rnl_pool_params params = {.spatial = window.spatial,
                              .count_include_pad = rnl_node_int(node, "count_include_pad", 0) != 0,
                              .p = rnl_node_int(node, "p", 2),
                              .column_major_indices = rnl_node_int(node, "storage_order", 0) != 0};
    memcpy(params.kernel, window.kernel, sizeof params.kernel);
    memcpy(params.stride, window.stride, sizeof params.stride);
    memcpy(params.dilation, window.dilation, sizeof params.dilation);
    memcpy(params.pad_begin, window.pad_begin, sizeof params.pad_begin);
    memcpy(params.pad_end, window.pad_end, sizeof params.pad_end);
    TRY(lower_source(lowering, params.spatial, params.pad_begin, params.pad_end, &source));
    params.count_include_pad = params.count_include_pad || pads_itself(lowering);
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_CHANNELS_LAST, &target));
    if (rnl_lower_has_output(lowering, 1))
        TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_CHANNELS_LAST, &indices));
    rnl_pool_op op = strcmp(node->op_type, "MaxPool") == 0  ? RNL_POOL_MAX
                     : strcmp(node->op_type, "LpPool") == 0 ? RNL_POOL_LP
                                                            : RNL_POOL_AVERAGE;
    return rnl_op_pool(lowering->list, op, &params, &source, &target, &indices);
}
