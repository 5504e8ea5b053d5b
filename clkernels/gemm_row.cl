// SPDX-License-Identifier: Apache-2.0
// One row times a matrix whose columns are neighbours, for CPUs, one work-item a work-group. A work-item takes a span of
// columns and reads its part of a few rows of b at a time from end to end, which memory is fastest at; the sums stay in the
// first cache.
//
// Defines:
//   T, T_A, T_B  see gemm.clh
//   W        elements of a vector: 4, 8 or 16; n >= W
//   LANES    the chain is applied to single elements
//   INDEX64, STAGES …  see gemm.clh
// check: -DT=F32 -DW=16 -DBATCHED
// check: -DT=F16 -DW=8 -DINDEX64
// check: -DT=F32 -DW=4 -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=1
// check: -DT=BF16 -DW=16 -DLANES -DSTAGES=1 -DS1=OP_MUL(v0,K(0))
#if !defined(T) || !defined(W)
#error "gemm_row.cl needs T and W"
#endif
#ifdef LANES
#define V 1
#else
#define V W
#endif
// Columns of a work-item, at most 2048.
#define MORE_ARGUMENTS , idx_t span
#include "gemm.clh"
#define VECTORS (2048 / W)
#define ROWS 8

// sums += the products of ROWS terms.
static inline void add_rows(VECTOR sums[VECTORS], int vectors, __global const STORAGE(T_A) *a, idx_t a_k,
                            __global const STORAGE(T_B) *b, idx_t b_k)
{
    VECTOR x[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++)
        x[i] = (VECTOR)(LOAD(T_A, a, i * a_k));
    for (int v = 0; v < vectors; v++) {
        VECTOR even = sums[v], odd = 0;
#pragma unroll
        for (int i = 0; i < ROWS; i += 2) {
            even = fma(x[i], LOADV(T_B, W, b + i * b_k, v * W), even);
            odd = fma(x[i + 1], LOADV(T_B, W, b + (i + 1) * b_k, v * W), odd);
        }
        sums[v] = even + odd;
    }
}

__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void gemm_row(GEMM_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    GEMM_UNPACK
    const idx_t grid0 = (idx_t)get_global_id(0), grid2 = (idx_t)get_global_id(2);
    // The last span is moved back to be full; its first columns are not stored again.
    const idx_t wish = grid0 * span, first = max((idx_t)0, min(wish, size.s1 - span));
    const int vectors = (int)(span / W);
    VECTOR sums[VECTORS];
    FIND_MATRICES;
    b += first;
    for (int v = 0; v < vectors; v++)
        sums[v] = 0;
    idx_t k = 0;
    for (; k + ROWS <= size.s2; k += ROWS)
        add_rows(sums, vectors, a + k * stride.s1, stride.s1, b + k * stride.s2, stride.s2);
    for (; k < size.s2; k++)
        for (int v = 0; v < vectors; v++)
            sums[v] = fma((VECTOR)(LOAD(T_A, a, k * stride.s1)), LOADV(T_B, W, b, k * stride.s2 + v * W), sums[v]);
    for (int v = 0; v < vectors; v++) {
        const idx_t n = first + v * W, m = 0;
        if (n + W > wish)
            store_vector(dst, dst_offset + n * stride.s7, stride.s7, c, c_offset + n * stride.s5, stride.s5, sums[v], alpha,
                         beta, flags.x, (int)max((idx_t)0, wish - n), W, m, n PASS_CHAIN);
    }
    TEAM_LEAVE
}
