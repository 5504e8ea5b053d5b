/* SPDX-License-Identifier: Apache-2.0 */
/* Casts that involve types below a byte or floats of 8 bits, and quantising by scales and zero points. */
#ifndef RUNNEL_OPS_CONVERT_H
#define RUNNEL_OPS_CONVERT_H

#include "ops/op.h"

/*
 * dst[i] = src[i], which broadcasts. Without `saturate`, what is out of range of a small float becomes infinity or NaN.
 * `round_mode`, of F8E8M0: 0 up, 1 down, 2 nearest.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_cast(rnl_step_list *list, bool saturate, int round_mode, const rnl_view *src,
                                             const rnl_view *dst);
/*
 * dst[i] = saturate(round(x[i] / scale[i]) + zero[i]), the division rounded to `precision` (F32, F16 or BF16).
 * `srcs` are x, scale and, with a src_count of 3, zero, which has dst's type; they broadcast.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_quantize(rnl_step_list *list, rnl_dtype precision, bool saturate,
                                                 const rnl_view *srcs, size_t src_count, const rnl_view *dst);
/* dst[i] = (x[i] - zero[i]) * scale[i], in float32 before it is stored; zero has x's type. */
RNL_API RNL_NODISCARD rnl_status rnl_op_dequantize(rnl_step_list *list, const rnl_view *srcs, size_t src_count,
                                                   const rnl_view *dst);

#endif
