// SPDX-License-Identifier: Apache-2.0
// One row, or a few, times a matrix whose columns are neighbours, for CPUs, one work-item a work-group. A few rows of b are
// read at a time from end to end, which memory is fastest at; the sums stay in the first cache.
//
// Terms are cut into stretches, whose sums are added in their order. A work-item takes a span of columns and one stretch
// after the other. In a team (team.clh) it may take one stretch of all columns instead: whole rows, which processors fetch
// ahead where half a row is too short for them. The last one adds up, so that both ways give the same bits. Of several rows
// there are no stretches.
//
// Defines:
//   T, T_A, T_B  see gemm.clh
//   W        elements of a vector: 4, 8 or 16; n >= W
//   ROWS     rows of a, 1 where it is not there
//   LANES    the chain is applied to single elements
//   INDEX64, STAGES …  see gemm.clh
// check: -DT=F32 -DW=16 -DBATCHED
// check: -DT=F16 -DW=8 -DINDEX64
// check: -DT=F32 -DW=4 -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=1
// check: -DT=F32 -DW=8 -DTEAM
// check: -DT=F32 -DW=8 -DROWS=4
// check: -DT=F16 -DW=16 -DROWS=2 -DBATCHED
// check: -DT=BF16 -DW=16 -DLANES -DSTAGES=1 -DS1=OP_MUL(v0,K(0))
#if !defined(T) || !defined(W)
#error "gemm_row.cl needs T and W"
#endif
#include "gemm.clh"
#ifndef ROWS
#define ROWS 1
#endif
// Few arguments, for some drivers allocate memory for each at every launch. where: offsets as in gemm.clh; columns and
// terms; strides: a's and b's along the terms, c's and dst's along the columns; columns of a work-item, at most 2048; terms
// of a stretch; stretches (of several rows: a's stride and dst's from row to row instead); flags: 1: there is c, 2: a team
// takes a stretch each, of at most 2048 columns; bits of alpha and beta.
#define ROW_ARGUMENTS                                                                                                  \
    __global const STORAGE(T_A) *a, __global const STORAGE(T_B) *b, __global const STORAGE(T) * c,                     \
        __global STORAGE(T) * dst, idx16_t where BATCH_ARGUMENTS CHAIN_ARGUMENTS
#define ROW_UNPACK                                                                                                     \
    idx_t c_offset = where.s2, dst_offset = where.s3;                                                                  \
    const idx_t columns = where.s4, terms = where.s5, a_k = where.s6, b_k = where.s7, c_n = where.s8, dst_n = where.s9, \
                span = where.sa, stretch = where.sb, stretches = where.sc, flags = where.sd;                           \
    const float alpha = as_float((int)where.se), beta = as_float((int)where.sf);                                       \
    BATCH_UNPACK
#define MOST_COLUMNS 2048
#define VECTORS (MOST_COLUMNS / W)
#define TERMS 8 // at a time, of one row

#if ROWS == 1
// Of one stretch. Vector v begins at column v * W, the last one at `last`.
static inline void sum_stretch(VECTOR sums[VECTORS], int vectors, int last, __global const STORAGE(T_A) *a, idx_t a_k,
                               __global const STORAGE(T_B) *b, idx_t b_k, idx_t count)
{
    idx_t k = 0;
    for (int v = 0; v < vectors; v++)
        sums[v] = 0;
    for (; k + TERMS <= count; k += TERMS, a += TERMS * a_k, b += TERMS * b_k) {
        VECTOR x[TERMS];
#pragma unroll
        for (int i = 0; i < TERMS; i++)
            x[i] = (VECTOR)(LOAD(T_A, a, i * a_k));
        for (int v = 0; v < vectors; v++) {
            const int at = min(v * W, last);
            VECTOR even = sums[v], odd = 0;
#pragma unroll
            for (int i = 0; i < TERMS; i += 2) {
                even = fma(x[i], LOADV(T_B, W, b + i * b_k, at), even);
                odd = fma(x[i + 1], LOADV(T_B, W, b + (i + 1) * b_k, at), odd);
            }
            sums[v] = even + odd;
        }
    }
    for (; k < count; k++, a += a_k, b += b_k)
        for (int v = 0; v < vectors; v++)
            sums[v] = fma((VECTOR)(LOAD(T_A, a, 0)), LOADV(T_B, W, b, min(v * W, last)), sums[v]);
}

#else
// Of all terms of several rows, two at a time: what they are multiplied by stays in registers. Row m's sums begin at m * VECTORS.
static inline void sum_rows(VECTOR sums[ROWS * VECTORS], int vectors, int last, __global const STORAGE(T_A) *a, idx_t a_m,
                            idx_t a_k, __global const STORAGE(T_B) *b, idx_t b_k, idx_t count)
{
    idx_t k = 0;
    for (int m = 0; m < ROWS; m++)
        for (int v = 0; v < vectors; v++)
            sums[m * VECTORS + v] = 0;
    for (; k + 2 <= count; k += 2, a += 2 * a_k, b += 2 * b_k) {
        VECTOR even[ROWS], odd[ROWS];
#pragma unroll
        for (int m = 0; m < ROWS; m++) {
            even[m] = (VECTOR)(LOAD(T_A, a, m * a_m));
            odd[m] = (VECTOR)(LOAD(T_A, a, m * a_m + a_k));
        }
        for (int v = 0; v < vectors; v++) {
            const VECTOR y0 = LOADV(T_B, W, b, min(v * W, last)), y1 = LOADV(T_B, W, b + b_k, min(v * W, last));
#pragma unroll
            for (int m = 0; m < ROWS; m++)
                sums[m * VECTORS + v] = fma(odd[m], y1, fma(even[m], y0, sums[m * VECTORS + v]));
        }
    }
    if (k < count)
        for (int v = 0; v < vectors; v++)
#pragma unroll
            for (int m = 0; m < ROWS; m++)
                sums[m * VECTORS + v] = fma((VECTOR)(LOAD(T_A, a, m * a_m)), LOADV(T_B, W, b, min(v * W, last)),
                                            sums[m * VECTORS + v]);
}
#endif

#if defined(TEAM_SUMS) && ROWS == 1
// Whether this is the last one: it has the sums of all then.
static inline bool add_up_in_team(VECTOR sums[VECTORS], int vectors, idx_t stretch, idx_t stretches,
                                  volatile __global uint *team_counter)
{
    __global float *const all = TEAM_SUMS(team_counter);
    for (int v = 0; v < vectors; v++)
        PASTE2_(vstore, W)(sums[v], v, all + stretch * MOST_COLUMNS);
    if (!team_is_last(team_counter, (uint)stretches))
        return false;
    for (int v = 0; v < vectors; v++) {
        sums[v] = PASTE2_(vload, W)(v, all);
        for (idx_t i = 1; i < stretches; i++)
            sums[v] += PASTE2_(vload, W)(v, all + i * MOST_COLUMNS);
    }
    return true;
}
#endif

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void gemm_row(ROW_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    ROW_UNPACK
    const idx_t grid0 = (idx_t)get_global_id(0), grid2 = (idx_t)get_global_id(2);
#if defined(TEAM_SUMS) && ROWS == 1
    const bool by_stretch = team_counter && (flags & 2) != 0;
#else
    const bool by_stretch = false;
#endif
    // The last span is moved back to be full; its first columns are not stored again.
    const idx_t width = by_stretch ? columns : span, wish = by_stretch ? 0 : grid0 * span,
                first = max((idx_t)0, min(wish, columns - width));
    const int vectors = wish < columns ? (int)((width + W - 1) / W) : 0, last = (int)width - W;
    bool stores = true;
    VECTOR sums[ROWS * VECTORS];
    FIND_MATRICES;
    b += first;
#if ROWS > 1
    sum_rows(sums, vectors, last, a, stretch, a_k, b, b_k, terms);
#else
#ifdef TEAM_SUMS
    if (by_stretch) {
        const idx_t k = min((idx_t)grid0 * stretch, terms); // the last one may have none
        sum_stretch(sums, vectors, last, a + k * a_k, a_k, b + k * b_k, b_k, min(stretch, terms - k));
        stores = add_up_in_team(sums, vectors, grid0, stretches, team_counter);
    }
#endif
    if (!by_stretch) {
        sum_stretch(sums, vectors, last, a, a_k, b, b_k, min(stretch, terms));
        for (idx_t i = 1; i < stretches; i++) {
            const idx_t k = min(i * stretch, terms);
            VECTOR more[VECTORS];
            sum_stretch(more, vectors, last, a + k * a_k, a_k, b + k * b_k, b_k, min(stretch, terms - k));
            for (int v = 0; v < vectors; v++)
                sums[v] += more[v];
        }
    }
#endif
    for (idx_t m = 0; m < ROWS; m++)
        for (int v = 0; v < vectors && stores; v++) {
            const idx_t n = first + min(v * W, last), begin = max(wish, first + v * W) - n;
            if (begin < W)
                store_vector(dst, dst_offset + m * (ROWS > 1 ? stretches : 0) + n * dst_n, dst_n, c, c_offset + n * c_n,
                             c_n, sums[m * VECTORS + v], alpha, beta, (flags & 1) != 0, (int)max((idx_t)0, begin), W, m,
                             n PASS_CHAIN);
        }
    TEAM_LEAVE
}
