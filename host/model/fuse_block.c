/* SPDX-License-Identifier: Apache-2.0 */
#include "model/block.h"

#include "base/memory.h"
#include "model/evaluate.h"
#include "model/narrow.h"
#include <string.h>

uint32_t rnl_block_last(const rnl_block *block)
{
    return block->nodes[block->nodes[2] != RNL_NO_NODE ? 2 : 1];
}

/* What a convolution's group, or else the convolution, makes. */
static uint32_t result_of(const rnl_planner *planner, uint32_t index)
{
    const rnl_group *group = planner->groups[index];
    return planner->graph->nodes[group ? rnl_group_last(group) : index].outputs[0];
}

/* A free convolution of float32 images by constant weights, with the padding that it says. */
static bool is_candidate(const rnl_planner *planner, uint32_t index)
{
    const rnl_node *node = &planner->graph->nodes[index];
    const rnl_group *group = planner->groups[index];
    uint32_t source;
    if (!rnl_node_is(node, "Conv") || !rnl_fuse_runs(planner, index) || planner->blocks[index] ||
        (group && group->nodes[0] != index) || rnl_fuse_pad_of(planner, node->inputs[0], &source))
        return false;
    const rnl_tensor_desc *from = &planner->values[node->inputs[0]].desc;
    const rnl_tensor_desc *to = &planner->values[result_of(planner, index)].desc;
    return from->dtype == RNL_F32 && to->dtype == RNL_F32 && from->rank == 4 &&
           planner->model->constants.tensors[node->inputs[1]];
}

static rnl_status find_window(rnl_planner *planner, uint32_t index, rnl_window *out_window)
{
    rnl_op_context context;
    TRY(rnl_plan_context(planner, &planner->graph->nodes[index], &context));
    return rnl_window_conv(&context, 1, out_window);
}

/* In one group, of single pixels; where the model multiplies bfloat16, of pairs of them. */
static rnl_status is_pixelwise(rnl_planner *planner, uint32_t index, bool *out_is)
{
    rnl_window window;
    *out_is = false;
    if (!is_candidate(planner, index) ||
        (rnl_narrow_is_on(planner->model) && !rnl_narrow_multiplies(planner, &planner->graph->nodes[index])))
        return RNL_OK;
    TRY(find_window(planner, index, &window));
    *out_is = window.groups == 1;
    for (size_t i = 0; i < 2; i++)
        *out_is = *out_is && window.kernel[i] == 1 && window.stride[i] == 1 && window.pad_begin[i] == 0 &&
                  window.pad_end[i] == 0;
    return RNL_OK;
}

/* The window of a depthwise convolution that could be a block's: square, and one result a channel. */
static rnl_status describe_depthwise(rnl_planner *planner, uint32_t index, rnl_conv_block_shape *shape, bool *out_is)
{
    const rnl_node *node = &planner->graph->nodes[index];
    rnl_window window;
    *out_is = false;
    if (!is_candidate(planner, index))
        return RNL_OK;
    TRY(find_window(planner, index, &window));
    const rnl_tensor_desc *from = &planner->values[node->inputs[0]].desc;
    const rnl_tensor_desc *to = &planner->values[node->outputs[0]].desc;
    *out_is = window.groups >= 4 && window.groups == from->shape[1] && window.groups == to->shape[1] &&
              window.kernel[0] == window.kernel[1] && window.stride[0] == window.stride[1] && window.dilation[0] == 1 &&
              window.dilation[1] == 1;
    *shape = (rnl_conv_block_shape){.batch = from->shape[0],
                                    .channels = from->shape[1],
                                    .hidden = from->shape[1],
                                    .filters = from->shape[1],
                                    .taps = window.kernel[0],
                                    .stride = window.stride[0]};
    memcpy(shape->src_size, from->shape + 2, sizeof shape->src_size);
    memcpy(shape->dst_size, to->shape + 2, sizeof shape->dst_size);
    memcpy(shape->pad_begin, window.pad_begin, sizeof shape->pad_begin);
    return RNL_OK;
}

/* The convolution before, whose result nothing else reads. */
static rnl_status find_before(rnl_planner *planner, const rnl_readers *readers, uint32_t index, uint32_t *out_index)
{
    const uint32_t value = planner->graph->nodes[index].inputs[0], maker = planner->graph->values[value].producer;
    bool is = false;
    *out_index = RNL_NO_NODE;
    if (maker == RNL_NO_NODE || readers->counts[value] != 1)
        return RNL_OK;
    const rnl_group *group = planner->groups[maker];
    const uint32_t anchor = group ? group->nodes[0] : maker;
    if (result_of(planner, anchor) != value || (group && !rnl_conv_block_takes(&group->chain)))
        return RNL_OK;
    TRY(is_pixelwise(planner, anchor, &is));
    *out_index = is ? anchor : RNL_NO_NODE;
    return RNL_OK;
}

/* The convolution behind, which alone reads the result. */
static rnl_status find_behind(rnl_planner *planner, const rnl_readers *readers, uint32_t index, uint32_t *out_index)
{
    const uint32_t value = result_of(planner, index);
    const rnl_group *group = planner->groups[index];
    bool is = false;
    *out_index = RNL_NO_NODE;
    if (readers->counts[value] != 1 || readers->starts[value + 1] == readers->starts[value] ||
        (group && !rnl_conv_block_takes(&group->chain)))
        return RNL_OK;
    const uint32_t reader = readers->nodes[readers->starts[value]];
    if (planner->graph->nodes[reader].inputs[0] != value)
        return RNL_OK;
    TRY(is_pixelwise(planner, reader, &is));
    *out_index = is ? reader : RNL_NO_NODE;
    return RNL_OK;
}

static void describe_block(const rnl_planner *planner, rnl_block *block, uint32_t before, uint32_t behind)
{
    const rnl_graph *graph = planner->graph;
    block->nodes[0] = before;
    block->nodes[2] = behind;
    block->shape.pairs = rnl_narrow_is_on(planner->model);
    block->shape.expands = before != RNL_NO_NODE;
    block->shape.projects = behind != RNL_NO_NODE;
    block->shape.channels = block->shape.filters = block->shape.hidden;
    if (block->shape.expands)
        block->shape.channels = planner->values[graph->nodes[before].inputs[0]].desc.shape[1];
    if (block->shape.projects)
        block->shape.filters = planner->values[graph->nodes[behind].outputs[0]].desc.shape[1];
}

static bool try_block(const rnl_planner *planner, rnl_block *block, uint32_t before, uint32_t behind)
{
    describe_block(planner, block, before, behind);
    return rnl_conv_block_pays(planner->model->device, &block->shape);
}

static rnl_status find_block(rnl_planner *planner, const rnl_readers *readers, uint32_t index)
{
    rnl_block block = {.nodes = {RNL_NO_NODE, index, RNL_NO_NODE}}, *kept = NULL;
    uint32_t before, behind;
    bool is;
    TRY(describe_depthwise(planner, index, &block.shape, &is));
    if (!is)
        return RNL_OK;
    TRY(find_before(planner, readers, index, &before));
    TRY(find_behind(planner, readers, index, &behind));
    describe_block(planner, &block, before, behind);
    if (rnl_conv_block_loses(planner->model->device, &block.shape))
        return RNL_OK;
    /* With the convolution behind it each thread gets pixels; with the one before, channels, which seldom divide as
     * well. */
    if (!try_block(planner, &block, before, behind) && !try_block(planner, &block, RNL_NO_NODE, behind) &&
        !try_block(planner, &block, before, RNL_NO_NODE))
        return RNL_OK;
    TRY(rnl_zone_alloc(planner->zone, 1, sizeof *kept, &kept));
    *kept = block;
    for (size_t i = 0; i < 3; i++)
        if (block.nodes[i] != RNL_NO_NODE)
            planner->blocks[block.nodes[i]] = kept;
    return RNL_OK;
}

rnl_status rnl_fuse_blocks(rnl_planner *planner, const rnl_readers *readers)
{
    for (uint32_t i = 0; i < planner->graph->node_count; i++)
        if (!planner->blocks[i])
            TRY(find_block(planner, readers, i));
    return RNL_OK;
}
