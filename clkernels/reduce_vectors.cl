// SPDX-License-Identifier: Apache-2.0
// Reductions of floats with vectors, for CPUs: dst[…] = OP over some dimensions of src.
//
// Defines:
//   OP   REDUCE_SUM … as of reduce.cl
//   T    type of src and dst: F32, F16, BF16
//   V    lanes of a vector: 4, 8 or 16; not more than the dimension that vectors run along
//
// Entry points; a work-item takes `each` results or vectors of results:
//   reduce_rows      the innermost reduced dimension has stride 1, vectors run along it
//   reduce_columns   the innermost kept dimension has stride 1 in src and dst, a vector is of V results
// check: -DOP=REDUCE_SUM -DT=F32 -DV=16
// check: -DOP=REDUCE_LOG_SUM_EXP -DT=F16 -DV=8
// check: -DOP=REDUCE_MAX -DT=BF16 -DV=4 -DINDEX64
// check: -DOP=REDUCE_PROD -DT=F32 -DV=4
#include "common.clh"
#include "walk.clh"
#include "lanes.clh"
#if !defined(OP) || !defined(T) || !defined(V)
#error "reduce_vectors.cl needs OP, T and V"
#endif
#include "vectors.clh"
#define REDUCE_SUM 1
#define REDUCE_MEAN 2
#define REDUCE_MAX 3
#define REDUCE_MIN 4
#define REDUCE_PROD 5
#define REDUCE_L1 6
#define REDUCE_L2 7
#define REDUCE_SUM_SQUARE 8
#define REDUCE_LOG_SUM 9
#define REDUCE_LOG_SUM_EXP 10

#if OP == REDUCE_MAX
#define COMBINE VECTOR_MAX
#define NEUTRAL -INFINITY
#elif OP == REDUCE_MIN
#define COMBINE VECTOR_MIN
#define NEUTRAL INFINITY
#elif OP == REDUCE_PROD
#define COMBINE VECTOR_PRODUCT
#define NEUTRAL 1.0f
#else
#define COMBINE VECTOR_SUM
#define NEUTRAL 0.0f
#define IS_SUM
#endif

#if OP == REDUCE_LOG_SUM || OP == REDUCE_LOG_SUM_EXP
#define MATH_WIDTH V
#include "math.clh"
#endif
#if OP == REDUCE_L1
#define TERM(x) fabs(x)
#elif OP == REDUCE_L2 || OP == REDUCE_SUM_SQUARE
#define TERM(x) ((x) * (x))
#elif OP == REDUCE_LOG_SUM_EXP
#define TERM(x) FAST_EXP((x)-shift)
#else
#define TERM(x) (x)
#endif

// Of a float or, with LOG for those, a vector.
#if OP == REDUCE_MEAN
#define FINISH(a, count, LOG) ((a) / (float)(count))
#elif OP == REDUCE_L2
#define FINISH(a, count, LOG) sqrt(a)
#elif OP == REDUCE_LOG_SUM
#define FINISH(a, count, LOG) LOG(a)
#elif OP == REDUCE_LOG_SUM_EXP
#define FINISH(a, count, LOG) (LOG(a) + shift)
#else
#define FINISH(a, count, LOG) (a)
#endif

// Runs of RUN vectors are combined plainly, and what they give with the correction where it is a sum.
#define RUN 128
#ifdef IS_SUM
#define FOLD(total, lost, run) KAHAN_ADD(total, lost, run)
#else
#define FOLD(total, lost, run) total = combine(total, run);
#endif
static inline value_t combine(const value_t a, const value_t b)
{
    return COMBINE(a, b);
}
#define TAKE(a, x)                                                                                                     \
    {                                                                                                                  \
        const value_t x_ = x;                                                                                          \
        a = combine(a, TERM(x_));                                                                                      \
    }

#define ARGUMENTS                                                                                                      \
    __global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src, const idx_t src_offset,          \
        const idx_t results, const int kept_deep, const idx8_t kept_shape, const idx8_t kept_dst_stride,               \
        const idx8_t kept_src_stride, const idx_t rows, const int deep, const idx8_t shape, const idx8_t stride,       \
        const idx_t each
#define PASS_ARGUMENTS                                                                                                 \
    dst, dst_offset, src, src_offset, results, kept_deep, kept_shape, kept_dst_stride, kept_src_stride, rows,          \
        deep, shape, stride, each

// Elements begin ... end - 1 of p, of which there is at least a vector before the end.
static inline value_t take_run(__global const STORAGE(T) *p, const idx_t begin, const idx_t end, const float shift)
{
    value_t a0 = NEUTRAL, a1 = NEUTRAL, a2 = NEUTRAL, a3 = NEUTRAL;
    idx_t i = begin;
#if OP != REDUCE_LOG_SUM_EXP // whose terms are long enough
    for (; i + 4 * V <= end; i += 4 * V) {
        TAKE(a0, LOADV(T, V, p, i))
        TAKE(a1, LOADV(T, V, p, i + V))
        TAKE(a2, LOADV(T, V, p, i + 2 * V))
        TAKE(a3, LOADV(T, V, p, i + 3 * V))
    }
#endif
    for (; i + V <= end; i += V)
        TAKE(a0, LOADV(T, V, p, i))
    if (i < end) {
        const value_t x = LOADV(T, V, p, end - V);
        a1 = combine(a1, LANES_FROM(V - (int)(end - i)) ? TERM(x) : VALUE(NEUTRAL));
    }
    return combine(combine(a0, a1), combine(a2, a3));
}

#if OP == REDUCE_LOG_SUM_EXP
static inline value_t highest_of_row(__global const STORAGE(T) *p, const idx_t count)
{
    value_t highest = LOADV(T, V, p, count - V);
    for (idx_t i = 0; i + V <= count; i += V) {
        const value_t x = LOADV(T, V, p, i);
        highest = VECTOR_MAX(highest, x);
    }
    return highest;
}
#endif

WORK reduce_some_rows(ARGUMENTS, const idx_t item)
{
    const idx_t first = item * each, end = min(first + each, results);
    for (idx_t result = first; result < end; ++result) {
        const idx_t from = src_offset + element_index(result, kept_deep, kept_shape, kept_src_stride);
        float shift = 0.0f, all;
#if OP == REDUCE_LOG_SUM_EXP
        value_t highest = -INFINITY;
        for (idx_t row = 0; row < rows; ++row) {
            const value_t of_row = highest_of_row(src + from + row_index(row, deep, shape, stride), shape.s7);
            highest = VECTOR_MAX(highest, of_row);
        }
        COMBINE_LANES(shift, highest, VECTOR_MAX)
        shift = isinf(shift) ? 0.0f : shift;
#endif
        value_t total = NEUTRAL, lost = 0.0f;
        for (idx_t row = 0; row < rows; ++row) {
            __global const STORAGE(T) *p = src + from + row_index(row, deep, shape, stride);
            for (idx_t i = 0; i < shape.s7; i += RUN * V) {
                const value_t run = take_run(p, i, min(i + RUN * V, shape.s7), shift);
                FOLD(total, lost, run)
            }
        }
        total -= lost;
#ifdef IS_SUM
        all = SUM_LANES(total);
#else
        COMBINE_LANES(all, total, COMBINE)
#endif
        const idx_t to = dst_offset + element_index(result, kept_deep, kept_shape, kept_dst_stride);
        STORE(T, dst, to, FINISH(all, rows * shape.s7, FAST_LOG1));
    }
}

NOT_VECTORIZED __kernel void reduce_rows(ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    reduce_some_rows(PASS_ARGUMENTS, (idx_t)get_global_id(0));
    TEAM_LEAVE
}

// `count` elements of V neighbouring columns.
static inline value_t take_columns(__global const STORAGE(T) *p, const idx_t count, const idx_t step,
                                   const value_t shift)
{
    value_t a0 = NEUTRAL, a1 = NEUTRAL, a2 = NEUTRAL, a3 = NEUTRAL;
    idx_t i = 0;
#if OP != REDUCE_LOG_SUM_EXP
    for (; i + 4 <= count; i += 4) {
        TAKE(a0, LOADV(T, V, p, i * step))
        TAKE(a1, LOADV(T, V, p, (i + 1) * step))
        TAKE(a2, LOADV(T, V, p, (i + 2) * step))
        TAKE(a3, LOADV(T, V, p, (i + 3) * step))
    }
#endif
    for (; i < count; ++i)
        TAKE(a0, LOADV(T, V, p, i * step))
    return combine(combine(a0, a1), combine(a2, a3));
}

WORK reduce_some_columns(ARGUMENTS, const idx_t item)
{
    const idx_t blocks = (kept_shape.s7 + V - 1) / V, vectors = results / kept_shape.s7 * blocks;
    const idx_t first = item * each, end = min(first + each, vectors);
    for (idx_t vector = first; vector < end; ++vector) {
        const idx_t kept_row = vector / blocks, lane = (vector - kept_row * blocks) * V;
        const idx_t column = min(lane, kept_shape.s7 - V); // the last vector is moved back to be full
        const idx_t from = src_offset + row_index(kept_row, kept_deep, kept_shape, kept_src_stride) + column;
        value_t shift = 0.0f;
#if OP == REDUCE_LOG_SUM_EXP
        value_t highest = -INFINITY;
        for (idx_t row = 0; row < rows; ++row) {
            __global const STORAGE(T) *p = src + from + row_index(row, deep, shape, stride);
            for (idx_t i = 0; i < shape.s7; ++i) {
                const value_t x = LOADV(T, V, p, i * stride.s7);
                highest = VECTOR_MAX(highest, x);
            }
        }
        shift = fabs(highest) == VALUE(INFINITY) ? VALUE(0.0f) : highest;
#endif
        value_t total = NEUTRAL, lost = 0.0f;
        for (idx_t row = 0; row < rows; ++row) {
            __global const STORAGE(T) *p = src + from + row_index(row, deep, shape, stride);
            for (idx_t i = 0; i < shape.s7; i += RUN) {
                const value_t run = take_columns(p + i * stride.s7, min((idx_t)RUN, shape.s7 - i), stride.s7, shift);
                FOLD(total, lost, run)
            }
        }
        const idx_t to = dst_offset + row_index(kept_row, kept_deep, kept_shape, kept_dst_stride) + column;
        const value_t all = total - lost, result = FINISH(all, rows * shape.s7, FAST_LOG);
        if (lane == column)
            STOREV(T, V, dst, to, result);
        else
            STORE_LANES(T, V, dst, to, result, (int)(lane - column), V);
    }
}

NOT_VECTORIZED __kernel void reduce_columns(ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    reduce_some_columns(PASS_ARGUMENTS, (idx_t)get_global_id(0));
    TEAM_LEAVE
}
