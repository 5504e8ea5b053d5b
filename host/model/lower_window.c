/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution and pooling: operators on images, channels last. */
#include "model/lower_list.h"

#include "model/fuse.h"
#include "model/narrow.h"
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

rnl_status rnl_lower_conv_memory(rnl_lowering *lowering, rnl_conv_params *params, const rnl_view *source,
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

rnl_status rnl_lower_prefers_amx(const rnl_lowering *lowering, rnl_conv_params *params, const rnl_view *source,
                                 const rnl_view *weight, const rnl_view *target)
{
    bool prefers = false;
    params->amx = rnl_narrow_multiplies(lowering->planner, lowering->context.node) ? 1 : 3;
    TRY(rnl_conv_prefers_amx(lowering->list->device, params, source, weight, target, &prefers));
    params->amx = prefers ? params->amx : 0;
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

/* Weights of a special form are made while planning; so those that a step computes have others. */
static rnl_status choose_weights(rnl_lowering *lowering, rnl_conv_params *params, const rnl_view *source)
{
    const rnl_tensor_desc *weight = &lowering->context.inputs[1], *target = &lowering->context.outputs[0];
    if (!lowering->planner->model->constants.tensors[lowering->context.node->inputs[1]])
        return RNL_OK;
    rnl_view weights = {.slot = RNL_NO_SLOT, .dtype = weight->dtype, .rank = weight->rank};
    memcpy(weights.shape, weight->shape, sizeof weights.shape);
    const rnl_view result = rnl_view_channels_last(RNL_NO_SLOT, target->dtype, target->rank, target->shape);
    TRY(rnl_lower_prefers_amx(lowering, params, source, &weights, &result));
    if (params->amx)
        return RNL_OK;
    TRY(rnl_conv_prefers_winograd(lowering->list->device, params, source, &weights, &result, &params->winograd));
    if (params->winograd)
        return RNL_OK;
    TRY(rnl_conv_prefers_fip(lowering->list->device, params, source, &weights, &result, &params->fip));
    return params->fip ? RNL_OK
                       : rnl_conv_prefers_strassen(lowering->list->device, params, source, &weights, &result,
                                                   &params->strassen);
}

/* Where the model multiplies bfloat16: the image as it is stored, which Winograd's way reads, or as pairs of channels.
 */
static rnl_status choose_narrow(rnl_lowering *lowering, rnl_conv_params *params, rnl_view *source)
{
    const rnl_node *node = lowering->context.node;
    const rnl_tensor_desc *weight = &lowering->context.inputs[1];
    rnl_view weights = {.slot = RNL_NO_SLOT, .rank = weight->rank};
    memcpy(weights.shape, weight->shape, sizeof weights.shape);
    TRY(rnl_lower_stored(lowering, node->inputs[0], RNL_LAYOUT_CHANNELS_LAST, source));
    params->pairs = rnl_conv_prefers_pairs(lowering->list->device, params, source, &weights);
    TRY(choose_weights(lowering, params, source));
    params->pairs = params->pairs && !params->winograd && !params->amx;
    params->fip = params->fip && !params->pairs;
    params->strassen = params->strassen && !params->pairs;
    if (params->winograd || params->amx)
        return RNL_OK;
    return rnl_lower_value_as(lowering, node->inputs[0], RNL_LAYOUT_CHANNELS_LAST, params->pairs ? RNL_BF16 : RNL_F32,
                              source);
}

/* Whether matrix tiles multiply a first layer's picture as bfloat16. */
static rnl_status prefers_tiles(const rnl_lowering *lowering, const rnl_conv_params *params, const rnl_view *picture,
                                const rnl_view *weight, bool *out_prefers)
{
    const rnl_tensor_desc *target = &lowering->context.outputs[0];
    const rnl_view image = rnl_view_channels_last(RNL_NO_SLOT, RNL_F32, picture->rank, picture->shape);
    const rnl_view result = rnl_view_channels_last(RNL_NO_SLOT, target->dtype, target->rank, target->shape);
    rnl_view shape = {.slot = RNL_NO_SLOT, .dtype = RNL_F32, .rank = weight->rank};
    rnl_conv_params wish = *params;
    memcpy(shape.shape, weight->shape, sizeof shape.shape);
    wish.pairs = false;
    wish.amx = 1;
    return rnl_conv_prefers_amx(lowering->list->device, &wish, &image, &shape, &result, out_prefers);
}

/* Where the model multiplies bfloat16: a first layer's picture, if it is one, as it is for matrix tiles, or as pairs of
 * channels. */
static rnl_status lower_colours(rnl_lowering *lowering, rnl_conv_params *params, rnl_view *source)
{
    const uint32_t *inputs = lowering->context.node->inputs;
    const rnl_host_tensor *tensor = lowering->planner->model->constants.tensors[inputs[1]];
    bool tiles;
    if (!rnl_narrow_is_on(lowering->planner->model) || !tensor || tensor->dtype != RNL_F32)
        return RNL_OK;
    rnl_view picture;
    const rnl_view weight = rnl_view_row_major(RNL_NO_SLOT, RNL_F32, tensor->rank, tensor->shape);
    TRY(rnl_lower_stored(lowering, inputs[0], RNL_LAYOUT_ANY, &picture));
    if (!rnl_conv_prefers_colours(lowering->list->device, params, &picture, &weight))
        return RNL_OK;
    TRY(prefers_tiles(lowering, params, &picture, &weight, &tiles));
    params->amx = tiles ? 1 : 0;
    params->pairs = !tiles;
    if (tiles)
        return rnl_lower_value(lowering, inputs[0], RNL_LAYOUT_CHANNELS_LAST, source);
    const int64_t shape[4] = {picture.shape[0], picture.shape[1] + 1, picture.shape[2], picture.shape[3]};
    TRY(rnl_lower_scratch(lowering, RNL_BF16, 4, shape, RNL_LAYOUT_CHANNELS_LAST, source));
    return rnl_op_conv_colours(lowering->list, &picture, source);
}

static rnl_status lower_image(rnl_lowering *lowering, rnl_conv_params *params, bool transposed, rnl_view *source)
{
    if (!transposed && !pads_itself(lowering))
        TRY(lower_colours(lowering, params, source));
    if (params->pairs || params->amx)
        return RNL_OK;
    if (!transposed && !pads_itself(lowering) && rnl_narrow_multiplies(lowering->planner, lowering->context.node))
        return choose_narrow(lowering, params, source);
    if (!transposed && !pads_itself(lowering) && rnl_narrow_is_depthwise(lowering->planner, lowering->context.node))
        return rnl_lower_stored(lowering, lowering->context.node->inputs[0], RNL_LAYOUT_CHANNELS_LAST, source);
    TRY(lower_source(lowering, params->spatial, params->pad_begin, NULL, source));
    return transposed ? RNL_OK : choose_weights(lowering, params, source);
}

static rnl_status lower_convolution(rnl_lowering *lowering, const rnl_window *window, bool transposed)
{
    rnl_conv_params params = conv_params(window);
    rnl_packing packing = transposed ? RNL_PACKING_CONV_TRANSPOSE : RNL_PACKING_CONV;
    rnl_view source, weight, bias, target, scratch;
    rnl_chain *chain = NULL;
    if (lowering->context.inputs[0].dtype == RNL_F64)
        return lower_direct(lowering, &params, transposed);
    TRY(lower_image(lowering, &params, transposed, &source));
    if (params.pairs)
        packing = RNL_PACKING_CONV_PAIRS;
    if (params.winograd)
        packing = params.winograd == 4 ? RNL_PACKING_CONV_WINOGRAD : RNL_PACKING_CONV_WINOGRAD_2;
    if (params.fip)
        packing = RNL_PACKING_FIP;
    if (params.strassen)
        packing = RNL_PACKING_STRASSEN;
    if (params.amx)
        packing = params.amx == 1 ? RNL_PACKING_AMX_BF16 : RNL_PACKING_AMX;
    TRY(rnl_lower_anchor_weights(lowering, packing, window->groups, &weight, &bias));
    TRY(rnl_lower_result(lowering, RNL_LAYOUT_CHANNELS_LAST, &target, &chain));
    params.chain = chain;
    if (transposed)
        return rnl_op_conv_transpose(lowering->list, &params, &source, &weight, &bias, &target);
    TRY(rnl_lower_conv_memory(lowering, &params, &source, &weight, &bias, &target, &scratch));
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
