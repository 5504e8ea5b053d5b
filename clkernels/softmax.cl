// SPDX-License-Identifier: Apache-2.0
// Softmax, or with -DLOGARITHM its logarithm, over some dimensions taken together.
//
// Defines:
//   T           type of src and dst
//   LOGARITHM   0 or 1
//
// Entry points:
//   softmax_items   a work-item for each set that is normalised
//   softmax_groups  a work-group of GROUP work-items for each
// check: -DT=F32 -DLOGARITHM=0
// check: -DT=F16 -DLOGARITHM=1 -DINDEX64
#include "common.clh"
#include "group.clh"
#include "walk.clh"
#include "sum.clh"
#if !defined(T) || !defined(LOGARITHM)
#error "softmax.cl needs T and LOGARITHM"
#endif
typedef COMPUTE(T) accumulate_t;

// A NaN stays, and makes all of its set NaN.
#define MAX_OF(a, b) ((b) > (a) || isnan(b) ? (b) : (a))
#define PLUS(a, b) ((a) + (b))
#if LOGARITHM
#define NORM(total) log(total)
#define RESULT(x) ((x) - highest - norm)
#else
#define NORM(total) (total)
#define RESULT(x) (exp((x) - highest) / norm)
#endif

// The kept dimensions number the sets; the others are walked in rows, which run along component 7.
#define ARGUMENTS                                                                                                      \
    __global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src, const idx_t src_offset,          \
        const idx_t sets, const int kept_deep, const idx8_t kept_shape, const idx8_t kept_dst_stride,                  \
        const idx8_t kept_src_stride, const idx_t rows, const int deep, const idx8_t shape, const idx8_t dst_stride,   \
        const idx8_t src_stride
#define FOR_ELEMENTS(first, step, BODY)                                                                                \
    for (idx_t row = 0; row < rows; ++row) {                                                                           \
        const idx_t start = from + row_index(row, deep, shape, src_stride);                                            \
        for (idx_t column = first; column < shape.s7; column += step) {                                                \
            const accumulate_t x = LOAD(T, src, start + column * src_stride.s7);                                       \
            BODY                                                                                                       \
        }                                                                                                              \
    }
#define TO (to + row_index(row, deep, shape, dst_stride) + column * dst_stride.s7)

__kernel void softmax_items(ARGUMENTS)
{
    const idx_t set = (idx_t)get_global_id(0);
    if (set >= sets)
        return;
    const idx_t from = src_offset + element_index(set, kept_deep, kept_shape, kept_src_stride);
    const idx_t to = dst_offset + element_index(set, kept_deep, kept_shape, kept_dst_stride);
    accumulate_t highest = -INFINITY;
    FOR_ELEMENTS(0, 1, highest = MAX_OF(highest, x);)
    SUM_BEGIN(sum);
    FOR_ELEMENTS(0, 1, SUM_ADD(sum, exp(x - highest)))
    const accumulate_t total = SUM_END(sum), norm = NORM(total);
    FOR_ELEMENTS(0, 1, STORE(T, dst, TO, RESULT(x));)
}

__kernel void softmax_groups(ARGUMENTS)
{
    __local accumulate_t shared[GROUP];
    const idx_t set = (idx_t)get_group_id(0), lane = (idx_t)get_local_id(0), lanes = (idx_t)get_local_size(0);
    if (set >= sets)
        return;
    const idx_t from = src_offset + element_index(set, kept_deep, kept_shape, kept_src_stride);
    const idx_t to = dst_offset + element_index(set, kept_deep, kept_shape, kept_dst_stride);
    accumulate_t highest = -INFINITY;
    FOR_ELEMENTS(lane, lanes, highest = MAX_OF(highest, x);)
    GROUP_COMBINE(shared, highest, MAX_OF)
    SUM_BEGIN(sum);
    FOR_ELEMENTS(lane, lanes, SUM_ADD(sum, exp(x - highest)))
    accumulate_t total = SUM_END(sum);
    GROUP_COMBINE(shared, total, PLUS)
    const accumulate_t norm = NORM(total);
    FOR_ELEMENTS(lane, lanes, STORE(T, dst, TO, RESULT(x));)
}
