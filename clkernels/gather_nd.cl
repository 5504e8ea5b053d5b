// SPDX-License-Identifier: Apache-2.0
// dst = slices of data at tuples of indices. An index below 0 counts from its axis's end; one that is out of range even
// so takes the nearest element there is.
//
// Defines:
//   T         type of data and dst; bits are moved, so the unsigned integer of the size
//   T_INDEX   I32 or I64
// check: -DT=U32 -DT_INDEX=I64
// check: -DT=U8 -DT_INDEX=I32 -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(T_INDEX)
#error "gather_nd.cl needs T and T_INDEX"
#endif
#include "tuple.clh"

#define ADD_PART(i)                                                                                                    \
    if (tuple > i)                                                                                                     \
        from += chosen_of(LOAD(T_INDEX, indices, which + i * tuple_stride), tuple_shape.s##i) * tuple_step.s##i;

// Dimensions are dst's; indices have stride 0 in those of a slice, data in those of the indices.
__kernel void gather_nd(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *data,
                        const idx_t data_offset, __global const STORAGE(T_INDEX) *indices,
                        const idx_t indices_offset, TUPLE_ARGUMENTS, const idx_t rows, const int deep,
                        const idx8_t shape, const idx8_t dst_stride, const idx8_t data_stride,
                        const idx8_t indices_stride)
{
    const idx_t column = (idx_t)get_global_id(0);
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    const idx_t which_row = indices_offset + row_index(row, deep, shape, indices_stride);
    const idx_t from_row = data_offset + row_index(row, deep, shape, data_stride);
    const idx_t to = dst_offset + row_index(row, deep, shape, dst_stride);
    if (column >= shape.s7 || row >= rows)
        return;
    const idx_t which = which_row + column * indices_stride.s7;
    idx_t from = from_row + column * data_stride.s7;
    FOR_TUPLE(ADD_PART)
    STORE(T, dst, to + column * dst_stride.s7, LOAD(T, data, from));
}
