// SPDX-License-Identifier: Apache-2.0
// Weights of 2, 4 or 8 bits in blocks of K, each with a scale and a zero point: as numbers, and in products with few rows.
// Elements are packed from a byte's lowest bits on; the last block of a row is padded.
//
// Defines:
//   T     F32, F16 or BF16: of everything but the weights
//   BITS  2, 4 or 8
//   ROWS  rows of a that a work-item multiplies with; absent: unpacking alone
// check: -DT=F32 -DBITS=4
// check: -DT=F16 -DBITS=2 -DROWS=1 -DINDEX64
// check: -DT=BF16 -DBITS=8 -DROWS=4
#include "common.clh"
#if !defined(T) || !defined(BITS)
#error "nbits.cl needs T and BITS"
#endif

#define PER_BYTE (8 / BITS)
#define MASK ((1 << BITS) - 1)
#define W 128 // elements of a row that a work-item unpacks, as in nbits.c; 16 together, of which blocks are multiples

// What `zeros` holds, in flags.s0.
#define PACKED 1
#define NUMBERS 2

// sizes is (N, K, elements of a block, blocks of a row).
#define NBITS_ARGUMENTS                                                                                                \
    __global const uchar *packed, const idx_t packed_offset, __global const STORAGE(T) *scales,                        \
        const idx_t scales_offset, __global const uchar *zeros, const idx_t zeros_offset,                              \
        __global const STORAGE(T) *zero_numbers, const idx_t zero_numbers_offset, const idx4_t sizes, const int4 flags

// The zero point of a block.
#define ZERO_OF(n, block)                                                                                              \
    (flags.s0 == PACKED    ? (float)((zeros[zeros_offset + (n) * ((sizes.s3 + PER_BYTE - 1) / PER_BYTE) +              \
                                            (block) / PER_BYTE] >>                                                     \
                                      ((int)((block) % PER_BYTE) * BITS)) &                                            \
                                     MASK)                                                                             \
     : flags.s0 == NUMBERS ? LOAD(T, zero_numbers, zero_numbers_offset + (n) * sizes.s3 + (block))                     \
                           : (float)(1 << (BITS - 1)))
#define SCALE_OF(n, block) LOAD(T, scales, scales_offset + (n) * sizes.s3 + (block))

#if BITS == 8
static inline uchar16 load_values(__global const uchar *p)
{
    return vload16(0, p);
}
#elif BITS == 4
static inline uchar16 load_values(__global const uchar *p)
{
    const uchar8 bytes = vload8(0, p);
    uchar16 values;
    values.even = bytes & (uchar8)(15);
    values.odd = bytes >> (uchar8)(4);
    return values;
}
#else
static inline uchar16 load_values(__global const uchar *p)
{
    const uchar4 bytes = vload4(0, p);
    uchar16 values;
    values.s048c = bytes & (uchar4)(3);
    values.s159d = (bytes >> (uchar4)(2)) & (uchar4)(3);
    values.s26ae = (bytes >> (uchar4)(4)) & (uchar4)(3);
    values.s37bf = bytes >> (uchar4)(6);
    return values;
}
#endif

#ifndef ROWS
// A work-item unpacks up to W elements of a row. With groups, each element names its block.
__kernel void nbits_unpack(__global STORAGE(T) *dst, const idx_t dst_offset, NBITS_ARGUMENTS,
                           __global const int *groups, const idx_t groups_offset)
{
    const idx_t first = (idx_t)get_global_id(0) * W, end = min(first + W, sizes.s1);
    const idx_t n = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    if (first >= sizes.s1 || n >= sizes.s0)
        return;
    __global const uchar *from = packed + (packed_offset + n * sizes.s3 * sizes.s2 / PER_BYTE);
    __global STORAGE(T) *to = dst + (dst_offset + n * sizes.s1);
    idx_t k = first;
    for (; !flags.s1 && k + 16 <= end; k += 16) {
        const idx_t block = k / sizes.s2;
        const float scale = SCALE_OF(n, block), zero = ZERO_OF(n, block);
        STOREV(T, 16, to, k, (convert_float16(load_values(from + k / PER_BYTE)) - zero) * scale);
    }
    for (; k < end; k++) {
        const idx_t block =
            flags.s1 ? clamp((idx_t)groups[groups_offset + k], (idx_t)0, sizes.s3 - 1) : k / sizes.s2;
        const int value = (from[k / PER_BYTE] >> ((int)(k % PER_BYTE) * BITS)) & MASK;
        STORE(T, to, k, ((float)value - ZERO_OF(n, block)) * SCALE_OF(n, block));
    }
}

#else
static inline float16 load_row(__global const STORAGE(T) *a, const idx_t at, const idx_t count)
{
    if (count >= 16)
        return LOADV(T, 16, a, at);
    float lanes[16];
    for (int i = 0; i < 16; i++)
        lanes[i] = i < count ? LOAD(T, a, at + i) : 0.0f;
    return vload16(0, lanes);
}

// A work-item computes ROWS elements of a column of dst = a * weights + bias. Rows of a and dst are dense; those beyond
// the last one repeat it.
__kernel void nbits_rows(__global STORAGE(T) *dst, const idx_t dst_offset, NBITS_ARGUMENTS,
                         __global const STORAGE(T) *a, const idx_t a_offset, __global const STORAGE(T) *bias,
                         const idx_t bias_offset, const idx_t rows)
{
    const idx_t n = (idx_t)get_global_id(0), first = (idx_t)get_global_id(1) * ROWS;
    if (n >= sizes.s0 || first >= rows)
        return;
    __global const uchar *from = packed + (packed_offset + n * sizes.s3 * sizes.s2 / PER_BYTE);
    idx_t row[ROWS];
    float16 sum[ROWS];
    for (int r = 0; r < ROWS; r++) {
        row[r] = a_offset + min(first + r, rows - 1) * sizes.s1;
        sum[r] = 0.0f;
    }
    for (idx_t block = 0; block < sizes.s3; block++) {
        const float scale = SCALE_OF(n, block), shift = ZERO_OF(n, block);
        const idx_t end = min((block + 1) * sizes.s2, sizes.s1);
        for (idx_t k = block * sizes.s2; k < end; k += 16) {
            const float16 weights = (convert_float16(load_values(from + k / PER_BYTE)) - shift) * scale;
#pragma unroll
            for (int r = 0; r < ROWS; r++)
                sum[r] = fma(weights, load_row(a, row[r] + k, sizes.s1 - k), sum[r]);
        }
    }
    for (int r = 0; r < ROWS && first + r < rows; r++) {
        float lanes[16], total = flags.s2 ? LOAD(T, bias, bias_offset + n) : 0.0f;
        vstore16(sum[r], 0, lanes);
        for (int i = 0; i < 16; i++)
            total += lanes[i];
        STORE(T, dst, dst_offset + (first + r) * sizes.s0 + n, total);
    }
}
#endif
