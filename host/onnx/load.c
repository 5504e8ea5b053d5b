/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/reader.h"

#include "base/memory.h"
#include "graph/expose.h"
#include <runnel/custom.h>
#include <string.h>
#include <unistd.h>

#define MIN_BUDGET_BYTES ((size_t)64 << 20)
#define BUDGET_FACTOR 16 /* the graph's own memory against the file's size: real models need less than 1 */

void rnl_onnx_reader_free(rnl_reader *reader)
{
    if (!reader)
        return;
    rnl_names_free(&reader->values);
    rnl_names_free(&reader->keywords);
    rnl_free(reader->keyword_texts);
    rnl_onnx_free_functions(reader);
    rnl_free(reader->scope_text);
    rnl_free(reader->metadata);
    rnl_free(reader->inputs);
    rnl_free(reader->outputs);
    rnl_free(reader->pending);
    rnl_free(reader->floats);
    rnl_free(reader->ints);
    rnl_free(reader->strings);
    rnl_free(reader->external_names);
    if (reader->folder >= 0)
        close(reader->folder);
    rnl_free(reader);
}

rnl_status rnl_onnx_reader_create(rnl_graph *graph, const char *label, rnl_view file, rnl_reader **out_reader)
{
    rnl_reader *reader = NULL;
    TRY(rnl_alloc(1, sizeof *reader, &reader));
    reader->graph = graph;
    reader->label = label;
    reader->file = file;
    reader->folder = -1;
    *out_reader = reader;
    return RNL_OK;
}

static size_t budget_for(size_t file_bytes)
{
    size_t budget;
    if (!rnl_size_mul(file_bytes, BUDGET_FACTOR, &budget))
        return SIZE_MAX;
    return budget > MIN_BUDGET_BYTES ? budget : MIN_BUDGET_BYTES;
}

static rnl_status read_into(rnl_graph *graph, rnl_view file, const char *label, const char *folder_path)
{
    rnl_status status = RNL_OK;
    rnl_reader *reader = NULL;
    if (file.size == 0)
        return FAIL(RNL_DATA_LOSS, "%s is not an ONNX model: it is empty", label);
    GOTO(rnl_onnx_reader_create(graph, label, file, &reader));
    reader->folder_path = folder_path;
    GOTO(rnl_onnx_read_model(reader));
done:
    rnl_onnx_reader_free(reader);
    return status == RNL_OK ? rnl_graph_finish(graph) : status;
}

static rnl_status folder_of(const char *path, char **out_folder)
{
    const char *slash = strrchr(path, '/');
    if (!slash)
        return rnl_strdup(".", out_folder);
    TRY(rnl_strdup(path, out_folder));
    (*out_folder)[slash == path ? 1 : slash - path] = '\0';
    return RNL_OK;
}

rnl_status rnl_graph_load_with(const char *path, rnl_registry *registry, rnl_graph **out_graph)
{
    *out_graph = NULL;
    rnl_status status = RNL_OK;
    rnl_map file = {0};
    rnl_graph *graph = NULL;
    char *folder = NULL;
    if (!path)
        return FAIL(RNL_INVALID_ARGUMENT, "the path of the model is NULL");
    GOTO(rnl_map_open(path, &file));
    GOTO(rnl_graph_create(budget_for(file.size_bytes), &graph));
    graph->registry = rnl_registry_retain(registry);
    graph->file = file;
    file = (rnl_map){0};
    GOTO(folder_of(path, &folder));
    GOTO(read_into(graph, (rnl_view){graph->file.data, graph->file.size_bytes}, path, folder));
    *out_graph = graph;
    graph = NULL;
done:
    rnl_free(folder);
    rnl_map_close(&file);
    rnl_graph_release(graph);
    return status == RNL_OK ? RNL_OK : rnl_error_add(status, "loading %s", path);
}

rnl_status rnl_graph_load(const char *path, rnl_graph **out_graph)
{
    return rnl_graph_load_with(path, NULL, out_graph);
}

rnl_status rnl_graph_load_exposed(const char *path, rnl_graph **out_graph, size_t *out_own_count)
{
    *out_own_count = 0;
    TRY(rnl_graph_load(path, out_graph));
    *out_own_count = (*out_graph)->output_count;
    rnl_status status = rnl_graph_expose(*out_graph);
    if (status != RNL_OK) {
        rnl_graph_release(*out_graph);
        *out_graph = NULL;
        *out_own_count = 0;
    }
    return status;
}

rnl_status rnl_graph_load_memory_with(const void *data, size_t size_bytes, rnl_registry *registry,
                                      rnl_graph **out_graph)
{
    *out_graph = NULL;
    rnl_status status = RNL_OK;
    rnl_graph *graph = NULL;
    if (!data && size_bytes > 0)
        return FAIL(RNL_INVALID_ARGUMENT, "the model's data is NULL");
    GOTO(rnl_graph_create(budget_for(size_bytes), &graph));
    graph->registry = rnl_registry_retain(registry);
    GOTO(read_into(graph, (rnl_view){data, size_bytes}, "the model in memory", NULL));
    *out_graph = graph;
    graph = NULL;
done:
    rnl_graph_release(graph);
    return status == RNL_OK ? RNL_OK : rnl_error_add(status, "loading a model from memory");
}

rnl_status rnl_graph_load_memory(const void *data, size_t size_bytes, rnl_graph **out_graph)
{
    return rnl_graph_load_memory_with(data, size_bytes, NULL, out_graph);
}
