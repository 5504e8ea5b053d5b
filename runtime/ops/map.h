/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators, copies and casts: one destination, up to five broadcast sources. */
#ifndef RUNNEL_OPS_MAP_H
#define RUNNEL_OPS_MAP_H

#include "ops/op.h"

/*
 * X(name, sources). p0 and p1 are the parameters. Comparisons and logic write BOOL; SELECT is cond ? a : b; CLIP is
 * (x, low, high); NORMALIZE is (x, scale, bias, mean, variance) with epsilon p0. COPY also casts, as ONNX's Cast does.
 * GELU_SUM is GELU with errors like those of 1 + erf, of |x| and not of a small result. ISINF takes positive infinity
 * when p0 is not 0, negative when p1 is not. Shifts by a negative number, or by as many bits as there are or more,
 * leave copies of the sign (SHIFT_RIGHT) or nothing.
 */
/* Laid out by hand: clang-format finds no end in it. */
/* clang-format off */
#define RNL_MAP_LIST(X) \
    X(COPY, 1) X(NEG, 1) X(ABS, 1) X(SIGN, 1) X(SQRT, 1) X(RECIPROCAL, 1) X(EXP, 1) X(LOG, 1) \
    X(TANH, 1) X(SIGMOID, 1) X(RELU, 1) X(LEAKY_RELU, 1) X(ELU, 1) X(SELU, 1) X(SOFTPLUS, 1) \
    X(SOFTSIGN, 1) X(ERF, 1) X(GELU, 1) X(GELU_TANH, 1) X(GELU_SUM, 1) X(HARD_SIGMOID, 1) X(HARD_SWISH, 1) \
    X(FLOOR, 1) X(CEIL, 1) X(ROUND, 1) X(SIN, 1) X(COS, 1) X(TAN, 1) X(ASIN, 1) X(ACOS, 1) X(ATAN, 1) \
    X(SINH, 1) X(COSH, 1) X(ASINH, 1) X(ACOSH, 1) X(ATANH, 1) X(CELU, 1) X(MISH, 1) X(SWISH, 1) \
    X(SHRINK, 1) X(THRESHOLDED_RELU, 1) X(NOT, 1) X(ISNAN, 1) X(ISINF, 1) X(BIT_NOT, 1) X(ADD, 2) X(SUB, 2) \
    X(MUL, 2) X(DIV, 2) X(POW, 2) X(MOD, 2) X(FMOD, 2) X(MAX, 2) X(MIN, 2) X(PRELU, 2) X(EQUAL, 2) \
    X(LESS, 2) X(LESS_EQUAL, 2) X(GREATER, 2) X(GREATER_EQUAL, 2) X(AND, 2) X(OR, 2) X(XOR, 2) \
    X(BIT_AND, 2) X(BIT_OR, 2) X(BIT_XOR, 2) X(SHIFT_LEFT, 2) X(SHIFT_RIGHT, 2) X(SWIGLU, 2) \
    X(SELECT, 3) X(CLIP, 3) X(NORMALIZE, 5)
/* clang-format on */

typedef enum rnl_map_op {
#define X(name, sources) RNL_MAP_##name,
    RNL_MAP_LIST(X)
#undef X
        RNL_MAP_COUNT
} rnl_map_op;

#define RNL_MAP_MAX_SOURCES 5

/*
 * dst[i] = op(srcs…). Sources broadcast to dst's shape from the right, as numpy's do. All sources have one type but for
 * SELECT's condition (BOOL), POW's exponent and COPY; the destination has that type, but BOOL where the operator says
 * so.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_map(rnl_step_list *list, rnl_map_op op, float p0, float p1,
                                            const rnl_view *srcs, size_t src_count, const rnl_view *dst);
/* "Add", for messages. */
RNL_API const char *rnl_map_name(rnl_map_op op);
RNL_API size_t rnl_map_sources(rnl_map_op op);
/* How many of p0 and p1 it reads. */
RNL_API size_t rnl_map_parameters(rnl_map_op op);

#endif
