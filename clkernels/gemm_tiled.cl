// SPDX-License-Identifier: Apache-2.0
// Matrix products by work-groups, through local memory. With more than one part, each work-group sums a part of the terms
// into `partial`, and gemm_sum adds the parts.
//
// gpu: hot
// Defines: those of tile.clh, and
//   T, T_A, T_B, INDEX64, STAGES …  see gemm.clh
//   LANES    the chain is applied to single elements
//   A_ALONG  1: fours of a lie along k, 0: along the rows
//   B_ALONG  1: fours of b lie along k, 0: along the columns
// check: -DT=F32 -DBM=32 -DBN=32 -DBK=16 -DTM=4 -DTN=4 -DA_ALONG=1 -DB_ALONG=0 -DBATCHED
// check: -DT=F16 -DBM=64 -DBN=64 -DBK=16 -DTM=8 -DTN=4 -DA_ALONG=0 -DB_ALONG=1 -DINDEX64
// check: -DT=F32 -DBM=128 -DBN=128 -DBK=8 -DTM=8 -DTN=8 -DA_ALONG=1 -DB_ALONG=1 -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=1
// check: -DT=BF16 -DBM=32 -DBN=32 -DBK=16 -DTM=4 -DTN=4 -DA_ALONG=0 -DB_ALONG=0 -DLANES -DSTAGES=1 -DS1=OP_RELU(v0)
#if !defined(T) || !defined(A_ALONG) || !defined(B_ALONG)
#error "gemm_tiled.cl needs T, A_ALONG and B_ALONG"
#endif
#define W 4
#define CUT_END
// parts: how many there are, terms of each, fours in a row of `partial`.
#define MORE_ARGUMENTS , __global float *partial, idx_t partial_offset, idx4_t parts
#include "gemm.clh"
#include "tile.clh"

#define STORE_FOUR(m, n, value)                                                                                        \
    store_vector(dst, dst_offset + (m) * stride.s6 + (n) * stride.s7, stride.s7, c,                                    \
                 c_offset + (m) * stride.s4 + (n) * stride.s5, stride.s5, value, alpha, beta, flags.x, 0,              \
                 (int)min((idx_t)4, size.s1 - (n)), m, n PASS_CHAIN)
#define PARTIAL_AT(part, batch, m, n)                                                                                  \
    (partial_offset + ((((part) * size.s3 + (batch)) * size.s0 + (m)) * parts.s2 * 4 + (n)))

// Four of one factor: `first` is the tile's first row (column) of `count`, which are `across` apart; terms end at `end` and
// are `along` apart.
#define DEFINE_FETCH(name, T, along_k, side)                                                                           \
    static inline float4 name(__global const STORAGE(T) *p, const int four, const idx_t first, const idx_t count,      \
                              const idx_t across, const idx_t term, const idx_t end, const idx_t along,                \
                              const bool aligned)                                                                      \
    {                                                                                                                  \
        const idx_t at = first + TILE_SIDE(four, along_k, side), k = term + TILE_TERM(four, along_k, side);            \
        const idx_t valid = along_k ? (at < count ? end - k : 0) : (k < end ? count - at : 0);                         \
        const idx_t from = at * across + k * along, step = along_k ? along : across;                                   \
        return LOAD_FOUR(T, p, from, step, valid, aligned);                                                            \
    }
DEFINE_FETCH(fetch_a, T_A, A_ALONG, BM)
DEFINE_FETCH(fetch_b, T_B, B_ALONG, BN)

TILE_SUB_GROUP __attribute__((reqd_work_group_size(TILE_ITEMS, 1, 1))) __kernel void gemm_tiled(GEMM_ARGUMENTS)
{
    GEMM_UNPACK
    TILE_MEMORY;
    const int item = (int)get_local_id(0), tx = item % TILE_TX, ty = item / TILE_TX;
    const idx_t columns = (size.s1 + BN - 1) / BN, group = (idx_t)get_group_id(0), layer = (idx_t)get_group_id(2);
    const idx_t m0 = group / columns * BM, n0 = (group - group / columns * columns) * BN;
    const idx_t grid2 = layer / parts.s0, part = layer - grid2 * parts.s0;
    FIND_MATRICES;
    const bool aligned_a = IS_ALIGNED(T_A, a, stride.s0 * (A_ALONG == 1), stride.s1 * (A_ALONG == 0));
    const bool aligned_b = IS_ALIGNED(T_B, b, stride.s3 * (B_ALONG == 1), stride.s2 * (B_ALONG == 0));
    const idx_t begin = part * parts.s1, end = min(size.s2, begin + parts.s1);

    float4 sum[TILE_SUMS], next_a[TILE_LOADS_A], next_b[TILE_LOADS_B];
    clear_sums(sum);
    int which = 0;
    for (idx_t term = begin;; term += BK) {
#pragma unroll
        for (int i = 0; i < TILE_LOADS_A; i++)
            next_a[i] = fetch_a(a, item + i * TILE_ITEMS, m0, size.s0, stride.s0, term, end, stride.s1, aligned_a);
#pragma unroll
        for (int i = 0; i < TILE_LOADS_B; i++)
            next_b[i] = fetch_b(b, item + i * TILE_ITEMS, n0, size.s1, stride.s3, term, end, stride.s2, aligned_b);
        if (term > begin)
            multiply_tiles(TILE_A(which), TILE_B(which), tx, ty, sum);
        if (term >= end)
            break;
        which ^= 1;
        put_fours(TILE_A(which), item, A_ALONG, BM, TILE_LOADS_A, next_a);
        put_fours(TILE_B(which), item, B_ALONG, BN, TILE_LOADS_B, next_b);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    float4 sums[TILE_SUMS]; // a copy, for a loop that is not unrolled
#pragma unroll
    for (int i = 0; i < TILE_SUMS; i++)
        sums[i] = sum[i];
    UNROLL_STORES
    for (int i = 0; i < TILE_SUMS; i++) {
        const idx_t m = m0 + TILE_SUM_ROW(i, ty), n = n0 + TILE_SUM_COLUMN(i, tx);
        if (m >= size.s0 || n >= size.s1)
            continue;
        if (parts.s0 > 1)
            vstore4(sums[i], 0, partial + PARTIAL_AT(part, grid2, m, n));
        else
            STORE_FOUR(m, n, sums[i]);
    }
}

// A work-item for each four of the result.
__kernel void gemm_sum(GEMM_ARGUMENTS)
{
    GEMM_UNPACK
    const idx_t four = (idx_t)get_global_id(0), grid2 = (idx_t)get_global_id(2);
    const idx_t m = four / parts.s2, n = (four - m * parts.s2) * 4;
    if (m >= size.s0 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    float4 sum = 0.0f;
    for (idx_t part = 0; part < parts.s0; part++)
        sum += vload4(0, partial + PARTIAL_AT(part, grid2, m, n));
    STORE_FOUR(m, n, sum);
}
