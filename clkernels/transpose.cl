// SPDX-License-Identifier: Apache-2.0
// Copies whose innermost dimensions differ (dst has another contiguous dimension than src), and copies of rows.
//
// Defines:
//   T   type of the elements; bits are moved, so the unsigned integer of the size
//
// A matrix of src and dst: element (row, column) lies at row + column * src_column in src, at row * dst_row + column in
// dst. There are `count` matrices; where each starts follows from their number, shape and strides.
//
// Entry points:
//   transpose_blocks       for CPUs: a work-item moves up to tile_rows x TILE_COLUMNS elements of each of `each` matrices,
//                          in blocks of 4 x 4
//   transpose_tiles        for GPUs: a work-group moves TILE x TILE elements through local memory
//   transpose_interleave   for CPUs: 3 columns, dst_row is 3; a work-item takes `each` rows
//   transpose_separate     for CPUs: 3 rows, src_column is 3; a work-item takes `each` columns
//   copy_rows              for CPUs: no matrices, but rows that both have; a work-item takes `each`
// check: -DT=U32
// check: -DT=U16 -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T)
#error "transpose.cl needs T"
#endif
#include "rows.clh"
typedef STORAGE(T) element_t;
typedef PASTE2_(STORAGE(T), 4) block_t;
#define TILE_COLUMNS 32
#define TILE 16

#define MATRICES                                                                                                       \
    __global element_t *dst, const idx_t dst_offset, __global const element_t *src, const idx_t src_offset,            \
        const idx_t rows, const idx_t columns, const idx_t dst_row, const idx_t src_column, const int deep,            \
        const idx8_t shape, const idx8_t dst_stride, const idx8_t src_stride
#define FIND_MATRIX(number)                                                                                            \
    __global element_t *to = dst + dst_offset + element_index(number, deep, shape, dst_stride);                        \
    __global const element_t *from = src + src_offset + element_index(number, deep, shape, src_stride)

// The part of one matrix with rows row … row_end - 1 and columns column0 … column_end - 1.
static inline void transpose_block(__global element_t *to, __global const element_t *from, idx_t row, const idx_t row_end,
                                   const idx_t column0, const idx_t column_end, const idx_t dst_row,
                                   const idx_t src_column)
{
    for (; row + 4 <= row_end; row += 4) {
        idx_t column = column0;
        __global const element_t *p = from + row;
        __global element_t *q = to + row * dst_row;
        for (; column + 4 <= column_end; column += 4) {
            const block_t a = vload4(0, p + column * src_column), b = vload4(0, p + (column + 1) * src_column);
            const block_t c = vload4(0, p + (column + 2) * src_column), d = vload4(0, p + (column + 3) * src_column);
            vstore4((block_t)(a.s0, b.s0, c.s0, d.s0), 0, q + column);
            vstore4((block_t)(a.s1, b.s1, c.s1, d.s1), 0, q + dst_row + column);
            vstore4((block_t)(a.s2, b.s2, c.s2, d.s2), 0, q + 2 * dst_row + column);
            vstore4((block_t)(a.s3, b.s3, c.s3, d.s3), 0, q + 3 * dst_row + column);
        }
        for (; column < column_end; ++column) {
            const block_t a = vload4(0, p + column * src_column);
            q[column] = a.s0;
            q[column + dst_row] = a.s1;
            q[column + 2 * dst_row] = a.s2;
            q[column + 3 * dst_row] = a.s3;
        }
    }
    for (; row < row_end; ++row)
        for (idx_t column = column0; column < column_end; ++column)
            to[row * dst_row + column] = from[column * src_column + row];
}

__kernel void transpose_blocks(MATRICES, const idx_t tile_rows, const idx_t count, const idx_t each TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const idx_t column0 = (idx_t)get_global_id(0) * TILE_COLUMNS, row0 = (idx_t)get_global_id(1) * tile_rows;
    const idx_t column_end = min(columns, column0 + TILE_COLUMNS), row_end = min(rows, row0 + tile_rows);
    const idx_t first = (idx_t)get_global_id(2) * each, end = min(first + each, count);
    for (idx_t number = first; number < end; ++number) {
        FIND_MATRIX(number);
        transpose_block(to, from, row0, row_end, column0, column_end, dst_row, src_column);
    }
    TEAM_LEAVE
}

// For any size of work-group: with smaller ones than tiles there are groups that have none. One more column keeps a
// tile's columns in different banks.
__kernel void transpose_tiles(MATRICES TEAM_ARGUMENTS)
{
    TEAM_ENTER
    __local element_t tile[TILE][TILE + 1];
    FIND_MATRIX((idx_t)get_global_id(2));
    const int width = (int)get_local_size(0), items = width * (int)get_local_size(1);
    const int item = (int)get_local_id(1) * width + (int)get_local_id(0);
    const idx_t column0 = (idx_t)get_group_id(0) * TILE, row0 = (idx_t)get_group_id(1) * TILE;
    for (int i = item; i < TILE * TILE; i += items) {
        const int x = i % TILE, y = i / TILE;
        if (row0 + x < rows && column0 + y < columns)
            tile[y][x] = from[(column0 + y) * src_column + row0 + x];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = item; i < TILE * TILE; i += items) {
        const int x = i % TILE, y = i / TILE;
        if (row0 + y < rows && column0 + x < columns)
            to[(row0 + y) * dst_row + column0 + x] = tile[x][y];
    }
    TEAM_LEAVE
}

__kernel void transpose_interleave(MATRICES, const idx_t each TEAM_ARGUMENTS)
{
    TEAM_ENTER
    FIND_MATRIX((idx_t)get_global_id(2));
    idx_t row = (idx_t)get_global_id(0) * each;
    const idx_t row_end = min(rows, row + each);
    for (; row + 4 <= row_end; row += 4) {
        __global const element_t *p = from + row;
        const block_t a = vload4(0, p), b = vload4(0, p + src_column), c = vload4(0, p + 2 * src_column);
        vstore4((block_t)(a.s0, b.s0, c.s0, a.s1), 0, to + 3 * row);
        vstore4((block_t)(b.s1, c.s1, a.s2, b.s2), 0, to + 3 * row + 4);
        vstore4((block_t)(c.s2, a.s3, b.s3, c.s3), 0, to + 3 * row + 8);
    }
    for (; row < row_end; ++row)
        for (int column = 0; column < 3; ++column)
            to[3 * row + column] = from[column * src_column + row];
    TEAM_LEAVE
}

__kernel void transpose_separate(MATRICES, const idx_t each TEAM_ARGUMENTS)
{
    TEAM_ENTER
    FIND_MATRIX((idx_t)get_global_id(2));
    idx_t column = (idx_t)get_global_id(0) * each;
    const idx_t column_end = min(columns, column + each);
    for (; column + 4 <= column_end; column += 4) {
        __global const element_t *p = from + 3 * column;
        const block_t a = vload4(0, p), b = vload4(0, p + 4), c = vload4(0, p + 8);
        vstore4((block_t)(a.s0, a.s3, b.s2, c.s1), 0, to + column);
        vstore4((block_t)(a.s1, b.s0, b.s3, c.s2), 0, to + dst_row + column);
        vstore4((block_t)(a.s2, b.s1, c.s0, c.s3), 0, to + 2 * dst_row + column);
    }
    for (; column < column_end; ++column)
        for (int row = 0; row < 3; ++row)
            to[row * dst_row + column] = from[3 * column + row];
    TEAM_LEAVE
}

// `count` rows in all, numbered as the dimensions but the innermost are.
__kernel void copy_rows(__global element_t *dst, const idx_t dst_offset, __global const element_t *src,
                        const idx_t src_offset, const idx_t count, const int deep, const idx8_t shape,
                        const idx8_t dst_stride, const idx8_t src_stride, const idx_t each TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const idx_t first = (idx_t)get_global_id(0) * each, end = min(first + each, count);
    for (idx_t row = first; row < end; ++row)
        copy_row(dst + dst_offset + row_index(row, deep, shape, dst_stride),
                 src + src_offset + row_index(row, deep, shape, src_stride), shape.s7);
    TEAM_LEAVE
}
