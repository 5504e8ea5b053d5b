// SPDX-License-Identifier: Apache-2.0
// Copies matrices of bytes of any strides into panels for qgemm_panel.cl and qgemm_dot.cl: panel after panel of 32
// columns. A panel begins with the sums of its columns; then each integer of its rows holds four of k of a column, the
// first in the lowest bits. Bytes are signed, so unsigned ones have their upper bit flipped; those behind the last column
// or the last k are 0.
//
// Defines:
//   FORM     N: columns are neighbours; ANY: any strides
//   INDEX64  see common.clh
// check: -DFORM=N
// check: -DFORM=ANY -DINDEX64
#include "common.clh"
#include "index.clh"
#ifndef FORM
#error "qgemm_pack.cl needs FORM"
#endif
#define N 1
#define ANY 2
#define PANEL 32
#define W 16 // columns of a work-item

#if FORM == N
// Row k of the columns, as signed integers; 0 beyond `count`.
static inline int16 load_row(__global const uchar *src, idx_t at, uchar flip, int count)
{
    if (count >= W)
        return convert_int16(as_char16(vload16(0, src + at) ^ (uchar16)(flip)));
    int lanes[W];
    for (int i = 0; i < W; i++)
        lanes[i] = i < count ? (int)as_char((uchar)(src[at + i] ^ flip)) : 0;
    return vload16(0, lanes);
}

static inline void pack(__global const uchar *src, idx_t from, idx4_t size, idx4_t stride, uchar flip, int count,
                        __global int *to)
{
    int16 sum = 0;
    __global int *row = to + PANEL;
    for (idx_t k = 0; k < size.s0; k += 4) {
        int16 word = 0;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int16 v = k + i < size.s0 ? load_row(src, from + (k + i) * stride.s0, flip, count) : (int16)(0);
            sum += v;
            word |= (v & 255) << (8 * i);
        }
        vstore16(word, 0, row);
        row += PANEL;
    }
    vstore16(sum, 0, to);
}
#else
static inline void pack(__global const uchar *src, idx_t from, idx4_t size, idx4_t stride, uchar flip, int count,
                        __global int *to)
{
    for (int lane = 0; lane < W; lane++) {
        const idx_t at = from + lane * stride.s1;
        int sum = 0;
        __global int *row = to + (PANEL + lane);
        for (idx_t k = 0; k < size.s0; k += 4) {
            uint word = 0;
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (lane >= count || k + i >= size.s0)
                    continue;
                const uchar byte = src[at + (k + i) * stride.s0] ^ flip;
                sum += as_char(byte);
                word |= (uint)byte << (8 * i);
            }
            *row = as_int(word);
            row += PANEL;
        }
        to[lane] = sum;
    }
}
#endif

// size is (k, columns, panels, batches); stride is (k, column, 0, 0) of src; batch has the sizes of up to 8 batch
// dimensions, the last one first, and src_batch the strides. flip: what makes bytes signed.
__kernel void qgemm_pack(__global const uchar *src, idx_t src_offset, __global int *dst, idx_t dst_offset, idx4_t size,
                         idx4_t stride, idx8_t batch, idx8_t src_batch, int flip)
{
    const idx_t half_panel = (idx_t)get_global_id(0);
    idx_t rest = (idx_t)get_global_id(1);
    if (half_panel >= size.s2 * (PANEL / W) || rest >= size.s3)
        return;
    const idx_t panel = half_panel / (PANEL / W), lane = half_panel % (PANEL / W) * W, column = panel * PANEL + lane;
    const idx_t rows = (size.s0 + 3) / 4 + 1;
    __global int *to = dst + (dst_offset + (rest * size.s2 + panel) * rows * PANEL + lane);
    idx_t from = src_offset + column * stride.s1;
    from += take_index(&rest, batch.s0) * src_batch.s0;
    from += take_index(&rest, batch.s1) * src_batch.s1;
    from += take_index(&rest, batch.s2) * src_batch.s2;
    from += take_index(&rest, batch.s3) * src_batch.s3;
    from += take_index(&rest, batch.s4) * src_batch.s4;
    from += take_index(&rest, batch.s5) * src_batch.s5;
    pack(src, from, size, stride, (uchar)flip, (int)max((idx_t)0, min((idx_t)W, size.s1 - column)), to);
}
