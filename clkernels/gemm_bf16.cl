// SPDX-License-Identifier: Apache-2.0
// gpu: never
// dst = alpha * a * b + beta * c in bfloat16, b in gemm_bf16_pack.cl's panels, by x86's vdpbf16ps.
//
// Defines:
//   R        rows of dst that a tile has
//   APART    a's elements along k are no neighbours
//   LANES    the chain is applied to single elements
//   MODEL    see bf16_pairs.clh
//   INDEX64, STAGES …  see gemm.clh
// check: -DR=8 -DMODEL -DBATCHED
// check: -DR=1 -DAPART -DMODEL -DINDEX64 -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F16 -DY0_STEP=1
// check: -DR=2 -DLANES -DMODEL -DSTAGES=1 -DS1=OP_MUL(v0,K(0))
#ifndef R
#error "gemm_bf16.cl needs R"
#endif
#define T BF16
#define T_B U32
#define W 16
#define NB 2
#define PANEL (W * NB)
#define CUT_END
#define MORE_ARGUMENTS , const int tiles
#define PASS_MORE , tiles
#include "gemm.clh"
#define PAIR_LANES W
#include "bf16_pairs.clh"
#ifndef MODEL
#include "bf16_round.clh"
#endif

#ifdef APART
#define PAIR(row, k) ((uint)(row)[(k) * step] | (uint)(row)[((k) + 1) * step] << 16)
#else
#define PAIR(row, k) as_uint(vload2(0, (row) + (k)))
#endif
#if defined(APART) || defined(MODEL)
#define BROADCAST_PAIR(x, row, k) x = (uint16)(PAIR(row, k))
#else
#define BROADCAST_PAIR(x, row, k) BROADCAST_FOUR(x, (row) + (k))
#endif

#if V > 1 && STAGES == 0
#define HAS_PLAIN 1
#else
#define HAS_PLAIN 0
#endif

// sum = products; where results of a whole tile are products alone they go to `whole`, and sum is not set.
static inline void multiply(float16 sum[R * NB], __global const ushort *const rows[R], idx_t step,
                            __global const uint *b, idx_t depth, __global ushort *whole, idx_t whole_step)
{
    float16 now[R * NB];
#pragma unroll
    for (int i = 0; i < R * NB; i++)
        now[i] = 0.0f;
    idx_t k = 0;
    for (; k + 2 <= depth; k += 2) {
        uint16 y[NB];
#pragma unroll
        for (int j = 0; j < NB; j++)
            y[j] = vload16(0, b + j * W);
#pragma unroll
        for (int r = 0; r < R; r++) {
            uint16 x;
            BROADCAST_PAIR(x, rows[r], k);
#pragma unroll
            for (int j = 0; j < NB; j++)
                ADD_PRODUCTS(now[r * NB + j], x, y[j]);
        }
        b += PANEL;
    }
#if HAS_PLAIN
    if (whole) {
#pragma unroll
        for (int i = 0; i < R * NB; i++)
            STOREV(T, W, whole, i / NB * whole_step + i % NB * W, now[i]);
        return;
    }
#endif
    // A copy, for loops that need not be unrolled: it compiles much faster.
#pragma unroll
    for (int i = 0; i < R * NB; i++)
        sum[i] = now[i];
    if (k == depth)
        return;
    for (int r = 0; r < R; r++) {
        const uint16 x = (uint16)((uint)rows[r][k * step]);
        for (int j = 0; j < NB; j++) {
            const uint16 y = vload16(0, b + j * W);
            ADD_PRODUCTS(sum[r * NB + j], x, y);
        }
    }
}

// Tiles of R rows, one below the other: `tiles` of them. Rows first … first + R - 1 are multiplied; those from wish on
// are the tile's. Rows beyond the last one repeat it, and are not stored.
WORK multiply_tiles(GEMM_ARGUMENTS, const idx_t grid0, const idx_t grid1, const idx_t grid2)
{
    GEMM_UNPACK
    const idx_t row_item = flags.y ? grid0 : grid1, panel = flags.y ? grid1 : grid0;
    const idx_t first_wish = row_item * (R * tiles), column = panel * PANEL;
    if (first_wish >= size.s0 || column >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    b += panel * stride.s3;
    idx_t row_offsets[R]; // of a tile's rows; the last one of all repeats
    for (int r = 0; r < R; r++)
        row_offsets[r] = min((idx_t)r, size.s0 - 1) * stride.s0;
    const bool plain = HAS_PLAIN && alpha == 1 && !flags.x && size.s2 % 2 == 0 && stride.s7 == 1 && size.s0 >= R &&
                       column + PANEL <= size.s1;
    const idx_t end = min(first_wish + R * tiles, size.s0);
    for (idx_t wish = first_wish; wish < end; wish += R) {
        const idx_t first = size.s0 < R ? 0 : min(wish, size.s0 - R);
        const bool whole = plain && wish == first;
        __global const ushort *rows[R];
#pragma unroll
        for (int r = 0; r < R; r++)
            rows[r] = a + (first * stride.s0 + row_offsets[r]);
        float16 sum[R * NB];
        multiply(sum, rows, stride.s1, b, size.s2, whole ? dst + (dst_offset + first * stride.s6 + column) : 0,
                 stride.s6);
        if (whole)
            continue;
        for (int r = (int)(wish - first); r < R && first + r < size.s0; r++)
            for (int j = 0; j < NB; j++) {
                const idx_t m = first + r, n = column + j * W;
                if (n >= size.s1)
                    break;
                store_vector(dst, dst_offset + m * stride.s6 + n * stride.s7, stride.s7, c,
                             c_offset + m * stride.s4 + n * stride.s5, stride.s5, sum[r * NB + j], alpha, beta, flags.x,
                             0, (int)min((idx_t)W, size.s1 - n), m, n PASS_CHAIN);
            }
    }
}

NOT_VECTORIZED __kernel void gemm_bf16(GEMM_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    multiply_tiles(PASS_GEMM, (idx_t)get_global_id(0), (idx_t)get_global_id(1), (idx_t)get_global_id(2));
    TEAM_LEAVE
}
