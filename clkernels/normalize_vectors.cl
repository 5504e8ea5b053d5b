// SPDX-License-Identifier: Apache-2.0
// dst = (src - mean) / sqrt(variance + epsilon) * scale + bias of floats with vectors, for CPUs; or
// src / sqrt(mean of squares + epsilon) * scale.
//
// Defines:
//   T     type of src, scale and bias, and of dst if there is no TO: F32, F16, BF16
//   TO    type of dst; HARDWARE_BF16: see bf16_round.clh
//   V     lanes of a vector: 4, 8 or 16; not more than the dimension that vectors run along
//   RMS   the second form: bias is not read
//
// Entry points; a work-item takes `each` sets or vectors of sets. Along their vectors src and dst have stride 1, scale
// and bias 1 or 0:
//   normalize_rows      vectors run along the innermost dimension of a set
//   normalize_columns   a vector is of V sets
// check: -DT=F32 -DV=16
// check: -DT=BF16 -DV=4 -DINDEX64
// check: -DT=F32 -DV=16 -DRMS
// check: -DT=F32 -DTO=BF16 -DV=16
#include "common.clh"
#ifdef HARDWARE_BF16
#include "bf16_round.clh"
#endif
#include "walk.clh"
#include "lanes.clh"
#if !defined(T) || !defined(V)
#error "normalize_vectors.cl needs T and V"
#endif
#ifndef TO
#define TO T
#endif
#include "vectors.clh"
#define RUN 64 // vectors between two corrections of a sum
#define SUMS 4 // that do not wait for each other
#ifdef RMS
#define SHIFT(p, i, stride) ((void)(p), VALUE(0.0f))
#else
#define SHIFT(p, i, stride) load_or_repeat(p, i, stride)
#endif

#define ARGUMENTS                                                                                                      \
    __global STORAGE(TO) *dst, const idx_t dst_offset, __global const STORAGE(T) *src, const idx_t src_offset,         \
        __global const STORAGE(T) *scale, const idx_t scale_offset, __global const STORAGE(T) *bias,                   \
        const idx_t bias_offset, const float epsilon, const idx_t sets, const int kept_deep, const idx8_t kept_shape,  \
        const idx8_t kept_dst_stride, const idx8_t kept_src_stride, const idx8_t kept_scale_stride,                    \
        const idx8_t kept_bias_stride, const idx_t rows, const int deep, const idx8_t shape, const idx8_t dst_stride,  \
        const idx8_t src_stride, const idx8_t scale_stride, const idx8_t bias_stride, const idx_t each
#define PASS_ARGUMENTS                                                                                                 \
    dst, dst_offset, src, src_offset, scale, scale_offset, bias, bias_offset, epsilon, sets, kept_deep,                \
        kept_shape, kept_dst_stride, kept_src_stride, kept_scale_stride, kept_bias_stride, rows, deep, shape,          \
        dst_stride, src_stride, scale_stride, bias_stride, each

// V elements from p on, or one of them in all lanes.
static inline value_t load_or_repeat(__global const STORAGE(T) *p, const idx_t i, const idx_t stride)
{
    return stride != 0 ? LOADV(T, V, p, i) : VALUE(LOAD(T, p, 0));
}

// Sums of src - mean, or of its square, over elements begin ... end - 1 of p, before whose end a vector lies.
INLINE value_t sum_of_run(__global const STORAGE(T) *p, const idx_t begin, const idx_t end, const float mean,
                          const int squares)
{
    value_t sum[SUMS];
    idx_t i = begin;
#pragma unroll
    for (int k = 0; k < SUMS; k++)
        sum[k] = 0.0f;
    for (; i + SUMS * V <= end; i += SUMS * V)
#pragma unroll
        for (int k = 0; k < SUMS; k++) {
            const value_t x = LOADV(T, V, p, i + k * V) - mean;
            sum[k] += squares ? x * x : x;
        }
    for (; i < end; i += V) {
        const idx_t at = min(i, end - V); // the last vector is moved back to be full
        const value_t x = LOADV(T, V, p, at) - mean, term = squares ? x * x : x;
        sum[0] += LANES_FROM((int)(i - at)) ? term : VALUE(0.0f);
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

INLINE float sum_of_set(__global const STORAGE(T) *p, const idx_t rows, const int deep, const idx8_t shape,
                        const idx8_t stride, const float mean, const int squares)
{
    if (rows == 1 && shape.s7 <= RUN * V) {
        const value_t run = sum_of_run(p, 0, shape.s7, mean, squares);
        return SUM_LANES(run);
    }
    value_t total = 0.0f, lost = 0.0f;
    for (idx_t row = 0; row < rows; ++row) {
        __global const STORAGE(T) *q = p + row_index(row, deep, shape, stride);
        for (idx_t i = 0; i < shape.s7; i += RUN * V) {
            const value_t run = sum_of_run(q, i, min(i + RUN * V, shape.s7), mean, squares);
            KAHAN_ADD(total, lost, run)
        }
    }
    total -= lost;
    return SUM_LANES(total);
}

#define STORE_ROW(SCALE, SHIFT_BY)                                                                                     \
    for (idx_t next = 0; next < shape.s7; next += V) {                                                                 \
        const idx_t i = min(next, shape.s7 - V);                                                                       \
        const value_t factor = inverse * (SCALE);                                                                      \
        const value_t result = (LOADV(T, V, x, i) - mean) * factor + (SHIFT_BY);                                       \
        STOREV(TO, V, y, i, result);                                                                                   \
    }

WORK normalize_some_rows(ARGUMENTS, const idx_t item)
{
    const idx_t first = item * each, end = min(first + each, sets);
    for (idx_t set = first; set < end; ++set) {
        __global const STORAGE(T) *p = src + src_offset + element_index(set, kept_deep, kept_shape, kept_src_stride);
        __global STORAGE(TO) *q = dst + dst_offset + element_index(set, kept_deep, kept_shape, kept_dst_stride);
        const idx_t scale_from = scale_offset + element_index(set, kept_deep, kept_shape, kept_scale_stride);
        const idx_t bias_from = bias_offset + element_index(set, kept_deep, kept_shape, kept_bias_stride);
        const float count = (float)(rows * shape.s7);
#ifdef RMS
        const float mean = 0.0f;
#else
        const float mean = sum_of_set(p, rows, deep, shape, src_stride, 0.0f, 0) / count;
#endif
        const float variance = sum_of_set(p, rows, deep, shape, src_stride, mean, 1) / count;
        const float inverse = 1.0f / sqrt(variance + epsilon);
        for (idx_t row = 0; row < rows; ++row) {
            __global const STORAGE(T) *x = p + row_index(row, deep, shape, src_stride);
            __global STORAGE(TO) *y = q + row_index(row, deep, shape, dst_stride);
            __global const STORAGE(T) *s = scale + scale_from + row_index(row, deep, shape, scale_stride);
            __global const STORAGE(T) *b = bias + bias_from + row_index(row, deep, shape, bias_stride);
            if (scale_stride.s7 == 1 && bias_stride.s7 == 1)
                STORE_ROW(LOADV(T, V, s, i), SHIFT(b, i, 1))
            else
                STORE_ROW(load_or_repeat(s, i, scale_stride.s7), SHIFT(b, i, bias_stride.s7))
        }
    }
}

NOT_VECTORIZED __kernel void normalize_rows(ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    normalize_some_rows(PASS_ARGUMENTS, (idx_t)get_global_id(0));
    TEAM_LEAVE
}

// The same of V neighbouring sets.
static inline value_t sum_of_columns(__global const STORAGE(T) *p, const idx_t rows, const int deep,
                                     const idx8_t shape, const idx8_t stride, const value_t mean, const int squares)
{
    value_t total = 0.0f, lost = 0.0f;
    for (idx_t row = 0; row < rows; ++row) {
        __global const STORAGE(T) *q = p + row_index(row, deep, shape, stride);
        for (idx_t begin = 0; begin < shape.s7; begin += RUN) {
            const idx_t end = min(begin + RUN, shape.s7);
            value_t run = 0.0f;
            for (idx_t i = begin; i < end; ++i) {
                const value_t x = LOADV(T, V, q, i * stride.s7) - mean;
                run += squares ? x * x : x;
            }
            KAHAN_ADD(total, lost, run)
        }
    }
    return total - lost;
}

static inline void normalize_vector(ARGUMENTS, const idx_t kept_row, const idx_t column, const int begin)
{
    __global const STORAGE(T) *p =
        src + src_offset + row_index(kept_row, kept_deep, kept_shape, kept_src_stride) + column;
    __global STORAGE(TO) *q = dst + dst_offset + row_index(kept_row, kept_deep, kept_shape, kept_dst_stride) + column;
    const idx_t scale_from = scale_offset + row_index(kept_row, kept_deep, kept_shape, kept_scale_stride);
    const idx_t bias_from = bias_offset + row_index(kept_row, kept_deep, kept_shape, kept_bias_stride);
    const float count = (float)(rows * shape.s7);
#ifdef RMS
    const value_t mean = 0.0f;
#else
    const value_t mean = sum_of_columns(p, rows, deep, shape, src_stride, VALUE(0.0f), 0) / count;
#endif
    const value_t variance = sum_of_columns(p, rows, deep, shape, src_stride, mean, 1) / count;
    const value_t inverse = 1.0f / sqrt(variance + epsilon);
    for (idx_t row = 0; row < rows; ++row) {
        __global const STORAGE(T) *x = p + row_index(row, deep, shape, src_stride);
        __global STORAGE(TO) *y = q + row_index(row, deep, shape, dst_stride);
        __global const STORAGE(T) *s = scale + scale_from + row_index(row, deep, shape, scale_stride);
        __global const STORAGE(T) *b = bias + bias_from + row_index(row, deep, shape, bias_stride);
        for (idx_t i = 0; i < shape.s7; ++i) {
            const value_t factor =
                inverse * load_or_repeat(s + i * scale_stride.s7, column * kept_scale_stride.s7, kept_scale_stride.s7);
            const value_t shift = SHIFT(b + i * bias_stride.s7, column * kept_bias_stride.s7, kept_bias_stride.s7);
            const value_t result = (LOADV(T, V, x, i * src_stride.s7) - mean) * factor + shift;
            if (begin == 0)
                STOREV(TO, V, y, i * dst_stride.s7, result);
            else
                STORE_LANES(TO, V, y, i * dst_stride.s7, result, begin, V);
        }
    }
}

WORK normalize_some_columns(ARGUMENTS, const idx_t item)
{
    const idx_t blocks = (kept_shape.s7 + V - 1) / V, vectors = sets / kept_shape.s7 * blocks;
    const idx_t first = item * each, end = min(first + each, vectors);
    for (idx_t vector = first; vector < end; ++vector) {
        const idx_t kept_row = vector / blocks, lane = (vector - kept_row * blocks) * V;
        const idx_t column = min(lane, kept_shape.s7 - V);
        normalize_vector(dst, dst_offset, src, src_offset, scale, scale_offset, bias, bias_offset, epsilon, sets,
                         kept_deep, kept_shape, kept_dst_stride, kept_src_stride, kept_scale_stride, kept_bias_stride,
                         rows, deep, shape, dst_stride, src_stride, scale_stride, bias_stride, each, kept_row, column,
                         (int)(lane - column));
    }
}

NOT_VECTORIZED __kernel void normalize_columns(ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    normalize_some_columns(PASS_ARGUMENTS, (idx_t)get_global_id(0));
    TEAM_LEAVE
}
