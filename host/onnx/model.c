/* SPDX-License-Identifier: Apache-2.0 */
/* ModelProto: what stands outside of the graph. */
#include "onnx/reader.h"

#include "base/memory.h"
#include "graph/op.h"
#include "graph/upgrade.h"
#include <inttypes.h>
#include <string.h>

typedef struct model_fields {
    rnl_reader *reader;
    rnl_view graph;
    rnl_view_field producer_name, producer_version;
} model_fields;

static bool on_graph(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    model_fields *model = *arg;
    if (model->graph.data)
        return rnl_onnx_ok(model->reader,
                           FAIL(RNL_INVALID_ARGUMENT, "%s has two graphs in one model", model->reader->label));
    return rnl_onnx_take(model->reader, stream, &model->graph);
}

rnl_view rnl_onnx_plain_domain(rnl_view domain)
{
    static const char name[] = "ai.onnx";
    if (domain.size == sizeof name - 1 && memcmp(domain.data, name, domain.size) == 0)
        domain.size = 0;
    return domain;
}

rnl_status rnl_onnx_read_opset(rnl_reader *reader, rnl_view bytes, rnl_opset *opsets, size_t *count)
{
    rnl_view_field domain = {.reader = reader};
    rnl_pb_OpsetImport message = {.domain = RNL_ONNX_VIEW(&domain)};
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_OpsetImport_fields, &message, "an opset import"));
    const char *name;
    TRY(rnl_onnx_keyword(reader, rnl_onnx_plain_domain(domain.view), &name));
    for (size_t i = 0; i < *count; i++) {
        if (opsets[i].domain != name && strcmp(opsets[i].domain, name) != 0)
            continue;
        if (opsets[i].version == message.version)
            return RNL_OK;
        return FAIL(RNL_INVALID_ARGUMENT, "%s imports the domain '%s' with opset %" PRId64 " and with %" PRId64,
                    reader->label, name, opsets[i].version, message.version);
    }
    if (*count == RNL_ONNX_MAX_IMPORTS)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%s imports more than %d domains", reader->label, RNL_ONNX_MAX_IMPORTS);
    opsets[(*count)++] = (rnl_opset){name, message.version};
    return RNL_OK;
}

static rnl_status read_opset(rnl_reader *reader, rnl_view bytes)
{
    return rnl_onnx_read_opset(reader, bytes, reader->opsets, &reader->opset_count);
}

static rnl_status read_metadata(rnl_reader *reader, rnl_view bytes)
{
    rnl_view_field key = {.reader = reader}, value = {.reader = reader};
    rnl_pb_Entry message = {.key = RNL_ONNX_VIEW(&key), .value = RNL_ONNX_VIEW(&value)};
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_Entry_fields, &message, "its metadata"));
    if (reader->metadata_count == RNL_ONNX_MAX_METADATA)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%s has more than %d properties", reader->label, RNL_ONNX_MAX_METADATA);
    TRY(rnl_grow(&reader->metadata, &reader->metadata_capacity, reader->metadata_count + 1, sizeof *reader->metadata));
    rnl_metadata *entry = &reader->metadata[reader->metadata_count];
    TRY(rnl_onnx_text(reader, key.view, &entry->key));
    TRY(rnl_onnx_raw_text(reader, value.view, &entry->value));
    reader->metadata_count++;
    return RNL_OK;
}

typedef rnl_status (*read_fn)(rnl_reader *reader, rnl_view bytes);

static bool read_with(pb_istream_t *stream, rnl_reader *reader, read_fn read)
{
    rnl_view bytes;
    return rnl_onnx_take(reader, stream, &bytes) && rnl_onnx_ok(reader, read(reader, bytes));
}

static bool on_opset(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    return read_with(stream, *arg, read_opset);
}

static bool on_metadata(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    return read_with(stream, *arg, read_metadata);
}

static bool on_function(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    return read_with(stream, *arg, rnl_onnx_read_function);
}

static rnl_status check_opsets(rnl_reader *reader)
{
    if (reader->opset_count == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "%s imports no operator set (opset_import is missing)", reader->label);
    for (size_t i = 0; i < reader->opset_count; i++) {
        int64_t version = reader->opsets[i].version;
        if (reader->opsets[i].domain[0] != '\0')
            continue;
        if (version < RNL_OPSET_OLDEST || version > RNL_OPSET_MAX)
            return FAIL(RNL_UNIMPLEMENTED, "%s uses opset %" PRId64 "; supported: %d to %d", reader->label, version,
                        RNL_OPSET_OLDEST, RNL_OPSET_MAX);
        reader->graph->info.opset = version;
    }
    return RNL_OK;
}

static rnl_status keep_info(rnl_reader *reader, const model_fields *model)
{
    rnl_graph *graph = reader->graph;
    TRY(rnl_onnx_text(reader, model->producer_name.view, &graph->info.producer_name));
    TRY(rnl_onnx_text(reader, model->producer_version.view, &graph->info.producer_version));
    TRY(rnl_zone_alloc(&graph->zone, reader->metadata_count, sizeof *graph->metadata, &graph->metadata));
    if (reader->metadata_count)
        memcpy(graph->metadata, reader->metadata, reader->metadata_count * sizeof *graph->metadata);
    graph->metadata_count = reader->metadata_count;
    return RNL_OK;
}

rnl_status rnl_onnx_read_graph(rnl_reader *reader, rnl_view bytes)
{
    TRY(rnl_onnx_survey(reader, bytes));
    TRY(rnl_onnx_count_calls(reader, bytes));
    TRY(rnl_onnx_read_values(reader, bytes));
    TRY(rnl_onnx_read_nodes(reader, bytes));
    return rnl_onnx_read_outputs(reader);
}

rnl_status rnl_onnx_read_model(rnl_reader *reader)
{
    model_fields model = {
        .reader = reader, .producer_name = {.reader = reader}, .producer_version = {.reader = reader}};
    rnl_pb_Model message = {.producer_name = RNL_ONNX_VIEW(&model.producer_name),
                            .producer_version = RNL_ONNX_VIEW(&model.producer_version),
                            .graph = {{on_graph}, &model},
                            .opset_import = {{on_opset}, reader},
                            .metadata_props = {{on_metadata}, reader},
                            .functions = {{on_function}, reader}};
    TRY(rnl_onnx_decode(reader, reader->file, rnl_pb_Model_fields, &message, "its outermost part"));
    if (!model.graph.data)
        return FAIL(RNL_INVALID_ARGUMENT, "%s is not an ONNX model: it has no graph", reader->label);
    if (message.ir_version < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "%s is not an ONNX model: it has no IR version", reader->label);
    reader->graph->info.ir_version = message.ir_version;
    TRY(check_opsets(reader));
    TRY(keep_info(reader, &model));
    TRY(rnl_onnx_count_functions(reader));
    return rnl_onnx_read_graph(reader, model.graph);
}
