// SPDX-License-Identifier: Apache-2.0
// Matrix products with NVIDIA's matrix instructions: tiles of both factors travel to local memory while earlier ones
// are multiplied, and each warp multiplies its part of them.
//
// gpu: hot
// Defines: T and MODEL of mma.clh, INDEX64 and STAGES … of gemm.clh, and
//   BM, BN, BK          rows, columns and terms of a work-group's tile
//   TILES               pairs of tiles in local memory
//   GROUPS_M, GROUPS_N  warps along a tile's rows and columns
//   A_ALONG  1: neighbours of a lie along k, 0: along the rows
//   B_ALONG  1: neighbours of b lie along k, 0: along the columns
// check: -DT=F16 -DBM=32 -DBN=32 -DBK=32 -DTILES=3 -DGROUPS_M=1 -DGROUPS_N=2 -DA_ALONG=1 -DB_ALONG=0 -DMODEL
// check: -DT=BF16 -DBM=32 -DBN=32 -DBK=32 -DTILES=3 -DGROUPS_M=1 -DGROUPS_N=2 -DA_ALONG=0 -DB_ALONG=1 -DMODEL -DINDEX64 -DBATCHED -DSTAGES=1 -DS1=OP_RELU(v0)
// gpu: sm_80 -DT=F16 -DBM=128 -DBN=256 -DBK=32 -DTILES=4 -DGROUPS_M=2 -DGROUPS_N=4 -DA_ALONG=1 -DB_ALONG=0
// gpu: sm_80 -DT=BF16 -DBM=64 -DBN=64 -DBK=64 -DTILES=3 -DGROUPS_M=2 -DGROUPS_N=2 -DA_ALONG=0 -DB_ALONG=0
// gpu: sm_80 -DT=F16 -DBM=128 -DBN=128 -DBK=32 -DTILES=3 -DGROUPS_M=2 -DGROUPS_N=4 -DA_ALONG=0 -DB_ALONG=1
// gpu: sm_90 -DT=BF16 -DBM=128 -DBN=256 -DBK=32 -DTILES=4 -DGROUPS_M=2 -DGROUPS_N=4 -DA_ALONG=1 -DB_ALONG=1
#if !defined(T) || !defined(BM) || !defined(BN) || !defined(BK) || !defined(TILES) || !defined(GROUPS_M) ||            \
    !defined(GROUPS_N) || !defined(A_ALONG) || !defined(B_ALONG)
#error "gemm_mma.cl needs T, BM, BN, BK, TILES, GROUPS_M, GROUPS_N, A_ALONG and B_ALONG"
#endif
#define V 1
#include "gemm.clh"
#include "nvidia.clh"
#include "mma.clh"

#define ITEMS (GROUPS_M * GROUPS_N * LANES)
#define LINE 8 // elements of 16 bytes
#define PARTS_M (BM / GROUPS_M / 16)
#define PARTS_N (BN / GROUPS_N / 16)
#define SUMS (PARTS_M * PARTS_N * 2) // fours of a work-item
#define LINES_A (BM * BK / LINE / ITEMS)
#define LINES_B (BN * BK / LINE / ITEMS)
#if PARTS_M * GROUPS_M * 16 != BM || PARTS_N * GROUPS_N * 16 != BN || LINES_A * ITEMS * LINE != BM * BK ||             \
    LINES_B * ITEMS * LINE != BN * BK || (BK != 32 && BK != 64)
#error "gemm_mma.cl: the warps do not divide the tiles"
#endif
// The model has barriers: many copies of them would compile for minutes.
#ifdef MODEL
#define UNROLL
#else
#define UNROLL _Pragma("unroll")
#endif

// Where a line begins in a tile. Lines that load_matrices() reads together lie in different banks.
#define PLACE_ALONG(at, k) (((at) * (BK / LINE) + ((k) / LINE ^ (at) / (64 / BK) % (BK / LINE))) * LINE)
#define PLACE_ACROSS(at, k, side) (((k) * ((side) / LINE) + ((at) / LINE ^ (k) % 8 % ((side) / LINE))) * LINE)
#define PLACE(at, k, along_k, side) ((along_k) ? PLACE_ALONG(at, k) : PLACE_ACROSS(at, k, side))
// Row (column) and term of a tile's line with a number.
#define AT_OF(line, along_k, side) ((along_k) ? (line) / (BK / LINE) : (line) % ((side) / LINE) * LINE)
#define TERM_OF(line, along_k, side) ((along_k) ? (line) % (BK / LINE) * LINE : (line) / ((side) / LINE))

// One of the lines of a factor that a work-item brings in each step of BK terms: where it begins with the first of them, and
// how far it reaches. `along` and `across`: the factor's strides along k and along its rows (columns), of which there are
// `count`. A line's neighbours are along k where along_k is 1, else across it.
typedef struct line_t {
    idx_t from;
    int reach; // along k: terms that are there, from the line's first one on; else rows (columns)
    int terms; // across: terms that are there, from the line's own on
} line_t;

static inline line_t find_line(const int line, const idx_t first, const idx_t count, const idx_t across,
                               const idx_t along, const idx_t end, const bool along_k, const int side)
{
    const idx_t at = first + AT_OF(line, along_k, side), k = TERM_OF(line, along_k, side);
    line_t found;
    found.from = at * across + k * along;
    found.reach = (int)clamp(along_k ? (at < count ? end - k : (idx_t)0) : count - at, (idx_t)0, (idx_t)(INT_MAX / 2));
    found.terms = (int)clamp(end - k, (idx_t)0, (idx_t)(INT_MAX / 2));
    return found;
}

// Its part with the terms from `term` on. `whole`: neighbours are neighbours in memory, at multiples of 16 bytes; else they
// are `step` apart.
INLINE void bring(__local ushort *to, __global const ushort *p, const line_t line, const int term,
                  const idx_t along, const idx_t step, const bool along_k, const bool whole)
{
    const int valid = along_k ? clamp(line.reach - term, 0, LINE) : line.terms > term ? min(line.reach, LINE) : 0;
    __global const ushort *from = p + (line.from + term * along);
    if (whole) {
        copy_line(to, from, valid);
        return;
    }
    for (int i = 0; i < LINE; i++)
        to[i] = i < valid ? from[i * step] : (ushort)0;
}
#define BRING(tile, lines, count_of, p, along_k, side, term, along, across, whole)                                     \
    UNROLL                                                                                                             \
    for (int i_ = 0; i_ < count_of; i_++) {                                                                            \
        const int at_ = AT_OF(item + i_ * ITEMS, along_k, side), k_ = TERM_OF(item + i_ * ITEMS, along_k, side);       \
        bring((tile) + PLACE(at_, k_, along_k, side), p, lines[i_], term, along, along_k ? along : across, along_k,    \
              whole);                                                                                                  \
    }

// The tiles of both factors from a term on, into the place of those that were multiplied last; behind the last term zeros.
#define BRING_BOTH(term)                                                                                               \
    do {                                                                                                               \
        BRING(tiles_a + to * BM * BK, lines_a, LINES_A, from_a, A_ALONG, BM, term, stride.s1, stride.s0, whole_a)      \
        BRING(tiles_b + to * BN * BK, lines_b, LINES_B, from_b, B_ALONG, BN, term, stride.s2, stride.s3, whole_b)      \
        END_OF_COPIES                                                                                                  \
        to = to + 1 == TILES ? 0 : to + 1;                                                                             \
    } while (0)

// 16 x 16 of a, in the order in which the instruction takes its four 8 x 8: rows before terms; of b, two of the
// instruction's 16 x 8: terms before columns.
INLINE uint4 load_a(__local const ushort *tile, const int at, const int k, const int lane MODEL_ARGUMENTS)
{
    const int row = A_ALONG ? lane % 16 : lane / 8 % 2 * 8, term = A_ALONG ? lane / 16 * 8 : lane / 16 * 8 + lane % 8;
    return load_matrices(tile, PLACE(at + row, k + term, A_ALONG, BM), !A_ALONG PASS_MODEL);
}

INLINE uint4 load_b(__local const ushort *tile, const int at, const int k, const int lane MODEL_ARGUMENTS)
{
    const int column = B_ALONG ? lane / 16 * 8 + lane % 8 : lane / 16 * 8,
              term = B_ALONG ? lane / 8 % 2 * 8 : lane % 16;
    return load_matrices(tile, PLACE(at + column, k + term, B_ALONG, BN), !B_ALONG PASS_MODEL);
}

// What a warp multiplies of 16 terms.
#define LOAD_FACTORS(x, y, which, k)                                                                                   \
    do {                                                                                                               \
        UNROLL                                                                                                         \
        for (int i_ = 0; i_ < PARTS_M; i_++)                                                                           \
            x[i_] = load_a(tiles_a + (which) * BM * BK, part_m + i_ * 16, k, lane PASS_MODEL);                         \
        UNROLL                                                                                                         \
        for (int i_ = 0; i_ < PARTS_N; i_++)                                                                           \
            y[i_] = load_b(tiles_b + (which) * BN * BK, part_n + i_ * 16, k, lane PASS_MODEL);                         \
    } while (0)
#define ADD_PRODUCTS(x, y)                                                                                             \
    do {                                                                                                               \
        UNROLL                                                                                                         \
        for (int i_ = 0; i_ < SUMS; i_++)                                                                              \
            sum[i_] = multiply(x[i_ / 2 / PARTS_N], i_ % 2 ? y[i_ / 2 % PARTS_N].zw : y[i_ / 2 % PARTS_N].xy,          \
                               sum[i_] PASS_MODEL);                                                                    \
    } while (0)

#define FIND_LINES(lines, count_of, first, count, across, along, along_k, side)                                        \
    UNROLL                                                                                                             \
    for (int i_ = 0; i_ < count_of; i_++)                                                                              \
        lines[i_] = find_line(item + i_ * ITEMS, first, count, across, along, size.s2, along_k, side);

// The four of 16 x 8 sums that a work-item has.
#define STORE_SUMS(four, m_first, n_first)                                                                             \
    do {                                                                                                               \
        float lanes_[4];                                                                                               \
        vstore4(four, 0, lanes_);                                                                                      \
        UNROLL                                                                                                         \
        for (int r_ = 0; r_ < 4; r_++) {                                                                               \
            const idx_t m_ = m_first + SUM_ROW(lane, r_), n_ = n_first + SUM_COLUMN(lane, r_);                         \
            if (m_ < size.s0 && n_ < size.s1)                                                                          \
                store_element(dst, dst_offset + m_ * stride.s6 + n_ * stride.s7, c,                                    \
                              c_offset + m_ * stride.s4 + n_ * stride.s5, lanes_[r_], alpha, beta, flags.x, m_,        \
                              n_ PASS_CHAIN);                                                                          \
        }                                                                                                              \
    } while (0)

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void gemm_mma(GEMM_ARGUMENTS)
{
    GEMM_UNPACK
    __local ushort __attribute__((aligned(128))) tiles_a[TILES * BM * BK];
    __local ushort __attribute__((aligned(128))) tiles_b[TILES * BN * BK];
    MODEL_MEMORY(ITEMS)
    const int item = (int)get_local_id(0), lane = item % LANES, warp = item / LANES;
    const int part_m = warp / GROUPS_N * (BM / GROUPS_M), part_n = warp % GROUPS_N * (BN / GROUPS_N);
    const idx_t grid2 = (idx_t)get_group_id(2);
    const corner_t corner = find_corner((idx_t)get_group_id(0), (size.s0 + BM - 1) / BM, (size.s1 + BN - 1) / BN);
    FIND_MATRICES;
    __global const ushort *from_a = (__global const ushort *)a, *from_b = (__global const ushort *)b;
    const bool whole_a =
        A_ALONG ? in_lines(from_a, stride.s1, stride.s0) : in_lines(from_a, stride.s0, stride.s1);
    const bool whole_b =
        B_ALONG ? in_lines(from_b, stride.s2, stride.s3) : in_lines(from_b, stride.s3, stride.s2);
    line_t lines_a[LINES_A], lines_b[LINES_B];
    FIND_LINES(lines_a, LINES_A, corner.m, size.s0, stride.s0, stride.s1, A_ALONG, BM)
    FIND_LINES(lines_b, LINES_B, corner.n, size.s1, stride.s3, stride.s2, B_ALONG, BN)
    float4 sum[SUMS];
    UNROLL
    for (int i = 0; i < SUMS; i++)
        sum[i] = 0.0f;

    const int end = (int)size.s2;
    int to = 0, from = 0;
    for (int term = 0; term < (TILES - 1) * BK; term += BK)
        BRING_BOTH(term);
    WAIT_FOR_COPIES(TILES - 2)
    barrier(CLK_LOCAL_MEM_FENCE);
    // Factors are in registers one step of 16 terms before they are multiplied, the next tile's first ones, too.
    uint4 x[2][PARTS_M], y[2][PARTS_N];
    LOAD_FACTORS(x[0], y[0], 0, 0);
    for (int term = 0; term < end; term += BK) {
        UNROLL
        for (int step = 0; step < BK / 16 - 1; step++) {
            LOAD_FACTORS(x[(step + 1) % 2], y[(step + 1) % 2], from, (step + 1) * 16);
            if (step == 0)
                BRING_BOTH(term + (TILES - 1) * BK);
            ADD_PRODUCTS(x[step % 2], y[step % 2]);
        }
        WAIT_FOR_COPIES(TILES - 2)
        barrier(CLK_LOCAL_MEM_FENCE);
        from = from + 1 == TILES ? 0 : from + 1;
        LOAD_FACTORS(x[0], y[0], from, 0);
        ADD_PRODUCTS(x[1], y[1]);
    }
    UNROLL
    for (int i = 0; i < SUMS; i++)
        STORE_SUMS(sum[i], corner.m + part_m + i / 2 / PARTS_N * 16,
                   corner.n + part_n + i / 2 % PARTS_N * 16 + i % 2 * 8);
}
