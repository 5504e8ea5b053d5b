/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors whose contents lie in other files, below the model's own folder. */
#include "onnx/reader.h"

#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* A decimal number without sign; absent = `absent`. */
static rnl_status read_number(rnl_view text, const char *what, size_t absent, size_t *out_number)
{
    *out_number = absent;
    if (!text.data)
        return RNL_OK;
    size_t number = 0;
    bool sound = text.size > 0;
    for (size_t i = 0; i < text.size && sound; i++) {
        unsigned digit = (unsigned)text.data[i] - '0';
        sound = digit <= 9 && rnl_size_mul(number, 10, &number) && rnl_size_add(number, digit, &number);
    }
    if (!sound)
        return FAIL(RNL_INVALID_ARGUMENT, "the %s of its external data is not a number of bytes", what);
    *out_number = number;
    return RNL_OK;
}

static rnl_status open_folder(rnl_reader *reader)
{
    if (!reader->folder_path)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "its data is in another file, which cannot be found for a model that is read from memory");
    if (reader->folder >= 0)
        return RNL_OK;
    reader->folder = open(reader->folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (reader->folder >= 0)
        return RNL_OK;
    char text[128];
    return FAIL(RNL_NOT_FOUND, "cannot open the folder %s: %s", reader->folder_path,
                strerror_r(errno, text, sizeof text));
}

/* Files mapped so far keep their place; the graph closes them. */
static rnl_status add_map(rnl_reader *reader, const char *name, const rnl_map **out_map)
{
    rnl_graph *graph = reader->graph;
    if (graph->external_count == RNL_ONNX_MAX_EXTERNAL)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%s has its data in more than %d files", reader->label,
                    RNL_ONNX_MAX_EXTERNAL);
    if (!graph->external)
        TRY(rnl_zone_alloc(&graph->zone, RNL_ONNX_MAX_EXTERNAL, sizeof *graph->external, &graph->external));
    TRY(rnl_grow(&reader->external_names, &reader->external_capacity, graph->external_count + 1,
                 sizeof *reader->external_names));
    rnl_map *map = &graph->external[graph->external_count];
    TRY(rnl_map_open_below(reader->folder, name, map));
    reader->external_names[graph->external_count++] = name;
    *out_map = map;
    return RNL_OK;
}

static rnl_status map_file(rnl_reader *reader, rnl_view location, const rnl_map **out_map)
{
    while (location.size >= 2 && memcmp(location.data, "./", 2) == 0)
        location = (rnl_view){location.data + 2, location.size - 2};
    if (location.size == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "its external data has no location");
    TRY(open_folder(reader));
    const rnl_graph *graph = reader->graph;
    for (size_t i = graph->external_count; i-- > 0;)
        if (strnlen(reader->external_names[i], location.size + 1) == location.size &&
            memcmp(reader->external_names[i], location.data, location.size) == 0) {
            *out_map = &graph->external[i];
            return RNL_OK;
        }
    const char *name;
    TRY(rnl_onnx_raw_text(reader, location, &name));
    return add_map(reader, name, out_map);
}

rnl_status rnl_onnx_read_external(rnl_reader *reader, const rnl_external *external, rnl_host_tensor *tensor)
{
    size_t offset, length, end;
    const rnl_map *map = NULL;
    TRY(read_number(external->offset, "offset", 0, &offset));
    TRY(read_number(external->length, "length", tensor->size_bytes, &length));
    if (length != tensor->size_bytes)
        return FAIL(RNL_INVALID_ARGUMENT, "its external data has %zu bytes, its shape needs %zu", length,
                    tensor->size_bytes);
    TRY(map_file(reader, external->location, &map), "its external data");
    if (!rnl_size_add(offset, length, &end) || end > map->size_bytes)
        return FAIL(RNL_INVALID_ARGUMENT, "its external data, %zu bytes from %zu on, lies outside of the file of %zu",
                    length, offset, map->size_bytes);
    tensor->data = map->data ? (const uint8_t *)map->data + offset : NULL;
    return RNL_OK;
}
