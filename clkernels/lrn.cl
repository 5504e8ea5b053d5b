// SPDX-License-Identifier: Apache-2.0
// Local response normalisation over neighbouring channels.
//
// Defines:
//   T        type of src and dst
//   INDEX64  see common.clh
// check: -DT=F32
// check: -DT=BF16 -DINDEX64
// check: -DT=F64 -DUSE_F64
#include "common.clh"
#include "index.clh"
#ifndef T
#error "lrn.cl needs T"
#endif

// Dimensions are (n, c, d, h, w); the grid visits them with the one of `inner` fastest: c (1) or w (0). `before` and
// `after` are the neighbours on either side that count.
__kernel void lrn(__global const STORAGE(T) *src, idx_t src_offset, __global STORAGE(T) *dst, idx_t dst_offset,
                  idx8_t size, idx8_t src_stride, idx8_t dst_stride, int inner, int before, int after, float alpha,
                  float beta, float bias)
{
    const idx_t channels = size.s1;
    const idx_t grid0 = (idx_t)get_global_id(0), grid1 = (idx_t)get_global_id(1);
    const idx_t c = inner ? grid0 : grid1, w = inner ? grid1 : grid0;
    const idx_t row = (idx_t)get_global_id(2);
    if (c >= channels || w >= size.s4 || row >= size.s0 * size.s2 * size.s3)
        return;
    idx_t n = row;
    const idx_t h = take_index(&n, size.s3), d = take_index(&n, size.s2);
    const idx_t from = src_offset + n * src_stride.s0 + d * src_stride.s2 + h * src_stride.s3 + w * src_stride.s4;
    const idx_t first = c > before ? c - before : 0, last = after < channels - c ? c + after : channels - 1;
    COMPUTE(T) sum = 0;
    for (idx_t i = first; i <= last; i++) {
        const COMPUTE(T) x = LOAD(T, src, from + i * src_stride.s1);
        sum = fma(x, x, sum);
    }
    const COMPUTE(T) x = LOAD(T, src, from + c * src_stride.s1);
    const idx_t to = dst_offset + n * dst_stride.s0 + c * dst_stride.s1 + d * dst_stride.s2 + h * dst_stride.s3 +
                     w * dst_stride.s4;
    const COMPUTE(T) base = bias + (COMPUTE(T))alpha / (before + after + 1) * sum;
    // Nearly every model has this exponent, and roots are many times faster than pow.
    STORE(T, dst, to, x / (beta == 0.75f ? sqrt(base) * sqrt(sqrt(base)) : pow(base, (COMPUTE(T))beta)));
}
