/* SPDX-License-Identifier: Apache-2.0 */
/* What a node is in a chain. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "model/fuse_grow.h"
#include "model/lower_list.h"
#include <math.h>

static bool is(const rnl_node *node, const char *op_type)
{
    return rnl_node_is(node, op_type);
}

static bool is_float(rnl_dtype dtype)
{
    return (RNL_TYPES_FLOAT & RNL_TYPE_BIT(dtype)) != 0;
}

static bool has_input(const rnl_node *node, size_t index)
{
    return index < node->input_count && node->inputs[index] != RNL_NO_VALUE;
}

/* ---- which nodes ---------------------------------------------------------------------------------------------- */

/* What makes no stage: the value passes as it is. */
static bool passes(const rnl_node *node)
{
    return is(node, "Identity") || is(node, "Dropout");
}

static bool is_cast(const rnl_node *node)
{
    return is(node, "Cast") || is(node, "CastLike");
}

static bool is_known_operator(const rnl_node *node)
{
    rnl_map_op op;
    float p0, p1;
    if (rnl_map_of_node(node, &op, &p0, &p1))
        return rnl_chain_takes(op);
    return passes(node) || is_cast(node) || is(node, "Clip") || is(node, "BatchNormalization");
}

/* One element that is known: its type does not matter. */
static bool is_scalar(const rnl_planner *planner, uint32_t value)
{
    const rnl_tensor_desc *desc = &planner->values[value].desc;
    return desc->host && rnl_desc_elements(desc) == 1;
}

static bool takes_inputs(const rnl_planner *planner, const rnl_node *node)
{
    if (is(node, "Dropout") && has_input(node, 2) && rnl_dropout_draws(&planner->values[node->inputs[2]].desc))
        return false;
    uint32_t count = passes(node) || is_cast(node) ? 1 : node->input_count;
    for (uint32_t i = 0; i < count; i++)
        if (has_input(node, i) && !is_float(planner->values[node->inputs[i]].desc.dtype) &&
            !(i > 0 && is_scalar(planner, node->inputs[i])))
            return false;
    return count > 0 && has_input(node, 0);
}

bool rnl_fuse_takes(const rnl_planner *planner, const rnl_node *node)
{
    if (node->output_count == 0 || node->outputs[0] == RNL_NO_VALUE || !is_known_operator(node))
        return false;
    for (uint32_t i = 1; i < node->output_count; i++)
        if (node->outputs[i] != RNL_NO_VALUE && planner->values[node->outputs[i]].needed)
            return false;
    if (is(node, "BatchNormalization") && !rnl_fold_takes(planner, node, node->inputs[0], 1))
        return false;
    return is_float(planner->values[node->outputs[0]].desc.dtype) && takes_inputs(planner, node);
}

/* ---- sources -------------------------------------------------------------------------------------------------- */

static bool add_operand(rnl_group *group, const rnl_group_operand *operand, rnl_chain_source *out_source)
{
    const rnl_view later = {.slot = RNL_NO_SLOT};
    size_t at = group->chain.operand_count;
    if (!rnl_chain_add_operand(&group->chain, &later, out_source))
        return false;
    group->operands[at] = *operand;
    return true;
}

static bool add_value(rnl_group *group, uint32_t value, rnl_chain_source *out_source)
{
    const rnl_group_operand operand = {.value = value};
    for (size_t i = 0; i < group->chain.operand_count; i++)
        if (group->operands[i].value == value) {
            *out_source = (rnl_chain_source){RNL_CHAIN_OPERAND, i};
            return true;
        }
    return add_operand(group, &operand, out_source);
}

static bool add_source(rnl_grower *grower, uint32_t value, rnl_chain_source *out_source)
{
    size_t at = rnl_grower_find(grower, value);
    const rnl_tensor_desc *desc = &grower->planner->values[value].desc;
    if (at != RNL_NOT_INSIDE) {
        *out_source = grower->results[at];
        return true;
    }
    if (!is_scalar(grower->planner, value))
        return add_value(grower->group, value, out_source);
    double number = rnl_number_double(rnl_element_load(desc->host, 0, desc->dtype), desc->dtype);
    return rnl_chain_add_scalar(&grower->group->chain, (float)number, out_source);
}

/* The float that an input is known to be. */
static bool known_number(const rnl_planner *planner, const rnl_node *node, size_t index, float *out_number)
{
    if (!has_input(node, index) || !is_scalar(planner, node->inputs[index]))
        return false;
    const rnl_tensor_desc *desc = &planner->values[node->inputs[index]].desc;
    *out_number = (float)rnl_number_double(rnl_element_load(desc->host, 0, desc->dtype), desc->dtype);
    return true;
}

/* ---- stages --------------------------------------------------------------------------------------------------- */

static bool append_two(rnl_chain *chain, rnl_map_op op, rnl_chain_source a, rnl_chain_source b,
                       rnl_chain_source *out_source)
{
    const rnl_chain_source sources[2] = {a, b};
    return rnl_chain_add_stage(chain, op, sources, 0, 0, out_source);
}

bool rnl_grower_add_bias(rnl_grower *grower, uint32_t value)
{
    rnl_chain_source bias;
    return add_source(grower, value, &bias) &&
           append_two(&grower->group->chain, RNL_MAP_ADD, grower->results[0], bias, &grower->results[0]);
}

/* Sum, Mean, Max, Min of any number of inputs. */
static bool append_variadic(rnl_grower *grower, const rnl_node *node, rnl_map_op op, rnl_chain_source *out_source)
{
    rnl_chain *chain = &grower->group->chain;
    rnl_chain_source next;
    if (!add_source(grower, node->inputs[0], out_source))
        return false;
    for (uint32_t i = 1; i < node->input_count; i++)
        if (!add_source(grower, node->inputs[i], &next) || !append_two(chain, op, *out_source, next, out_source))
            return false;
    if (!is(node, "Mean") || node->input_count == 1)
        return true;
    return rnl_chain_add_scalar(chain, (float)(1.0 / node->input_count), &next) &&
           append_two(chain, RNL_MAP_MUL, *out_source, next, out_source);
}

/* The same with cheaper arithmetic, within a rounding: division by a number, squares. */
static bool append_cheaper(rnl_grower *grower, const rnl_node *node, rnl_map_op op, rnl_chain_source *out_source)
{
    rnl_chain *chain = &grower->group->chain;
    rnl_chain_source x, factor;
    float number;
    if ((op != RNL_MAP_DIV && op != RNL_MAP_POW) || !known_number(grower->planner, node, 1, &number))
        return false;
    if (op == RNL_MAP_POW)
        return number == 2 && add_source(grower, node->inputs[0], &x) &&
               append_two(chain, RNL_MAP_MUL, x, x, out_source);
    return isnormal(number) && isnormal(1 / number) && add_source(grower, node->inputs[0], &x) &&
           rnl_chain_add_scalar(chain, 1 / number, &factor) && append_two(chain, RNL_MAP_MUL, x, factor, out_source);
}

static bool append_map(rnl_grower *grower, const rnl_node *node, rnl_chain_source *out_source)
{
    rnl_map_op op;
    float p0, p1;
    rnl_chain_source sources[RNL_MAP_MAX_SOURCES];
    rnl_chain *chain = &grower->group->chain;
    const size_t operands = chain->operand_count, scalars = chain->scalar_count;
    if (!rnl_map_of_node(node, &op, &p0, &p1))
        return false;
    if (is(node, "Sum") || is(node, "Mean") || is(node, "Max") || is(node, "Min"))
        return append_variadic(grower, node, op, out_source);
    if (append_cheaper(grower, node, op, out_source))
        return true;
    chain->operand_count = operands;
    chain->scalar_count = scalars;
    for (size_t i = 0; i < rnl_map_sources(op); i++)
        if (!has_input(node, i) || !add_source(grower, node->inputs[i], &sources[i]))
            return false;
    return rnl_chain_add_stage(chain, op, sources, p0, p1, out_source);
}

static bool add_bound(rnl_grower *grower, const rnl_node *node, size_t index, rnl_chain_source *out_source)
{
    const rnl_dtype dtype = grower->planner->values[node->inputs[0]].desc.dtype;
    const float widest =
        (float)rnl_number_double(index == 1 ? rnl_number_lowest(dtype) : rnl_number_highest(dtype), dtype);
    if (has_input(node, index))
        return add_source(grower, node->inputs[index], out_source);
    float bound = node->opset < 11 ? rnl_node_float(node, index == 1 ? "min" : "max", widest) : widest;
    return rnl_chain_add_scalar(&grower->group->chain, bound, out_source);
}

static bool append_clip(rnl_grower *grower, const rnl_node *node, rnl_chain_source *out_source)
{
    rnl_chain_source sources[3];
    return add_source(grower, node->inputs[0], &sources[0]) && add_bound(grower, node, 1, &sources[1]) &&
           add_bound(grower, node, 2, &sources[2]) &&
           rnl_chain_add_stage(&grower->group->chain, RNL_MAP_CLIP, sources, 0, 0, out_source);
}

/* Two vectors over the channels, worked out from the node's constants, and from those of nodes that follow. */
static bool append_batch_norm(rnl_grower *grower, uint32_t index, rnl_chain_source *out_source)
{
    rnl_group *group = grower->group;
    rnl_group_operand vector = {.value = RNL_NO_VALUE, .fold = {index, index}};
    rnl_chain_source x, scale, shift;
    if (!add_source(grower, grower->planner->graph->nodes[index].inputs[0], &x) || !add_operand(group, &vector, &scale))
        return false;
    vector.is_shift = true;
    return add_operand(group, &vector, &shift) && append_two(&group->chain, RNL_MAP_MUL, x, scale, out_source) &&
           append_two(&group->chain, RNL_MAP_ADD, *out_source, shift, out_source);
}

static bool append_cast(rnl_grower *grower, const rnl_node *node, rnl_chain_source *out_source)
{
    rnl_dtype from = grower->planner->values[node->inputs[0]].desc.dtype;
    rnl_dtype to = grower->planner->values[node->outputs[0]].desc.dtype;
    if ((from != to && grower->keeps_type) || !add_source(grower, node->inputs[0], out_source))
        return false;
    grower->closed = to != RNL_F32 && to != from; /* it is asked to round: what follows would not see that */
    return from == to || rnl_chain_add_stage(&grower->group->chain, RNL_MAP_COPY, out_source, 0, 0, out_source);
}

static bool append_stages(rnl_grower *grower, uint32_t index, rnl_chain_source *out_source)
{
    const rnl_node *node = &grower->planner->graph->nodes[index];
    if (passes(node))
        return add_source(grower, node->inputs[0], out_source);
    if (is_cast(node))
        return append_cast(grower, node, out_source);
    if (is(node, "Clip"))
        return append_clip(grower, node, out_source);
    if (is(node, "BatchNormalization"))
        return append_batch_norm(grower, index, out_source);
    return append_map(grower, node, out_source);
}

/* ---- folds ---------------------------------------------------------------------------------------------------- */

/* The node's input from the group, when it is the only one, read once, and the node is constant and affine in it. */
static bool runs_on(const rnl_grower *grower, const rnl_node *node, size_t axis, size_t *out_from)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        size_t at = has_input(node, i) ? rnl_grower_find(grower, node->inputs[i]) : RNL_NOT_INSIDE;
        if (at == RNL_NOT_INSIDE)
            continue;
        *out_from = at;
        return grower->readers->counts[node->inputs[i]] == 1 &&
               rnl_fold_takes(grower->planner, node, node->inputs[i], axis);
    }
    return false;
}

/* All nodes so far are in the anchor's weights and bias, and so can this one be. */
static bool joins_anchor(const rnl_grower *grower, const rnl_node *node)
{
    const rnl_group *group = grower->group;
    size_t from;
    if (!grower->takes_fold || group->chain.stage_count || !runs_on(grower, node, grower->axis, &from))
        return false;
    return from == 0 || group->fold.last == group->nodes[from];
}

/* A BatchNormalization in the chain takes the constants of what follows it. */
static bool joins_vectors(rnl_grower *grower, uint32_t index, rnl_chain_source *out_source)
{
    rnl_group *group = grower->group;
    size_t from;
    if (!runs_on(grower, &grower->planner->graph->nodes[index], 1, &from))
        return false;
    bool found = false;
    for (size_t i = 0; i < group->chain.operand_count; i++) {
        rnl_group_operand *operand = &group->operands[i];
        if (operand->value != RNL_NO_VALUE || operand->fold.last != group->nodes[from])
            continue;
        operand->fold.last = index;
        found = true;
    }
    *out_source = grower->results[from];
    return found;
}

/* ---- appending ------------------------------------------------------------------------------------------------ */

static void count_readers(rnl_grower *grower, const rnl_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        size_t at = has_input(node, i) ? rnl_grower_find(grower, node->inputs[i]) : RNL_NOT_INSIDE;
        if (at != RNL_NOT_INSIDE)
            grower->left[at]--;
    }
}

bool rnl_grower_append(rnl_grower *grower, uint32_t index)
{
    rnl_group *group = grower->group;
    const rnl_node *node = &grower->planner->graph->nodes[index];
    rnl_chain_source result;
    if (group->node_count == RNL_GROUP_MAX_NODES || grower->closed)
        return false;
    if (joins_anchor(grower, node)) {
        group->fold = (rnl_fold){group->nodes[0], index};
        result = (rnl_chain_source){RNL_CHAIN_INPUT, 0};
    } else if (!joins_vectors(grower, index, &result) && !append_stages(grower, index, &result)) {
        return false;
    }
    count_readers(grower, node);
    grower->results[group->node_count] = result;
    grower->left[group->node_count] = grower->readers->counts[node->outputs[0]];
    group->nodes[group->node_count++] = index;
    return true;
}
