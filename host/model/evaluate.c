/* SPDX-License-Identifier: Apache-2.0 */
#include "model/evaluate.h"

#include "base/memory.h"
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

static rnl_status describe_node(rnl_planner *planner, uint32_t index)
{
    const rnl_node *node = &planner->graph->nodes[index];
    rnl_op_context context;
    planner->on_host[index] = is_done(planner, node);
    if (planner->on_host[index])
        return RNL_OK;
    TRY(rnl_plan_context(planner, node, &context));
    TRY(node->schema->infer(&context));
    for (size_t i = 0; i < context.output_count; i++) {
        int64_t elements;
        context.outputs[i].host = NULL;
        if (context.outputs[i].dtype &&
            !rnl_shape_elements(context.outputs[i].shape, context.outputs[i].rank, &elements))
            return FAIL(RNL_INVALID_ARGUMENT, "output %zu has an impossible shape", i);
    }
    planner->on_host[index] = can_evaluate(&context);
    if (planner->on_host[index])
        TRY(evaluate(planner, &context));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == RNL_NO_VALUE)
            continue;
        planner->values[node->outputs[i]].desc = context.outputs[i];
        planner->values[node->outputs[i]].described = true;
        planner->values[node->outputs[i]].is_fixed = planner->on_host[index] && is_fixed(planner, node);
    }
    return RNL_OK;
}

rnl_status rnl_plan_describe(rnl_planner *planner)
{
    describe_constants(planner);
    for (uint32_t i = 0; i < planner->graph->node_count; i++) {
        rnl_status status = describe_node(planner, i);
        if (status != RNL_OK)
            return rnl_node_error(planner->graph, &planner->graph->nodes[i], status);
    }
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
    for (size_t i = 0; i < graph->output_count; i++)
        planner->values[graph->output_values[i]].needed = true;
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

static bool *mark_contents(const rnl_graph *graph, bool *read)
{
    for (size_t i = graph->node_count; i-- > 0;) {
        const rnl_node *node = &graph->nodes[i];
        bool result_read = false;
        for (uint32_t j = 0; j < node->output_count; j++)
            result_read |= node->outputs[j] != RNL_NO_VALUE && read[node->outputs[j]];
        for (uint32_t j = 0; j < node->input_count; j++) {
            bool shapes_output = node->schema && j < 32 && (node->schema->shape_inputs >> j & 1);
            bool passes_on = result_read && node->schema && !node->schema->shape_only;
            if (node->inputs[j] != RNL_NO_VALUE && (shapes_output || passes_on))
                read[node->inputs[j]] = true;
        }
    }
    return read;
}

uint64_t rnl_graph_content_inputs(const rnl_graph *graph)
{
    rnl_zone zone = {0};
    bool *read = NULL;
    uint64_t inputs = 0;
    if (rnl_zone_alloc(&zone, graph->value_count, sizeof *read, &read) == RNL_OK) {
        mark_contents(graph, read);
        for (size_t i = 0; i < graph->input_count && i < 64; i++)
            if (read[graph->input_values[i]])
                inputs |= UINT64_C(1) << i;
    }
    rnl_zone_free(&zone);
    return inputs;
}
