/* SPDX-License-Identifier: Apache-2.0 */
/* QuantizeLinear and DequantizeLinear in resolved form. */
#ifndef RUNNEL_GRAPH_OP_QUANTIZE_H
#define RUNNEL_GRAPH_OP_QUANTIZE_H

#include "graph/op.h"

/* The tensor is seen as any x size x inner; scales and zero points as any x blocks x inner, or fewer of them. */
typedef struct rnl_quantize {
    rnl_dtype output;
    rnl_dtype precision; /* of the division: F32, F16 or BF16 */
    enum { RNL_QUANTIZE_TENSOR, RNL_QUANTIZE_AXIS, RNL_QUANTIZE_BLOCKS } by;
    size_t axis; /* 0 for RNL_QUANTIZE_TENSOR */
    int64_t size, inner;
    int64_t block, blocks; /* RNL_QUANTIZE_BLOCKS; the last block may be smaller */
} rnl_quantize;

RNL_NODISCARD rnl_status rnl_quantize_resolve(const rnl_op_context *context, rnl_quantize *out_quantize);
RNL_NODISCARD rnl_status rnl_dequantize_resolve(const rnl_op_context *context, rnl_quantize *out_quantize);

#endif
