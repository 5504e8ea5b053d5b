// SPDX-License-Identifier: Apache-2.0
// Matrix products with the instruction by which a warpgroup of NVIDIA's GPUs multiplies what lies in local memory. One warp
// has the copy engine bring tiles of both factors, as far ahead as there is room; the others multiply them, and store a tile
// of the result while the next one's factors arrive. A work-group takes several tiles, one after the other.
//
// gpu: hot
// Defines: T and MODEL of wgmma.clh, INDEX64 and STAGES … of gemm.clh, and
//   BM, BN, BK  rows (64 for each warpgroup), columns and terms (64) of a work-group's tile
//   TILES       pairs of tiles in local memory
//   LANES       the chain is applied to single elements
//   A_ALONG     1: neighbours of a lie along k, 0: along the rows
//   B_ALONG     1: neighbours of b lie along k, 0: along the columns
// check: -DT=F16 -DBM=64 -DBN=64 -DBK=64 -DTILES=1 -DA_ALONG=1 -DB_ALONG=0 -DMODEL
// check: -DT=BF16 -DBM=64 -DBN=64 -DBK=64 -DTILES=1 -DA_ALONG=0 -DB_ALONG=1 -DMODEL -DINDEX64 -DBATCHED -DLANES -DSTAGES=1 -DS1=OP_RELU(v0)
// gpu: sm_90 -DT=F16 -DBM=128 -DBN=256 -DBK=64 -DTILES=4 -DA_ALONG=1 -DB_ALONG=0
// gpu: sm_90 -DT=BF16 -DBM=128 -DBN=128 -DBK=64 -DTILES=6 -DA_ALONG=0 -DB_ALONG=0 -DSTAGES=1 -DS1=OP_RELU(v0)
// gpu: sm_90 -DT=BF16 -DBM=64 -DBN=64 -DBK=64 -DTILES=6 -DA_ALONG=1 -DB_ALONG=1 -DBATCHED
#if !defined(T) || !defined(BM) || !defined(BN) || !defined(BK) || !defined(TILES) || !defined(A_ALONG) || !defined(B_ALONG)
#error "gemm_wgmma.cl needs T, BM, BN, BK, TILES, A_ALONG and B_ALONG"
#endif
#define W 4
#define CUT_END
// maps: for two tensor maps a work-group, and for beginning at a multiple of 128 bytes.
#define MORE_ARGUMENTS , __global uchar *maps, idx_t maps_offset
#include "gemm.clh"
#include "nvidia.clh"
#include "wgmma.clh"
#if BM % CHUNK != 0 || BK != CHUNK
#error "gemm_wgmma.cl: the warpgroups do not divide the tiles"
#endif

#define MULTIPLIERS (BM / CHUNK * WARPGROUP)
#ifdef MODEL
#define ITEMS MULTIPLIERS
#define SYNC_WARP barrier(CLK_LOCAL_MEM_FENCE)
#else
#include "bulk.clh"
#define ITEMS (MULTIPLIERS + 32)
#define SYNC_WARP __asm__ volatile("bar.warp.sync 0xffffffff;" ::: "memory")
#endif

// A factor: strides across its `count` rows (columns) and along its `end` terms.
typedef struct factor_t {
    __global const ushort *p;
    idx_t across, along, count;
    int end;
} factor_t;

// What the copy engine does, by `items` work-items: a tile from a row (column) `first` and from a term on, with zeros behind
// the ends.
INLINE void copy_tile(__local ushort *tile, const factor_t factor, const idx_t first, const int term, const bool along_k,
                      const int side, const int item, const int items)
{
    for (int i = item; i < side * BK; i += items) {
        const int at = along_k ? i / BK : i % side, k = along_k ? i % BK : i / side;
        const bool there = first + at < factor.count && term + k < factor.end;
        tile[find_element(0, at, k, along_k)] =
            there ? factor.p[(first + at) * factor.across + (term + k) * factor.along] : (ushort)0;
    }
}

#define FOR_TILES                                                                                                      \
    for (idx_t tile = (idx_t)get_group_id(0), groups = (idx_t)get_num_groups(0); tile < rows * columns; tile += groups)
#define FOR_TERMS for (int term = 0; term < end; term += BK)

#ifdef MODEL
#define BEGIN_TERMS                                                                                                    \
    copy_tile(tiles, factor_a, corner.m, term, A_ALONG, BM, item, ITEMS);                                              \
    copy_tile(tiles_b, factor_b, corner.n, term, B_ALONG, BN, item, ITEMS);                                            \
    barrier(CLK_LOCAL_MEM_FENCE);
#define END_TERMS barrier(CLK_LOCAL_MEM_FENCE);
#define END_OF_TILE
#else
INLINE bool in_whole_lines(const factor_t factor, const bool along_k)
{
    const idx_t step = along_k ? factor.along : factor.across, between = along_k ? factor.across : factor.along;
    return between > 0 && in_lines(factor.p, step, between);
}

INLINE void make_factor_map(__local ulong *to, const factor_t factor, const bool along_k, const int side)
{
    if (along_k)
        make_map(to, factor.p, factor.end, factor.count, factor.across, side);
    else
        make_map(to, factor.p, factor.count, factor.end, factor.along, BK);
}

INLINE void copy_boxes(__local ushort *to, __global const uchar *map, const idx_t first, const int term,
                       const bool along_k, const int side, const uint arrived)
{
    if (along_k)
        copy_box(to, map, term, first, arrived);
    else
        for (int i = 0; i < side / CHUNK; i++)
            copy_box(to + i * CHUNK_ON, map, first + i * CHUNK, term, arrived);
}

#define NEXT_PLACE                                                                                                     \
    if (++place == TILES) {                                                                                            \
        place = 0;                                                                                                     \
        odd ^= 1;                                                                                                      \
    }

// One warp: all tiles of both factors, each where `empty` says that the place is free; `full` says that it has arrived.
INLINE void bring_tiles(__local ushort *tiles, __local ulong *map_memory, __global uchar *maps, const uint full,
                        const uint empty, const factor_t factor_a, const factor_t factor_b, const idx_t rows,
                        const idx_t columns, const int lane)
{
    const int end = factor_a.end;
    const bool whole_a = in_whole_lines(factor_a, A_ALONG), whole_b = in_whole_lines(factor_b, B_ALONG);
    int place = 0;
    uint odd = 0; // how often the places have been gone through
    if (lane == 0) {
        make_factor_map(map_memory, factor_a, A_ALONG, BM);
        make_factor_map(map_memory + MAP_BYTES / 8, factor_b, B_ALONG, BN);
    }
    SYNC_WARP;
    publish_map(maps, map_memory);
    publish_map(maps + MAP_BYTES, map_memory + MAP_BYTES / 8);
    FOR_TILES
    {
        const corner_t corner = find_corner(tile, rows, columns);
        FOR_TERMS
        {
            __local ushort *to_a = tiles + place * BM * BK, *to_b = tiles + (TILES * BM + place * BN) * BK;
            wait_for(empty + 8 * place, odd ^ 1);
            if (!whole_a)
                copy_tile(to_a, factor_a, corner.m, term, A_ALONG, BM, lane, 32);
            if (!whole_b)
                copy_tile(to_b, factor_b, corner.n, term, B_ALONG, BN, lane, 32);
            if (!whole_a || !whole_b) {
                SHOW_WRITES;
                SYNC_WARP;
            }
            if (lane == 0) {
                arrive_expecting(full + 8 * place, (whole_a ? BM * BK * 2 : 0) + (whole_b ? BN * BK * 2 : 0));
                if (whole_a)
                    copy_boxes(to_a, maps, corner.m, term, A_ALONG, BM, full + 8 * place);
                if (whole_b)
                    copy_boxes(to_b, maps + MAP_BYTES, corner.n, term, B_ALONG, BN, full + 8 * place);
            }
            NEXT_PLACE
        }
    }
}

// The maps of this work-group.
INLINE __global uchar *find_maps(__global uchar *maps, const idx_t offset, const idx_t grid2)
{
    maps += offset * 4;
    maps += -(size_t)maps & (MAP_BYTES - 1);
    return maps + (grid2 * (idx_t)get_num_groups(0) + (idx_t)get_group_id(0)) * 2 * MAP_BYTES;
}

// A place is free when the products behind its own have begun, and its own are done.
#define BEGIN_TERMS                                                                                                    \
    wait_for(full + 8 * place, odd);                                                                                   \
    BEGIN_PRODUCTS
#define END_TERMS                                                                                                      \
    END_OF_PRODUCTS                                                                                                    \
    WAIT_FOR_PRODUCTS(1)                                                                                               \
    if (last && item % WARPGROUP == 0)                                                                                 \
        arrive(last);                                                                                                  \
    last = empty + 8 * place;                                                                                          \
    NEXT_PLACE
#define END_OF_TILE                                                                                                    \
    WAIT_FOR_PRODUCTS(0)                                                                                               \
    if (item % WARPGROUP == 0)                                                                                         \
        arrive(last);                                                                                                  \
    last = 0;
#endif

// A warp's 16 rows of sums pass through local memory, 32 columns at a time, so that neighbours are stored together. Rows
// begin in different banks.
#define AT_A_TIME 32
#define ROW (AT_A_TIME + 8)
#define STORE_SUMS                                                                                                     \
    UNROLL                                                                                                             \
    for (int part_ = 0; part_ < BN; part_ += AT_A_TIME) {                                                              \
        UNROLL                                                                                                         \
        for (int i_ = 0; i_ < AT_A_TIME / 2; i_ += 2)                                                                  \
            vstore2((float2)(sum[part_ / 2 + i_], sum[part_ / 2 + i_ + 1]), 0,                                         \
                    own + SUM_ROW(lane, i_) * ROW + SUM_COLUMN(lane, i_));                                             \
        SYNC_WARP;                                                                                                     \
        for (int row_ = lane / 8; row_ < 16; row_ += 4) {                                                              \
            const idx_t m_ = corner.m + warp * 16 + row_, n_ = corner.n + part_ + lane % 8 * 4;                        \
            if (m_ < size.s0 && n_ < size.s1)                                                                          \
                store_vector(dst, dst_offset + m_ * stride.s6 + n_ * stride.s7, stride.s7, c,                          \
                             c_offset + m_ * stride.s4 + n_ * stride.s5, stride.s5,                                    \
                             vload4(0, own + row_ * ROW + lane % 8 * 4), alpha, beta, flags.x, 0,                      \
                             (int)min((idx_t)4, size.s1 - n_), m_, n_ PASS_CHAIN);                                     \
        }                                                                                                              \
        SYNC_WARP;                                                                                                     \
    }

__attribute__((reqd_work_group_size(ITEMS, 1, 1))) __kernel void gemm_wgmma(GEMM_ARGUMENTS)
{
    GEMM_UNPACK
    __local ushort __attribute__((aligned(1024))) tiles[TILES * (BM + BN) * BK];
    __local ushort *tiles_b = tiles + TILES * BM * BK;
    __local float __attribute__((aligned(16))) held[MULTIPLIERS / 32 * 16 * ROW];
    const int item = (int)get_local_id(0), lane = item % 32, warp = item / 32, end = (int)size.s2;
    const idx_t rows = (size.s0 + BM - 1) / BM, columns = (size.s1 + BN - 1) / BN, grid2 = (idx_t)get_group_id(2);
    FIND_MATRICES;
    const factor_t factor_a = {(__global const ushort *)a, stride.s0, stride.s1, size.s0, end};
    const factor_t factor_b = {(__global const ushort *)b, stride.s3, stride.s2, size.s1, end};
    int place = 0;
#ifndef MODEL
    __local ulong __attribute__((aligned(128))) map_memory[2 * MAP_BYTES / 8];
    __local ulong barriers[2 * TILES];
    const uint full = ADDRESS(barriers), empty = full + 8 * TILES;
    uint odd = 0, last = 0;
    for (int i = item; i < 2 * TILES; i += ITEMS)
        begin_barrier(full + 8 * i, i < TILES ? 1 : MULTIPLIERS / WARPGROUP);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item >= MULTIPLIERS) {
        bring_tiles(tiles, map_memory, find_maps(maps, maps_offset, grid2), full, empty, factor_a, factor_b, rows,
                    columns, lane);
        return;
    }
#endif
    __local float *own = held + warp * 16 * ROW;
    float sum[SUMS];
    FOR_TILES
    {
        const corner_t corner = find_corner(tile, rows, columns);
        UNROLL
        for (int i = 0; i < SUMS; i++)
            sum[i] = 0.0f;
        FOR_TERMS
        {
            BEGIN_TERMS
            UNROLL
            for (int step = 0; step < BK / 16; step++)
                multiply(sum, tiles + place * BM * BK, item / WARPGROUP * CHUNK_ON + step * TERMS_ON(A_ALONG),
                         tiles_b + place * BN * BK, step * TERMS_ON(B_ALONG));
            END_TERMS
        }
        END_OF_TILE
        STORE_SUMS
    }
}
