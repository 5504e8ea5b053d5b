/* SPDX-License-Identifier: Apache-2.0 */
#include "onnx/reader.h"

#include <string.h>

bool rnl_onnx_ok(rnl_reader *reader, rnl_status status)
{
    if (reader->status == RNL_OK)
        reader->status = status;
    return status == RNL_OK;
}

bool rnl_onnx_take(rnl_reader *reader, pb_istream_t *stream, rnl_view *out_view)
{
    const uint8_t *data = stream->state; /* a buffer stream's state is its position */
    size_t size = stream->bytes_left;
    /* nanopb hands over a number as a copy of its bytes, outside of the file. */
    if ((uintptr_t)data < (uintptr_t)reader->file.data ||
        (uintptr_t)data - (uintptr_t)reader->file.data > reader->file.size)
        return rnl_onnx_ok(reader,
                           FAIL(RNL_DATA_LOSS, "%s is not an ONNX model, or damaged: wrong wire type", reader->label));
    *out_view = (rnl_view){data, size};
    return pb_read(stream, NULL, size);
}

bool rnl_onnx_on_view(pb_istream_t *stream, const pb_field_t *field, void **arg)
{
    (void)field;
    rnl_view_field *target = *arg;
    return rnl_onnx_take(target->reader, stream, &target->view);
}

rnl_status rnl_onnx_decode(rnl_reader *reader, rnl_view bytes, const pb_msgdesc_t *fields, void *message,
                           const char *what)
{
    pb_istream_t stream = pb_istream_from_buffer(bytes.data, bytes.size);
    if (pb_decode_ex(&stream, fields, message, PB_DECODE_NOINIT))
        return RNL_OK;
    if (reader->status != RNL_OK)
        return reader->status;
    return FAIL(RNL_DATA_LOSS, "%s is not an ONNX model, or damaged: %s cannot be read (%s)", reader->label, what,
                PB_GET_ERROR(&stream));
}
