// SPDX-License-Identifier: Apache-2.0
// Copies matrices of any strides into panels for gemm.cl: float, panel after panel of W columns, in a panel row
// after row, columns behind the last one 0. So a product reads memory from front to back whatever the strides were.
//
// Defines:
//   T        type of src
//   W        columns of a panel: 4, 8 or 16
//   FORM     N: columns are neighbours; K: rows are, which transposes; ANY: any strides
//   PANELS   that a work-item copies side by side: more than one reads longer pieces of rows
//   INDEX64  see common.clh
// check: -DT=F32 -DW=16 -DFORM=K -DPANELS=1
// check: -DT=F16 -DW=8 -DFORM=N -DPANELS=4 -DINDEX64
// check: -DT=BF16 -DW=4 -DFORM=ANY -DPANELS=1
// check: -DT=F32 -DW=8 -DFORM=N -DPANELS=4 -DTEAM
#include "common.clh"
#include "index.clh"
#include "lanes.clh"
#if !defined(T) || !defined(W) || !defined(FORM) || !defined(PANELS)
#error "gemm_pack.cl needs T, W, FORM and PANELS"
#endif
#define N 1
#define K 2
#define ANY 3
#define FORM_ FORM
#define VECTOR PASTE2_(float, W)
#define ROWS 128 // that a work-item copies

// The first `count` columns of one row of W, the others 0.
static inline VECTOR load_row(__global const STORAGE(T) *src, idx_t at, idx_t stride, int count)
{
    VECTOR v = 0.0f;
#if FORM_ == N
    if (count >= W)
        v = LOADV(T, W, src, at);
    else if (count > 0)
        LOAD_FIRST(T, W, src, at, v, count);
#else
    float lanes[W];
    for (int i = 0; i < W; i++)
        lanes[i] = i < count ? LOAD(T, src, at + i * stride) : 0.0f;
    v = PASTE2_(vload, W)(0, lanes);
#endif
    return v;
}

#if FORM_ == K
// Rows k … k + W - 1 of W columns, which lie in memory as W rows of their own. Each round interleaves the first half of
// the vectors with the second; log2(W) rounds transpose.
static inline void transpose(__global const STORAGE(T) *src, idx_t at, idx_t stride, int count, __global float *panel)
{
    VECTOR a[W], b[W];
#pragma unroll
    for (int i = 0; i < W; i++)
        a[i] = i < count ? LOADV(T, W, src, at + i * stride) : (VECTOR)(0.0f);
#pragma unroll
    for (int round = 1; round < W; round *= 2) {
#pragma unroll
        for (int i = 0; i < W / 2; i++) {
            b[2 * i].even = a[i].lo;
            b[2 * i].odd = a[i + W / 2].lo;
            b[2 * i + 1].even = a[i].hi;
            b[2 * i + 1].odd = a[i + W / 2].hi;
        }
#pragma unroll
        for (int i = 0; i < W; i++)
            a[i] = b[i];
    }
#pragma unroll
    for (int i = 0; i < W; i++)
        PASTE2_(vstore, W)(a[i], 0, panel + i * W);
}
#endif

// size is (rows, columns, panels, batches); stride is (row, column, 0, 0) of src; batch has the sizes of up to 8 batch
// dimensions, the last one first, and src_batch the strides.
static inline void pack(__global const STORAGE(T) *src, idx_t src_offset, __global float *dst, idx_t dst_offset,
                        idx4_t size, idx4_t stride, idx8_t batch, idx8_t src_batch, idx_t first, idx_t panel, idx_t rest)
{
    const idx_t panel_floats = size.s0 * W;
    __global float *to = dst + (dst_offset + (rest * size.s2 + panel) * panel_floats + first * W);
    idx_t from = src_offset + first * stride.s0 + panel * W * stride.s1;
    from += take_index(&rest, batch.s0) * src_batch.s0;
    from += take_index(&rest, batch.s1) * src_batch.s1;
    from += take_index(&rest, batch.s2) * src_batch.s2;
    from += take_index(&rest, batch.s3) * src_batch.s3;
    from += take_index(&rest, batch.s4) * src_batch.s4;
    from += take_index(&rest, batch.s5) * src_batch.s5;
    const int rows = (int)min((idx_t)ROWS, size.s0 - first);
    const int count = (int)max((idx_t)0, min((idx_t)(W * PANELS), size.s1 - panel * W));
    int k = 0;
#if FORM_ == K
    for (; k + W <= rows; k += W)
        for (int j = 0; j * W < count; j++)
            transpose(src, from + k + j * W * stride.s1, stride.s1, min(count - j * W, W), to + j * panel_floats + k * W);
#elif FORM_ == N
    for (; count == W * PANELS && k < rows; k++)
#pragma unroll
        for (int j = 0; j < PANELS; j++)
            PASTE2_(vstore, W)(LOADV(T, W, src, from + k * stride.s0 + j * W), 0, to + j * panel_floats + k * W);
#endif
    for (; k < rows; k++)
        for (int j = 0; j * W < count; j++)
            PASTE2_(vstore, W)
            (load_row(src, from + k * stride.s0 + j * W * stride.s1, stride.s1, min(count - j * W, W)), 0,
             to + j * panel_floats + k * W);
}

__kernel void gemm_pack(__global const STORAGE(T) *src, idx_t src_offset, __global float *dst, idx_t dst_offset,
                        idx4_t size, idx4_t stride, idx8_t batch, idx8_t src_batch TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const idx_t first = (idx_t)get_global_id(0) * ROWS, panel = (idx_t)get_global_id(1) * PANELS;
    const idx_t rest = (idx_t)get_global_id(2);
    if (first < size.s0 && panel < size.s2 && rest < size.s3)
        pack(src, src_offset, dst, dst_offset, size, stride, batch, src_batch, first, panel, rest);
    TEAM_LEAVE
}
