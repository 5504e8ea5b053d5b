/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate.h"

#include "base/memory.h"
#include "graph/custom.h"
#include "model/late.h"
#include <string.h>

static rnl_status reserve_descs(rnl_planner *planner, size_t count)
{
    if (count <= planner->desc_capacity)
        return RNL_OK;
    TRY(rnl_zone_alloc(planner->zone, count * 2, sizeof *planner->descs, &planner->descs));
    planner->desc_capacity = count * 2;
    return RNL_OK;
}

rnl_status rnl_plan_context(rnl_planner *planner, const rnl_node *node, rnl_op_context *out_context)
{
    TRY(reserve_descs(planner, (size_t)node->input_count + node->output_count));
    rnl_tensor_desc *inputs = planner->descs, *outputs = inputs + node->input_count;
    memset(planner->descs, 0, ((size_t)node->input_count + node->output_count) * sizeof *inputs);
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != RNL_NO_VALUE)
            inputs[i] = planner->values[node->inputs[i]].desc;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != RNL_NO_VALUE)
            outputs[i] = planner->values[node->outputs[i]].desc;
    *out_context = (rnl_op_context){.node = node,
                                    .input_count = node->input_count,
                                    .output_count = node->output_count,
                                    .inputs = inputs,
                                    .outputs = outputs};
    return RNL_OK;
}

rnl_tensor_desc rnl_desc_of(const rnl_host_tensor *tensor)
{
    rnl_tensor_desc desc = {.dtype = tensor->dtype, .rank = tensor->rank, .host = tensor->data};
    memcpy(desc.shape, tensor->shape, sizeof tensor->shape);
    return desc;
}

static void describe_constants(rnl_planner *planner)
{
    for (size_t i = 0; i < planner->graph->value_count; i++) {
        const rnl_host_tensor *tensor = planner->model->constants.tensors[i];
        rnl_plan_value *value = &planner->values[i];
        if (!tensor)
            continue;
        value->desc = rnl_desc_of(tensor);
        value->described = value->is_fixed = true;
    }
}

/* All that the node reads is fixed. */
static bool is_fixed(const rnl_planner *planner, const rnl_node *node)
{
    bool fixed = true;
    for (uint32_t i = 0; i < node->input_count; i++)
        fixed = fixed && (node->inputs[i] == RNL_NO_VALUE || planner->values[node->inputs[i]].is_fixed);
    return fixed;
}

/* Small outputs whose inputs are known and small are worth no launch. */
static bool can_evaluate(const rnl_op_context *context)
{
    if (!context->node->schema->evaluate)
        return false;
    for (size_t i = 0; i < context->output_count; i++)
        if (context->outputs[i].dtype && rnl_desc_elements(&context->outputs[i]) > RNL_HOST_MAX_ELEMENTS)
            return false;
    if (context->node->schema->shape_only)
        return true;
    for (size_t i = 0; i < context->input_count; i++) {
        const rnl_tensor_desc *input = &context->inputs[i];
        bool unknown = !input->host && rnl_desc_elements(input) > 0;
        if (input->dtype && (unknown || rnl_desc_elements(input) > RNL_HOST_MAX_ELEMENTS))
            return false;
    }
    return true;
}

static rnl_status evaluate(rnl_planner *planner, rnl_op_context *context)
{
    void **results = NULL;
    TRY(rnl_zone_alloc(planner->zone, context->output_count, sizeof *results, &results));
    for (size_t i = 0; i < context->output_count; i++) {
        const rnl_tensor_desc *output = &context->outputs[i];
        size_t bytes = (size_t)rnl_desc_elements(output) * rnl_dtype_bytes(output->dtype);
        TRY(rnl_zone_alloc(planner->zone, bytes ? bytes : 1, 1, &results[i]));
    }
    context->results = results;
    TRY(context->node->schema->evaluate(context));
    for (size_t i = 0; i < context->output_count; i++)
        context->outputs[i].host = results[i];
    return RNL_OK;
}

/* Worked out when the model was opened. */
static bool is_done(const rnl_planner *planner, const rnl_node *node)
{
    bool done = false, all = true;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == RNL_NO_VALUE)
            continue;
        done = true;
        all = all && planner->model->constants.tensors[node->outputs[i]];
    }
    return done && all;
}

static rnl_status check_outputs(const rnl_op_context *context)
{
    for (size_t i = 0; i < context->output_count; i++) {
        int64_t elements;
        context->outputs[i].host = NULL;
        if (context->outputs[i].dtype &&
            !rnl_shape_elements(context->outputs[i].shape, context->outputs[i].rank, &elements))
            return FAIL(RNL_INVALID_ARGUMENT, "output %zu has an impossible shape", i);
    }
    return RNL_OK;
}

static void keep_outputs(rnl_planner *planner, uint32_t index, const rnl_op_context *context)
{
    const rnl_node *node = context->node;
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == RNL_NO_VALUE)
            continue;
        planner->values[node->outputs[i]].desc = context->outputs[i];
        planner->values[node->outputs[i]].described = true;
        planner->values[node->outputs[i]].is_fixed = planner->on_host[index] && is_fixed(planner, node);
    }
}

/* The shape depends on contents that nobody knows yet. */
static bool lacks_contents(const rnl_op_context *context)
{
    for (uint32_t i = 0; i < context->input_count && i < 32; i++) {
        bool shapes_output = context->node->schema->shape_inputs >> i & 1;
        if (shapes_output && context->inputs[i].dtype && !rnl_desc_known(&context->inputs[i]))
            return true;
    }
    return false;
}

/* *out_ends: the node is not described; it needs what the nodes before it compute. */
static rnl_status describe_node(rnl_planner *planner, uint32_t index, bool *out_ends)
{
    const rnl_node *node = &planner->graph->nodes[index];
    const bool is_late = rnl_late_kind(node) != RNL_LATE_NOT;
    rnl_op_context context;
    *out_ends = false;
    planner->on_host[index] = is_done(planner, node);
    if (planner->on_host[index])
        return RNL_OK;
    TRY(rnl_plan_context(planner, node, &context));
    rnl_status status = node->schema->infer(&context);
    *out_ends = status == RNL_FAILED_PRECONDITION && (is_late || lacks_contents(&context));
    if (*out_ends)
        return RNL_OK;
    if (status != RNL_OK)
        return status;
    TRY(check_outputs(&context));
    TRY(rnl_custom_check_declared(planner->graph, &context));
    planner->on_host[index] = can_evaluate(&context);
    *out_ends = is_late && !planner->on_host[index];
    if (*out_ends)
        return RNL_OK;
    if (planner->on_host[index])
        TRY(evaluate(planner, &context));
    keep_outputs(planner, index, &context);
    return RNL_OK;
}

/* Nobody reads what the node gives. */
static bool is_dead(const rnl_planner *planner, const rnl_node *node)
{
    bool dead = planner->model->last_read != NULL;
    for (uint32_t i = 0; i < node->output_count && dead; i++)
        dead = node->outputs[i] == RNL_NO_VALUE || planner->model->last_read[node->outputs[i]] == 0;
    return dead;
}

rnl_status rnl_plan_describe(rnl_planner *planner)
{
    const uint32_t count = (uint32_t)planner->graph->node_count;
    uint32_t i = planner->plan->first_node;
    bool ends = false;
    describe_constants(planner);
    memset(planner->on_host, true, count * sizeof *planner->on_host); /* what lies outside is not lowered either */
    for (; i < count; i++) {
        const rnl_node *node = &planner->graph->nodes[i];
        if (is_dead(planner, node))
            continue;
        rnl_status status = describe_node(planner, i, &ends);
        if (status != RNL_OK)
            return rnl_node_error(planner->graph, node, status);
        if (ends)
            break;
    }
    if (ends)
        planner->on_host[i] = true;
    planner->plan->end_node = i;
    return RNL_OK;
}

/* Made by this plan's nodes and read behind them. */
static bool is_given(const rnl_planner *planner, uint32_t value)
{
    const rnl_plan *plan = planner->plan;
    const uint32_t producer = planner->graph->values[value].producer;
    return producer != RNL_NO_NODE && producer >= plan->first_node && producer < plan->end_node &&
           planner->model->last_read[value] > plan->end_node && !planner->model->constants.tensors[value];
}

rnl_status rnl_plan_find_outputs(rnl_planner *planner)
{
    const rnl_graph *graph = planner->graph;
    rnl_plan *plan = planner->plan;
    const bool is_all = plan->first_node == 0 && plan->end_node == graph->node_count;
    plan->is_whole = is_all && planner->model->root == planner->model;
    size_t room = plan->is_whole ? graph->output_count : 0;
    for (uint32_t i = 0; i < graph->value_count && !plan->is_whole; i++)
        room += is_given(planner, i);
    TRY(rnl_zone_alloc(&plan->zone, room ? room : 1, sizeof *plan->outputs, &plan->outputs));
    for (size_t i = 0; i < graph->output_count && plan->is_whole; i++)
        plan->outputs[plan->output_count++].value = graph->output_values[i];
    for (uint32_t i = 0; i < graph->value_count && !plan->is_whole; i++)
        if (is_given(planner, i))
            plan->outputs[plan->output_count++].value = i;
    return RNL_OK;
}

static bool node_is_needed(const rnl_planner *planner, const rnl_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != RNL_NO_VALUE && planner->values[node->outputs[i]].needed)
            return true;
    return false;
}

void rnl_plan_mark_needed(rnl_planner *planner)
{
    const rnl_graph *graph = planner->graph;
    for (size_t i = 0; i < planner->plan->output_count; i++)
        planner->values[planner->plan->outputs[i].value].needed = true;
    for (size_t i = graph->node_count; i-- > 0;) {
        const rnl_node *node = &graph->nodes[i];
        if (planner->on_host[i] || !node_is_needed(planner, node))
            continue;
        for (uint32_t j = 0; j < node->input_count; j++) {
            bool shape_only = j < 32 && (node->schema->shape_inputs >> j & 1);
            if (node->inputs[j] != RNL_NO_VALUE && !shape_only)
                planner->values[node->inputs[j]].needed = true;
        }
    }
}

/* What a node that runs late reads is no matter of planning. */
static void mark_contents(const rnl_graph *graph, bool *read)
{
    for (size_t i = graph->node_count; i-- > 0;) {
        const rnl_node *node = &graph->nodes[i];
        bool result_read = false, is_late = rnl_late_kind(node) != RNL_LATE_NOT;
        for (uint32_t j = 0; j < node->output_count; j++)
            result_read |= node->outputs[j] != RNL_NO_VALUE && read[node->outputs[j]];
        for (uint32_t j = 0; j < node->input_count && !is_late; j++) {
            bool shapes_output = node->schema && j < 32 && (node->schema->shape_inputs >> j & 1);
            bool passes_on = result_read && node->schema && !node->schema->shape_only;
            if (node->inputs[j] != RNL_NO_VALUE && (shapes_output || passes_on))
                read[node->inputs[j]] = true;
        }
    }
}

static void mark_last_reads(const rnl_graph *graph, uint32_t *last_read)
{
    for (size_t i = 0; i < graph->output_count; i++)
        last_read[graph->output_values[i]] = UINT32_MAX;
    for (size_t i = graph->node_count; i-- > 0;) {
        const rnl_node *node = &graph->nodes[i];
        bool live = false;
        for (uint32_t j = 0; j < node->output_count; j++)
            live |= node->outputs[j] != RNL_NO_VALUE && last_read[node->outputs[j]] != 0;
        for (uint32_t j = 0; j < node->input_count && live; j++)
            if (node->inputs[j] != RNL_NO_VALUE && last_read[node->inputs[j]] == 0)
                last_read[node->inputs[j]] = (uint32_t)i + 1;
    }
}

rnl_status rnl_model_find_reads(rnl_model *model)
{
    const rnl_graph *graph = model->graph;
    TRY(rnl_alloc(graph->value_count, sizeof *model->reads_contents, &model->reads_contents));
    TRY(rnl_alloc(graph->value_count, sizeof *model->last_read, &model->last_read));
    mark_contents(graph, model->reads_contents);
    mark_last_reads(graph, model->last_read);
    return RNL_OK;
}
