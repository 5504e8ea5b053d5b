/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions over any set of axes, softmax, and arg-reductions' slots. Accumulation is f32 (f64 for f64), integers in
 * 64 bits. */
#ifndef RUNNEL_OPS_REDUCE_H
#define RUNNEL_OPS_REDUCE_H

#include "ops/op.h"

#define RNL_REDUCE_LIST(X) X(SUM) X(MEAN) X(MAX) X(MIN) X(PROD) X(L1) X(L2) X(SUM_SQUARE) X(LOG_SUM) X(LOG_SUM_EXP)

typedef enum rnl_reduce_op {
#define X(name) RNL_REDUCE_##name,
    RNL_REDUCE_LIST(X)
#undef X
        RNL_REDUCE_COUNT
} rnl_reduce_op;

/*
 * Reduces the axes whose bit is set in `axes` (bit i = axis i). dst has src's rank, with 1 in the reduced dimensions.
 * An empty reduction gives the operator's neutral element (ONNX's definition).
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_reduce(rnl_step_list *list, rnl_reduce_op op, uint32_t axes,
                                               const rnl_view *src, const rnl_view *dst);

/* Softmax, or its logarithm, over the axes first_axis … last_axis taken together (ONNX before opset 13 takes all from
 * `axis`). */
RNL_API RNL_NODISCARD rnl_status rnl_op_softmax(rnl_step_list *list, bool logarithm, size_t first_axis,
                                                size_t last_axis, const rnl_view *src, const rnl_view *dst);

#endif
