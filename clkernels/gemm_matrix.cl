// SPDX-License-Identifier: Apache-2.0
// Matrix products with the matrix instructions of GPUs: tiles of both factors go through local memory, and each sub-group
// multiplies its part of them.
//
// gpu: hot
// Defines: T, INSTRUCTION and MODEL of matrix.clh, INDEX64 and STAGES … of gemm.clh, and
//   BM, BN, BK        rows, columns and terms of a work-group's tile
//   GROUPS_M, GROUPS_N  sub-groups along its rows and columns
//   A_ALONG  1: fours of a lie along k, 0: along the rows
//   B_ALONG  1: fours of b lie along k, 0: along the columns
// check: -DT=F32 -DINSTRUCTION=MFMA -DBM=32 -DBN=32 -DBK=16 -DGROUPS_M=1 -DGROUPS_N=2 -DA_ALONG=1 -DB_ALONG=0 -DMODEL
// check: -DT=F16 -DINSTRUCTION=MFMA -DBM=32 -DBN=32 -DBK=32 -DGROUPS_M=1 -DGROUPS_N=2 -DA_ALONG=1 -DB_ALONG=1 -DMODEL
// check: -DT=BF16 -DINSTRUCTION=DPAS8 -DBM=16 -DBN=32 -DBK=32 -DGROUPS_M=1 -DGROUPS_N=2 -DA_ALONG=1 -DB_ALONG=0 -DINDEX64 -DMODEL -DBATCHED
// check: -DT=F16 -DINSTRUCTION=DPAS16 -DBM=32 -DBN=32 -DBK=32 -DGROUPS_M=2 -DGROUPS_N=1 -DA_ALONG=0 -DB_ALONG=0 -DSTAGES=1 -DS1=OP_RELU(v0) -DMODEL
// gpu: gfx90a -DT=F32 -DINSTRUCTION=MFMA -DBM=128 -DBN=128 -DBK=16 -DGROUPS_M=2 -DGROUPS_N=2 -DA_ALONG=1 -DB_ALONG=0
// gpu: gfx90a -DT=F16 -DINSTRUCTION=MFMA -DBM=128 -DBN=128 -DBK=32 -DGROUPS_M=2 -DGROUPS_N=2 -DA_ALONG=1 -DB_ALONG=1
// gpu: gfx90a -DT=BF16 -DINSTRUCTION=MFMA -DBM=128 -DBN=128 -DBK=32 -DGROUPS_M=2 -DGROUPS_N=2 -DA_ALONG=0 -DB_ALONG=0
// gpu: dg2 -DT=F16 -DINSTRUCTION=DPAS8 -DBM=64 -DBN=64 -DBK=32 -DGROUPS_M=2 -DGROUPS_N=4 -DA_ALONG=1 -DB_ALONG=0
// gpu: dg2 -DT=BF16 -DINSTRUCTION=DPAS8 -DBM=64 -DBN=64 -DBK=32 -DGROUPS_M=2 -DGROUPS_N=4 -DA_ALONG=1 -DB_ALONG=1
// gpu: pvc -DT=F16 -DINSTRUCTION=DPAS16 -DBM=64 -DBN=64 -DBK=32 -DGROUPS_M=2 -DGROUPS_N=2 -DA_ALONG=1 -DB_ALONG=0
// gpu: pvc -DT=BF16 -DINSTRUCTION=DPAS16 -DBM=64 -DBN=64 -DBK=32 -DGROUPS_M=2 -DGROUPS_N=2 -DA_ALONG=1 -DB_ALONG=1
#if !defined(T) || !defined(INSTRUCTION) || !defined(BM) || !defined(BN) || !defined(BK) || !defined(GROUPS_M) ||      \
    !defined(GROUPS_N) || !defined(A_ALONG) || !defined(B_ALONG)
#error "gemm_matrix.cl needs T, INSTRUCTION, BM, BN, BK, GROUPS_M, GROUPS_N, A_ALONG and B_ALONG"
#endif
#define V 1
#include "gemm.clh"
#include "matrix.clh"

#define ITEMS (GROUPS_M * GROUPS_N * LANES)
#define TILES_M (BM / GROUPS_M / MM)
#define TILES_N (BN / GROUPS_N / MN)
#define LOADS_A (BM * BK / 4 / ITEMS)
#define LOADS_B (BN * BK / 4 / ITEMS)
// The model has barriers: many copies of them, and of what lies between, would compile for minutes.
#ifdef MODEL
#define UNROLL
#else
#define UNROLL _Pragma("unroll")
#endif
#define PITCH (BK + 4) // of a tile's row (column) in local memory: they begin in different banks
#if TILES_M * GROUPS_M * MM != BM || TILES_N * GROUPS_N * MN != BN || BK % MK != 0 ||                                  \
    LOADS_A * ITEMS * 4 != BM * BK || LOADS_B * ITEMS * 4 != BN * BK
#error "gemm_matrix.cl: the sub-groups do not divide the tiles"
#endif

#if IS_F32
typedef float4 four_t;
#else
typedef ushort4 four_t;
#endif

// Where the four with a number lies in a tile: its row (column) and term.
#define SIDE_OF(four, along_k, side) ((along_k) ? (four) / (BK / 4) : (four) % ((side) / 4) * 4)
#define TERM_OF(four, along_k, side) ((along_k) ? (four) % (BK / 4) * 4 : (four) / ((side) / 4))

// `valid` of four elements, `step` apart, zeros behind them.
static inline four_t load_four(__global const ELEMENT *p, const idx_t step, const idx_t valid)
{
    if (valid >= 4 && step == 1)
        return vload4(0, p);
    return (four_t)(valid > 0 ? p[0] : (ELEMENT)0, valid > 1 ? p[step] : (ELEMENT)0,
                    valid > 2 ? p[2 * step] : (ELEMENT)0, valid > 3 ? p[3 * step] : (ELEMENT)0);
}

#define FETCH(p, four, along_k, side, first, count, across, term, end, along)                                          \
    fetch(p, first + SIDE_OF(four, along_k, side), count, across, (term) + TERM_OF(four, along_k, side), end, along,   \
          along_k)
static inline four_t fetch(__global const ELEMENT *p, const idx_t at, const idx_t count, const idx_t across,
                           const idx_t k, const idx_t end, const idx_t along, const bool along_k)
{
    const idx_t valid = along_k ? (at < count ? end - k : 0) : (k < end ? count - at : 0);
    return load_four(valid > 0 ? p + (at * across + k * along) : p, along_k ? along : across, valid);
}

static inline void put(__local ELEMENT *tile, const int at, const int k, const bool along_k, const four_t value)
{
    if (along_k) {
        vstore4(value, 0, tile + at * PITCH + k);
        return;
    }
    tile[at * PITCH + k] = value.x;
    tile[(at + 1) * PITCH + k] = value.y;
    tile[(at + 2) * PITCH + k] = value.z;
    tile[(at + 3) * PITCH + k] = value.w;
}

// sum += the products of a sub-group's parts of two tiles.
static inline void multiply_tiles(sums_t sum[TILES_M * TILES_N], __local const ELEMENT *rows,
                                  __local const ELEMENT *cols, const int lane EXCHANGE_ARGUMENTS)
{
    for (int k = 0; k < BK; k += MK) {
        a_t x[TILES_M];
        b_t y[TILES_N];
        UNROLL
        for (int i = 0; i < TILES_M; i++)
            x[i] = LOAD_LANE_A(rows + i * MM * PITCH + k, PITCH, lane);
        UNROLL
        for (int j = 0; j < TILES_N; j++)
            y[j] = LOAD_LANE_B(cols + j * MN * PITCH + k, PITCH, lane);
        UNROLL
        for (int i = 0; i < TILES_M * TILES_N; i++)
            sum[i] = MULTIPLY(x[i / TILES_N], y[i % TILES_N], sum[i]);
    }
}

#if INSTRUCTION != MFMA && !defined(MODEL)
__attribute__((intel_reqd_sub_group_size(LANES)))
#endif
__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void gemm_matrix(GEMM_ARGUMENTS)
{
    GEMM_UNPACK
    __local ELEMENT tile_a[2 * BM * PITCH], tile_b[2 * BN * PITCH];
    EXCHANGE_MEMORY(ITEMS)
    const int item = (int)get_local_id(0), lane = item % LANES, sub_group = item / LANES;
    const int part_m = sub_group / GROUPS_N * (BM / GROUPS_M), part_n = sub_group % GROUPS_N * (BN / GROUPS_N);
    const idx_t columns = (size.s1 + BN - 1) / BN, group = (idx_t)get_group_id(0), grid2 = (idx_t)get_group_id(2);
    const idx_t m0 = group / columns * BM, n0 = (group - group / columns * columns) * BN;
    FIND_MATRICES;
    __global const ELEMENT *from_a = (__global const ELEMENT *)a, *from_b = (__global const ELEMENT *)b;

    sums_t sum[TILES_M * TILES_N];
    four_t next_a[LOADS_A], next_b[LOADS_B];
    UNROLL
    for (int i = 0; i < TILES_M * TILES_N; i++)
        sum[i] = 0.0f;
    int which = 0;
    for (idx_t term = 0;; term += BK) {
        UNROLL
        for (int i = 0; i < LOADS_A; i++)
            next_a[i] = FETCH(from_a, item + i * ITEMS, A_ALONG, BM, m0, size.s0, stride.s0, term, size.s2, stride.s1);
        UNROLL
        for (int i = 0; i < LOADS_B; i++)
            next_b[i] = FETCH(from_b, item + i * ITEMS, B_ALONG, BN, n0, size.s1, stride.s3, term, size.s2, stride.s2);
        if (term > 0)
            multiply_tiles(sum, tile_a + (which * BM + part_m) * PITCH, tile_b + (which * BN + part_n) * PITCH, lane
                           PASS_EXCHANGE);
        if (term >= size.s2)
            break;
        which ^= 1;
        UNROLL
        for (int i = 0; i < LOADS_A; i++)
            put(tile_a + which * BM * PITCH, SIDE_OF(item + i * ITEMS, A_ALONG, BM),
                TERM_OF(item + i * ITEMS, A_ALONG, BM), A_ALONG, next_a[i]);
        UNROLL
        for (int i = 0; i < LOADS_B; i++)
            put(tile_b + which * BN * PITCH, SIDE_OF(item + i * ITEMS, B_ALONG, BN),
                TERM_OF(item + i * ITEMS, B_ALONG, BN), B_ALONG, next_b[i]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    UNROLL
    for (int i = 0; i < TILES_M * TILES_N; i++) {
        float lanes[SUMS];
        PASTE2_(vstore, SUMS)(sum[i], 0, lanes);
        UNROLL
        for (int r = 0; r < SUMS; r++) {
            const idx_t m = m0 + part_m + i / TILES_N * MM + SUM_ROW(lane, r);
            const idx_t n = n0 + part_n + i % TILES_N * MN + SUM_COLUMN(lane, r);
            if (m < size.s0 && n < size.s1)
                store_element(dst, dst_offset + m * stride.s6 + n * stride.s7, c,
                              c_offset + m * stride.s4 + n * stride.s5, lanes[r], alpha, beta, flags.x, m, n PASS_CHAIN);
        }
    }
}
