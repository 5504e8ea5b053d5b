// SPDX-License-Identifier: Apache-2.0
// gpu: never
// A dense tensor of floats as U8, with the scale and the zero point that its values ask for: ONNX's DynamicQuantizeLinear,
// for CPUs. Elements from begin to end - 1 are one work-item's; the tensor has at least V.
//
// Defines:
//   V        lanes of a vector: 4, 8 or 16
//   INDEX64  see common.clh
// Entry points:
//   qdynamic_whole   everything; one work-item
//   qdynamic_bounds  the least and the greatest value of each piece, and 0
//   qdynamic_store   the result from those
// check: -DV=16
// check: -DV=4 -DINDEX64
#include "common.clh"
#define T F32
#include "vectors.clh"
#include "lanes.clh"
#ifndef V
#error "qdynamic.cl needs V"
#endif
typedef PASTE2_(int, V) ints_t;
#define TO_INTS PASTE2_(convert_int, V)
#define LOAD_AT(i) PASTE2_(vload, V)(0, src + (i))

// at: offsets of dst, src, scale and zero; elements, elements of a piece, pieces. part: two floats for each piece.
#define ARGUMENTS                                                                                                      \
    __global uchar *dst, __global const float *src, __global float *scale, __global uchar *zero, const idx8_t at,      \
        __global float *part, const idx_t part_offset
#define FIND_PIECE                                                                                                     \
    const idx_t piece = (idx_t)get_global_id(0), size = at.s4;                                                         \
    const idx_t begin = min(piece * at.s5, size), end = min(begin + at.s5, size);                                      \
    src += at.s1;                                                                                                      \
    part += part_offset

// The least and the greatest of some elements and 0; NaN where one is.
static inline float2 bounds_of(__global const float *src, const idx_t begin, const idx_t end, const idx_t size)
{
    value_t low0 = 0.0f, high0 = 0.0f, low1 = 0.0f, high1 = 0.0f;
    float2 bounds;
    idx_t i = begin;
    for (; i + 2 * V <= end; i += 2 * V) {
        const value_t x = LOAD_AT(i), y = LOAD_AT(i + V);
        low0 = VECTOR_MIN(low0, x);
        high0 = VECTOR_MAX(high0, x);
        low1 = VECTOR_MIN(low1, y);
        high1 = VECTOR_MAX(high1, y);
    }
    for (; i < end; i += V) {
        const value_t x = LOAD_AT(min(i, size - V)); // the last vector is moved back to be full
        low0 = VECTOR_MIN(low0, x);
        high0 = VECTOR_MAX(high0, x);
    }
    low0 = VECTOR_MIN(low0, low1);
    high0 = VECTOR_MAX(high0, high1);
    COMBINE_LANES(bounds.x, low0, VECTOR_MIN)
    COMBINE_LANES(bounds.y, high0, VECTOR_MAX)
    return bounds;
}

// x / step, rounded as a division's result is: the reciprocal's error is put back, where nothing in between is out of
// range.
static inline value_t quotient(const value_t x, const float step, const float reciprocal)
{
    const value_t q = x * reciprocal;
    return fma(fma(-q, VALUE(step), x), VALUE(reciprocal), q);
}

static inline void quantize(__global uchar *dst, __global const float *src, const float2 bounds, const idx_t begin,
                            const idx_t end, const idx_t size, __global float *scale, __global uchar *zero)
{
    const float step = (bounds.y == bounds.x ? 1.0f : bounds.y - bounds.x) / 255.0f, reciprocal = 1.0f / step;
    const int zero_point = convert_uchar_sat_rte(fmin(fmax(0.0f - bounds.x / step, 0.0f), 255.0f));
    const value_t low = VALUE((float)-zero_point), high = low + 255.0f;
    const bool usual = step > 0x1p-60f && step < 0x1p60f;
    if (begin == 0) {
        *scale = step;
        *zero = (uchar)zero_point;
    }
    for (idx_t i = begin; i < end; i += V) {
        const idx_t from = min(i, size - V);
        const value_t x = LOAD_AT(from), scaled = usual ? quotient(x, step, reciprocal) : x / step;
        // To the nearest integer, halves to even: what is added leaves no bits for fractions. NaN becomes the lowest one.
        const value_t above = scaled > low ? scaled : low, within = above < high ? above : high;
        const ints_t rounded = TO_INTS((within + 12582912.0f) - 12582912.0f) + zero_point;
        STORE_BYTES(V, dst, from, rounded);
    }
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void qdynamic_whole(ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    src += at.s1;
    quantize(dst + at.s0, src, bounds_of(src, 0, at.s4, at.s4), 0, at.s4, at.s4, scale + at.s2, zero + at.s3);
    TEAM_LEAVE
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void qdynamic_bounds(ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    FIND_PIECE;
    const float2 bounds = bounds_of(src, begin, end, size);
    part[2 * piece] = bounds.x;
    part[2 * piece + 1] = bounds.y;
    TEAM_LEAVE
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void qdynamic_store(ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    FIND_PIECE;
    float2 bounds = 0.0f;
    for (idx_t i = 0; i < at.s6; i++) {
        const float low = part[2 * i], high = part[2 * i + 1];
        bounds.x = VECTOR_MIN(bounds.x, low);
        bounds.y = VECTOR_MAX(bounds.y, high);
    }
    quantize(dst + at.s0, src, bounds, begin, end, size, scale + at.s2, zero + at.s3);
    TEAM_LEAVE
}
