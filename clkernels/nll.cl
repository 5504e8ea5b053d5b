// SPDX-License-Identifier: Apache-2.0
// loss = -weights[target] * scores[…, target, …], and what each element counts for in a mean: weights[target].
//
// Defines:
//   T         type of scores and weights
//   T_DST     type of loss and share: any float
//   T_INDEX   I32 or I64
//
// A target that is `ignored` costs and counts nothing. One that is below 0 counts from the end; one that is out of range
// even so takes the nearest class there is: nothing outside `scores` is read.
// check: -DT=F32 -DT_DST=F32 -DT_INDEX=I64
// check: -DT=F16 -DT_DST=F32 -DT_INDEX=I32 -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(T_DST) || !defined(T_INDEX)
#error "nll.cl needs T, T_DST and T_INDEX"
#endif

#define HAS_WEIGHTS 1
#define HAS_IGNORED 2
#define HAS_SHARE 4

// Compared in its own type: Mesa's compiler gets the sign of an int that was widened to long wrong.
static inline idx_t class_of(const COMPUTE(T_INDEX) wanted, const idx_t classes)
{
    const long last = (long)classes - 1, counted = (long)wanted + (wanted < 0 ? (long)classes : 0);
    return (idx_t)(counted < 0 ? 0 : counted > last ? last : counted);
}

// Dimensions are the target's; columns are the range's first dimension, rows are counted over the other two.
__kernel void nll(__global STORAGE(T_DST) *loss, const idx_t loss_offset, __global STORAGE(T_DST) *share,
                  const idx_t share_offset, __global const STORAGE(T) *scores, const idx_t scores_offset,
                  __global const STORAGE(T_INDEX) *target, const idx_t target_offset,
                  __global const STORAGE(T) *weights, const idx_t weights_offset, const idx_t classes,
                  const idx_t class_stride, const idx_t weight_stride, const long ignored, const int flags,
                  const idx_t rows, const int deep, const idx8_t shape, const idx8_t loss_stride,
                  const idx8_t share_stride, const idx8_t scores_stride, const idx8_t target_stride)
{
    const idx_t column = (idx_t)get_global_id(0);
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    const idx_t which = target_offset + row_index(row, deep, shape, target_stride);
    const idx_t from = scores_offset + row_index(row, deep, shape, scores_stride);
    const idx_t to = loss_offset + row_index(row, deep, shape, loss_stride);
    const idx_t beside = share_offset + row_index(row, deep, shape, share_stride);
    if (column >= shape.s7 || row >= rows)
        return;
    const COMPUTE(T_INDEX) wanted = LOAD(T_INDEX, target, which + column * target_stride.s7);
    const bool counts = !(flags & HAS_IGNORED) || wanted != (COMPUTE(T_INDEX))ignored;
    COMPUTE(T) result = 0, weight = 0;
    if (counts) {
        const idx_t chosen = class_of(wanted, classes);
        weight = flags & HAS_WEIGHTS ? LOAD(T, weights, weights_offset + chosen * weight_stride) : 1;
        result = -weight * LOAD(T, scores, from + column * scores_stride.s7 + chosen * class_stride);
    }
    STORE(T_DST, loss, to + column * loss_stride.s7, result);
    if (flags & HAS_SHARE)
        STORE(T_DST, share, beside + column * share_stride.s7, weight);
}
