// SPDX-License-Identifier: Apache-2.0
// One pass of a discrete Fourier transform of n = done * radix * left points (Stockham's order).
//
// Before the pass, row j of `done * 1` points is the transform of every (radix * left)-th sample from j on; after it, row
// j of done * radix points is that of every left-th. The first pass has done = 1 and reads the samples, the last one has
// left = 1 and writes the transform; one pass with radix = n is the definition itself.
//
// Defines:
//   T_SRC, T_DST, T_TABLE   float types; arithmetic is in T_TABLE's
//   EXACT                   sums are kept in two numbers, for long ones and for results that should be 0; T_TABLE is F32
//   INDEX64                 see common.clh
// check: -DT_SRC=F32 -DT_DST=F32 -DT_TABLE=F32
// check: -DT_SRC=F32 -DT_DST=F32 -DT_TABLE=F32 -DEXACT
// check: -DT_SRC=F16 -DT_DST=F32 -DT_TABLE=F32 -DINDEX64
#include "common.clh"
#include "index.clh"
#include "walk.clh"
#if !defined(T_SRC) || !defined(T_DST) || !defined(T_TABLE)
#error "dft.cl needs T_SRC, T_DST and T_TABLE"
#endif
#define REAL COMPUTE(T_TABLE)
#pragma OPENCL FP_CONTRACT OFF

#ifdef EXACT
typedef float2 sum_t; // their sum
static inline sum_t add_product(const sum_t sum, const float x, const float y, const float y_rest)
{
    const float product = x * y, lost = fma(x, y, -product) + x * y_rest;
    const float total = sum.x + product, part = total - sum.x;
    return (sum_t)(total, sum.y + ((sum.x - (total - part)) + (product - part)) + lost);
}
// An infinity's or NaN's rest is NaN.
static inline float total_of(const sum_t sum)
{
    return isfinite(sum.x) ? sum.x + sum.y : sum.x;
}
#else
typedef REAL sum_t;
static inline sum_t add_product(const sum_t sum, const REAL x, const REAL y, const REAL y_rest)
{
    return sum + x * y;
}
static inline REAL total_of(const sum_t sum)
{
    return sum;
}
#endif

// `table`: cos and sin of 2 * pi * i / n for each i < n, and what they lost when they were rounded. `pass`: done, radix, left, outputs (what of the transform is
// stored). `source`: the samples that there are, others are 0; 1: the upper half of the spectrum is the lower one's
// mirror image; 1: complex. `target`: 1: inverse; 1: divide by n; 1: complex. Strides: from sample to sample, from real to
// imaginary part, of src and dst.
__kernel void dft_pass(__global STORAGE(T_DST) *dst, const idx_t dst_offset, __global const STORAGE(T_SRC) *src,
                       const idx_t src_offset, __global const STORAGE(T_TABLE) *table, const idx_t table_offset,
                       const int4 pass, const int4 source, const int4 target, const idx4_t strides, const idx_t rows,
                       const int deep, const idx8_t shape, const idx8_t dst_stride, const idx8_t src_stride)
{
    const int output = (int)get_global_id(0), done = pass.x, radix = pass.y, left = pass.z;
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    if (output >= pass.w || row >= rows)
        return;
    idx_t rest = output;
    const int span = done * radix, k = (int)take_index(&rest, span), j = (int)rest;
    rest = k;
    const int column = (int)take_index(&rest, done);
    const idx_t from = src_offset + element_index(row, deep, shape, src_stride);
    const int points = span * left;
    sum_t real = (sum_t)(0), imaginary = (sum_t)(0);
    int turn = 0; // term * k modulo span
    for (int term = 0; term < radix; term++) {
        int sample = (j + left * term) * done + column;
        const bool mirrored = source.y && sample > points - sample;
        sample = mirrored ? points - sample : sample;
        REAL x = 0, y = 0;
        if (sample < source.x) {
            const idx_t at = from + sample * strides.x;
            x = LOAD(T_SRC, src, at);
            if (source.z)
                y = LOAD(T_SRC, src, at + strides.y);
        }
        y = mirrored ? -y : y;
        const idx_t entry = table_offset + (idx_t)turn * left * 4;
        const REAL sign = target.x ? 1 : -1;
        const REAL c = LOAD(T_TABLE, table, entry), s = LOAD(T_TABLE, table, entry + 1) * sign;
        const REAL c_rest = LOAD(T_TABLE, table, entry + 2), s_rest = LOAD(T_TABLE, table, entry + 3) * sign;
        real = add_product(add_product(real, x, c, c_rest), -y, s, s_rest);
        imaginary = add_product(add_product(imaginary, x, s, s_rest), y, c, c_rest);
        turn += k;
        turn -= turn >= span ? span : 0;
    }
    const REAL scale = target.y ? (REAL)points : 1;
    const idx_t to = dst_offset + element_index(row, deep, shape, dst_stride) + output * strides.z;
    STORE(T_DST, dst, to, total_of(real) / scale);
    if (target.z)
        STORE(T_DST, dst, to + strides.w, total_of(imaginary) / scale);
}
