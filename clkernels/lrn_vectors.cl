// SPDX-License-Identifier: Apache-2.0
// Local response normalisation over neighbouring channels, of images that are channels last, to the power of 3/4, which
// nearly every model has: two roots, many times faster than pow.
//
// Defines:
//   T        type of src and dst: F32, F16, BF16
//   V        lanes of a vector: 4, 8 or 16; at most the channels
//   BEFORE   neighbours on either side that count; at most V
//   AFTER
//   INDEX64  see common.clh
// check: -DT=F32 -DV=16 -DBEFORE=2 -DAFTER=2
// check: -DT=BF16 -DV=4 -DBEFORE=0 -DAFTER=1 -DINDEX64
#include "common.clh"
#include "index.clh"
#include "lanes.clh"
#if !defined(T) || !defined(V) || !defined(BEFORE) || !defined(AFTER)
#error "lrn_vectors.cl needs T, V, BEFORE and AFTER"
#endif
#define FLOATV PASTE2_(float, V)

// The sum of the squares around each of the channels from c on, where some neighbours do not exist and count as 0.
static inline FLOATV sum_at_edge(__global const STORAGE(T) *src, const idx_t pixel, const idx_t c, const idx_t channels)
{
    float near[3 * V];
    FLOATV previous = 0.0f, here = 0.0f, next = 0.0f, sum = 0.0f;
    const idx_t left = channels - c;
    if (c >= V)
        previous = LOADV(T, V, src, pixel + c - V);
    if (left >= V)
        here = LOADV(T, V, src, pixel + c);
    else
        LOAD_FIRST(T, V, src, pixel + c, here, (int)left);
    if (left >= 2 * V)
        next = LOADV(T, V, src, pixel + c + V);
    else if (left > V)
        LOAD_FIRST(T, V, src, pixel + c + V, next, (int)(left - V));
    PASTE2_(vstore, V)(previous, 0, near);
    PASTE2_(vstore, V)(here, 0, near + V);
    PASTE2_(vstore, V)(next, 0, near + 2 * V);
#pragma unroll
    for (int i = V - BEFORE; i <= V + AFTER; i++) {
        const FLOATV x = PASTE2_(vload, V)(0, near + i);
        sum = fma(x, x, sum);
    }
    return sum;
}

static inline FLOATV sum_inside(__global const STORAGE(T) *src, const idx_t at)
{
    FLOATV sum = 0.0f;
#pragma unroll
    for (int i = -BEFORE; i <= AFTER; i++) {
        const FLOATV x = LOADV(T, V, src, at + i);
        sum = fma(x, x, sum);
    }
    return sum;
}

// Dimensions are (n, c, d, h, w); a work-item takes `each` pixels of a row.
__kernel void lrn_vectors(__global const STORAGE(T) *src, idx_t src_offset, __global STORAGE(T) *dst, idx_t dst_offset,
                          idx8_t size, idx8_t src_stride, idx8_t dst_stride, idx_t each, float scale, float bias)
{
    const idx_t channels = size.s1, row = (idx_t)get_global_id(1), first = (idx_t)get_global_id(0) * each;
    if (first >= size.s4 || row >= size.s0 * size.s2 * size.s3)
        return;
    const idx_t end = min(first + each, size.s4);
    idx_t n = row;
    const idx_t h = take_index(&n, size.s3), d = take_index(&n, size.s2);
    const idx_t from = src_offset + n * src_stride.s0 + d * src_stride.s2 + h * src_stride.s3;
    const idx_t to = dst_offset + n * dst_stride.s0 + d * dst_stride.s2 + h * dst_stride.s3;
    for (idx_t w = first; w < end; w++) {
        const idx_t pixel = from + w * src_stride.s4, result = to + w * dst_stride.s4;
        for (idx_t c = 0; c < channels; c += V) {
            const bool inside = c >= BEFORE && c + V + AFTER <= channels;
            const FLOATV sum = inside ? sum_inside(src, pixel + c) : sum_at_edge(src, pixel, c, channels);
            const FLOATV base = bias + scale * sum, root = sqrt(base);
            FLOATV x = 0.0f;
            if (channels - c >= V) {
                x = LOADV(T, V, src, pixel + c);
                STOREV(T, V, dst, result + c, x / (root * sqrt(root)));
            } else {
                LOAD_FIRST(T, V, src, pixel + c, x, (int)(channels - c));
                STORE_FIRST(T, V, dst, result + c, x / (root * sqrt(root)), (int)(channels - c));
            }
        }
    }
}
