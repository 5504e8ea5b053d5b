// SPDX-License-Identifier: Apache-2.0
// dst = data with one axis replaced by the indices' dimensions.
//
// Defines:
//   T         type of data and dst; bits are moved, so the unsigned integer of the size
//   T_INDEX   I32 or I64
//
// Entry points:
//   gather        a work-item for each element
//   gather_rows   for CPUs: innermost dimensions that dst and data have alike are rows; a work-item copies `each`
//   gather_loose  the same; data is bytes, of which the first element may lie anywhere: as in a model's file
//
// An index below 0 counts from the axis's end. One that is out of range even so takes the nearest element there is:
// nothing outside `data` is read.
// check: -DT=U32 -DT_INDEX=I64
// check: -DT=U8 -DT_INDEX=I32 -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(T_INDEX)
#error "gather.cl needs T and T_INDEX"
#endif
#include "rows.clh"
#include "tuple.clh"

typedef STORAGE(T) loose_t __attribute__((aligned(1)));
typedef PASTE2_(STORAGE(T), 16) loose16_t __attribute__((aligned(1)));

// Dimensions are dst's; data has stride 0 in those of the indices, and indices in the others. Columns are the range's
// first dimension, rows are counted over the other two.
__kernel void gather(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *data,
                     const idx_t data_offset, __global const STORAGE(T_INDEX) *indices, const idx_t indices_offset,
                     const idx_t axis_size, const idx_t axis_stride, const idx_t rows, const int deep,
                     const idx8_t shape, const idx8_t dst_stride, const idx8_t data_stride,
                     const idx8_t indices_stride TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const idx_t column = (idx_t)get_global_id(0);
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    // Before the guard, so that a compiler which makes a loop of a work-group moves the divisions out of it.
    const idx_t which = indices_offset + row_index(row, deep, shape, indices_stride);
    const idx_t from = data_offset + row_index(row, deep, shape, data_stride);
    const idx_t to = dst_offset + row_index(row, deep, shape, dst_stride);
    if (column < shape.s7 && row < rows) {
        const idx_t chosen = chosen_of(LOAD(T_INDEX, indices, which + column * indices_stride.s7), axis_size);
        STORE(T, dst, to + column * dst_stride.s7,
              LOAD(T, data, from + column * data_stride.s7 + chosen * axis_stride));
    }
    TEAM_LEAVE
}

__kernel void gather_rows(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *data,
                          const idx_t data_offset, __global const STORAGE(T_INDEX) *indices,
                          const idx_t indices_offset, const idx_t axis_size, const idx_t axis_stride,
                          const idx_t rows, const int deep, const idx8_t shape, const idx8_t dst_stride,
                          const idx8_t data_stride, const idx8_t indices_stride, const idx_t each TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const idx_t first = (idx_t)get_global_id(0) * each, end = min(first + each, rows);
    for (idx_t row = first; row < end; ++row) {
        const idx_t which = indices_offset + row_index(row, deep, shape, indices_stride);
        const idx_t from = data_offset + row_index(row, deep, shape, data_stride);
        const idx_t chosen = chosen_of(LOAD(T_INDEX, indices, which), axis_size);
        copy_row(dst + dst_offset + row_index(row, deep, shape, dst_stride), data + from + chosen * axis_stride,
                 shape.s7);
    }
    TEAM_LEAVE
}

__kernel void gather_loose(__global STORAGE(T) *dst, const idx_t dst_offset, __global const uchar *bytes,
                           const idx_t bytes_offset, __global const STORAGE(T_INDEX) *indices,
                           const idx_t indices_offset, const idx_t axis_size, const idx_t axis_stride,
                           const idx_t rows, const int deep, const idx8_t shape, const idx8_t dst_stride,
                           const idx8_t data_stride, const idx8_t indices_stride, const idx_t each TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const idx_t first = (idx_t)get_global_id(0) * each, end = min(first + each, rows);
    __global const loose_t *data = (__global const loose_t *)(bytes + bytes_offset);
    for (idx_t row = first; row < end; ++row) {
        const idx_t which = indices_offset + row_index(row, deep, shape, indices_stride);
        const idx_t chosen = chosen_of(LOAD(T_INDEX, indices, which), axis_size);
        __global const loose_t *from = data + row_index(row, deep, shape, data_stride) + chosen * axis_stride;
        __global STORAGE(T) *to = dst + dst_offset + row_index(row, deep, shape, dst_stride);
        idx_t i = 0;
        for (; i + 16 <= shape.s7; i += 16)
            *(__global loose16_t *)(to + i) = *(__global const loose16_t *)(from + i);
        for (; i < shape.s7; ++i)
            to[i] = from[i];
    }
    TEAM_LEAVE
}
