/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk over all messages that nest (graph, node, attribute, graph, …), before anything is kept: too deep or too
 * many nodes is found here, and the sizes of the graph's arrays are known afterwards.
 */
#include "onnx/reader.h"

enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, GRAPH_SPARSE = 15 };
enum { NODE_OUTPUT = 2, NODE_ATTRIBUTE = 5 };
enum { ATTRIBUTE_GRAPH = 6, ATTRIBUTE_GRAPHS = 11 };

#define GRAPH_DEPTH 2 /* of the model's own graph; the model is 1 */

typedef bool (*field_fn)(rnl_reader *reader, pb_istream_t *stream, uint32_t tag, unsigned depth);

/* Calls `on_field` with the contents of each length-delimited field; skips what it leaves, and the other fields. */
static bool each_field(rnl_reader *reader, pb_istream_t *stream, unsigned depth, field_fn on_field)
{
    if (depth > RNL_ONNX_MAX_DEPTH)
        return rnl_onnx_ok(reader, FAIL(RNL_INVALID_ARGUMENT, "%s has messages nested more than %d deep", reader->label,
                                        RNL_ONNX_MAX_DEPTH));
    pb_wire_type_t wire_type;
    uint32_t tag;
    bool end;
    while (pb_decode_tag(stream, &wire_type, &tag, &end)) {
        pb_istream_t contents;
        if (wire_type != PB_WT_STRING) {
            if (!pb_skip_field(stream, wire_type))
                return false;
        } else if (!pb_make_string_substream(stream, &contents) || !on_field(reader, &contents, tag, depth) ||
                   !pb_close_string_substream(stream, &contents)) {
            if (contents.errmsg)
                PB_SET_ERROR(stream, contents.errmsg);
            return false;
        }
    }
    return end;
}

static bool on_graph_field(rnl_reader *reader, pb_istream_t *stream, uint32_t tag, unsigned depth);

static bool on_attribute_field(rnl_reader *reader, pb_istream_t *stream, uint32_t tag, unsigned depth)
{
    if (tag == ATTRIBUTE_GRAPH || tag == ATTRIBUTE_GRAPHS)
        return each_field(reader, stream, depth + 1, on_graph_field);
    return true;
}

static bool on_node_field(rnl_reader *reader, pb_istream_t *stream, uint32_t tag, unsigned depth)
{
    if (tag == NODE_ATTRIBUTE)
        return each_field(reader, stream, depth + 1, on_attribute_field);
    if (tag == NODE_OUTPUT && depth == GRAPH_DEPTH + 1)
        reader->survey.node_outputs++;
    return true;
}

static void count_field(rnl_survey *survey, uint32_t tag)
{
    survey->nodes += tag == GRAPH_NODE;
    survey->initializers += tag == GRAPH_INITIALIZER;
    survey->sparse_initializers += tag == GRAPH_SPARSE;
    survey->inputs += tag == GRAPH_INPUT;
    survey->outputs += tag == GRAPH_OUTPUT;
}

static rnl_status too_many(const rnl_reader *reader, int limit, const char *what)
{
    return FAIL(RNL_RESOURCE_EXHAUSTED, "%s has more than %d %s", reader->label, limit, what);
}

static rnl_status check_counts(const rnl_reader *reader)
{
    const rnl_survey *survey = &reader->survey;
    size_t initializers = survey->initializers + survey->sparse_initializers;
    if (survey->all_nodes > RNL_ONNX_MAX_NODES)
        return too_many(reader, RNL_ONNX_MAX_NODES, "nodes");
    if (initializers > RNL_ONNX_MAX_INITIALIZERS)
        return too_many(reader, RNL_ONNX_MAX_INITIALIZERS, "initialisers");
    if (survey->inputs > RNL_ONNX_MAX_ENDS)
        return too_many(reader, RNL_ONNX_MAX_ENDS, "inputs");
    if (survey->outputs > RNL_ONNX_MAX_ENDS)
        return too_many(reader, RNL_ONNX_MAX_ENDS, "outputs");
    if (initializers + survey->inputs + survey->node_outputs > RNL_ONNX_MAX_VALUES)
        return too_many(reader, RNL_ONNX_MAX_VALUES, "values");
    return RNL_OK;
}

static bool on_graph_field(rnl_reader *reader, pb_istream_t *stream, uint32_t tag, unsigned depth)
{
    if (depth == GRAPH_DEPTH)
        count_field(&reader->survey, tag);
    reader->survey.all_nodes += tag == GRAPH_NODE;
    if (!rnl_onnx_ok(reader, check_counts(reader)))
        return false;
    return tag == GRAPH_NODE ? each_field(reader, stream, depth + 1, on_node_field) : true;
}

rnl_status rnl_onnx_survey(rnl_reader *reader, rnl_view graph)
{
    pb_istream_t stream = pb_istream_from_buffer(graph.data, graph.size);
    bool sound = each_field(reader, &stream, GRAPH_DEPTH, on_graph_field);
    if (reader->status != RNL_OK)
        return reader->status;
    if (!sound)
        return FAIL(RNL_DATA_LOSS, "%s is not an ONNX model, or damaged: its graph cannot be read (%s)", reader->label,
                    PB_GET_ERROR(&stream));
    return RNL_OK;
}
