/* SPDX-License-Identifier: Apache-2.0 */
#include "model/fuse.h"

#include "base/memory.h"
#include "model/block.h"
#include "model/fuse_grow.h"
#include "model/matrix.h"
#include <stdlib.h>
#include <string.h>

bool rnl_fuse_is_off(void)
{
    const char *mode = getenv("RUNNEL_FUSE");
    return mode && strcmp(mode, "off") == 0;
}

uint32_t rnl_group_last(const rnl_group *group)
{
    return group->nodes[group->node_count - 1];
}

/* ---- readers -------------------------------------------------------------------------------------------------- */

bool rnl_fuse_runs(const rnl_planner *planner, uint32_t index)
{
    const rnl_node *node = &planner->graph->nodes[index];
    bool needed = false;
    for (uint32_t i = 0; i < node->output_count; i++)
        needed |= node->outputs[i] != RNL_NO_VALUE && planner->values[node->outputs[i]].needed;
    return needed && !planner->on_host[index];
}

static bool reads(const rnl_node *node, uint32_t input)
{
    bool shape_only = input < 32 && (node->schema->shape_inputs >> input & 1);
    return node->inputs[input] != RNL_NO_VALUE && !shape_only;
}

static void count_reads(const rnl_node *node, uint32_t *counts)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (reads(node, i))
            counts[node->inputs[i]]++;
}

static void note_reads(const rnl_node *node, uint32_t index, rnl_readers *readers)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (reads(node, i))
            readers->nodes[readers->starts[node->inputs[i]] + readers->counts[node->inputs[i]]++] = index;
}

static rnl_status find_readers(const rnl_planner *planner, rnl_readers *readers)
{
    const rnl_graph *graph = planner->graph;
    TRY(rnl_zone_alloc(planner->zone, graph->value_count, sizeof *readers->counts, &readers->counts));
    TRY(rnl_zone_alloc(planner->zone, graph->value_count + 1, sizeof *readers->starts, &readers->starts));
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (rnl_fuse_runs(planner, i))
            count_reads(&graph->nodes[i], readers->counts);
    for (size_t i = 0; i < graph->value_count; i++)
        readers->starts[i + 1] = readers->starts[i] + readers->counts[i];
    size_t total = readers->starts[graph->value_count];
    TRY(rnl_zone_alloc(planner->zone, total ? total : 1, sizeof *readers->nodes, &readers->nodes));
    memset(readers->counts, 0, graph->value_count * sizeof *readers->counts);
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (rnl_fuse_runs(planner, i))
            note_reads(&graph->nodes[i], i, readers);
    for (size_t i = 0; i < planner->plan->output_count; i++)
        readers->counts[planner->plan->outputs[i].value]++;
    return RNL_OK;
}

/* ---- growing -------------------------------------------------------------------------------------------------- */

size_t rnl_grower_find(const rnl_grower *grower, uint32_t value)
{
    const rnl_group *group = grower->group;
    for (size_t i = group->node_count; i-- > 0;)
        if (grower->planner->graph->nodes[group->nodes[i]].outputs[0] == value)
            return i;
    return RNL_NOT_INSIDE;
}

/* What a group can be taken back to: all that it holds is only ever appended, but for its folds. */
typedef struct checkpoint {
    size_t nodes, stages, operands, scalars;
    rnl_fold fold;
    rnl_group_operand operand[RNL_CHAIN_MAX_OPERANDS];
    uint32_t left[RNL_GROUP_MAX_NODES];
    bool closed;
} checkpoint;

static void save(const rnl_grower *grower, checkpoint *out)
{
    const rnl_group *group = grower->group;
    *out = (checkpoint){.nodes = group->node_count,
                        .stages = group->chain.stage_count,
                        .operands = group->chain.operand_count,
                        .scalars = group->chain.scalar_count,
                        .fold = group->fold,
                        .closed = grower->closed};
    memcpy(out->operand, group->operands, sizeof out->operand);
    memcpy(out->left, grower->left, sizeof out->left);
}

static void take_back(rnl_grower *grower, const checkpoint *to)
{
    rnl_group *group = grower->group;
    group->node_count = to->nodes;
    group->chain.stage_count = to->stages;
    group->chain.operand_count = to->operands;
    group->chain.scalar_count = to->scalars;
    group->fold = to->fold;
    grower->closed = to->closed;
    memcpy(group->operands, to->operand, sizeof to->operand);
    memcpy(grower->left, to->left, sizeof to->left);
}

static bool same_shape(const rnl_tensor_desc *a, const rnl_tensor_desc *b)
{
    return a->rank == b->rank && memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) == 0;
}

/* Free, elementwise, and of the group's shape. */
static bool can_join(const rnl_grower *grower, uint32_t index)
{
    const rnl_planner *planner = grower->planner;
    const rnl_node *node = &planner->graph->nodes[index];
    return !planner->groups[index] && rnl_fuse_runs(planner, index) && rnl_fuse_takes(planner, node) &&
           same_shape(&planner->values[node->outputs[0]].desc, &grower->shape);
}

/* The producer of an input that nothing but this node reads; RNL_NO_NODE when there is none that runs. */
static uint32_t own_producer(const rnl_grower *grower, const rnl_node *node, uint32_t value)
{
    uint32_t reads_here = 0;
    if (value == RNL_NO_VALUE)
        return RNL_NO_NODE;
    for (uint32_t i = 0; i < node->input_count; i++)
        reads_here += node->inputs[i] == value;
    uint32_t producer = grower->planner->graph->values[value].producer;
    bool own = producer != RNL_NO_NODE && grower->readers->counts[value] == reads_here &&
               rnl_fuse_runs(grower->planner, producer) && rnl_grower_find(grower, value) == RNL_NOT_INSIDE;
    return own ? producer : RNL_NO_NODE;
}

static bool is_anchor(const rnl_planner *planner, uint32_t index);

/* Leads back to an anchor that will want to end with it. */
static bool ends_anchor(const rnl_grower *grower, uint32_t index, size_t depth)
{
    const rnl_planner *planner = grower->planner;
    const rnl_node *node = &planner->graph->nodes[index];
    if (depth == 0)
        return true;
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t producer = own_producer(grower, node, node->inputs[i]);
        if (producer == RNL_NO_NODE || planner->groups[producer])
            continue;
        if (is_anchor(planner, producer) || (can_join(grower, producer) && ends_anchor(grower, producer, depth - 1)))
            return true;
    }
    return false;
}

/* Appends a node behind those that only it reads from. */
static bool append_with_sides(rnl_grower *grower, uint32_t index)
{
    const rnl_node *node = &grower->planner->graph->nodes[index];
    for (uint32_t i = 0; i < node->input_count && grower->group->node_count < RNL_GROUP_MAX_NODES; i++) {
        checkpoint before;
        uint32_t side = own_producer(grower, node, node->inputs[i]);
        if (side == RNL_NO_NODE || !can_join(grower, side) || ends_anchor(grower, side, RNL_GROUP_MAX_NODES))
            continue;
        save(grower, &before);
        if (!append_with_sides(grower, side) || grower->closed)
            take_back(grower, &before);
    }
    return rnl_grower_append(grower, index);
}

/* The first node outside that reads from the group; RNL_NO_NODE when there is none. */
static uint32_t next_reader(const rnl_grower *grower)
{
    const rnl_group *group = grower->group;
    uint32_t next = RNL_NO_NODE;
    for (size_t i = 0; i < group->node_count; i++) {
        uint32_t value = grower->planner->graph->nodes[group->nodes[i]].outputs[0];
        const rnl_readers *readers = grower->readers;
        for (uint32_t j = readers->starts[value]; grower->left[i] && j < readers->starts[value + 1]; j++) {
            uint32_t reader = readers->nodes[j];
            bool inside = false;
            for (size_t k = 0; k < group->node_count && !inside; k++)
                inside = group->nodes[k] == reader;
            if (!inside) {
                next = reader < next ? reader : next;
                break;
            }
        }
    }
    return next;
}

/* Only the last node is read from outside. */
static bool is_whole(const rnl_grower *grower)
{
    for (size_t i = 0; i + 1 < grower->group->node_count; i++)
        if (grower->left[i])
            return false;
    return true;
}

/* As far as it goes, then back to where it was whole. A value with a reader that cannot join ends the group. */
static void grow(rnl_grower *grower)
{
    checkpoint whole;
    save(grower, &whole);
    for (;;) {
        uint32_t next = next_reader(grower);
        if (next == RNL_NO_NODE || !can_join(grower, next) || !append_with_sides(grower, next))
            break;
        if (is_whole(grower))
            save(grower, &whole);
    }
    take_back(grower, &whole);
}

/* ---- groups --------------------------------------------------------------------------------------------------- */

static bool is_float(rnl_dtype dtype)
{
    return (RNL_TYPES_FLOAT & RNL_TYPE_BIT(dtype)) != 0;
}

static bool is_anchor(const rnl_planner *planner, uint32_t index)
{
    const rnl_node *node = &planner->graph->nodes[index];
    uint32_t bias;
    if (rnl_is_integer_product(node))
        return rnl_fuse_runs(planner, index) && rnl_integer_product_takes_chain(planner, node, &bias);
    if (!rnl_fold_is_anchor(node) || !rnl_fuse_runs(planner, index) ||
        !is_float(planner->values[node->outputs[0]].desc.dtype))
        return false;
    return !rnl_is_matrix_product(node) || rnl_matrix_takes_chain(planner, node);
}

static rnl_status keep(rnl_planner *planner, const rnl_group *group)
{
    rnl_group *kept = NULL;
    TRY(rnl_zone_alloc(planner->zone, 1, sizeof *kept, &kept));
    *kept = *group;
    rnl_fuse_gelu(&kept->chain);
    for (size_t i = 0; i < group->node_count; i++)
        planner->groups[group->nodes[i]] = kept;
    return RNL_OK;
}

static void begin(rnl_grower *grower, uint32_t index)
{
    const rnl_graph *graph = grower->planner->graph;
    grower->shape = grower->planner->values[graph->nodes[index].outputs[0]].desc;
    grower->closed = false;
    grower->takes_fold = false;
    grower->keeps_type = false;
    grower->group->node_count = 0;
    grower->group->kind = RNL_GROUP_CHAIN;
    grower->group->fold = (rnl_fold){RNL_NO_NODE, RNL_NO_NODE};
    grower->group->chain.stage_count = 0;
    grower->group->chain.operand_count = 0;
    grower->group->chain.scalar_count = 0;
}

static rnl_status group_anchor(rnl_grower *grower, uint32_t index)
{
    const rnl_node *node = &grower->planner->graph->nodes[index];
    rnl_group *group = grower->group;
    uint32_t bias = RNL_NO_VALUE;
    begin(grower, index);
    bool integers = rnl_is_integer_product(node) && rnl_integer_product_takes_chain(grower->planner, node, &bias);
    bool matrix = integers || rnl_is_matrix_product(node);
    bool convolution = !matrix || (!integers && rnl_matrix_is_convolution(grower->planner, node));
    grower->axis = matrix ? grower->shape.rank - 1 : 1;
    grower->keeps_type = !convolution;
    grower->takes_fold = convolution && rnl_fold_takes_anchor(grower->planner, node);
    group->kind = RNL_GROUP_ANCHOR;
    group->nodes[0] = index;
    group->node_count = 1;
    grower->results[0] = (rnl_chain_source){RNL_CHAIN_INPUT, 0};
    grower->left[0] = grower->readers->counts[node->outputs[0]];
    if (bias != RNL_NO_VALUE && !rnl_grower_add_bias(grower, bias))
        return RNL_OK;
    grow(grower);
    return group->node_count > 1 || group->chain.stage_count > 0 ? keep(grower->planner, group) : RNL_OK;
}

static rnl_status group_elementwise(rnl_grower *grower, uint32_t index)
{
    rnl_group *group = grower->group;
    begin(grower, index);
    if (!append_with_sides(grower, index))
        return RNL_OK;
    grow(grower);
    bool worth = group->node_count > 1 || group->chain.stage_count > 1;
    return worth && group->chain.stage_count > 0 ? keep(grower->planner, group) : RNL_OK;
}

static rnl_status group_norm(rnl_grower *grower, uint32_t index)
{
    TRY(rnl_fuse_norm(grower->planner, grower->readers, index, grower->group));
    return grower->group->node_count ? keep(grower->planner, grower->group) : RNL_OK;
}

static rnl_status group_attention(rnl_grower *grower, uint32_t index)
{
    TRY(rnl_fuse_attention(grower->planner, grower->readers, index, grower->group));
    return grower->group->node_count ? keep(grower->planner, grower->group) : RNL_OK;
}

static rnl_status group_sum(rnl_grower *grower, uint32_t index)
{
    rnl_fuse_sum(grower->planner, grower->readers, index, grower->group);
    return grower->group->node_count ? keep(grower->planner, grower->group) : RNL_OK;
}

/* From the end for anchors: of two that meet, the later one takes the rest. */
rnl_status rnl_fuse(rnl_planner *planner)
{
    uint32_t count = (uint32_t)planner->graph->node_count;
    rnl_readers readers;
    rnl_grower grower = {.planner = planner, .readers = &readers};
    TRY(rnl_zone_alloc(planner->zone, count, sizeof *planner->groups, &planner->groups));
    TRY(rnl_zone_alloc(planner->zone, count, sizeof *planner->pads, &planner->pads));
    TRY(rnl_zone_alloc(planner->zone, count, sizeof *planner->blocks, &planner->blocks));
    if (rnl_fuse_is_off())
        return RNL_OK;
    TRY(rnl_zone_alloc(planner->zone, 1, sizeof *grower.group, &grower.group));
    TRY(find_readers(planner, &readers));
    TRY(rnl_fuse_pads(planner, &readers));
    for (uint32_t i = 0; i < count; i++)
        TRY(group_norm(&grower, i));
    for (uint32_t i = 0; i < count; i++)
        TRY(group_attention(&grower, i));
    for (uint32_t i = 0; i < count; i++)
        TRY(group_sum(&grower, i));
    for (uint32_t i = count; i-- > 0;)
        if (!planner->groups[i] && is_anchor(planner, i))
            TRY(group_anchor(&grower, i));
    for (uint32_t i = 0; i < count; i++)
        if (!planner->groups[i] && !is_anchor(planner, i) && rnl_fuse_runs(planner, i) &&
            rnl_fuse_takes(planner, &planner->graph->nodes[i]))
            TRY(group_elementwise(&grower, i));
    return rnl_fuse_blocks(planner, &readers);
}
