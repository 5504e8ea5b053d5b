/* SPDX-License-Identifier: Apache-2.0 */
#include "model/block.h"

#include "base/memory.h"
#include "model/evaluate.h"
#include <string.h>

static rnl_status enter(rnl_lowering *lowering, uint32_t index)
{
    rnl_planner *planner = lowering->planner;
    lowering->group = planner->groups[index];
    return rnl_plan_context(planner, &planner->graph->nodes[index], &lowering->context);
}

static rnl_status lower_parts(rnl_lowering *lowering, const rnl_block *block, rnl_conv_block *out)
{
    const int64_t floats = rnl_conv_block_scratch(lowering->list->device, &block->shape);
    for (size_t i = 0; i < 3; i++) {
        out->weights[i].slot = out->biases[i].slot = RNL_NO_SLOT;
        if (block->nodes[i] == RNL_NO_NODE)
            continue;
        TRY(enter(lowering, block->nodes[i]));
        const rnl_packing packing = block->shape.pairs && i != 1 ? RNL_PACKING_CONV_PAIRS : RNL_PACKING_CONV;
        TRY(rnl_lower_anchor_weights(lowering, packing, i == 1 ? block->shape.hidden : 1, &out->weights[i],
                                     &out->biases[i]));
        if (lowering->group && lowering->group->chain.stage_count)
            out->chains[i] = &lowering->group->chain;
    }
    return rnl_lower_scratch(lowering, RNL_F32, 1, &floats, RNL_LAYOUT_ROW_MAJOR, &out->scratch);
}

static rnl_status lower_source(rnl_lowering *lowering, const rnl_block *block, uint32_t value, rnl_view *out_view)
{
    rnl_view odd;
    if (!block->shape.pairs)
        return rnl_lower_value(lowering, value, RNL_LAYOUT_CHANNELS_LAST, out_view);
    if (!block->shape.expands)
        return rnl_lower_stored(lowering, value, RNL_LAYOUT_CHANNELS_LAST, out_view);
    TRY(rnl_lower_value_as(lowering, value, RNL_LAYOUT_CHANNELS_LAST, RNL_BF16, out_view));
    if (rnl_conv_is_even(out_view))
        return RNL_OK;
    odd = *out_view;
    TRY(rnl_lower_scratch(lowering, RNL_BF16, odd.rank, odd.shape, RNL_LAYOUT_CHANNELS_LAST, out_view));
    return rnl_lower_copy(lowering, &odd, out_view);
}

static rnl_status lower_whole(rnl_lowering *lowering, const rnl_block *block)
{
    const uint32_t first = block->nodes[block->nodes[0] != RNL_NO_NODE ? 0 : 1];
    rnl_conv_block params = {.shape = block->shape};
    rnl_view source, target;
    rnl_chain *chain;
    TRY(lower_source(lowering, block, lowering->planner->graph->nodes[first].inputs[0], &source));
    TRY(lower_parts(lowering, block, &params));
    TRY(enter(lowering, rnl_block_last(block)));
    TRY(rnl_lower_result(lowering, RNL_LAYOUT_CHANNELS_LAST, &target, &chain));
    return rnl_op_conv_block(lowering->list, &params, &source, &target);
}

/* " + Clip + Conv + Clip + Conv" */
static rnl_status name_nodes(rnl_planner *planner, const rnl_block *block, const char **out_text)
{
    const char *names[3 * RNL_GROUP_MAX_NODES];
    size_t count = 0, length = 0;
    char *text = NULL;
    for (size_t i = 0; i < 3; i++) {
        if (block->nodes[i] == RNL_NO_NODE)
            continue;
        const rnl_group *group = planner->groups[block->nodes[i]];
        for (size_t j = 0; j < (group ? group->node_count : 1); j++)
            names[count++] = planner->graph->nodes[group ? group->nodes[j] : block->nodes[i]].op_type;
    }
    for (size_t i = 1; i < count; i++)
        length += strlen(names[i]) + 3;
    TRY(rnl_zone_alloc(&planner->plan->zone, length + 1, 1, &text));
    *out_text = text;
    for (size_t i = 1; i < count; i++) {
        const size_t size = strlen(names[i]);
        memcpy(text, " + ", 3);
        memcpy(text + 3, names[i], size);
        text += 3 + size;
    }
    return RNL_OK;
}

rnl_status rnl_lower_block(rnl_lowering *lowering, const rnl_block *block)
{
    const char *others;
    const rnl_status status = lower_whole(lowering, block);
    lowering->group = NULL;
    TRY(status);
    TRY(name_nodes(lowering->planner, block, &others));
    return rnl_plan_cover_steps(lowering->planner, block->nodes[block->nodes[0] != RNL_NO_NODE ? 0 : 1], others);
}
