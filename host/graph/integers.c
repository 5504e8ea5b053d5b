/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/integers.h"

#include "base/memory.h"
#include "base/text.h"
#include "graph/graph_build.h"
#include "graph/host_element.h"
#include "graph/integers_edit.h"
#include "graph/op.h"
#include <string.h>

/* ---- reading --------------------------------------------------------------------------------------------------- */

const rnl_node *rnl_editor_producer(const rnl_editor *editor, uint32_t value)
{
    if (value == RNL_NO_VALUE || editor->graph->values[value].producer == RNL_NO_NODE)
        return NULL;
    return &editor->graph->nodes[editor->graph->values[value].producer];
}

const rnl_node *rnl_editor_own_producer(const rnl_editor *editor, uint32_t value)
{
    const rnl_node *node = rnl_editor_producer(editor, value);
    return node && editor->reads[value] == 1 ? node : NULL;
}

const rnl_host_tensor *rnl_editor_constant(const rnl_editor *editor, uint32_t value)
{
    return value == RNL_NO_VALUE ? NULL : editor->graph->values[value].constant;
}

int64_t rnl_tensor_elements(const rnl_host_tensor *tensor)
{
    int64_t elements = 1;
    for (size_t i = 0; i < tensor->rank; i++)
        elements *= tensor->shape[i]; /* the reader has checked the product */
    return elements;
}

double rnl_tensor_number(const rnl_host_tensor *tensor, int64_t index)
{
    return rnl_number_double(rnl_element_load(tensor->data, index, tensor->dtype), tensor->dtype);
}

static uint32_t input_of(const rnl_node *node, uint32_t index)
{
    return index < node->input_count ? node->inputs[index] : RNL_NO_VALUE;
}

/* `values` by the scale and zero point that are the node's inputs 1 and 2. */
static bool read_quantity(const rnl_editor *editor, const rnl_node *node, uint32_t values, rnl_quantity *out)
{
    const uint32_t scale = input_of(node, 1), zero = input_of(node, 2);
    const rnl_host_tensor *scales = rnl_editor_constant(editor, scale), *zeros = rnl_editor_constant(editor, zero);
    const rnl_host_tensor *constant = rnl_editor_constant(editor, values), *typed = zeros ? zeros : constant;
    const bool plain = rnl_node_int(node, "block_size", 0) == 0 && rnl_node_int(node, "output_dtype", 0) == 0 &&
                       rnl_node_int(node, "precision", 0) == 0;
    if (!plain || values == RNL_NO_VALUE || !scales || scales->dtype != RNL_F32 || scales->rank > 1 || !typed ||
        (zero != RNL_NO_VALUE && !zeros))
        return false;
    const int64_t count = rnl_tensor_elements(scales);
    if (count < 1 || (zeros && rnl_tensor_elements(zeros) != count))
        return false;
    *out = (rnl_quantity){.values = values,
                          .scale = scale,
                          .zero = zero,
                          .scales = scales,
                          .dtype = typed->dtype,
                          .axis = rnl_node_int(node, "axis", 1),
                          .zero_point = zeros ? rnl_tensor_number(zeros, 0) : 0};
    for (int64_t i = 0; i < count; i++)
        if (!(rnl_tensor_number(scales, i) > 0))
            return false;
    return true;
}

bool rnl_quantity_made(const rnl_editor *editor, const rnl_node *node, rnl_quantity *out)
{
    return rnl_node_is(node, "QuantizeLinear") && read_quantity(editor, node, node->outputs[0], out) &&
           (out->dtype == RNL_U8 || out->dtype == RNL_I8);
}

bool rnl_quantity_behind(const rnl_editor *editor, uint32_t value, rnl_quantity *out)
{
    const rnl_node *node = rnl_editor_producer(editor, value);
    return node && rnl_node_is(node, "DequantizeLinear") && read_quantity(editor, node, node->inputs[0], out) &&
           (out->dtype == RNL_U8 || out->dtype == RNL_I8 || out->dtype == RNL_I32);
}

bool rnl_quantity_is_single(const rnl_quantity *q)
{
    return rnl_tensor_elements(q->scales) == 1 && q->zero != RNL_NO_VALUE && q->dtype != RNL_I32;
}

bool rnl_quantity_equals(const rnl_quantity *a, const rnl_quantity *b)
{
    return rnl_quantity_is_single(a) && rnl_quantity_is_single(b) && a->dtype == b->dtype &&
           a->zero_point == b->zero_point && rnl_tensor_number(a->scales, 0) == rnl_tensor_number(b->scales, 0);
}

/* ---- writing --------------------------------------------------------------------------------------------------- */

rnl_status rnl_editor_add(rnl_editor *editor, rnl_dtype dtype, size_t rank, int64_t elements, const void *data,
                          uint32_t *out_value)
{
    rnl_graph *graph = editor->graph;
    rnl_host_tensor *tensor = NULL;
    void *copy = NULL;
    const size_t bytes = (size_t)elements * rnl_dtype_bytes(dtype);
    if (graph->value_count == editor->value_capacity) {
        rnl_value *more = NULL;
        TRY(rnl_zone_alloc(&graph->zone, 2 * editor->value_capacity, sizeof *more, &more));
        memcpy(more, graph->values, graph->value_count * sizeof *more);
        graph->values = more;
        editor->value_capacity *= 2;
    }
    TRY(rnl_zone_alloc(&graph->zone, 1, sizeof *tensor, &tensor));
    TRY(rnl_zone_alloc(&graph->zone, bytes, 1, &copy));
    memcpy(copy, data, bytes);
    *tensor = (rnl_host_tensor){.dtype = dtype, .rank = rank, .shape = {elements}, .data = copy, .size_bytes = bytes};
    *out_value = (uint32_t)graph->value_count++;
    graph->values[*out_value] = (rnl_value){.name = "", .producer = RNL_NO_NODE, .constant = tensor, .input_index = -1};
    return RNL_OK;
}

/* What a node has come to stand for, and the one whose place it takes. */
static rnl_status name_both(rnl_editor *editor, const rnl_node *like, const rnl_node *last, const char **out_names)
{
    rnl_text text = {0};
    if (like->instead)
        rnl_text_add(&text, "%s", like->instead);
    else
        rnl_text_add(&text, " + %s", like->op_type);
    if (like != last)
        rnl_text_add(&text, " + %s", last->op_type);
    rnl_status status = text.status;
    if (status == RNL_OK)
        status = rnl_zone_text(&editor->graph->zone, text.data, strlen(text.data), out_names);
    rnl_text_free(&text);
    return status;
}

rnl_status rnl_editor_replace(rnl_editor *editor, uint32_t index, const rnl_node *like, const char *domain,
                              const char *op_type, const uint32_t *inputs, uint32_t input_count)
{
    rnl_node *node = &editor->graph->nodes[index];
    const int64_t opset = *domain ? 1 : node->opset;
    const rnl_op_schema *schema = rnl_op_find(domain, op_type, opset);
    uint32_t *copy = NULL;
    const char *instead;
    if (!schema)
        return RNL_OK;
    TRY(name_both(editor, like, node, &instead));
    TRY(rnl_zone_alloc(&editor->graph->zone, input_count, sizeof *copy, &copy));
    memcpy(copy, inputs, input_count * sizeof *copy);
    const rnl_node from = *like; /* which may be the node itself */
    node->name = from.name;
    node->domain = domain;
    node->op_type = op_type;
    node->opset = opset;
    node->schema = schema;
    node->input_count = input_count;
    node->capture_count = 0;
    node->inputs = copy;
    node->attributes = from.attributes;
    node->attribute_count = from.attribute_count;
    node->instead = instead;
    editor->changed = true;
    return RNL_OK;
}

/* ---- the graph ------------------------------------------------------------------------------------------------- */

static bool is_quantised(const rnl_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++)
        if (rnl_node_is(&graph->nodes[i], "DequantizeLinear") || rnl_node_is(&graph->nodes[i], "MatMulInteger"))
            return true;
    return false;
}

static rnl_status count_reads(rnl_editor *editor)
{
    const rnl_graph *graph = editor->graph;
    TRY(rnl_alloc(graph->value_count, sizeof *editor->reads, &editor->reads));
    for (size_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] != RNL_NO_VALUE)
                editor->reads[graph->nodes[i].inputs[j]]++;
    for (size_t i = 0; i < graph->output_count; i++)
        editor->reads[graph->output_values[i]]++;
    return RNL_OK;
}

static rnl_status replace_all(rnl_editor *editor)
{
    const uint32_t count = (uint32_t)editor->graph->node_count;
    for (uint32_t i = 0; i < count; i++)
        TRY(rnl_integers_before(editor, i));
    for (uint32_t i = 0; i < count; i++)
        TRY(rnl_integers_product(editor, i));
    for (uint32_t i = 0; i < count; i++)
        TRY(rnl_integers_scaled(editor, i));
    return RNL_OK;
}

rnl_status rnl_graph_with_integers(rnl_graph *graph, rnl_graph **out_graph)
{
    rnl_editor editor = {.value_capacity = graph->value_count + 1};
    rnl_status status = RNL_OK;
    *out_graph = NULL;
    if (is_quantised(graph)) {
        GOTO(rnl_graph_copy(graph, &editor.graph));
        GOTO(count_reads(&editor));
        GOTO(replace_all(&editor));
    }
    *out_graph = editor.changed ? editor.graph : rnl_graph_retain(graph);
    editor.graph = editor.changed ? NULL : editor.graph;
done:
    rnl_graph_release(editor.graph);
    rnl_free(editor.reads);
    return status;
}
