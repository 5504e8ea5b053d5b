/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk over all messages that nest (graph, node, attribute, graph, …), before anything is kept: too deep or too
 * many nodes is found here, and the sizes of the graph's arrays are known afterwards.
 */
#include "onnx/reader.h"

enum { GRAPH_NODE = 1, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, GRAPH_SPARSE = 15 };
enum { NODE_OUTPUT = 2, NODE_ATTRIBUTE = 5 };
enum { FUNCTION_NODE = 7 };
enum { ATTRIBUTE_GRAPH = 6, ATTRIBUTE_GRAPHS = 11 };

typedef enum message_kind { GRAPH, NODE, ATTRIBUTE, FUNCTION } message_kind;

#define GRAPH_DEPTH 2 /* of the model's own graph; the model is 1 */

static void count_field(rnl_survey *survey, message_kind kind, uint32_t tag, unsigned depth)
{
    survey->all_nodes += (kind == GRAPH && tag == GRAPH_NODE) || (kind == FUNCTION && tag == FUNCTION_NODE);
    survey->node_outputs += kind == NODE && tag == NODE_OUTPUT && depth == GRAPH_DEPTH + 1;
    if (kind != GRAPH || depth != GRAPH_DEPTH)
        return;
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

/* Whether a field holds messages that may hold further graphs. */
static bool nests(message_kind kind, uint32_t tag, message_kind *out_kind)
{
    static const message_kind inner[] = {NODE, ATTRIBUTE, GRAPH, NODE};
    *out_kind = inner[kind];
    switch (kind) {
    case GRAPH:
        return tag == GRAPH_NODE;
    case NODE:
        return tag == NODE_ATTRIBUTE;
    case FUNCTION:
        return tag == FUNCTION_NODE;
    default:
        return tag == ATTRIBUTE_GRAPH || tag == ATTRIBUTE_GRAPHS;
    }
}

static bool walk(rnl_reader *reader, pb_istream_t *stream, message_kind kind, unsigned depth);

static bool walk_inner(rnl_reader *reader, pb_istream_t *stream, message_kind kind, unsigned depth)
{
    pb_istream_t inner;
    if (!pb_make_string_substream(stream, &inner))
        return false;
    if (!walk(reader, &inner, kind, depth)) {
        PB_SET_ERROR(stream, PB_GET_ERROR(&inner));
        return false;
    }
    return pb_close_string_substream(stream, &inner);
}

static bool walk(rnl_reader *reader, pb_istream_t *stream, message_kind kind, unsigned depth)
{
    if (depth > RNL_ONNX_MAX_DEPTH)
        return rnl_onnx_ok(reader, FAIL(RNL_INVALID_ARGUMENT, "%s has messages nested more than %d deep", reader->label,
                                        RNL_ONNX_MAX_DEPTH));
    pb_wire_type_t wire_type;
    uint32_t tag;
    bool end;
    while (pb_decode_tag(stream, &wire_type, &tag, &end)) {
        message_kind inner;
        if (wire_type == PB_WT_STRING) {
            count_field(&reader->survey, kind, tag, depth);
            if (!rnl_onnx_ok(reader, check_counts(reader)))
                return false;
        }
        bool sound = wire_type == PB_WT_STRING && nests(kind, tag, &inner)
                         ? walk_inner(reader, stream, inner, depth + 1)
                         : pb_skip_field(stream, wire_type);
        if (!sound)
            return false;
    }
    return end;
}

static rnl_status survey(rnl_reader *reader, rnl_view bytes, message_kind kind, unsigned depth, const char *what)
{
    pb_istream_t stream = pb_istream_from_buffer(bytes.data, bytes.size);
    bool sound = walk(reader, &stream, kind, depth);
    if (reader->status != RNL_OK)
        return reader->status;
    if (!sound)
        return FAIL(RNL_DATA_LOSS, "%s is not an ONNX model, or damaged: %s cannot be read (%s)", reader->label, what,
                    PB_GET_ERROR(&stream));
    return RNL_OK;
}

rnl_status rnl_onnx_survey(rnl_reader *reader, rnl_view graph)
{
    return survey(reader, graph, GRAPH, GRAPH_DEPTH, "its graph");
}

/* Deeper than the graph, so that none of it is counted as the graph's own. */
rnl_status rnl_onnx_survey_function(rnl_reader *reader, rnl_view function)
{
    return survey(reader, function, FUNCTION, GRAPH_DEPTH + 2, "a function");
}
