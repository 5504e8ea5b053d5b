// SPDX-License-Identifier: Apache-2.0
// The second factor's sums of blocks for gemm_strassen.cl: [column block][chunk][product][term][WIDTH columns], float; what
// is behind the last column or term is 0.
//
// gpu: never
// Defines: those of gemm_strassen.cl, without R
// check: -DT=F32 -DW=8 -DNB=2 -DLEVELS=2
// check: -DT=F32 -DW=16 -DNB=3 -DLEVELS=1 -DINDEX64
#include "common.clh"
#include "strassen.clh"
#if !defined(T) || !defined(W) || !defined(NB) || !defined(LEVELS)
#error "gemm_strassen_pack.cl needs T, W, NB and LEVELS"
#endif
#define UNROLL _Pragma("unroll")
#define PARTS (1 << LEVELS)
#define PRODUCTS (LEVELS == 2 ? STRASSEN_PRODUCTS * STRASSEN_PRODUCTS : STRASSEN_PRODUCTS)
#define WIDTH (NB * W)
#define VECTOR PASTE2_(float, W)
typedef VECTOR loose_vector __attribute__((aligned(4)));
#define STOREF(v, p) *(__global loose_vector *)(p) = v
#define TERMS 32 // of a part, that a work-item takes

// W columns of a term from n on. stride: term, column.
static inline VECTOR load_columns(__global const float *src, idx2_t stride, idx_t t, idx_t n, idx_t terms, idx_t columns)
{
    if (t < terms && stride.y == 1 && n + W <= columns)
        return *(__global const loose_vector *)(src + (t * stride.x + n));
    float lanes[W];
    for (int i = 0; i < W; i++)
        lanes[i] = t < terms && n + i < columns ? src[t * stride.x + (n + i) * stride.y] : 0.0f;
    return PASTE2_(vload, W)(0, lanes);
}

// size: terms, columns, terms of a part, chunks.
__kernel void gemm_strassen_pack(__global const float *src, idx_t src_offset, __global float *dst, idx_t dst_offset,
                                 idx4_t size, idx2_t stride)
{
    const idx_t first = (idx_t)get_global_id(0) * TERMS, block = (idx_t)get_global_id(1), chunk = (idx_t)get_global_id(2);
    const idx_t part = size.z, step = ((part * WIDTH + 15) / 16 | 1) * 16, end = min(first + TERMS, part);
    if (block * (PARTS * WIDTH) >= size.y || chunk >= size.w)
        return;
    src += src_offset;
    dst += dst_offset + (block * size.w + chunk) * PRODUCTS * step;
#define COLUMNS(i, j)                                                                                                  \
    load_columns(src, stride, (chunk * PARTS + (i)) * part + c, (block * PARTS + (j)) * WIDTH + v * W, size.x, size.y)
    for (idx_t c = first; c < end; c++)
        for (int v = 0; v < NB; v++) {
            __global float *to = dst + (c * WIDTH + v * W);
            VECTOR sums[STRASSEN_PRODUCTS];
#if LEVELS == 2
            VECTOR outer[4][STRASSEN_PRODUCTS];
            UNROLL for (int q = 0; q < 4; q++)
            {
                const int i = q >> 1, j = q & 1;
                const VECTOR b11 = COLUMNS(i, j), b12 = COLUMNS(i, 2 + j), b21 = COLUMNS(2 + i, j), b22 = COLUMNS(2 + i, 2 + j);
                STRASSEN_RIGHT(b11, b12, b21, b22, outer[q]);
            }
            UNROLL for (int o = 0; o < STRASSEN_PRODUCTS; o++)
            {
                STRASSEN_RIGHT(outer[0][o], outer[1][o], outer[2][o], outer[3][o], sums);
                UNROLL for (int i = 0; i < STRASSEN_PRODUCTS; i++) STOREF(sums[i], to + (o * STRASSEN_PRODUCTS + i) * step);
            }
#else
            const VECTOR b11 = COLUMNS(0, 0), b12 = COLUMNS(0, 1), b21 = COLUMNS(1, 0), b22 = COLUMNS(1, 1);
            STRASSEN_RIGHT(b11, b12, b21, b22, sums);
            UNROLL for (int i = 0; i < STRASSEN_PRODUCTS; i++) STOREF(sums[i], to + i * step);
#endif
        }
}
