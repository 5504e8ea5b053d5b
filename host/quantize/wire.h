/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol buffers field by field: what is read can be written again as it was, known or not. */
#ifndef RUNNEL_QUANTIZE_WIRE_H
#define RUNNEL_QUANTIZE_WIRE_H

#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct rnl_bytes {
    const uint8_t *data;
    size_t size;
} rnl_bytes;

typedef struct rnl_wire_field {
    uint32_t number;
    uint64_t value;    /* of a varint */
    bool has_contents; /* a message, text or bytes */
    rnl_bytes contents;
    rnl_bytes whole; /* with its tag */
} rnl_wire_field;

/* Takes the next field off `rest`; false at its end, and where it is damaged: `rest` is not empty then. */
bool rnl_wire_next(rnl_bytes *rest, rnl_wire_field *out_field);
/* The last field of this number; false when there is none. */
bool rnl_wire_find(rnl_bytes message, uint32_t number, rnl_wire_field *out_field);

void rnl_wire_varint(rnl_text *out, uint32_t number, uint64_t value);
void rnl_wire_bytes(rnl_text *out, uint32_t number, const void *data, size_t size);
void rnl_wire_text(rnl_text *out, uint32_t number, const char *text);
/* Moves `inner` in: it is empty afterwards, and its failure is `out`'s. */
void rnl_wire_message(rnl_text *out, uint32_t number, rnl_text *inner);
void rnl_wire_copy(rnl_text *out, rnl_bytes bytes);

/* ONNX's field numbers. */
enum { RNL_PB_MODEL_IR = 1, RNL_PB_MODEL_GRAPH = 7, RNL_PB_MODEL_OPSET = 8 };
enum { RNL_PB_OPSET_DOMAIN = 1, RNL_PB_OPSET_VERSION = 2 };
enum {
    RNL_PB_GRAPH_NODE = 1,
    RNL_PB_GRAPH_INITIALIZER = 5,
    RNL_PB_GRAPH_INPUT = 11,
    RNL_PB_GRAPH_OUTPUT = 12,
    RNL_PB_GRAPH_VALUE_INFO = 13
};
enum {
    RNL_PB_NODE_INPUT = 1,
    RNL_PB_NODE_OUTPUT = 2,
    RNL_PB_NODE_NAME = 3,
    RNL_PB_NODE_OP = 4,
    RNL_PB_NODE_ATTRIBUTE = 5,
    RNL_PB_NODE_DOMAIN = 7
};
enum { RNL_PB_ATTRIBUTE_NAME = 1, RNL_PB_ATTRIBUTE_INT = 3, RNL_PB_ATTRIBUTE_TYPE = 20 };
enum {
    RNL_PB_TENSOR_DIMS = 1,
    RNL_PB_TENSOR_TYPE = 2,
    RNL_PB_TENSOR_NAME = 8,
    RNL_PB_TENSOR_RAW = 9,
    RNL_PB_TENSOR_EXTERNAL = 13,
    RNL_PB_TENSOR_LOCATION = 14
};
enum { RNL_PB_VALUE_NAME = 1, RNL_PB_VALUE_TYPE = 2, RNL_PB_TYPE_TENSOR = 1, RNL_PB_TENSOR_TYPE_ELEMENT = 1 };

#endif
