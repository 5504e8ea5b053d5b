/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose state goes from token to token, as ONNX defines them: LinearAttention, CausalConvWithState. */
#ifndef RUNNEL_OPS_LINEAR_ATTENTION_H
#define RUNNEL_OPS_LINEAR_ATTENTION_H

#include "ops/op.h"

/*
 * B batches, T tokens, Q query heads, H heads (Q a multiple), K elements of a key, E of a value. For each token, in
 * order: state *= exp(decay); value = beta * (value - state^T key) where there is a beta; state += key x value; dst =
 * scale * query^T state. All but the state are of one type: f32, f16 or bf16.
 */
typedef struct rnl_linear_attention {
    rnl_view query;       /* [B, T, Q*K] dense */
    rnl_view key, value;  /* [B, T, H*K], [B, T, H*E] dense */
    rnl_view decay, beta; /* [B, T, H*K] or [B, T, H]; [B, T, H] or [B, T, 1]; dense, or left out */
    rnl_view state;       /* [B, H, K, E] dense f32: read and written */
    rnl_view dst;         /* [B, T, Q*E], rows dense */
    int64_t query_heads;
    float scale;
} rnl_linear_attention;
RNL_API RNL_NODISCARD rnl_status rnl_op_linear_attention(rnl_step_list *list, const rnl_linear_attention *attention);

/*
 * dst[b, c, t] = bias[c] + the sum of weight[c, 0, i] * row[b, c, t + i], where a row is past [B, C, W - 1] (zeros
 * where left out) and then src [B, C, T]; with `silu` that times its logistic function. weight [C, 1, W] and past are
 * dense.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_causal_conv(rnl_step_list *list, bool silu, const rnl_view *src,
                                                    const rnl_view *weight, const rnl_view *bias, const rnl_view *past,
                                                    const rnl_view *dst);

#endif
