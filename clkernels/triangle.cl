// SPDX-License-Identifier: Apache-2.0
// dst = src on one side of a diagonal of each matrix, else 0.
//
// Defines:
//   T       type of src and dst; bits are moved, so the unsigned integer of the size
//   UPPER   1: on and right of the diagonal, 0: on and left of it
// check: -DT=U32 -DUPPER=1
// check: -DT=U8 -DUPPER=0 -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(UPPER)
#error "triangle.cl needs T and UPPER"
#endif

// Components 6 and 7 are a matrix's rows and columns. The diagonal lies diagonal[diagonal_offset] columns to the right.
__kernel void triangle(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src,
                       const idx_t src_offset, __global const long *diagonal, const idx_t diagonal_offset,
                       const idx_t rows, const int deep, const idx8_t shape, const idx8_t dst_stride,
                       const idx8_t src_stride)
{
    const idx_t column = (idx_t)get_global_id(0);
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    const idx_t from = src_offset + row_index(row, deep, shape, src_stride);
    const idx_t to = dst_offset + row_index(row, deep, shape, dst_stride);
    const idx_t matrix = row / shape.s6, matrix_row = row - matrix * shape.s6;
    if (column >= shape.s7 || row >= rows)
        return;
    const long beyond = (long)column - (long)matrix_row, limit = diagonal[diagonal_offset];
    const bool kept = UPPER ? beyond >= limit : beyond <= limit;
    STORE(T, dst, to + column * dst_stride.s7, kept ? LOAD(T, src, from + column * src_stride.s7) : 0);
}
