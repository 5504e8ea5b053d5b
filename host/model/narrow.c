/* SPDX-License-Identifier: Apache-2.0 */
#include "model/narrow.h"

#include "model/fuse.h"
#include "model/matrix.h"
#include "model/place.h"
#include "ops/conv.h"
#include "ops/instruction.h"
#include <string.h>

bool rnl_narrow_is_on(const rnl_model *model)
{
    return model->root->multiplies_bf16;
}

static bool is_conv(const rnl_node *node)
{
    return strcmp(node->op_type, "Conv") == 0 && node->domain[0] == '\0';
}

/* Of a group of channels. */
static int64_t channels_of(const rnl_node *node, const rnl_host_tensor *weight)
{
    if (is_conv(node))
        return weight->shape[1];
    return weight->shape[rnl_node_int(node, "transB", 0) ? 1 : 0];
}

bool rnl_narrow_is_depthwise(const rnl_planner *planner, const rnl_node *node)
{
    const rnl_host_tensor *weight = is_conv(node) ? planner->model->constants.tensors[node->inputs[1]] : NULL;
    return rnl_narrow_is_on(planner->model) && weight && weight->dtype == RNL_F32 && weight->shape[1] == 1 &&
           weight->shape[0] >= 4 && weight->shape[0] == rnl_node_int(node, "group", 1);
}

bool rnl_narrow_multiplies(const rnl_planner *planner, const rnl_node *node)
{
    if (!rnl_narrow_is_on(planner->model) || !(is_conv(node) || rnl_is_matrix_product(node)))
        return false;
    const rnl_host_tensor *weight = planner->model->constants.tensors[node->inputs[1]];
    if (!weight || weight->dtype != RNL_F32 || (!is_conv(node) && !rnl_matrix_is_convolution(planner, node)))
        return false;
    const int64_t channels = channels_of(node, weight);
    return channels >= 4 && channels % 2 == 0;
}

/* A normalization whose moments nobody reads. */
static bool is_norm(const rnl_planner *planner, const rnl_node *node, const rnl_group *group)
{
    bool wants_more = false;
    if (group)
        return group->kind == RNL_GROUP_NORM;
    for (uint32_t i = 1; i < node->output_count; i++)
        wants_more |= node->outputs[i] != RNL_NO_VALUE && planner->values[node->outputs[i]].needed;
    return rnl_node_is(node, "LayerNormalization") && !wants_more;
}

/* Ends with a convolution's chain, or with a chain alone, or normalizes: these store bfloat16, too. */
static bool may_write(const rnl_planner *planner, uint32_t index)
{
    const rnl_node *node = &planner->graph->nodes[index];
    const rnl_group *group = planner->groups[index];
    if (group && rnl_group_last(group) != index)
        return false;
    if ((group && group->kind == RNL_GROUP_CHAIN) || is_norm(planner, node, group))
        return true;
    const rnl_node *anchor = group ? &planner->graph->nodes[group->nodes[0]] : node;
    if (group && group->kind != RNL_GROUP_ANCHOR)
        return false;
    return is_conv(anchor) || (rnl_is_matrix_product(anchor) && rnl_matrix_is_convolution(planner, anchor));
}

/* As a factor of bfloat16, or as an operand of a chain. */
static bool may_read(const rnl_planner *planner, uint32_t index, uint32_t input)
{
    const rnl_node *node = &planner->graph->nodes[index];
    const rnl_group *group = planner->groups[index];
    if (input == 0 && !planner->pads[index] &&
        (rnl_narrow_multiplies(planner, node) || rnl_narrow_is_depthwise(planner, node)))
        return true;
    return group && (group->kind == RNL_GROUP_CHAIN || (group->kind == RNL_GROUP_ANCHOR && group->nodes[0] != index));
}

static bool runs(const rnl_planner *planner, uint32_t index)
{
    const rnl_node *node = &planner->graph->nodes[index];
    bool needed = false;
    for (uint32_t i = 0; i < node->output_count; i++)
        needed |= node->outputs[i] != RNL_NO_VALUE && planner->values[node->outputs[i]].needed;
    return needed && !planner->on_host[index];
}

static void note_writes(rnl_planner *planner, uint32_t index)
{
    const uint32_t output = planner->graph->nodes[index].outputs[0];
    if (output != RNL_NO_VALUE && planner->values[output].desc.dtype == RNL_F32 && may_write(planner, index))
        planner->narrow[output] = true;
}

static void note_reads(rnl_planner *planner, uint32_t index)
{
    const rnl_node *node = &planner->graph->nodes[index];
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != RNL_NO_VALUE && !may_read(planner, index, i))
            planner->narrow[node->inputs[i]] = false;
}

rnl_status rnl_narrow_find(rnl_planner *planner)
{
    const rnl_graph *graph = planner->graph;
    if (!rnl_narrow_is_on(planner->model))
        return RNL_OK;
    TRY(rnl_zone_alloc(planner->zone, graph->value_count ? graph->value_count : 1, sizeof *planner->narrow,
                       &planner->narrow));
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (runs(planner, i))
            note_writes(planner, i);
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (runs(planner, i))
            note_reads(planner, i);
    for (size_t i = 0; i < planner->plan->output_count; i++)
        planner->narrow[planner->plan->outputs[i].value] = false;
    for (size_t i = 0; i < graph->value_count; i++)
        planner->narrow[i] = planner->narrow[i] && !rnl_place_has_home(planner, (uint32_t)i);
    return RNL_OK;
}
