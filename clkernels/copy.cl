// SPDX-License-Identifier: Apache-2.0
// dst = src, elements of one size.
//
// Defines:
//   T      U8, U16, U32 or U64: by size
//   V      elements of a vector along the columns, where dst has stride 1 and src has stride STEP; 1: any strides
//   STEP   1; 0: the columns of a row are one element
// check: -DT=U32 -DV=16 -DSTEP=1
// check: -DT=U8 -DV=4 -DSTEP=0 -DINDEX64
// check: -DT=U64 -DV=1 -DSTEP=1
#include "common.clh"
#include "walk.clh"
#include "pieces.clh"
#if !defined(T) || !defined(V) || !defined(STEP)
#error "copy.cl needs T, V and STEP"
#endif

#define ELEMENT STORAGE(T)
#if V > 1
#define VECTOR PASTE2_(ELEMENT, V)
#define DST_COLUMN(c) (c)
#define SRC_COLUMN(c) ((c) * STEP)
#else
#define DST_COLUMN(c) ((c) * dst_stride.s7)
#define SRC_COLUMN(c) ((c) * src_stride.s7)
#endif

__kernel void copy(__global ELEMENT *dst, const idx_t dst_offset, PIECE_ARGUMENTS, const idx8_t dst_stride,
                   __global const ELEMENT *src, const idx_t src_offset, const idx8_t src_stride TEAM_ARGUMENTS)
{
    TEAM_ENTER
    FIND_PIECE
    for (idx_t block = first_block; block < end_block; ++block) {
        const idx_t to_block = dst_offset + block_index(block, size, shape, dst_stride);
        const idx_t from_block = src_offset + block_index(block, size, shape, src_stride);
        for (idx_t row = first_row; row < end_row; ++row) {
            __global ELEMENT *const to = dst + (to_block + row * dst_stride.s6);
            __global const ELEMENT *const from = src + (from_block + row * src_stride.s6);
            idx_t column = first_column;
#if V > 1 && STEP
            for (; column + V <= end_column; column += V)
                PASTE2_(vstore, V)(PASTE2_(vload, V)(0, from + column), 0, to + column);
#elif V > 1
            const VECTOR repeated = (VECTOR)(from[0]);
            for (; column + V <= end_column; column += V)
                PASTE2_(vstore, V)(repeated, 0, to + column);
#endif
            for (; column < end_column; ++column)
                to[DST_COLUMN(column)] = from[SRC_COLUMN(column)];
        }
    }
    TEAM_LEAVE
}
