/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads tests/fixtures/op_cases.bin, which tests/unit/make_op_cases.py writes: single nodes with their inputs and the
 * outputs that they must have.
 *
 * Little-endian, packed. File: "RNLCASE1", u32 count, cases. Case: text name, text operator, u8 opset, u16
 * attributes, u16 inputs, u16 outputs, then these. Text: u16 length, bytes. Tensor: u8 type (0: left out, nothing
 * follows), u8 rank, i64 dimensions, u8 has data, the data. Attribute: text name, u8 ONNX type, value: f32, i64, text,
 * tensor, or u32 count and f32 or i64 values.
 */
#ifndef RUNNEL_TESTS_OP_CASES_H
#define RUNNEL_TESTS_OP_CASES_H

#include "base/zone.h"

typedef struct op_case_tensor {
    rnl_dtype dtype; /* RNL_DTYPE_NONE: left out */
    size_t rank;
    int64_t shape[RNL_MAX_RANK];
    const void *data; /* NULL: only the shape is known; unaligned on purpose */
    size_t size_bytes;
} op_case_tensor;

typedef struct op_case_attribute {
    const char *name;
    int type; /* ONNX's */
    size_t count;
    float f;
    int64_t i;
    const char *s;
    const float *floats;
    const int64_t *ints;
    op_case_tensor tensor;
} op_case_attribute;

typedef struct op_case {
    const char *name, *op_type;
    int64_t opset;
    size_t attribute_count, input_count, output_count;
    op_case_attribute *attributes;
    op_case_tensor *inputs, *outputs;
} op_case;

/* All cases, in a zone that the caller frees; fails the test when the file is not sound. */
op_case *op_cases_load(rnl_zone *zone, size_t *out_count);

#endif
