// SPDX-License-Identifier: Apache-2.0
// A convolution of each channel by itself along one dimension that looks back only: what comes before src is `past`, or
// zeros.
//
// Defines:
//   T         type of everything: F32, F16, BF16, F64
//   INDEX64, USE_F64  see common.clh
// check: -DT=F32
// check: -DT=BF16 -DINDEX64
// check: -DT=F64 -DUSE_F64
#include "common.clh"
#ifndef T
#error "causal_conv.cl needs T"
#endif
typedef COMPUTE(T) value_t;
#include "float_ops.clh"

#define HAS_PAST 1
#define HAS_BIAS 2
#define SILU 4

// sizes: (B, channels, length, width); weight [channels, width] and past [B, channels, width - 1] are dense.
__kernel void causal_conv(__global STORAGE(T) *dst, const idx_t dst_offset, const idx4_t dst_stride,
                          __global const STORAGE(T) *src, const idx_t src_offset, const idx4_t src_stride,
                          __global const STORAGE(T) *weight, const idx_t weight_offset,
                          __global const STORAGE(T) *bias, const idx_t bias_offset, const idx_t bias_stride,
                          __global const STORAGE(T) *past, const idx_t past_offset, const idx4_t sizes,
                          const int flags)
{
    const idx_t at = (idx_t)get_global_id(0), channel = (idx_t)get_global_id(1), b = (idx_t)get_global_id(2);
    const idx_t before = sizes.s3 - 1;
    if (at >= sizes.s2 || channel >= sizes.s1 || b >= sizes.s0)
        return;
    const idx_t from = src_offset + b * src_stride.s0 + channel * src_stride.s1;
    const idx_t earlier = past_offset + (b * sizes.s1 + channel) * before;
    const idx_t factors = weight_offset + channel * sizes.s3;
    value_t sum = flags & HAS_BIAS ? LOAD(T, bias, bias_offset + channel * bias_stride) : 0;
    idx_t i = 0;
    for (; i < before - at; i++)
        if (flags & HAS_PAST)
            sum = fma(LOAD(T, weight, factors + i), LOAD(T, past, earlier + at + i), sum);
    for (; i <= before; i++)
        sum = fma(LOAD(T, weight, factors + i), LOAD(T, src, from + (at + i - before) * src_stride.s2), sum);
    const value_t result = flags & SILU ? sum * OP_SIGMOID(sum) : sum;
    STORE(T, dst, dst_offset + b * dst_stride.s0 + channel * dst_stride.s1 + at * dst_stride.s2, result);
}
