/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes protocol buffers byte by byte, and ONNX models from them: sound ones and, since nothing is checked, any other.
 * Independent of the reader: field numbers stand in proto_onnx.h as ONNX publishes them.
 */
#ifndef RUNNEL_TESTS_PROTO_WRITE_H
#define RUNNEL_TESTS_PROTO_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct proto {
    uint8_t *data;
    size_t size, capacity;
} proto;

void proto_free(proto *message);
void proto_raw(proto *message, const void *data, size_t size);
void proto_number(proto *message, uint64_t value); /* a bare varint */
void proto_tag(proto *message, uint32_t field, unsigned wire_type);
void proto_int(proto *message, uint32_t field, int64_t value);
void proto_float(proto *message, uint32_t field, float value);
void proto_double(proto *message, uint32_t field, double value);
void proto_bytes(proto *message, uint32_t field, const void *data, size_t size);
void proto_text(proto *message, uint32_t field, const char *text);
/* Moves `inner` in: it is empty afterwards. */
void proto_message(proto *message, uint32_t field, proto *inner);
/* Packed varints. */
void proto_ints(proto *message, uint32_t field, const int64_t *values, size_t count);

#endif
