// SPDX-License-Identifier: Apache-2.0
// Softmax, or with LOGARITHM its logarithm, of floats with vectors, for CPUs.
//
// Defines:
//   T           type of src and dst: F32, F16, BF16
//   V           lanes of a vector: 4, 8 or 16; not more than the dimension that vectors run along
//   LOGARITHM   0 or 1
//
// Entry points; a work-item takes `each` sets or vectors of sets:
//   softmax_rows      the innermost dimension of a set has stride 1, vectors run along it
//   softmax_columns   the innermost dimension that numbers the sets has stride 1, a vector is of V sets
// check: -DT=F32 -DLOGARITHM=0 -DV=16
// check: -DT=F16 -DLOGARITHM=1 -DV=8 -DINDEX64
// check: -DT=BF16 -DLOGARITHM=0 -DV=4
#include "common.clh"
#include "walk.clh"
#include "lanes.clh"
#if !defined(T) || !defined(V) || !defined(LOGARITHM)
#error "softmax_vectors.cl needs T, V and LOGARITHM"
#endif
#include "vectors.clh"
#define MATH_WIDTH V
#include "math.clh"

// dst keeps the exponentials of a row, from the pass that adds them to the one that scales, where its type is exact.
#define KEEPS PASTE2_(KEEPS_, T) && !LOGARITHM
#define KEEPS_F32 1
#define KEEPS_F16 0
#define KEEPS_BF16 0
#if LOGARITHM
#define NORM(total, LOG) LOG(total)
#define RESULT(x) ((x)-highest - norm)
#else
#define NORM(total, LOG) (1.0f / (total))
#define RESULT(x) (FAST_EXP_DOWN((x)-highest) * norm)
#endif
// Sums are corrected every so many vectors.
#define RUN 128

static inline value_t larger(const value_t a, const value_t b)
{
    return VECTOR_MAX(a, b);
}

#define ARGUMENTS                                                                                                      \
    __global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src, const idx_t src_offset,          \
        const idx_t sets, const int kept_deep, const idx8_t kept_shape, const idx8_t kept_dst_stride,                  \
        const idx8_t kept_src_stride, const idx_t rows, const int deep, const idx8_t shape, const idx8_t dst_stride,   \
        const idx8_t src_stride, const idx_t each
#define PASS_ARGUMENTS                                                                                                 \
    dst, dst_offset, src, src_offset, sets, kept_deep, kept_shape, kept_dst_stride, kept_src_stride, rows, deep,       \
        shape, dst_stride, src_stride, each
#define FOR_ROWS for (idx_t row = 0; row < rows; ++row)
#define FROM (src + from + row_index(row, deep, shape, src_stride))
#define TO (dst + to + row_index(row, deep, shape, dst_stride))

static inline value_t highest_of_row(__global const STORAGE(T) *p, const idx_t count)
{
    value_t a = LOADV(T, V, p, count - V), b = a;
    idx_t i = 0;
    for (; i + 2 * V <= count; i += 2 * V) {
        a = larger(a, LOADV(T, V, p, i));
        b = larger(b, LOADV(T, V, p, i + V));
    }
    if (i + V <= count)
        a = larger(a, LOADV(T, V, p, i));
    return larger(a, b);
}

static inline value_t keep_power(__global const STORAGE(T) *p, __global STORAGE(T) *q, const idx_t at,
                                 const float highest)
{
    const value_t e = FAST_EXP_DOWN(LOADV(T, V, p, at) - highest);
#if KEEPS
    STOREV(T, V, q, at, e);
#endif
    return e;
}

// The sum of the exponentials of elements begin ... end - 1 of p, which are kept in q.
static inline value_t sum_of_run(__global const STORAGE(T) *p, __global STORAGE(T) *q, const idx_t begin,
                                 const idx_t end, const float highest)
{
    value_t sum = 0.0f;
    idx_t i = begin;
    for (; i + V <= end; i += V)
        sum += keep_power(p, q, i, highest);
    if (i < end) { // the last vector is moved back to be full
        const value_t e = keep_power(p, q, end - V, highest);
        sum += LANES_FROM((int)(i - (end - V))) ? e : VALUE(0.0f);
    }
    return sum;
}

#if KEEPS
#define ROW_RESULT(i) (LOADV(T, V, q, i) * norm)
#else
#define ROW_RESULT(i) RESULT(LOADV(T, V, p, i))
#endif
static inline void finish_row(__global const STORAGE(T) *p, __global STORAGE(T) *q, const idx_t count,
                              const float highest, const float norm)
{
    idx_t i = 0;
    for (; i + V <= count; i += V)
        STOREV(T, V, q, i, ROW_RESULT(i));
    if (i < count) {
        const value_t result = ROW_RESULT(count - V);
        STORE_LANES(T, V, q, count - V, result, (int)(V - (count - i)), V);
    }
}

WORK softmax_some_rows(ARGUMENTS, const idx_t item)
{
    const idx_t first = item * each, end = min(first + each, sets);
    for (idx_t set = first; set < end; ++set) {
        const idx_t from = src_offset + element_index(set, kept_deep, kept_shape, kept_src_stride);
        const idx_t to = dst_offset + element_index(set, kept_deep, kept_shape, kept_dst_stride);
        value_t largest = -INFINITY, total = 0.0f, lost = 0.0f;
        float highest;
        FOR_ROWS largest = larger(largest, highest_of_row(FROM, shape.s7));
        COMBINE_LANES(highest, largest, VECTOR_MAX)
        FOR_ROWS
        {
            __global const STORAGE(T) *p = FROM;
            __global STORAGE(T) *q = TO;
            for (idx_t i = 0; i < shape.s7; i += RUN * V) {
                const value_t run = sum_of_run(p, q, i, min(i + RUN * V, shape.s7), highest);
                KAHAN_ADD(total, lost, run)
            }
        }
        const value_t sum = total - lost;
        const float norm = NORM(SUM_LANES(sum), FAST_LOG1);
        FOR_ROWS finish_row(FROM, TO, shape.s7, highest, norm);
    }
}

NOT_VECTORIZED __kernel void softmax_rows(ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    softmax_some_rows(PASS_ARGUMENTS, (idx_t)get_global_id(0));
    TEAM_LEAVE
}

// The lanes from `begin` on.
static inline void store_from(__global STORAGE(T) *q, const idx_t at, const value_t value, const int begin)
{
    if (begin == 0)
        STOREV(T, V, q, at, value);
    else
        STORE_LANES(T, V, q, at, value, begin, V);
}

// The exponentials are computed twice: in the vector that was moved back dst cannot keep them for both.
static inline void softmax_of_columns(__global const STORAGE(T) *src, const idx_t from, __global STORAGE(T) *dst,
                                      const idx_t to, const int begin, const idx_t rows, const int deep,
                                      const idx8_t shape, const idx8_t dst_stride, const idx8_t src_stride)
{
    value_t highest = -INFINITY, total = 0.0f, lost = 0.0f, run = 0.0f;
    idx_t added = 0;
    FOR_ROWS
    {
        __global const STORAGE(T) *p = FROM;
        for (idx_t i = 0; i < shape.s7; ++i)
            highest = larger(highest, LOADV(T, V, p, i * src_stride.s7));
    }
    FOR_ROWS
    {
        __global const STORAGE(T) *p = FROM;
        for (idx_t i = 0; i < shape.s7; ++i) {
            run += FAST_EXP_DOWN(LOADV(T, V, p, i * src_stride.s7) - highest);
            if ((++added & (RUN - 1)) == 0) {
                KAHAN_ADD(total, lost, run)
                run = 0.0f;
            }
        }
    }
    const value_t sum = total + (run - lost), norm = NORM(sum, FAST_LOG);
    FOR_ROWS
    {
        __global const STORAGE(T) *p = FROM;
        __global STORAGE(T) *q = TO;
        for (idx_t i = 0; i < shape.s7; ++i) {
            const value_t x = LOADV(T, V, p, i * src_stride.s7);
            store_from(q, i * dst_stride.s7, RESULT(x), begin);
        }
    }
}

WORK softmax_some_columns(ARGUMENTS, const idx_t item)
{
    const idx_t blocks = (kept_shape.s7 + V - 1) / V, vectors = sets / kept_shape.s7 * blocks;
    const idx_t first = item * each, end = min(first + each, vectors);
    for (idx_t vector = first; vector < end; ++vector) {
        const idx_t kept_row = vector / blocks, lane = (vector - kept_row * blocks) * V;
        const idx_t column = min(lane, kept_shape.s7 - V); // the last vector is moved back to be full
        const idx_t from = src_offset + row_index(kept_row, kept_deep, kept_shape, kept_src_stride) + column;
        const idx_t to = dst_offset + row_index(kept_row, kept_deep, kept_shape, kept_dst_stride) + column;
        softmax_of_columns(src, from, dst, to, (int)(lane - column), rows, deep, shape, dst_stride, src_stride);
    }
}

NOT_VECTORIZED __kernel void softmax_columns(ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    softmax_some_columns(PASS_ARGUMENTS, (idx_t)get_global_id(0));
    TEAM_LEAVE
}
