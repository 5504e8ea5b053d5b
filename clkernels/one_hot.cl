// SPDX-License-Identifier: Apache-2.0
// dst = values[1] where the coordinate along an axis is the index, else values[0].
//
// Defines:
//   T         type of values and dst; bits are moved, so the unsigned integer of the size
//   T_INDEX   any type of number; what follows the point is cut off
//
// An index below 0 counts from the axis's end; one that is out of range matches nothing.
// check: -DT=U32 -DT_INDEX=I64
// check: -DT=U8 -DT_INDEX=F16 -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(T_INDEX)
#error "one_hot.cl needs T and T_INDEX"
#endif

#if IS_FLOAT(T_INDEX)
#define WHOLE(x) (fabs(x) < 0x1p62f ? (long)(x) : (long)0x7fffffffffffffffL)
#else
#define WHOLE(x) ((long)(x))
#endif

__kernel void one_hot(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T_INDEX) *indices,
                      const idx_t indices_offset, __global const STORAGE(T) *values, const idx_t values_offset,
                      const idx_t lines, const int deep, const idx8_t shape, const idx8_t dst_stride,
                      const idx8_t indices_stride, const idx_t length, const idx_t dst_step, const idx_t value_step)
{
    const idx_t column = (idx_t)get_global_id(0);
    const idx_t line = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    const idx_t which = indices_offset + element_index(line, deep, shape, indices_stride);
    const idx_t to = dst_offset + element_index(line, deep, shape, dst_stride);
    if (column >= length || line >= lines)
        return;
    const COMPUTE(T_INDEX) wanted = LOAD(T_INDEX, indices, which);
    const long whole = WHOLE(wanted), counted = whole + (wanted < 0 && whole != 0 ? (long)length : 0);
    const idx_t chosen = values_offset + (counted == (long)column ? value_step : 0);
    STORE(T, dst, to + column * dst_step, LOAD(T, values, chosen));
}
