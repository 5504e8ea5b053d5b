/* SPDX-License-Identifier: Apache-2.0 */
/* TensorProto. Raw bytes stay where they are in the file. */
#include "onnx/reader.h"

#include "base/memory.h"
#include "base/text.h"
#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum { LOCATION_DEFAULT = 0, LOCATION_EXTERNAL = 1 };

typedef struct tensor_fields {
    rnl_reader *reader;
    rnl_view_field name, raw, segment;
    rnl_external external;
    int64_t dims[RNL_MAX_RANK];
    size_t rank; /* as the file has it, also beyond RNL_MAX_RANK */
} tensor_fields;

static bool on_dim(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    tensor_fields *tensor = *arg;
    while (stream->bytes_left > 0) {
        uint64_t bits;
        if (!pb_decode_varint(stream, &bits))
            return false;
        if (tensor->rank < RNL_MAX_RANK)
            tensor->dims[tensor->rank] = (int64_t)bits;
        tensor->rank++;
    }
    return true;
}

static bool key_is(rnl_view key, const char *text)
{
    return key.size == strlen(text) && memcmp(key.data, text, key.size) == 0;
}

static rnl_status read_external_entry(tensor_fields *tensor, rnl_view bytes)
{
    rnl_view_field key = {.reader = tensor->reader}, value = {.reader = tensor->reader};
    rnl_pb_Entry message = {.key = RNL_ONNX_VIEW(&key), .value = RNL_ONNX_VIEW(&value)};
    TRY(rnl_onnx_decode(tensor->reader, bytes, rnl_pb_Entry_fields, &message, "a tensor's place"));
    if (key_is(key.view, "location"))
        tensor->external.location = value.view;
    else if (key_is(key.view, "offset"))
        tensor->external.offset = value.view;
    else if (key_is(key.view, "length"))
        tensor->external.length = value.view;
    return RNL_OK;
}

static bool on_external(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    tensor_fields *tensor = *arg;
    rnl_view bytes;
    return rnl_onnx_take(tensor->reader, stream, &bytes) &&
           rnl_onnx_ok(tensor->reader, read_external_entry(tensor, bytes));
}

static rnl_status check_header(const rnl_pb_Tensor *message, const tensor_fields *fields)
{
    if (message->data_type < 1 || message->data_type > RNL_ONNX_MAX_TYPE)
        return FAIL(RNL_INVALID_ARGUMENT, "its type is %" PRId32 ", which is none of ONNX's", message->data_type);
    if (message->data_location < LOCATION_DEFAULT || message->data_location > LOCATION_EXTERNAL)
        return FAIL(RNL_INVALID_ARGUMENT, "its data location is %" PRId32 ", which is none of ONNX's",
                    message->data_location);
    if (fields->rank > RNL_MAX_RANK)
        return FAIL(RNL_UNIMPLEMENTED, "it has %zu dimensions; at most %d are supported", fields->rank, RNL_MAX_RANK);
    if (fields->segment.view.data)
        return FAIL(RNL_UNIMPLEMENTED, "it is a segment of a larger tensor, which is not supported");
    for (size_t i = 0; i < fields->rank; i++)
        if (fields->dims[i] < 0)
            return FAIL(RNL_INVALID_ARGUMENT, "its dimension %zu is %" PRId64, i, fields->dims[i]);
    return RNL_OK;
}

/* As the file has it: elements of less than a byte are packed there. */
static rnl_status size_of(rnl_host_tensor *tensor)
{
    int64_t elements;
    size_t width = rnl_dtype_width(tensor->dtype);
    if (!rnl_shape_elements(tensor->shape, tensor->rank, &elements) ||
        !rnl_size_mul((size_t)elements, rnl_dtype_bytes(tensor->dtype), &tensor->size_bytes))
        return FAIL(RNL_INVALID_ARGUMENT, "its shape is too large for any memory");
    if (width < 8)
        tensor->size_bytes = tensor->size_bytes / (8 / width) + (tensor->size_bytes % (8 / width) != 0);
    return RNL_OK;
}

static rnl_status wrong_size(const rnl_host_tensor *tensor, size_t has)
{
    rnl_text shape = {0};
    rnl_text_add_shape(&shape, tensor->shape, tensor->rank);
    rnl_status status = FAIL(RNL_INVALID_ARGUMENT, "its shape %s of %s needs %zu bytes, but it has %zu",
                             shape.data ? shape.data : "", rnl_dtype_name(tensor->dtype), tensor->size_bytes, has);
    rnl_text_free(&shape);
    return status;
}

/* A byte for each element, of which the file has as many as fit into one, the first in the low bits. */
static rnl_status unpack(rnl_reader *reader, rnl_host_tensor *tensor)
{
    size_t width = rnl_dtype_width(tensor->dtype);
    int64_t elements = 0;
    if (width == 8 * rnl_dtype_bytes(tensor->dtype) || !tensor->data)
        return RNL_OK;
    if (!rnl_shape_elements(tensor->shape, tensor->rank, &elements))
        return FAIL(RNL_INTERNAL, "the shape of a tensor has changed");
    const uint8_t *packed = tensor->data;
    bool is_signed = tensor->dtype == RNL_I4 || tensor->dtype == RNL_I2;
    unsigned mask = (1u << width) - 1, sign = is_signed ? 1u << (width - 1) : 0;
    uint8_t *bytes = NULL;
    TRY(rnl_zone_alloc(&reader->graph->zone, elements ? (size_t)elements : 1, 1, &bytes));
    for (size_t i = 0; i < (size_t)elements; i++) {
        size_t bit = i % (8 / width) * width;
        unsigned code = packed[i / (8 / width)] >> bit & mask;
        bytes[i] = (uint8_t)((code ^ sign) - sign);
    }
    tensor->data = bytes;
    tensor->size_bytes = (size_t)elements;
    return RNL_OK;
}

static rnl_status read_packed(rnl_reader *reader, rnl_view bytes, const rnl_pb_Tensor *message,
                              const tensor_fields *fields, rnl_host_tensor *tensor)
{
    if (message->data_location == LOCATION_EXTERNAL)
        return rnl_onnx_read_external(reader, &fields->external, tensor);
    if (!fields->raw.view.data)
        return rnl_onnx_read_elements(reader, bytes, tensor);
    if (fields->raw.view.size != tensor->size_bytes)
        return wrong_size(tensor, fields->raw.view.size);
    tensor->data = fields->raw.view.data;
    return RNL_OK;
}

static rnl_status read_contents(rnl_reader *reader, rnl_view bytes, const rnl_pb_Tensor *message,
                                const tensor_fields *fields, rnl_host_tensor *tensor)
{
    TRY(check_header(message, fields));
    tensor->dtype = (rnl_dtype)message->data_type;
    tensor->rank = fields->rank;
    memcpy(tensor->shape, fields->dims, fields->rank * sizeof fields->dims[0]);
    if (rnl_dtype_bytes(tensor->dtype) == 0)
        return RNL_OK; /* a type that runnel does not have: its users are refused by the check */
    TRY(size_of(tensor));
    TRY(read_packed(reader, bytes, message, fields, tensor));
    return unpack(reader, tensor);
}

rnl_status rnl_onnx_read_tensor(rnl_reader *reader, rnl_view bytes, const char *what, rnl_view *out_name,
                                rnl_host_tensor *out_tensor)
{
    *out_name = (rnl_view){0};
    *out_tensor = (rnl_host_tensor){0};
    const rnl_view_field none = {.reader = reader};
    tensor_fields fields = {.reader = reader, .name = none, .raw = none, .segment = none};
    rnl_pb_Tensor message = {.dims = {{on_dim}, &fields},
                             .segment = RNL_ONNX_VIEW(&fields.segment),
                             .name = RNL_ONNX_VIEW(&fields.name),
                             .raw_data = RNL_ONNX_VIEW(&fields.raw),
                             .external_data = {{on_external}, &fields}};
    TRY(rnl_onnx_decode(reader, bytes, rnl_pb_Tensor_fields, &message, "a tensor"));
    rnl_view name;
    TRY(rnl_onnx_printable(reader, fields.name.view, &name));
    rnl_status status = read_contents(reader, bytes, &message, &fields, out_tensor);
    if (status != RNL_OK && name.size > 0)
        return rnl_error_add(status, "tensor '%.*s'", (int)(name.size < INT_MAX ? name.size : INT_MAX),
                             (const char *)name.data);
    if (status != RNL_OK)
        return rnl_error_add(status, "the tensor of %s", what);
    *out_name = name;
    return RNL_OK;
}
