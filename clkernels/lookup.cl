// SPDX-License-Identifier: Apache-2.0
// dst = the value at src's place among sorted keys, or the last value when src is no key. NaN is above all numbers, and a key
// like any other.
//
// Defines:
//   T_KEY  type of src and keys: I64, F32 or F64
//   T      type of values and dst; bits are moved, so the unsigned integer of the size
// check: -DT_KEY=I64 -DT=U32
// check: -DT_KEY=F64 -DT=U64 -DUSE_F64 -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T_KEY) || !defined(T)
#error "lookup.cl needs T_KEY and T"
#endif

static inline bool comes_before(const STORAGE(T_KEY) a, const STORAGE(T_KEY) b)
{
#if IS_FLOAT(T_KEY)
    return a < b || (b != b && a == a);
#else
    return a < b;
#endif
}

__kernel void lookup(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T_KEY) *src,
                     const idx_t src_offset, __global const STORAGE(T_KEY) *keys, const idx_t keys_offset,
                     __global const STORAGE(T) *values, const idx_t values_offset, const idx_t rows, const int deep,
                     const idx8_t shape, const idx8_t dst_stride, const idx8_t src_stride, const int count)
{
    const idx_t column = (idx_t)get_global_id(0);
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    const idx_t from = src_offset + row_index(row, deep, shape, src_stride);
    const idx_t to = dst_offset + row_index(row, deep, shape, dst_stride);
    if (column >= shape.s7 || row >= rows)
        return;
    const STORAGE(T_KEY) x = src[from + column * src_stride.s7];
    int low = 0, high = count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (comes_before(keys[keys_offset + middle], x))
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < count && !comes_before(x, keys[keys_offset + (low < count ? low : 0)]);
    dst[to + column * dst_stride.s7] = values[values_offset + (found ? low : count)];
}
