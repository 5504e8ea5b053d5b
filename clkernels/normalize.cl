// SPDX-License-Identifier: Apache-2.0
// dst = (src - mean) / sqrt(variance + epsilon) * scale + bias, with the moments of src over some dimensions; or
// src / sqrt(mean of squares + epsilon) * scale.
//
// Defines:
//   T     type of src, scale and bias, and of dst if there is no TO
//   TO    type of dst
//   RMS   the second form: bias is not read
//
// Entry points:
//   normalize_items    a work-item for each set that is normalised
//   normalize_groups   a work-group of GROUP work-items for each
// check: -DT=F32
// check: -DT=BF16 -DINDEX64
// check: -DT=F32 -DRMS
// check: -DT=F32 -DTO=BF16
#include "common.clh"
#include "group.clh"
#include "walk.clh"
#include "sum.clh"
#if !defined(T)
#error "normalize.cl needs T"
#endif
#ifndef TO
#define TO T
#endif
typedef COMPUTE(T) accumulate_t;
#define PLUS(a, b) ((a) + (b))
#ifdef RMS
#define SHIFT(bias, at) ((void)(at), 0)
#else
#define SHIFT(bias, at) LOAD(T, bias, at)
#endif

// The kept dimensions number the sets; the others are walked in rows, which run along component 7.
#define ARGUMENTS                                                                                                      \
    __global STORAGE(TO) *dst, const idx_t dst_offset, __global const STORAGE(T) *src, const idx_t src_offset,          \
        __global const STORAGE(T) *scale, const idx_t scale_offset, __global const STORAGE(T) *bias,                   \
        const idx_t bias_offset, const float epsilon, const idx_t sets, const int kept_deep, const idx8_t kept_shape,  \
        const idx8_t kept_dst_stride, const idx8_t kept_src_stride, const idx8_t kept_scale_stride,                    \
        const idx8_t kept_bias_stride, const idx_t rows, const int deep, const idx8_t shape, const idx8_t dst_stride,  \
        const idx8_t src_stride, const idx8_t scale_stride, const idx8_t bias_stride
#define KEPT(stride) element_index(set, kept_deep, kept_shape, stride)
#define FOR_ELEMENTS(first, step, BODY)                                                                                \
    for (idx_t row = 0; row < rows; ++row) {                                                                           \
        const idx_t start = from + row_index(row, deep, shape, src_stride);                                            \
        for (idx_t column = first; column < shape.s7; column += step) {                                                \
            const accumulate_t x = LOAD(T, src, start + column * src_stride.s7);                                       \
            BODY                                                                                                       \
        }                                                                                                              \
    }
#define AT(stride) (row_index(row, deep, shape, stride) + column * stride.s7)
#define WRITE                                                                                                          \
    {                                                                                                                  \
        const accumulate_t factor = inverse * LOAD(T, scale, scale_from + AT(scale_stride));                           \
        STORE(TO, dst, to + AT(dst_stride), (x - mean) * factor + SHIFT(bias, bias_from + AT(bias_stride)));            \
    }
#define FIND_SET                                                                                                       \
    const idx_t from = src_offset + KEPT(kept_src_stride), to = dst_offset + KEPT(kept_dst_stride);                    \
    const idx_t scale_from = scale_offset + KEPT(kept_scale_stride);                                                   \
    const idx_t bias_from = bias_offset + KEPT(kept_bias_stride);                                                      \
    const accumulate_t count = (accumulate_t)(rows * shape.s7)

__kernel void normalize_items(ARGUMENTS)
{
    const idx_t set = (idx_t)get_global_id(0);
    if (set >= sets)
        return;
    FIND_SET;
#ifdef RMS
    const accumulate_t mean = 0;
#else
    SUM_BEGIN(sum);
    FOR_ELEMENTS(0, 1, SUM_ADD(sum, x))
    const accumulate_t mean = SUM_END(sum) / count;
#endif
    SUM_BEGIN(squares);
    FOR_ELEMENTS(0, 1, SUM_ADD(squares, (x - mean) * (x - mean)))
    const accumulate_t inverse = 1 / sqrt(SUM_END(squares) / count + epsilon);
    FOR_ELEMENTS(0, 1, WRITE)
}

__kernel void normalize_groups(ARGUMENTS)
{
    __local accumulate_t shared[GROUP];
    const idx_t set = (idx_t)get_group_id(0), lane = (idx_t)get_local_id(0), lanes = (idx_t)get_local_size(0);
    if (set >= sets)
        return;
    FIND_SET;
#ifdef RMS
    const accumulate_t mean = 0;
#else
    SUM_BEGIN(sum);
    FOR_ELEMENTS(lane, lanes, SUM_ADD(sum, x))
    accumulate_t total = SUM_END(sum);
    GROUP_COMBINE(shared, total, PLUS)
    const accumulate_t mean = total / count;
#endif
    SUM_BEGIN(squares);
    FOR_ELEMENTS(lane, lanes, SUM_ADD(squares, (x - mean) * (x - mean)))
    accumulate_t spread = SUM_END(squares);
    GROUP_COMBINE(shared, spread, PLUS)
    const accumulate_t inverse = 1 / sqrt(spread / count + epsilon);
    FOR_ELEMENTS(lane, lanes, WRITE)
}
