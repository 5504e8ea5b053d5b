// SPDX-License-Identifier: Apache-2.0
// gpu: never
// Copies matrices of bfloat16 of any strides into panels for gemm_bf16.cl: panel after panel of 32 columns, each integer
// of whose rows holds two of k of a column, the first in the lower half. Behind the last column and the last k are zeros.
//
// Defines:
//   FORM     N: columns are neighbours; ANY: any strides
//   INDEX64  see common.clh
// check: -DFORM=N
// check: -DFORM=ANY -DINDEX64
#include "common.clh"
#include "index.clh"
#ifndef FORM
#error "gemm_bf16_pack.cl needs FORM"
#endif
#define N 1
#define ANY 2
#define PANEL 32
#define W 16 // columns of a work-item

// Row `at` of the columns; 0 beyond `count`.
static inline uint16 load_row(__global const ushort *src, idx_t at, idx_t stride, int count)
{
#if FORM == N
    if (count >= W)
        return convert_uint16(vload16(0, src + at));
#endif
    uint lanes[W];
    for (int i = 0; i < W; i++)
        lanes[i] = i < count ? src[at + i * stride] : 0u;
    return vload16(0, lanes);
}

// size is (k, columns, panels, batches); stride is (k, column, 0, 0) of src; batch has the sizes of up to 8 batch
// dimensions, the last one first, and src_batch the strides.
__kernel void gemm_bf16_pack(__global const ushort *src, idx_t src_offset, __global uint *dst, idx_t dst_offset,
                             idx4_t size, idx4_t stride, idx8_t batch, idx8_t src_batch)
{
    const idx_t half_panel = (idx_t)get_global_id(0);
    idx_t rest = (idx_t)get_global_id(1);
    if (half_panel >= size.s2 * (PANEL / W) || rest >= size.s3)
        return;
    const idx_t panel = half_panel / (PANEL / W), lane = half_panel % (PANEL / W) * W, column = panel * PANEL + lane;
    __global uint *to = dst + (dst_offset + (rest * size.s2 + panel) * ((size.s0 + 1) / 2) * PANEL + lane);
    idx_t from = src_offset + column * stride.s1;
    from += take_index(&rest, batch.s0) * src_batch.s0;
    from += take_index(&rest, batch.s1) * src_batch.s1;
    from += take_index(&rest, batch.s2) * src_batch.s2;
    from += take_index(&rest, batch.s3) * src_batch.s3;
    from += take_index(&rest, batch.s4) * src_batch.s4;
    from += take_index(&rest, batch.s5) * src_batch.s5;
    const int count = (int)max((idx_t)0, min((idx_t)W, size.s1 - column));
    for (idx_t k = 0; k < size.s0; k += 2) {
        uint16 pair = load_row(src, from + k * stride.s0, stride.s1, count);
        if (k + 1 < size.s0)
            pair |= load_row(src, from + (k + 1) * stride.s0, stride.s1, count) << 16;
        vstore16(pair, 0, to);
        to += PANEL;
    }
}
