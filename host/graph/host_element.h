/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of host tensors as numbers, and walks over shapes: the base of evaluation on the host. */
#ifndef RUNNEL_GRAPH_HOST_ELEMENT_H
#define RUNNEL_GRAPH_HOST_ELEMENT_H

#include "graph/op.h"

/* Every type is one of three kinds of number; bool is unsigned. */
typedef enum rnl_number_kind { RNL_NUMBER_FLOAT, RNL_NUMBER_SIGNED, RNL_NUMBER_UNSIGNED } rnl_number_kind;
typedef union rnl_number {
    double f;
    int64_t i;
    uint64_t u;
} rnl_number;

rnl_number_kind rnl_dtype_kind(rnl_dtype dtype);
/* `index` counts elements; data need not be aligned. */
rnl_number rnl_element_load(const void *data, int64_t index, rnl_dtype dtype);
/* Rounds floats to the nearest even, small ones saturated; wraps integers, stores any nonzero bool as 1. */
void rnl_element_store(void *data, int64_t index, rnl_dtype dtype, rnl_number number);
/* ONNX's Cast; floats outside an integer type's range saturate (below 8 bits: wrap), NaN becomes 0. */
rnl_number rnl_number_convert(rnl_number number, rnl_dtype from, rnl_dtype to);
double rnl_number_double(rnl_number number, rnl_dtype dtype);
/* The least and greatest finite values of a type. */
rnl_number rnl_number_lowest(rnl_dtype dtype);
rnl_number rnl_number_highest(rnl_dtype dtype);

/* As numpy's maximum and minimum: NaN wins. */
double rnl_float_max(double a, double b);
double rnl_float_min(double a, double b);

#define RNL_WALK_OPERANDS 4

/* Counts through a shape in row-major order, with the element offset of each operand in `at`. */
typedef struct rnl_walk {
    size_t rank, operands;
    int64_t left; /* elements still to come, this one included */
    int64_t shape[RNL_MAX_RANK], index[RNL_MAX_RANK];
    int64_t stride[RNL_WALK_OPERANDS][RNL_MAX_RANK];
    int64_t at[RNL_WALK_OPERANDS];
} rnl_walk;

/* Without operands; their strides are added by the functions below or by hand. */
void rnl_walk_init(rnl_walk *walk, const int64_t *shape, size_t rank);
/* Adds a dense tensor that broadcasts to the walk's shape. */
void rnl_walk_add(rnl_walk *walk, const int64_t *shape, size_t rank);
void rnl_walk_next(rnl_walk *walk);
/* Row-major strides in elements. */
void rnl_dense_strides(const int64_t *shape, size_t rank, int64_t *out_stride);

/* FAILED_PRECONDITION naming the first input whose contents are not known. */
RNL_NODISCARD rnl_status rnl_evaluate_begin(const rnl_op_context *context);

#endif
