/* SPDX-License-Identifier: Apache-2.0 */
#include "quantize/edit.h"

#include "base/memory.h"
#include "graph/op.h"
#include <stdio.h>
#include <string.h>

uint32_t rnl_edit_find(const rnl_quantizer *q, const char *name, size_t length)
{
    const uint32_t index = rnl_names_find(&q->names, q->values, sizeof *q->values, name, length);
    return index == RNL_NAME_UNKNOWN ? RNL_NO_VALUE : index;
}

bool rnl_edit_is(const rnl_edit_node *node, const char *op_type)
{
    return strcmp(node->op_type, op_type) == 0 && (node->domain[0] == '\0' || strcmp(node->domain, "ai.onnx") == 0);
}

const rnl_host_tensor *rnl_edit_floats(const rnl_quantizer *q, const rnl_edit_node *node, uint32_t input)
{
    if (input >= node->input_count || node->inputs[input] == RNL_NO_VALUE)
        return NULL;
    const rnl_host_tensor *tensor = q->values[node->inputs[input]].constant;
    return tensor && tensor->dtype == RNL_F32 ? tensor : NULL;
}

float rnl_edit_float(const rnl_host_tensor *tensor, int64_t index)
{
    float number;
    memcpy(&number, (const char *)tensor->data + (size_t)index * sizeof number, sizeof number);
    return number;
}

int64_t rnl_edit_elements(const rnl_host_tensor *tensor)
{
    int64_t elements = 1;
    for (size_t i = 0; i < tensor->rank; i++)
        elements *= tensor->shape[i]; /* the reader has checked the product */
    return elements;
}

rnl_edit_node *rnl_edit_only_reader(const rnl_quantizer *q, uint32_t value)
{
    if (value == RNL_NO_VALUE || q->values[value].readers != 1)
        return NULL;
    rnl_edit_node *node = &q->nodes[q->values[value].reader];
    return node->is_gone ? NULL : node;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static rnl_status damaged(const rnl_quantizer *q)
{
    return FAIL(RNL_DATA_LOSS, "%s is not an ONNX model, or damaged", q->path);
}

static rnl_status add_value(rnl_quantizer *q, rnl_bytes name, uint32_t *out_index)
{
    *out_index = RNL_NO_VALUE;
    if (name.size == 0)
        return RNL_OK;
    *out_index = rnl_edit_find(q, (const char *)name.data, name.size);
    if (*out_index != RNL_NO_VALUE)
        return RNL_OK;
    TRY(rnl_grow(&q->values, &q->value_capacity, q->value_count + 1, sizeof *q->values));
    TRY(rnl_names_reserve(&q->names, q->value_count + 1));
    rnl_edit_value *value = &q->values[q->value_count];
    *value = (rnl_edit_value){.producer = RNL_NO_NODE, .rank = SIZE_MAX, .same_as = RNL_NO_VALUE};
    TRY(rnl_zone_text(&q->zone, (const char *)name.data, name.size, &value->name));
    TRY(rnl_names_add(&q->names, (const char *)name.data, name.size, (uint32_t)q->value_count));
    *out_index = (uint32_t)q->value_count++;
    return RNL_OK;
}

static rnl_status take_text(rnl_quantizer *q, rnl_bytes message, uint32_t number, const char **out_text)
{
    rnl_wire_field field = {0};
    rnl_wire_find(message, number, &field);
    return rnl_zone_text(&q->zone, (const char *)field.contents.data, field.contents.size, out_text);
}

/* Inputs and outputs, counted before there is room for them. */
static rnl_status read_ends(rnl_quantizer *q, rnl_edit_node *node, uint32_t index)
{
    rnl_bytes rest = node->bytes;
    rnl_wire_field field;
    while (rnl_wire_next(&rest, &field)) {
        uint32_t value;
        if (field.number != RNL_PB_NODE_INPUT && field.number != RNL_PB_NODE_OUTPUT)
            continue;
        TRY(add_value(q, field.contents, &value));
        if (field.number == RNL_PB_NODE_INPUT) {
            if (node->inputs)
                node->inputs[node->input_count] = value;
            node->input_count++;
        } else {
            if (node->outputs)
                node->outputs[node->output_count] = value;
            node->output_count++;
        }
        if (node->inputs && value != RNL_NO_VALUE && field.number == RNL_PB_NODE_OUTPUT)
            q->values[value].producer = index;
        if (node->inputs && value != RNL_NO_VALUE && field.number == RNL_PB_NODE_INPUT) {
            q->values[value].reader = index;
            q->values[value].readers++;
        }
    }
    return rest.size ? damaged(q) : RNL_OK;
}

static rnl_status read_node(rnl_quantizer *q, rnl_bytes bytes)
{
    const uint32_t index = (uint32_t)q->node_count;
    rnl_edit_node *node = &q->nodes[q->node_count++];
    node->bytes = bytes;
    node->layer = RNL_NO_LAYER;
    TRY(take_text(q, bytes, RNL_PB_NODE_NAME, &node->name));
    TRY(take_text(q, bytes, RNL_PB_NODE_OP, &node->op_type));
    TRY(take_text(q, bytes, RNL_PB_NODE_DOMAIN, &node->domain));
    TRY(read_ends(q, node, index));
    TRY(rnl_zone_alloc(&q->zone, node->input_count, sizeof *node->inputs, &node->inputs));
    TRY(rnl_zone_alloc(&q->zone, node->output_count, sizeof *node->outputs, &node->outputs));
    node->input_count = node->output_count = 0;
    return read_ends(q, node, index);
}

static rnl_status read_end_of_graph(rnl_quantizer *q, const rnl_wire_field *field)
{
    rnl_wire_field name = {0};
    uint32_t value;
    const uint32_t number = field->number == RNL_PB_GRAPH_INITIALIZER ? RNL_PB_TENSOR_NAME : RNL_PB_VALUE_NAME;
    rnl_wire_find(field->contents, number, &name);
    TRY(add_value(q, name.contents, &value));
    if (value == RNL_NO_VALUE)
        return RNL_OK;
    if (field->number == RNL_PB_GRAPH_INPUT) {
        q->values[value].is_input = true;
    } else if (field->number == RNL_PB_GRAPH_OUTPUT) {
        q->values[value].is_output = true;
        q->values[value].readers += 2;
        q->own_count++;
    }
    return RNL_OK;
}

static rnl_status read_body(rnl_quantizer *q)
{
    rnl_bytes rest = q->body;
    rnl_wire_field field;
    size_t count = 0;
    while (rnl_wire_next(&rest, &field))
        count += field.number == RNL_PB_GRAPH_NODE;
    if (rest.size)
        return damaged(q);
    TRY(rnl_zone_alloc(&q->zone, count, sizeof *q->nodes, &q->nodes));
    for (rest = q->body; rnl_wire_next(&rest, &field);) {
        if (field.number == RNL_PB_GRAPH_NODE)
            TRY(read_node(q, field.contents));
        else if (field.number == RNL_PB_GRAPH_INPUT || field.number == RNL_PB_GRAPH_OUTPUT ||
                 field.number == RNL_PB_GRAPH_INITIALIZER)
            TRY(read_end_of_graph(q, &field));
    }
    return RNL_OK;
}

/* ---- beside the loaded graph ----------------------------------------------------------------------------------- */

/* Constants, and what graphs within nodes read. */
static void compare_values(rnl_quantizer *q)
{
    const rnl_graph *graph = q->graph;
    for (size_t i = 0; i < graph->value_count; i++) {
        const uint32_t value = rnl_edit_find(q, graph->values[i].name, strlen(graph->values[i].name));
        if (value == RNL_NO_VALUE)
            continue;
        q->values[value].is_known = true;
        q->values[value].constant = graph->values[i].constant;
    }
    for (size_t i = 0; i < graph->node_count; i++) {
        const rnl_node *node = &graph->nodes[i];
        for (uint32_t j = rnl_node_own_inputs(node); j < node->input_count; j++) {
            const char *name = node->inputs[j] == RNL_NO_VALUE ? "" : graph->values[node->inputs[j]].name;
            const uint32_t value = rnl_edit_find(q, name, strlen(name));
            if (value == RNL_NO_VALUE || q->values[value].is_captured)
                continue;
            q->values[value].is_captured = true;
            q->values[value].readers += 2;
        }
    }
}

static void compare_nodes(rnl_quantizer *q)
{
    const rnl_graph *graph = q->graph;
    for (size_t i = 0; i < graph->node_count; i++) {
        const rnl_node *typed = &graph->nodes[i];
        const uint32_t output = typed->output_count ? typed->outputs[0] : RNL_NO_VALUE;
        const char *name = output == RNL_NO_VALUE ? "" : graph->values[output].name;
        const uint32_t value = rnl_edit_find(q, name, strlen(name));
        if (value == RNL_NO_VALUE || q->values[value].producer == RNL_NO_NODE)
            continue;
        rnl_edit_node *node = &q->nodes[q->values[value].producer];
        if (rnl_edit_is(node, typed->op_type) && typed->domain[0] == '\0' && node->input_count <= typed->input_count)
            node->typed = typed;
    }
}

static bool is_anywhere(rnl_bytes bytes, const char *text)
{
    return memmem(bytes.data, bytes.size, text, strlen(text)) != NULL;
}

static rnl_status choose_mark(rnl_quantizer *q)
{
    char mark[48] = "_quantized";
    for (unsigned i = 2; is_anywhere(q->model, mark); i++)
        snprintf(mark, sizeof mark, "_quantized%u_", i);
    return rnl_zone_text(&q->zone, mark, strlen(mark), &q->mark);
}

rnl_status rnl_edit_read(rnl_quantizer *q)
{
    rnl_wire_field graph;
    q->model = (rnl_bytes){q->graph->file.data, q->graph->file.size_bytes};
    q->opset = q->graph->info.opset;
    if (!rnl_wire_find(q->model, RNL_PB_MODEL_GRAPH, &graph))
        return damaged(q);
    q->body = graph.contents;
    TRY(read_body(q));
    compare_values(q);
    compare_nodes(q);
    return choose_mark(q);
}
