/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The typed fields of TensorProto (float_data, int32_data, …), packed or not. The message is read twice: to count, so
 * that no memory is taken for elements which are not there, and to store. Floats that lie packed in one piece are used
 * where they are.
 */
#include "onnx/reader.h"

#include "base/memory.h"
#include "base/text.h"
#include <inttypes.h>
#include <string.h>

/* One typed field while it is counted (`out` NULL) or stored. */
typedef struct element_reader {
    rnl_reader *reader;
    rnl_host_tensor *tensor;
    size_t count, pieces;
    rnl_view piece; /* the last one, where it is in the file */
    uint8_t *out;
} element_reader;

static bool in_file(const rnl_reader *reader, const pb_istream_t *stream)
{
    uintptr_t at = (uintptr_t)stream->state, start = (uintptr_t)reader->file.data;
    return at >= start && at - start <= reader->file.size;
}

/* IEEE numbers, of `width` bytes in file and tensor alike. */
static bool read_fixed(element_reader *elements, pb_istream_t *stream, size_t width)
{
    size_t count = stream->bytes_left / width;
    if (stream->bytes_left % width != 0) {
        PB_SET_ERROR(stream, "half a number");
        return false;
    }
    elements->pieces++;
    if (in_file(elements->reader, stream))
        elements->piece = (rnl_view){stream->state, stream->bytes_left};
    else
        elements->pieces++; /* a single number, of which nanopb gives a copy */
    uint8_t *out = elements->out ? elements->out + elements->count * width : NULL;
    elements->count += count;
    return pb_read(stream, out, stream->bytes_left);
}

static bool on_float(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    return read_fixed(*arg, stream, sizeof(float));
}

static bool on_double(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    return read_fixed(*arg, stream, sizeof(double));
}

/* Whether a type that travels as int32 can hold the number. */
static bool fits(rnl_dtype dtype, int32_t number)
{
    switch (dtype) {
    case RNL_I8:
        return number >= INT8_MIN && number <= INT8_MAX;
    case RNL_U8:
        return number >= 0 && number <= UINT8_MAX;
    case RNL_I16:
        return number >= INT16_MIN && number <= INT16_MAX;
    case RNL_U16:
    case RNL_F16: /* the bits of the half */
    case RNL_BF16:
        return number >= 0 && number <= UINT16_MAX;
    case RNL_I32:
    case RNL_BOOL:
        return true;
    default: /* a code, or a byte of packed elements; some writers take the byte for signed */
        return number >= INT8_MIN && number <= UINT8_MAX;
    }
}

static rnl_status store_number(element_reader *elements, uint64_t bits)
{
    rnl_dtype dtype = elements->tensor->dtype;
    size_t width = rnl_dtype_bytes(dtype);
    uint8_t *out = elements->out + elements->count * width;
    bool wide = dtype == RNL_I64 || dtype == RNL_U64 || dtype == RNL_U32;
    if (dtype == RNL_U32 && bits > UINT32_MAX)
        return FAIL(RNL_INVALID_ARGUMENT, "its element %zu, %" PRIu64 ", does not fit into uint32", elements->count,
                    bits);
    if (!wide && !fits(dtype, (int32_t)bits))
        return FAIL(RNL_INVALID_ARGUMENT, "its element %zu, %" PRId32 ", does not fit into %s", elements->count,
                    (int32_t)bits, rnl_dtype_name(dtype));
    if (dtype == RNL_BOOL)
        bits = bits != 0;
    memcpy(out, &bits, width); /* little-endian hosts: the low bytes */
    return RNL_OK;
}

static bool on_varint(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    element_reader *elements = *arg;
    while (stream->bytes_left > 0) {
        uint64_t bits;
        if (!pb_decode_varint(stream, &bits))
            return false;
        if (elements->out && !rnl_onnx_ok(elements->reader, store_number(elements, bits)))
            return false;
        elements->count++;
    }
    return true;
}

/* The callback goes to the one field in which elements of this type travel. */
static void listen(rnl_pb_Tensor *message, rnl_dtype dtype, element_reader *elements)
{
    switch (dtype) {
    case RNL_F32:
        message->float_data = (pb_callback_t){{on_float}, elements};
        break;
    case RNL_F64:
        message->double_data = (pb_callback_t){{on_double}, elements};
        break;
    case RNL_I64:
        message->int64_data = (pb_callback_t){{on_varint}, elements};
        break;
    case RNL_U32:
    case RNL_U64:
        message->uint64_data = (pb_callback_t){{on_varint}, elements};
        break;
    default:
        message->int32_data = (pb_callback_t){{on_varint}, elements};
        break;
    }
}

static rnl_status read_pass(element_reader *elements, rnl_view bytes)
{
    rnl_pb_Tensor message = {.has_data_type = false};
    listen(&message, elements->tensor->dtype, elements);
    elements->count = elements->pieces = 0;
    return rnl_onnx_decode(elements->reader, bytes, rnl_pb_Tensor_fields, &message, "a tensor's data");
}

static rnl_status wrong_count(const rnl_host_tensor *tensor, size_t count)
{
    rnl_text shape = {0};
    rnl_text_add_shape(&shape, tensor->shape, tensor->rank);
    rnl_status status = FAIL(RNL_INVALID_ARGUMENT, "its shape %s of %s does not fit its %zu elements",
                             shape.data ? shape.data : "", rnl_dtype_name(tensor->dtype), count);
    rnl_text_free(&shape);
    return status;
}

rnl_status rnl_onnx_read_elements(rnl_reader *reader, rnl_view bytes, rnl_host_tensor *tensor)
{
    element_reader elements = {.reader = reader, .tensor = tensor};
    TRY(read_pass(&elements, bytes));
    if (elements.count != tensor->size_bytes / rnl_dtype_bytes(tensor->dtype))
        return wrong_count(tensor, elements.count);
    if (elements.pieces == 1) {
        tensor->data = elements.piece.data;
        return RNL_OK;
    }
    TRY(rnl_zone_alloc(&reader->graph->zone, tensor->size_bytes, 1, &elements.out));
    TRY(read_pass(&elements, bytes));
    tensor->data = elements.out;
    return RNL_OK;
}
