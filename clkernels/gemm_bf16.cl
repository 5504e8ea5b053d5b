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
#include "gemm.clh"
#define PAIR_LANES W
#include "bf16_pairs.clh"

#ifdef APART
#define PAIR(row, k) ((uint)(row)[(k) * step] | (uint)(row)[((k) + 1) * step] << 16)
#else
#define PAIR(row, k) as_uint(vload2(0, (row) + (k)))
#endif

static inline void multiply(float16 sum[R * NB], __global const ushort *const rows[R], idx_t step,
                            __global const uint *b, idx_t depth)
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
            const uint16 x = (uint16)(PAIR(rows[r], k));
#pragma unroll
            for (int j = 0; j < NB; j++)
                ADD_PRODUCTS(now[r * NB + j], x, y[j]);
        }
        b += PANEL;
    }
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
__kernel void gemm_bf16(GEMM_ARGUMENTS)
{
    MARK_ASSEMBLY;
    GEMM_UNPACK
    const idx_t first_wish = (idx_t)get_global_id(0) * (R * tiles), panel = (idx_t)get_global_id(1);
    const idx_t grid2 = (idx_t)get_global_id(2), column = panel * PANEL;
    if (first_wish >= size.s0 || column >= size.s1 || grid2 >= size.s3)
        return;
    FIND_MATRICES;
    b += panel * stride.s3;
    const idx_t end = min(first_wish + R * tiles, size.s0);
    for (idx_t wish = first_wish; wish < end; wish += R) {
        const idx_t first = size.s0 < R ? 0 : min(wish, size.s0 - R);
        __global const ushort *rows[R];
        for (int r = 0; r < R; r++)
            rows[r] = a + min(first + r, size.s0 - 1) * stride.s0;
        float16 sum[R * NB];
        multiply(sum, rows, stride.s1, b, size.s2);
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
