/* SPDX-License-Identifier: Apache-2.0 */
/* AttributeProto. */
#include "onnx/reader.h"

#include "base/memory.h"
#include <inttypes.h>
#include <string.h>

#define MAX_TYPE 14 /* AttributeProto.AttributeType */
#define SPARSE_TENSOR 11

typedef struct attribute_fields {
    rnl_reader *reader;
    rnl_view_field name, s, t, g, sparse, reference;
} attribute_fields;

/* Room for one more element of the list that is being read. */
static bool grow_list(rnl_reader *reader, void *list, size_t *capacity, size_t count, size_t element_bytes)
{
    if (count == RNL_ONNX_MAX_LIST)
        return rnl_onnx_ok(reader,
                           FAIL(RNL_RESOURCE_EXHAUSTED, "an attribute has more than %d elements", RNL_ONNX_MAX_LIST));
    return rnl_onnx_ok(reader, rnl_grow(list, capacity, count + 1, element_bytes));
}

static bool on_float(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    while (stream->bytes_left > 0) {
        if (!grow_list(reader, &reader->floats, &reader->float_capacity, reader->float_count, sizeof *reader->floats) ||
            !pb_decode_fixed32(stream, &reader->floats[reader->float_count]))
            return false;
        reader->float_count++;
    }
    return true;
}

static bool on_int(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    while (stream->bytes_left > 0) {
        uint64_t bits;
        if (!grow_list(reader, &reader->ints, &reader->int_capacity, reader->int_count, sizeof *reader->ints) ||
            !pb_decode_varint(stream, &bits))
            return false;
        reader->ints[reader->int_count++] = (int64_t)bits;
    }
    return true;
}

static bool on_string(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_reader *reader = *arg;
    rnl_view view;
    if (!rnl_onnx_take(reader, stream, &view) ||
        !grow_list(reader, &reader->strings, &reader->string_capacity, reader->string_count, sizeof *reader->strings) ||
        !rnl_onnx_ok(reader, rnl_onnx_text(reader, view, &reader->strings[reader->string_count])))
        return false;
    reader->string_count++;
    return true;
}

/* Files from before types were written down have the one field that is used. */
static int guess_type(const rnl_reader *reader, const rnl_pb_Attribute *message, const attribute_fields *fields)
{
    if (message->has_f)
        return RNL_ATTRIBUTE_FLOAT;
    if (message->has_i)
        return RNL_ATTRIBUTE_INT;
    if (fields->s.view.data)
        return RNL_ATTRIBUTE_STRING;
    if (fields->t.view.data)
        return RNL_ATTRIBUTE_TENSOR;
    if (fields->g.view.data)
        return RNL_ATTRIBUTE_GRAPH;
    if (reader->float_count)
        return RNL_ATTRIBUTE_FLOATS;
    if (reader->int_count)
        return RNL_ATTRIBUTE_INTS;
    return reader->string_count ? RNL_ATTRIBUTE_STRINGS : 0;
}

/* A zone copy of `count` elements; NULL when there are none. */
static rnl_status copy_list(rnl_reader *reader, const void *elements, size_t count, size_t element_bytes,
                            const void **out_copy)
{
    *out_copy = NULL;
    if (count == 0)
        return RNL_OK;
    void *copy;
    TRY(rnl_zone_alloc(&reader->graph->zone, count, element_bytes, &copy));
    memcpy(copy, elements, count * element_bytes);
    *out_copy = copy;
    return RNL_OK;
}

static rnl_status read_lists(rnl_reader *reader, rnl_attribute *attribute)
{
    const void *copy = NULL;
    switch (attribute->type) {
    case RNL_ATTRIBUTE_FLOATS:
        attribute->count = reader->float_count;
        TRY(copy_list(reader, reader->floats, attribute->count, sizeof *reader->floats, &copy));
        attribute->floats = copy;
        break;
    case RNL_ATTRIBUTE_INTS:
        attribute->count = reader->int_count;
        TRY(copy_list(reader, reader->ints, attribute->count, sizeof *reader->ints, &copy));
        attribute->ints = copy;
        break;
    case RNL_ATTRIBUTE_STRINGS:
        attribute->count = reader->string_count;
        TRY(copy_list(reader, reader->strings, attribute->count, sizeof *reader->strings, &copy));
        attribute->strings = copy;
        break;
    default: /* rarer types are kept by name alone */
        break;
    }
    return RNL_OK;
}

/* A sparse tensor becomes a dense one, and the attribute one of tensors. */
static rnl_status read_attribute_tensor(rnl_reader *reader, rnl_view bytes, bool sparse, rnl_attribute *attribute)
{
    if (!bytes.data)
        return FAIL(RNL_INVALID_ARGUMENT, "the attribute '%s' has no tensor", attribute->name);
    rnl_host_tensor *tensor;
    rnl_view name;
    TRY(rnl_zone_alloc(&reader->graph->zone, 1, sizeof *tensor, &tensor));
    TRY(sparse ? rnl_onnx_read_sparse(reader, bytes, attribute->name, &name, tensor)
               : rnl_onnx_read_tensor(reader, bytes, attribute->name, &name, tensor));
    attribute->type = RNL_ATTRIBUTE_TENSOR;
    attribute->tensor = tensor;
    return RNL_OK;
}

static rnl_status read_contents(rnl_reader *reader, const rnl_pb_Attribute *message, const attribute_fields *fields,
                                rnl_attribute *attribute)
{
    switch ((int)attribute->type) {
    case RNL_ATTRIBUTE_FLOAT:
        attribute->f = message->f;
        return RNL_OK;
    case RNL_ATTRIBUTE_INT:
        attribute->i = message->i;
        return RNL_OK;
    case RNL_ATTRIBUTE_STRING:
        return rnl_onnx_text(reader, fields->s.view, &attribute->s);
    case RNL_ATTRIBUTE_TENSOR:
        return read_attribute_tensor(reader, fields->t.view, false, attribute);
    case SPARSE_TENSOR:
        return read_attribute_tensor(reader, fields->sparse.view, true, attribute);
    case RNL_ATTRIBUTE_GRAPH:
        if (!fields->g.view.data)
            return FAIL(RNL_INVALID_ARGUMENT, "the attribute '%s' has no graph", attribute->name);
        return rnl_onnx_read_subgraph(reader, fields->g.view, attribute->name, &attribute->graph);
    default:
        return read_lists(reader, attribute);
    }
}

/* One that the call leaves out is left out here as well. */
static rnl_status add_reference(rnl_reader *reader, const char *name, rnl_view reference)
{
    const rnl_attribute *referred;
    TRY(rnl_onnx_refer(reader, name, reference, &referred));
    if (!referred)
        return RNL_OK;
    reader->attributes[reader->attribute_count] = *referred;
    reader->attributes[reader->attribute_count++].name = name;
    return RNL_OK;
}

static rnl_status add_attribute(rnl_reader *reader, const rnl_pb_Attribute *message, const attribute_fields *fields)
{
    const char *name;
    TRY(rnl_onnx_keyword(reader, fields->name.view, &name));
    if (name[0] == '\0')
        return FAIL(RNL_INVALID_ARGUMENT, "an attribute has no name");
    if (reader->attribute_count == RNL_ONNX_MAX_ATTRIBUTES)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "more than %d attributes", RNL_ONNX_MAX_ATTRIBUTES);
    for (size_t i = 0; i < reader->attribute_count; i++)
        if (strcmp(reader->attributes[i].name, name) == 0)
            return FAIL(RNL_INVALID_ARGUMENT, "the attribute '%s' is given twice", name);
    if (fields->reference.view.size > 0)
        return add_reference(reader, name, fields->reference.view);
    int type = message->type ? message->type : guess_type(reader, message, fields);
    if (type < 1 || type > MAX_TYPE)
        return FAIL(RNL_INVALID_ARGUMENT, "the attribute '%s' has the type %d, which is none of ONNX's", name, type);
    rnl_attribute *attribute = &reader->attributes[reader->attribute_count];
    *attribute = (rnl_attribute){.name = name, .type = (rnl_attribute_type)type};
    TRY(read_contents(reader, message, fields, attribute));
    reader->attribute_count++;
    return RNL_OK;
}

rnl_status rnl_onnx_read_attribute(rnl_reader *reader, rnl_view bytes)
{
    const rnl_view_field none = {.reader = reader};
    attribute_fields fields = {reader, none, none, none, none, none, none};
    rnl_pb_Attribute message = {.name = RNL_ONNX_VIEW(&fields.name),
                                .s = RNL_ONNX_VIEW(&fields.s),
                                .t = RNL_ONNX_VIEW(&fields.t),
                                .g = RNL_ONNX_VIEW(&fields.g),
                                .sparse_tensor = RNL_ONNX_VIEW(&fields.sparse),
                                .floats = {{on_float}, reader},
                                .ints = {{on_int}, reader},
                                .strings = {{on_string}, reader},
                                .ref_attr_name = RNL_ONNX_VIEW(&fields.reference)};
    reader->float_count = reader->int_count = reader->string_count = 0;
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_Attribute_fields, &message, "an attribute"));
    return add_attribute(reader, &message, &fields);
}
