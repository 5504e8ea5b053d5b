// SPDX-License-Identifier: Apache-2.0
// Determinants of square matrices, a work-item each: by elimination, a column's largest element first. Every row stays
// where it is in a copy of the matrix, which is worked on.
//
// Defines:
//   T, T_WORK  types of the matrices, and of the copies: F32 or F64
//   INDEX64    see common.clh
// check: -DT=F32 -DT_WORK=F32
// check: -DT=BF16 -DT_WORK=F32 -DINDEX64
#if !defined(T) || !defined(T_WORK)
#error "det.cl needs T and T_WORK"
#endif
#include "common.clh"
#include "walk.clh"
#define REAL COMPUTE(T_WORK)

static inline void swap_rows(__global REAL *a, __global REAL *b, const idx_t columns)
{
    for (idx_t i = 0; i < columns; i++) {
        const REAL kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

// The row of the largest element of column `at`, from row `at` on. A NaN is never smaller.
static inline idx_t find_pivot(__global const REAL *matrix, const idx_t at, const idx_t n)
{
    idx_t best = at;
    for (idx_t row = at + 1; row < n; row++)
        if (!(fabs(matrix[row * n + at]) <= fabs(matrix[best * n + at])))
            best = row;
    return best;
}

// matrix: the strides of src's rows and columns.
__kernel void det(__global const STORAGE(T) *src, const idx_t src_offset, __global STORAGE(T) *dst, const idx_t dst_offset,
                  __global REAL *work, const idx_t work_offset, const idx_t n, const idx2_t matrix, const idx_t rows,
                  const int deep, const idx8_t shape, const idx8_t src_stride, const idx8_t dst_stride)
{
    const idx_t column = (idx_t)get_global_id(0);
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    if (column >= shape.s7 || row >= rows)
        return;
    const idx_t number = row * shape.s7 + column;
    const idx_t from = src_offset + element_index(number, deep, shape, src_stride);
    __global REAL *copy = work + work_offset + number * n * n;
    for (idx_t i = 0; i < n; i++)
        for (idx_t j = 0; j < n; j++)
            copy[i * n + j] = LOAD(T, src, from + i * matrix.s0 + j * matrix.s1);
    REAL product = 1;
    for (idx_t k = 0; k < n; k++) {
        const idx_t pivot = find_pivot(copy, k, n);
        if (pivot != k) {
            swap_rows(copy + pivot * n + k, copy + k * n + k, n - k);
            product = -product;
        }
        const REAL first = copy[k * n + k];
        product *= first;
        if (first == 0)
            break;
        for (idx_t i = k + 1; i < n; i++) {
            const REAL factor = copy[i * n + k] / first;
            for (idx_t j = k + 1; j < n; j++)
                copy[i * n + j] -= factor * copy[k * n + j];
        }
    }
    STORE(T, dst, dst_offset + element_index(number, deep, shape, dst_stride), product);
}
