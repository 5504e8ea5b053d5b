/* SPDX-License-Identifier: Apache-2.0 */
/* NodeProto. A node's inputs may be named later in the file than the node: those are kept aside until the end. */
#include "onnx/reader.h"

#include "base/memory.h"
#include <string.h>

#define PENDING_VALUE (RNL_NO_VALUE - 1)
#define EXPECTED 8 /* names ahead */
#define FORGET_BYTES ((size_t)4 << 20)

typedef struct node_fields {
    rnl_view_field name, op_type, domain, overload;
} node_fields;

static size_t node_index(const rnl_reader *reader)
{
    return reader->graph->node_count; /* the one being read */
}

static rnl_status too_many(const rnl_reader *reader, const char *what)
{
    return FAIL(RNL_UNIMPLEMENTED, "node %zu of %s has more than %d %s", node_index(reader), reader->label,
                RNL_MAX_NODE_INPUTS, what);
}

static rnl_status add_input(rnl_reader *reader, rnl_view name, bool is_in_file)
{
    if (reader->node_input_count == RNL_MAX_NODE_INPUTS)
        return too_many(reader, "inputs");
    uint32_t value = RNL_NO_VALUE;
    TRY(rnl_onnx_scoped(reader, name, &name));
    if (name.size > 0) {
        TRY(rnl_onnx_find_value(reader, name, &value));
        if (value == RNL_NO_VALUE) {
            TRY(rnl_onnx_keep_name(reader, &name));
            TRY(rnl_grow(&reader->pending, &reader->pending_capacity, reader->pending_count + 1,
                         sizeof *reader->pending));
            reader->pending[reader->pending_count++] = (rnl_pending_input){
                (uint32_t)node_index(reader), reader->node_input_count & INT32_MAX, is_in_file, name};
            value = PENDING_VALUE;
        }
    }
    reader->node_inputs[reader->node_input_count++] = value;
    return RNL_OK;
}

static rnl_status add_output(rnl_reader *reader, rnl_view name)
{
    if (reader->node_output_count == RNL_MAX_NODE_INPUTS)
        return too_many(reader, "outputs");
    uint32_t value = RNL_NO_VALUE;
    TRY(rnl_onnx_scoped(reader, name, &name));
    if (name.size > 0) {
        TRY(rnl_onnx_define_value(reader, name, "a node's output", &value), "node %zu", node_index(reader));
        reader->graph->values[value].producer = (uint32_t)node_index(reader);
    }
    reader->node_outputs[reader->node_output_count++] = value;
    return RNL_OK;
}

static bool on_input(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    rnl_view name;
    return rnl_onnx_take(reader, stream, &name) && rnl_onnx_ok(reader, add_input(reader, name, true));
}

static bool on_output(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    rnl_view name;
    return rnl_onnx_take(reader, stream, &name) && rnl_onnx_ok(reader, add_output(reader, name));
}

static bool on_attribute(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    rnl_view bytes;
    return rnl_onnx_take(reader, stream, &bytes) && rnl_onnx_ok(reader, rnl_onnx_read_attribute(reader, bytes));
}

static bool find_import(const rnl_opset *opsets, size_t count, rnl_node *node)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(opsets[i].domain, node->domain) == 0) {
            node->opset = opsets[i].version;
            return true;
        }
    return false;
}

/* A function has imports of its own; what it does not import, the model may. */
static rnl_status find_opset(const rnl_reader *reader, rnl_node *node)
{
    const rnl_scope *scope = rnl_onnx_call(reader);
    const rnl_function *function = scope ? scope->function : NULL;
    if ((function && find_import(function->opsets, function->opset_count, node)) ||
        find_import(reader->opsets, reader->opset_count, node))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "%s uses the operator domain '%s' without importing it", reader->label,
                node->domain[0] ? node->domain : "ai.onnx");
}

/* What the node's subgraphs capture is an input of the node. */
static rnl_status add_captures(rnl_reader *reader, rnl_node *node)
{
    uint32_t own = reader->node_input_count;
    for (size_t i = reader->node_subgraphs; i < reader->graph->subgraph_count; i++) {
        rnl_graph *inner = reader->graph->subgraphs[i];
        inner->first_capture = reader->node_input_count;
        for (size_t k = inner->input_count - inner->capture_count; k < inner->input_count; k++) {
            const char *name = inner->values[inner->input_values[k]].name;
            TRY(add_input(reader, (rnl_view){(const uint8_t *)name, strlen(name)}, false));
        }
    }
    node->capture_count = reader->node_input_count - own;
    return RNL_OK;
}

static rnl_status copy_lists(rnl_reader *reader, rnl_node *node)
{
    while (reader->node_input_count > 0 && reader->node_inputs[reader->node_input_count - 1] == RNL_NO_VALUE)
        reader->node_input_count--; /* optional inputs left out at the end */
    TRY(add_captures(reader, node));
    node->input_count = reader->node_input_count;
    node->output_count = reader->node_output_count;
    TRY(rnl_onnx_indices(reader, reader->node_inputs, node->input_count, &node->inputs));
    TRY(rnl_onnx_indices(reader, reader->node_outputs, node->output_count, &node->outputs));
    if (reader->attribute_count == 0)
        return RNL_OK;
    rnl_attribute *attributes;
    TRY(rnl_zone_alloc(&reader->graph->zone, reader->attribute_count, sizeof *attributes, &attributes));
    memcpy(attributes, reader->attributes, reader->attribute_count * sizeof *attributes);
    node->attributes = attributes;
    node->attribute_count = (uint32_t)reader->attribute_count; /* each takes of the budget */
    return RNL_OK;
}

static rnl_status finish_node(rnl_reader *reader, node_fields *fields)
{
    rnl_node *node = &reader->graph->nodes[node_index(reader)];
    if (fields->op_type.view.size == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "node %zu of %s names no operator", node_index(reader), reader->label);
    rnl_view name;
    TRY(rnl_onnx_scoped(reader, fields->name.view, &name));
    TRY(rnl_onnx_text(reader, name, &node->name));
    TRY(rnl_onnx_keyword(reader, fields->op_type.view, &node->op_type));
    TRY(rnl_onnx_keyword(reader, rnl_onnx_plain_domain(fields->domain.view), &node->domain));
    TRY(find_opset(reader, node));
    if (fields->overload.view.size > 0)
        node->refusal = "it names an overload of a function that the model does not have";
    TRY(copy_lists(reader, node));
    reader->graph->node_count++;
    return RNL_OK;
}

rnl_status rnl_onnx_read_node(rnl_reader *reader, rnl_view bytes)
{
    rnl_function *function;
    TRY(rnl_onnx_find_function(reader, bytes, &function));
    if (function)
        return rnl_onnx_inline(reader, function, bytes);
    const rnl_view_field none = {.reader = reader};
    node_fields fields = {none, none, none, none};
    rnl_pb_Node message = {.input = {{on_input}, reader},
                           .output = {{on_output}, reader},
                           .name = RNL_ONNX_VIEW(&fields.name),
                           .op_type = RNL_ONNX_VIEW(&fields.op_type),
                           .attribute = {{on_attribute}, reader},
                           .domain = RNL_ONNX_VIEW(&fields.domain),
                           .overload = RNL_ONNX_VIEW(&fields.overload)};
    reader->node_input_count = reader->node_output_count = 0;
    reader->attribute_count = 0;
    reader->node_subgraphs = reader->graph->subgraph_count;
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_Node_fields, &message, "a node"), "node %zu", node_index(reader));
    return finish_node(reader, &fields);
}

/* In a file of very many nodes, those that were read need not stay in memory. */
static void forget_nodes(rnl_reader *reader, const uint8_t *read_up_to)
{
    if (reader->parent || reader->function_count > 0)
        return; /* whoever reads the outermost graph does it; functions are read again */
    if (!reader->nodes_kept || (size_t)(read_up_to - reader->nodes_kept) > FORGET_BYTES) {
        if (reader->nodes_kept)
            rnl_map_forget(&reader->graph->file, reader->nodes_kept, (size_t)(read_up_to - reader->nodes_kept));
        reader->nodes_kept = read_up_to;
    }
}

static bool on_node(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    rnl_view bytes;
    if (!rnl_onnx_take(reader, stream, &bytes))
        return false;
    forget_nodes(reader, bytes.data);
    return rnl_onnx_ok(reader, rnl_onnx_read_node(reader, bytes));
}

/* Inputs named before what produces them. */
static rnl_status resolve_pending(rnl_reader *reader)
{
    reader->nodes_kept = NULL;
    for (size_t i = 0; i < reader->pending_count; i++) {
        const rnl_pending_input *pending = &reader->pending[i];
        if (i + EXPECTED < reader->pending_count) {
            const rnl_view later = reader->pending[i + EXPECTED].name;
            rnl_names_expect(&reader->values, (const char *)later.data, later.size);
        }
        if (pending->is_in_file)
            forget_nodes(reader, pending->name.data);
        const rnl_node *node = &reader->graph->nodes[pending->node];
        uint32_t value;
        TRY(rnl_onnx_reach_value(reader, pending->name, &value));
        if (value == RNL_NO_VALUE) {
            const char *name;
            TRY(rnl_onnx_text(reader, pending->name, &name));
            return FAIL(RNL_INVALID_ARGUMENT, "node %u (%s '%s') reads '%s', which nothing in the graph produces",
                        pending->node, node->op_type, node->name, name);
        }
        uint32_t *inputs = (uint32_t *)(uintptr_t)node->inputs; /* the reader's own until the graph is finished */
        inputs[pending->input] = value;
    }
    return RNL_OK;
}

rnl_status rnl_onnx_read_nodes(rnl_reader *reader, rnl_view bytes)
{
    rnl_graph *graph = reader->graph;
    TRY(rnl_zone_alloc(&graph->zone, reader->survey.nodes, sizeof *graph->nodes, &graph->nodes));
    rnl_pb_GraphNodes message = {.node = {{on_node}, reader}};
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_GraphNodes_fields, &message, "its graph"));
    return resolve_pending(reader);
}
