// SPDX-License-Identifier: Apache-2.0
// How often n-grams stand in rows of numbers, their items at every distance up to a most; those of one item once.
// check:
// check: -DINDEX64
#include "common.clh"

// Column columns[k] counts the n-grams from begins[k] to begins[k + 1]; each has `lengths` items of the pool from `starts` on.
// sizes: (rows, columns that count, items of a row, most distance). dst and src: strides of rows and columns. once: whether
// any, not how many.
__kernel void ngrams(__global float *dst, const idx_t dst_offset, const idx2_t dst_stride, __global const long *src,
                     const idx_t src_offset, const idx2_t src_stride, __global const long *pool,
                     const idx_t pool_offset, __global const int *starts, const idx_t starts_offset,
                     __global const int *lengths, const idx_t lengths_offset, __global const int *begins,
                     const idx_t begins_offset, __global const int *columns, const idx_t columns_offset,
                     __global const float *weights, const idx_t weights_offset, const idx4_t sizes, const int once)
{
    const idx_t k = (idx_t)get_global_id(0), row = (idx_t)get_global_id(1);
    const idx_t from = src_offset + row * src_stride.s0;
    long count = 0;
    if (k >= sizes.s1 || row >= sizes.s0)
        return;
    const int end = begins[begins_offset + k + 1];
    for (int i = begins[begins_offset + k]; i < end; i++) {
        const idx_t length = lengths[lengths_offset + i], most = length == 1 ? 1 : sizes.s3;
        __global const long *items = pool + pool_offset + starts[starts_offset + i];
        for (idx_t distance = 1; distance <= most; distance++)
            for (idx_t at = 0; at + distance * (length - 1) < sizes.s2; at++) {
                idx_t same = 0;
                while (same < length && src[from + (at + same * distance) * src_stride.s1] == items[same])
                    same++;
                count += same == length;
            }
    }
    const float number = once ? (count > 0 ? 1.0f : 0.0f) : (float)count;
    const float weight = weights[weights_offset + k];
    dst[dst_offset + row * dst_stride.s0 + (idx_t)columns[columns_offset + k] * dst_stride.s1] =
        count > 0 ? number * weight : 0.0f;
}
