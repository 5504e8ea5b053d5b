// SPDX-License-Identifier: Apache-2.0
// Reductions: dst[…] = OP over some dimensions of src.
//
// Defines:
//   OP      REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN, REDUCE_PROD, REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE,
//           REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP
//   T       type of src and dst
//
// Entry points:
//   reduce_items   a work-item for each result
//   reduce_groups  a work-group of GROUP work-items for each result
// check: -DOP=REDUCE_SUM -DT=F32
// check: -DOP=REDUCE_LOG_SUM_EXP -DT=F16
// check: -DOP=REDUCE_MAX -DT=U8
// check: -DOP=REDUCE_PROD -DT=I64 -DINDEX64
// check: -DOP=REDUCE_L2 -DT=BF16
#include "common.clh"
#include "group.clh"
#include "walk.clh"
#include "sum.clh"
#if !defined(OP) || !defined(T)
#error "reduce.cl needs OP and T"
#endif
#include "reduce_ops.clh"

// The kept dimensions number the results; the reduced ones are walked in rows, which run along component 7.
#define ARGUMENTS                                                                                                      \
    __global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src, const idx_t src_offset,          \
        const idx_t results, const int kept_deep, const idx8_t kept_shape, const idx8_t kept_dst_stride,               \
        const idx8_t kept_src_stride, const idx_t rows, const int deep, const idx8_t shape, const idx8_t stride
#define FOR_ELEMENTS(first, step, BODY)                                                                                \
    for (idx_t row = 0; row < rows; ++row) {                                                                           \
        const idx_t start = from + row_index(row, deep, shape, stride);                                                \
        for (idx_t column = first; column < shape.s7; column += step) {                                                \
            const COMPUTE(T) x = LOAD(T, src, start + column * stride.s7);                                             \
            BODY                                                                                                       \
        }                                                                                                              \
    }

__kernel void reduce_items(ARGUMENTS)
{
    const idx_t result = (idx_t)get_global_id(0);
    if (result >= results)
        return;
    const idx_t from = src_offset + element_index(result, kept_deep, kept_shape, kept_src_stride);
#ifdef TWO_PASSES
    accumulate_t highest = LOWEST;
    FOR_ELEMENTS(0, 1, highest = MAX_OF(highest, x);)
    const accumulate_t shift = isinf(highest) ? 0 : highest;
#endif
    BEGIN(total);
    FOR_ELEMENTS(0, 1, ADD(total, x))
    const accumulate_t all = END(total);
    const idx_t to = dst_offset + element_index(result, kept_deep, kept_shape, kept_dst_stride);
    STORE(T, dst, to, FINISH(all, rows * shape.s7));
}

__kernel void reduce_groups(ARGUMENTS)
{
    __local accumulate_t shared[GROUP];
    const idx_t result = (idx_t)get_group_id(0), lane = (idx_t)get_local_id(0), lanes = (idx_t)get_local_size(0);
    if (result >= results)
        return;
    const idx_t from = src_offset + element_index(result, kept_deep, kept_shape, kept_src_stride);
#ifdef TWO_PASSES
    accumulate_t highest = LOWEST;
    FOR_ELEMENTS(lane, lanes, highest = MAX_OF(highest, x);)
    GROUP_COMBINE(shared, highest, MAX_OF)
    const accumulate_t shift = isinf(highest) ? 0 : highest;
#endif
    BEGIN(total);
    FOR_ELEMENTS(lane, lanes, ADD(total, x))
    accumulate_t all = END(total);
    GROUP_COMBINE(shared, all, COMBINE)
    if (lane == 0) {
        const idx_t to = dst_offset + element_index(result, kept_deep, kept_shape, kept_dst_stride);
        STORE(T, dst, to, FINISH(all, rows * shape.s7));
    }
}
