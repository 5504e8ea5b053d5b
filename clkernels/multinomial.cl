// SPDX-License-Identifier: Apache-2.0
// Draws classes: dst = the first class whose cumulative weight is above a random part of the whole.
//
// Defines:
//   T      type of sums and uniforms: F32 or F64
//   T_DST  I32 or I64
// check: -DT=F32 -DT_DST=I32
// check: -DT=F64 -DUSE_F64 -DT_DST=I64 -DINDEX64
#include "common.clh"
#if !defined(T) || !defined(T_DST)
#error "multinomial.cl needs T and T_DST"
#endif

// sums: rows of `classes` sums so far; uniforms: in [0, 1), as dst. Strides are of rows and columns.
__kernel void multinomial(__global STORAGE(T_DST) *dst, const idx_t dst_offset, const idx2_t dst_stride,
                          __global const STORAGE(T) *sums, const idx_t sums_offset, const idx2_t sums_stride,
                          __global const STORAGE(T) *uniforms, const idx_t uniforms_offset, const idx2_t uniforms_stride,
                          const idx_t rows, const idx_t columns, const idx_t classes)
{
    const idx_t column = (idx_t)get_global_id(0), row = (idx_t)get_global_id(1);
    if (column >= columns || row >= rows)
        return;
    const idx_t line = sums_offset + row * sums_stride.s0;
    const STORAGE(T) whole = sums[line + (classes - 1) * sums_stride.s1];
    const STORAGE(T) part =
        whole * uniforms[uniforms_offset + row * uniforms_stride.s0 + column * uniforms_stride.s1];
    idx_t low = 0, high = classes - 1; // the last one's sum is not looked at: it is the whole
    while (low < high) {
        const idx_t middle = low + (high - low) / 2;
        const STORAGE(T) sum = sums[line + middle * sums_stride.s1];
        if (sum > part || sum >= whole)
            high = middle;
        else
            low = middle + 1;
    }
    STORE(T_DST, dst, dst_offset + row * dst_stride.s0 + column * dst_stride.s1, low);
}
