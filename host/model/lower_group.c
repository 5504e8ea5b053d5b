/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of nodes that are one step: their chain's operands, their constants, and their name. */
#include "base/text.h"
#include "model/attention.h"
#include "model/compose.h"
#include "model/evaluate.h"
#include "model/fuse.h"
#include "model/matrix.h"
#include "model/narrow.h"
#include "ops/attention.h"
#include "ops/normalize.h"
#include <string.h>

/* ---- constants ------------------------------------------------------------------------------------------------ */

/* Numbers worked out while planning, unless the model has the weight already. */
static rnl_status lower_numbers(rnl_lowering *lowering, const rnl_weight_key *key, rnl_fold fold, size_t count,
                                rnl_view *out_view)
{
    rnl_planner *planner = lowering->planner;
    double *numbers = NULL;
    if (!rnl_weights_has(&planner->model->weights, key)) {
        rnl_affine *affine = NULL;
        TRY(rnl_fold_run(planner, fold, count, &affine));
        TRY(rnl_zone_alloc(planner->zone, count ? count : 1, sizeof *numbers, &numbers));
        for (size_t i = 0; i < count; i++)
            numbers[i] = key->packing == RNL_PACKING_SHIFT ? affine[i].shift : affine[i].scale;
    }
    return rnl_lower_weight(lowering, key, numbers, count, out_view);
}

/* The constants of a run within the chain, as a vector that broadcasts along axis 1. */
static rnl_status lower_vector(rnl_lowering *lowering, const rnl_group_operand *operand, const rnl_tensor_desc *whole,
                               rnl_view *out_view)
{
    const rnl_node *node = &lowering->planner->graph->nodes[operand->fold.first];
    const rnl_weight_key key = {.value = node->inputs[1],
                                .packing = operand->is_shift ? RNL_PACKING_SHIFT : RNL_PACKING_SCALE,
                                .first = operand->fold.first,
                                .last = operand->fold.last};
    TRY(lower_numbers(lowering, &key, operand->fold, (size_t)whole->shape[1], out_view));
    for (; out_view->rank + 1 < whole->rank; out_view->rank++) {
        out_view->shape[out_view->rank] = 1;
        out_view->stride[out_view->rank] = 0;
    }
    return RNL_OK;
}

static bool is_gemm(const rnl_node *node)
{
    return strcmp(node->op_type, "Gemm") == 0;
}

/* What goes into the anchor's weights: the group's run, and Gemm's own alpha, beta and C. */
static rnl_fold fold_of(const rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    uint32_t index = (uint32_t)(node - lowering->planner->graph->nodes);
    if (lowering->group && lowering->group->fold.last != RNL_NO_NODE)
        return lowering->group->fold;
    bool own = is_gemm(node) && (rnl_lower_has_input(lowering, 2) || rnl_node_float(node, "alpha", 1) != 1);
    return own ? (rnl_fold){index, index} : (rnl_fold){RNL_NO_NODE, RNL_NO_NODE};
}

static size_t output_channels(const rnl_lowering *lowering)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    return (size_t)output->shape[rnl_is_matrix_product(lowering->context.node) ? output->rank - 1 : 1];
}

rnl_status rnl_lower_anchor_weights(rnl_lowering *lowering, rnl_packing packing, int64_t groups, rnl_view *out_weight,
                                    rnl_view *out_bias)
{
    rnl_fold fold = fold_of(lowering);
    uint32_t value = lowering->context.node->inputs[1];
    if (fold.last == RNL_NO_NODE) {
        TRY(rnl_lower_conv_weight(lowering, 1, packing, groups, out_weight));
        return rnl_lower_input(lowering, 2, RNL_LAYOUT_ROW_MAJOR, out_bias);
    }
    size_t channels = output_channels(lowering);
    rnl_weight_key key = {value, packing, groups, RNL_NO_NODE, RNL_NO_NODE};
    if (rnl_fold_scales(lowering->planner, fold)) {
        key.first = fold.first;
        key.last = fold.last;
    }
    const rnl_weight_key shift = {value, RNL_PACKING_SHIFT, 0, fold.first, fold.last};
    if (key.last == RNL_NO_NODE)
        TRY(rnl_lower_conv_weight(lowering, 1, packing, groups, out_weight));
    else
        TRY(lower_numbers(lowering, &key, fold, channels, out_weight));
    return lower_numbers(lowering, &shift, fold, channels, out_bias);
}

/* ---- operands ------------------------------------------------------------------------------------------------- */

/* The dimension whose elements are neighbours in memory. */
static size_t innermost(const rnl_view *target)
{
    size_t axis = target->rank;
    for (size_t i = 0; i < target->rank; i++)
        if (target->shape[i] > 1 && (axis == target->rank || target->stride[i] < target->stride[axis]))
            axis = i;
    return axis;
}

/* Along the target's innermost dimension its elements are neighbours, or one repeats. */
static bool fits(const rnl_view *operand, const rnl_view *target)
{
    size_t axis = innermost(target), missing = target->rank - operand->rank;
    if (axis == target->rank || axis < missing || operand->shape[axis - missing] == 1)
        return true;
    return operand->stride[axis - missing] == 0 || operand->stride[axis - missing] == 1;
}

/* The operand's elements in the target's order, when they lie in another. */
static rnl_status fit_operand(rnl_lowering *lowering, uint32_t value, const rnl_view *target, rnl_view *view)
{
    bool last = target->rank >= 3 && innermost(target) == 1;
    rnl_layout layout = last ? RNL_LAYOUT_CHANNELS_LAST : RNL_LAYOUT_ROW_MAJOR;
    if (fits(view, target))
        return RNL_OK;
    if (value != RNL_NO_VALUE && view->rank == target->rank) {
        TRY(rnl_lower_stored(lowering, value, layout, view));
        if (fits(view, target))
            return RNL_OK;
    }
    rnl_view source = rnl_view_expand(view, target->rank, target->shape);
    for (size_t i = 0; i < target->rank; i++)
        if (source.stride[i] == 0)
            source.shape[i] = 1;
    TRY(rnl_lower_scratch(lowering, source.dtype, source.rank, source.shape, layout, view));
    return rnl_lower_copy(lowering, &source, view);
}

static const rnl_tensor_desc *describe_output(const rnl_planner *planner, const rnl_group *group)
{
    return &planner->values[planner->graph->nodes[rnl_group_last(group)].outputs[0]].desc;
}

static rnl_status lower_operands(rnl_lowering *lowering, rnl_group *group, const rnl_view *target)
{
    for (size_t i = 0; i < group->chain.operand_count; i++) {
        const rnl_group_operand *operand = &group->operands[i];
        rnl_view *view = &group->chain.operands[i];
        if (operand->value == RNL_NO_VALUE)
            TRY(lower_vector(lowering, operand, describe_output(lowering->planner, group), view));
        else
            TRY(rnl_lower_stored(lowering, operand->value, RNL_LAYOUT_ANY, view));
        TRY(fit_operand(lowering, operand->value, target, view));
    }
    return RNL_OK;
}

/* ---- groups --------------------------------------------------------------------------------------------------- */

rnl_status rnl_lower_result(rnl_lowering *lowering, rnl_layout layout, rnl_view *out_view, rnl_chain **out_chain)
{
    rnl_group *group = lowering->group;
    *out_chain = NULL;
    if (!group)
        return rnl_lower_output(lowering, 0, layout, out_view);
    uint32_t output = lowering->planner->graph->nodes[rnl_group_last(group)].outputs[0];
    TRY(rnl_lower_memory(lowering, output, layout, false, out_view));
    if (group->chain.stage_count == 0)
        return RNL_OK;
    TRY(lower_operands(lowering, group, out_view));
    *out_chain = &group->chain;
    return RNL_OK;
}

/* Without an anchor: the layout follows the operands that are computed and have the result's rank. */
static rnl_status lower_chain(rnl_lowering *lowering, rnl_group *group)
{
    rnl_planner *planner = lowering->planner;
    uint32_t output = planner->graph->nodes[rnl_group_last(group)].outputs[0];
    rnl_layout layout = RNL_LAYOUT_ROW_MAJOR;
    rnl_view view, target;
    for (size_t i = 0; i < group->chain.operand_count; i++) {
        uint32_t value = group->operands[i].value;
        if (value == RNL_NO_VALUE)
            continue;
        TRY(rnl_lower_stored(lowering, value, RNL_LAYOUT_ANY, &view));
        if (rnl_lower_is_channels_last(planner, value, planner->values[output].desc.rank))
            layout = RNL_LAYOUT_CHANNELS_LAST;
    }
    TRY(rnl_lower_memory(lowering, output, layout, true, &target));
    TRY(lower_operands(lowering, group, &target));
    return rnl_op_chain(lowering->list, &group->chain, &target);
}

static rnl_status lower_norm_input(rnl_lowering *lowering, uint32_t value, double absent, rnl_dtype dtype,
                                   rnl_view *out_view)
{
    if (value == RNL_NO_VALUE)
        return rnl_lower_scalar(lowering, dtype, absent, out_view);
    return rnl_lower_value(lowering, value, RNL_LAYOUT_ANY, out_view);
}

static rnl_status lower_norm(rnl_lowering *lowering, const rnl_group *group)
{
    const rnl_norm *norm = &group->norm;
    uint32_t output = lowering->planner->graph->nodes[rnl_group_last(group)].outputs[0];
    rnl_view source, scale, bias, target;
    TRY(rnl_lower_value(lowering, norm->source, RNL_LAYOUT_ANY, &source));
    TRY(lower_norm_input(lowering, norm->scale, 1, source.dtype, &scale));
    TRY(lower_norm_input(lowering, norm->bias, 0, source.dtype, &bias));
    TRY(rnl_lower_memory(lowering, output, RNL_LAYOUT_ROW_MAJOR, false, &target));
    return rnl_op_normalize(lowering->list, norm->axes, norm->epsilon, &source, &scale, &bias, &target);
}

/* Rank 4, with each row's elements side by side. */
static rnl_status lower_rows(rnl_lowering *lowering, uint32_t value, bool turned, rnl_view *out_view)
{
    TRY(rnl_lower_value(lowering, value, RNL_LAYOUT_ANY, out_view));
    *out_view = rnl_attention_rows(out_view);
    if (turned)
        *out_view = rnl_attention_turned(out_view);
    return out_view->stride[3] == 1 || out_view->shape[3] == 1 ? RNL_OK
                                                               : rnl_compose_dense(lowering, out_view, out_view);
}

static rnl_status lower_attention(rnl_lowering *lowering, const rnl_group *group)
{
    const rnl_attention_nodes *nodes = &group->attention;
    uint32_t output = lowering->planner->graph->nodes[rnl_group_last(group)].outputs[0];
    rnl_attention_step step = {.bias = {.slot = RNL_NO_SLOT},
                               .scale = (float)nodes->scale,
                               .pairs = rnl_narrow_is_on(lowering->planner->model)};
    rnl_view target;
    TRY(lower_rows(lowering, nodes->query, false, &step.query));
    TRY(lower_rows(lowering, nodes->keys, true, &step.key));
    TRY(lower_rows(lowering, nodes->value, false, &step.value));
    if (nodes->bias != RNL_NO_VALUE)
        TRY(rnl_lower_value(lowering, nodes->bias, RNL_LAYOUT_ANY, &step.bias));
    TRY(rnl_lower_memory(lowering, output, RNL_LAYOUT_ROW_MAJOR, false, &target));
    step.dst = rnl_attention_rows(&target);
    return rnl_op_attention(lowering->list, &step);
}

static rnl_status lower_anchor(rnl_lowering *lowering, rnl_group *group)
{
    lowering->group = group;
    rnl_status status = rnl_lower_find(lowering->context.node)(lowering);
    lowering->group = NULL;
    return status;
}

/* " + Relu + Add", behind what the first one stands for already. */
static rnl_status name_others(rnl_planner *planner, const rnl_group *group, const char **out_text)
{
    const rnl_node *nodes = planner->graph->nodes;
    rnl_text text = {0};
    for (size_t i = 0; i < group->node_count; i++) {
        const rnl_node *node = &nodes[group->nodes[i]];
        if (i > 0)
            rnl_text_add(&text, " + %s", node->op_type);
        if (node->instead)
            rnl_text_add(&text, "%s", node->instead);
    }
    rnl_status status = text.status;
    if (status == RNL_OK)
        status = rnl_zone_text(&planner->plan->zone, text.data ? text.data : "", text.length, out_text);
    rnl_text_free(&text);
    return status;
}

rnl_status rnl_lower_group(rnl_lowering *lowering, rnl_group *group)
{
    rnl_planner *planner = lowering->planner;
    const rnl_node *first = &planner->graph->nodes[group->nodes[0]];
    const char *others;
    TRY(rnl_plan_context(planner, first, &lowering->context));
    if (group->kind == RNL_GROUP_ANCHOR)
        TRY(lower_anchor(lowering, group));
    else if (group->kind == RNL_GROUP_NORM)
        TRY(lower_norm(lowering, group));
    else if (group->kind == RNL_GROUP_ATTENTION)
        TRY(lower_attention(lowering, group));
    else
        TRY(lower_chain(lowering, group));
    TRY(name_others(planner, group, &others));
    return rnl_plan_cover_steps(planner, group->nodes[0], others);
}
