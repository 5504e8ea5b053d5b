/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph within a node: If's branches, the bodies of Loop and Scan. A reader of its own reads it, since the outer one
 * is in the middle of a node. Names that it does not define are inputs behind its own: the node passes them in.
 */
#include "onnx/reader.h"

#include "base/memory.h"
#include "base/text.h"
#include <string.h>

/* They are the values defined last. */
static rnl_status append_captures(rnl_graph *graph)
{
    const size_t own = graph->input_count, count = own + graph->capture_count;
    rnl_value_info *inputs;
    uint32_t *values;
    if (graph->capture_count == 0)
        return RNL_OK;
    TRY(rnl_zone_alloc(&graph->zone, count, sizeof *inputs, &inputs));
    TRY(rnl_zone_alloc(&graph->zone, count, sizeof *values, &values));
    for (size_t i = 0; i < own; i++) {
        inputs[i] = graph->inputs[i];
        values[i] = graph->input_values[i];
    }
    for (size_t i = own; i < count; i++) {
        values[i] = (uint32_t)(graph->value_count - (count - i));
        rnl_value *value = &graph->values[values[i]];
        value->input_index = (int32_t)i;
        inputs[i] = (rnl_value_info){.name = value->name, .rank = SIZE_MAX};
    }
    graph->inputs = inputs;
    graph->input_values = values;
    graph->input_count = count;
    return RNL_OK;
}

static rnl_status make_label(rnl_reader *outer, const char *attribute, const char **out_label)
{
    const rnl_reader *root = outer;
    rnl_text text = {0};
    while (root->parent)
        root = root->parent;
    rnl_text_add(&text, "the graph '%s' of node %zu of %s", attribute, outer->graph->node_count,
                 outer->parent ? "a graph within it" : root->label);
    rnl_status status = text.status;
    if (status == RNL_OK)
        status = rnl_zone_text(&outer->graph->zone, text.data, text.length, out_label);
    rnl_text_free(&text);
    return status;
}

static rnl_status open_inner(rnl_reader *outer, const char *attribute, rnl_reader **out_inner)
{
    rnl_reader *inner = NULL;
    const char *label = NULL;
    TRY(make_label(outer, attribute, &label));
    TRY(rnl_onnx_reader_create(outer->graph, label, outer->file, &inner));
    inner->parent = outer;
    inner->within = rnl_onnx_call(outer);
    inner->folder_path = outer->folder_path;
    memcpy(inner->opsets, outer->opsets, sizeof inner->opsets);
    inner->opset_count = outer->opset_count;
    *out_inner = inner;
    return RNL_OK;
}

/* The memory of all graphs counts against the outermost one's limit. */
static rnl_status create_graph(rnl_graph *outer, rnl_graph **out_graph)
{
    size_t left = outer->zone.limit_bytes - outer->zone.used_bytes;
    TRY(rnl_grow(&outer->subgraphs, &outer->subgraph_capacity, outer->subgraph_count + 1, sizeof *outer->subgraphs));
    TRY(rnl_graph_create(left ? left : 1, out_graph));
    outer->subgraphs[outer->subgraph_count++] = *out_graph;
    return RNL_OK;
}

rnl_status rnl_onnx_read_subgraph(rnl_reader *reader, rnl_view bytes, const char *attribute, rnl_graph **out_graph)
{
    rnl_reader *inner = NULL;
    rnl_graph *graph = NULL;
    rnl_status status = RNL_OK;
    *out_graph = NULL;
    GOTO(open_inner(reader, attribute, &inner));
    GOTO(create_graph(reader->graph, &graph));
    graph->info.opset = reader->graph->info.opset;
    inner->graph = graph;
    GOTO(rnl_onnx_read_graph(inner, bytes));
    GOTO(append_captures(graph));
    size_t used = graph->zone.used_bytes, limit = reader->graph->zone.limit_bytes;
    reader->graph->zone.limit_bytes = used < limit ? limit - used : 1;
    *out_graph = graph;
done:
    rnl_onnx_reader_free(inner);
    return status;
}
