// SPDX-License-Identifier: Apache-2.0
// dst = alpha * a * b + beta * c: matrices with any strides, in batches.
//
// Defines:
//   T, T_A, T_B  see gemm.clh
//   KIND     COLUMNS: b's columns are neighbours; vectors lie over the columns of dst
//            DOT: a's and b's elements along k are neighbours; vectors lie over k
//            ANY: any strides and types, one element a work-item
//   R        rows of dst that a work-item computes (not for ANY)
//   W        elements of a vector: 4, 8 or 16 (not for ANY). COLUMNS: n >= W * NB
//   NB       COLUMNS: vectors of columns that a work-item computes; DOT: columns
//   LANES    COLUMNS: the chain is applied to single elements
//   INDEX64, STAGES …  see gemm.clh
// check: -DT=F32 -DKIND=COLUMNS -DR=4 -DW=16 -DNB=2 -DBATCHED
// check: -DT=F16 -DKIND=DOT -DR=2 -DW=8 -DNB=2
// check: -DT=BF16 -DKIND=COLUMNS -DR=8 -DW=4 -DNB=1 -DINDEX64
// check: -DT=F32 -DKIND=COLUMNS -DR=1 -DW=8 -DNB=2 -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=1
// check: -DT=F32 -DKIND=COLUMNS -DR=1 -DW=8 -DNB=2 -DLANES -DSTAGES=1 -DS1=OP_MUL(v0,K(0))
// check: -DT=F16 -DT_A=F32 -DT_B=F32 -DKIND=COLUMNS -DR=7 -DW=16 -DNB=2
// check: -DT=F16 -DKIND=ANY -DSTAGES=1 -DS1=OP_MAX(v0,y0) -DOPERANDS=1 -DT_Y0=BF16 -DY0_STEP=0
// check: -DT=I32 -DKIND=ANY
// check: -DT=U64 -DKIND=ANY -DINDEX64
#define COLUMNS 1
#define DOT 2
#define ANY 3
#if !defined(T) || !defined(KIND)
#error "gemm.cl needs T and KIND"
#endif
#if KIND != ANY && (!defined(R) || !defined(W) || !defined(NB))
#error "gemm.cl needs R, W and NB"
#endif
#if KIND == COLUMNS && !defined(LANES)
#define V W
#else
#define V 1
#endif
#include "gemm.clh"

// Read unconditionally: pocl fails on a get_global_id in one branch of a condition.
#define FIND_GRID                                                                                                      \
    const idx_t grid0 = (idx_t)get_global_id(0), grid1 = (idx_t)get_global_id(1), grid2 = (idx_t)get_global_id(2);     \
    const idx_t grid_row = flags.y ? grid0 : grid1, grid_column = flags.y ? grid1 : grid0

#if KIND == ANY
__kernel void gemm(GEMM_ARGUMENTS)
{
    GEMM_UNPACK
    FIND_GRID;
    const idx_t row = grid_row, column = grid_column;
    if (row >= size.s0 || column >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    a += row * stride.s0;
    b += column * stride.s3;
    VALUE sum = 0;
    for (idx_t k = 0; k < size.s2; k++)
        sum += LOAD(T_A, a, k * stride.s1) * LOAD(T_B, b, k * stride.s2);
    store_element(dst, dst_offset + row * stride.s6 + column * stride.s7, c,
                  c_offset + row * stride.s4 + column * stride.s5, sum, alpha, beta, flags.x, row, column PASS_CHAIN);
}
#endif

#if KIND != ANY
// Rows first … first + R - 1; those from begin on are this work-item's. Rows beyond the last one repeat it, and are not
// stored.
#define FIND_ROWS                                                                                                      \
    const idx_t wish = grid_row * R;                                                                                   \
    const idx_t first = size.s0 < R ? 0 : min(wish, size.s0 - R);                                                      \
    const int begin = (int)(wish - first);                                                                             \
    __global const STORAGE(T_A) *rows[R];                                                                                \
    for (int r = 0; r < R; r++)                                                                                        \
        rows[r] = a + min(first + r, size.s0 - 1) * stride.s0
// A copy, for a last loop that need not be unrolled: it compiles much faster.
#define COPY_SUMS                                                                                                      \
    VECTOR sums[R * NB];                                                                                               \
    for (int i = 0; i < R * NB; i++)                                                                                   \
    sums[i] = sum[i]
#endif

#if KIND == COLUMNS
__kernel void gemm(GEMM_ARGUMENTS)
{
    GEMM_UNPACK
    FIND_GRID;
    const idx_t column_wish = grid_column * (W * NB);
    if (grid_row * R >= size.s0 || column_wish >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    FIND_ROWS;
    const idx_t column = min(column_wish, size.s1 - W * NB);
    b += column;

    VECTOR sum[R * NB];
#pragma unroll
    for (int i = 0; i < R * NB; i++)
        sum[i] = 0;
    idx_t a_at = 0;
    for (idx_t k = 0; k < size.s2; k++) {
        VECTOR y[NB];
#pragma unroll
        for (int j = 0; j < NB; j++)
            y[j] = LOADV(T_B, W, b, j * W);
#pragma unroll
        for (int r = 0; r < R; r++) {
            const VECTOR x = (VECTOR)(LOAD(T_A, rows[r], a_at));
#pragma unroll
            for (int j = 0; j < NB; j++)
                sum[r * NB + j] = fma(x, y[j], sum[r * NB + j]);
        }
        a_at += stride.s1;
        b += stride.s2;
    }

    COPY_SUMS;
    for (int r = begin; r < R && first + r < size.s0; r++)
        for (int j = 0; j < NB; j++) {
            const idx_t m = first + r, n = column + j * W;
            if (n >= size.s1)
                break;
            store_vector(dst, dst_offset + m * stride.s6 + n * stride.s7, stride.s7, c,
                         c_offset + m * stride.s4 + n * stride.s5, stride.s5, sums[r * NB + j], alpha, beta, flags.x,
                         (int)(column_wish - n), (int)min((idx_t)W, size.s1 - n), m, n PASS_CHAIN);
        }
}
#endif

#if KIND == DOT
static inline VALUE sum_of_lanes(VECTOR v)
{
#if W == 16
    const PASTE2_(VALUE, 8) v8 = v.lo + v.hi;
#elif W == 8
    const PASTE2_(VALUE, 8) v8 = v;
#endif
#if W == 4
    const PASTE2_(VALUE, 4) v4 = v;
#else
    const PASTE2_(VALUE, 4) v4 = v8.lo + v8.hi;
#endif
    return dot(v4, (PASTE2_(VALUE, 4))(1));
}

__kernel void gemm(GEMM_ARGUMENTS)
{
    GEMM_UNPACK
    FIND_GRID;
    const idx_t column = grid_column * NB;
    if (grid_row * R >= size.s0 || column >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    FIND_ROWS;
    __global const STORAGE(T) *columns[NB];
    for (int j = 0; j < NB; j++)
        columns[j] = b + min(column + j, size.s1 - 1) * stride.s3;

    VECTOR sum[R * NB];
#pragma unroll
    for (int i = 0; i < R * NB; i++)
        sum[i] = 0;
    idx_t k = 0;
    for (; k + W <= size.s2; k += W) {
        VECTOR y[NB];
#pragma unroll
        for (int j = 0; j < NB; j++)
            y[j] = LOADV(T, W, columns[j], k);
#pragma unroll
        for (int r = 0; r < R; r++) {
            const VECTOR x = LOADV(T, W, rows[r], k);
#pragma unroll
            for (int j = 0; j < NB; j++)
                sum[r * NB + j] = fma(x, y[j], sum[r * NB + j]);
        }
    }

    COPY_SUMS;
    for (int r = begin; r < R && first + r < size.s0; r++)
        for (int j = 0; j < NB && column + j < size.s1; j++) {
            const idx_t m = first + r, n = column + j;
            VALUE value = sum_of_lanes(sums[r * NB + j]);
            for (idx_t rest = k; rest < size.s2; rest++)
                value = fma(LOAD(T, a, m * stride.s0 + rest), LOAD(T, b, n * stride.s3 + rest), value);
            store_element(dst, dst_offset + m * stride.s6 + n * stride.s7, c, c_offset + m * stride.s4 + n * stride.s5,
                          value, alpha, beta, flags.x, m, n PASS_CHAIN);
        }
}
#endif
