/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise operators on quantised tensors, and what makes quantised tensors of others. */
#ifndef RUNNEL_OPS_QMAP_H
#define RUNNEL_OPS_QMAP_H

#include "ops/op.h"

typedef enum rnl_qmap_op {
    RNL_QMAP_COPY, /* dequantise, quantise, or both */
    RNL_QMAP_ADD,
    RNL_QMAP_MUL,
    RNL_QMAP_SIGMOID,
    RNL_QMAP_LEAKY_RELU, /* the parameter is the slope */
    RNL_QMAP_SCALE,      /* (sums I32 + bias I32) * parameter * first scale * second scale; the bias may be NULL */
    RNL_QMAP_COUNT
} rnl_qmap_op;

/* NULL or no slot: a scale of 1, a zero point of 0. Both broadcast to the result's shape. */
typedef struct rnl_quantized {
    const rnl_view *values;
    const rnl_view *scale;      /* F32 */
    const rnl_view *zero_point; /* of the values' type, which is I8 or U8 then */
} rnl_quantized;

/*
 * dst = saturate(round(op(…) / scale) + zero_point), halves to even, for dst of I8 and U8; op(…) / scale for float
 * types. `second` may be NULL. Values: I8, U8; the first of COPY also F32, F16 and BF16. What is not a number becomes
 * the type's lowest value. Sources broadcast to dst's shape.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_qmap(rnl_step_list *list, rnl_qmap_op op, float parameter,
                                             const rnl_quantized *first, const rnl_quantized *second,
                                             const rnl_quantized *dst);

/*
 * The scale and zero point that spread `bounds`, a least and a greatest value of F32, and 0 over the 256 values of U8:
 * as ONNX's DynamicQuantizeLinear has them. One element each.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_quantize_bounds(rnl_step_list *list, const rnl_view *least,
                                                        const rnl_view *greatest, const rnl_view *scale,
                                                        const rnl_view *zero_point);

#endif
