// SPDX-License-Identifier: Apache-2.0
// How fast a CPU multiplies and adds: rounds of twelve sums of vectors of 16 that do not wait for each other, or a tile of a
// chunk of bytes as qgemm_panel.cl multiplies it.
//
// Defines:
//   BF16  two products of bfloat16 a lane by x86's vdpbf16ps; else
//   INNER  two products of float32 a lane, of which a third are multiplied and two thirds added to, as fip_floats.clh does; else
//   MADD  24,576 products of bytes by x86's vpmaddwd, of 8 lanes, with FIP by fip.clh; else one of float32
// gpu: never
// check:
// check: -DINNER
// check: -DMADD=8
// check: -DMADD=8 -DFIP
#include "assembly.clh"
#ifdef MADD
#define MADD_PANEL 32
#ifdef FIP
#define MADD_ROWS 3
#define MADD_NB 2
#else
#define MADD_ROWS 6
#define MADD_NB 1
#endif
#include "madd.clh"
#else
#define PAIR_LANES 16
#include "bf16_pairs.clh"
#endif

#define SUMS 12
#ifdef INNER
#if defined(__x86_64__) && defined(__AVX512F__)
#define ADD_INNER(sum, x, t, u)                                                                                        \
    __asm__ volatile("vaddps %3,%3,%1\n\tvaddps %3,%3,%2\n\tvfmadd231ps %1,%2,%0" : "+v"(sum), "=&v"(t), "=&v"(u) : "v"(x))
#else
#define ADD_INNER(sum, x, t, u) t = x + x, u = t, sum = fma(t, u, sum)
#endif
#endif

#ifdef MADD
// out: room for a chunk's weights, which sums are written over.
__kernel void rate(__global float *out, const float factor, const int rounds)
{
    MARK_ASSEMBLY;
    __global int *weights = (__global int *)out;
    wide_rows rows;
    madd_uints sums[MADD_SUMS];
    for (int i = 0; i < MADD_CHUNK * MADD_PANEL; i++)
        weights[i] = i * 0x01030507;
    for (int r = 0; r < MADD_ROWS; r++)
        widen(&rows, r, 0, (__global const uchar *)weights, MADD_CHUNK, (uint)factor);
    for (int i = 0; i < MADD_SUMS; i++)
        sums[i] = 0;
#ifdef FIP
    fip_columns columns;
    find_own_products(&rows, MADD_CHUNK);
    widen_columns(&columns, weights, MADD_CHUNK);
#endif
    for (int round = 0; round < rounds; round++) {
#ifdef FIP
        add_fip(sums, &rows, 0, &columns, MADD_CHUNK);
#else
        add_wide(sums, &rows, weights, MADD_CHUNK);
#endif
    }
    for (int i = 1; i < MADD_SUMS; i++)
        sums[0] += sums[i];
    vstore8(as_int8(sums[0]), 0, weights);
}
#else
__kernel void rate(__global float *out, const float factor, const int rounds)
{
    MARK_ASSEMBLY;
    float16 sum[SUMS];
    const float16 x = (float16)factor;
    _Pragma("unroll") for (int i = 0; i < SUMS; i++)
        sum[i] = (float16)(float)i;
    for (int round = 0; round < rounds; round++) {
        _Pragma("unroll") for (int i = 0; i < SUMS; i++)
        {
#ifdef INNER
            if (i % 3 != 2) {
                float16 t, u;
                ADD_INNER(sum[i], x, t, u);
            } else
                sum[i] = fma(x, x, fma(x, x, sum[i]));
#elif defined(BF16)
            ADD_PRODUCTS(sum[i], x, x);
#else
            sum[i] = fma(x, x, sum[i]);
#endif
        }
    }
    for (int i = 1; i < SUMS; i++)
        sum[0] += sum[i];
    vstore16(sum[0], 0, out);
}
#endif
