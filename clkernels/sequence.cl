// SPDX-License-Identifier: Apache-2.0
// Elements moved along an axis by lengths or places that come from a tensor.
//
// Defines:
//   T         type of src and dst; bits are moved, so the unsigned integer of the size
//   T_INDEX   I32 or I64
//
// Entry points:
//   reverse_sequence   the first `numbers` elements of each line in reverse, the others as they are
//   write_sequence     writes lines of src into dst from place `numbers` on; places out of range are left out, or, with
//                      `circular`, taken from the beginning again
// check: -DT=U32 -DT_INDEX=I64
// check: -DT=U8 -DT_INDEX=I64 -DINDEX64
#include "common.clh"
#include "walk.clh"
#if !defined(T) || !defined(T_INDEX)
#error "sequence.cl needs T and T_INDEX"
#endif

#define ARGUMENTS                                                                                                      \
    __global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src, const idx_t src_offset,          \
        __global const STORAGE(T_INDEX) *numbers, const idx_t numbers_offset, const idx_t lines, const int deep,       \
        const idx8_t shape, const idx8_t dst_stride, const idx8_t src_stride, const idx8_t numbers_stride,             \
        const idx_t length, const idx_t dst_step, const idx_t src_step
#define FIND_ELEMENT                                                                                                   \
    const idx_t column = (idx_t)get_global_id(0);                                                                      \
    const idx_t line = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);                  \
    const idx_t which = numbers_offset + element_index(line, deep, shape, numbers_stride);                             \
    const idx_t from = src_offset + element_index(line, deep, shape, src_stride);                                      \
    const idx_t to = dst_offset + element_index(line, deep, shape, dst_stride);                                        \
    if (column >= length || line >= lines)                                                                             \
        return;                                                                                                        \
    const COMPUTE(T_INDEX) number = LOAD(T_INDEX, numbers, which);

__kernel void reverse_sequence(ARGUMENTS)
{
    FIND_ELEMENT
    const idx_t reversed = (idx_t)min((long)number, (long)length);
    const idx_t other = column < reversed ? reversed - 1 - column : column;
    STORE(T, dst, to + column * dst_step, LOAD(T, src, from + other * src_step));
}

__kernel void write_sequence(ARGUMENTS, const idx_t places, const int circular)
{
    FIND_ELEMENT
    long place = (long)number;
    if (circular) {
        place = place % (long)places + (long)column;
        place += place < 0 ? (long)places : 0;
        place -= place >= (long)places ? (long)places : 0;
    } else if (place < 0 || place >= (long)places) {
        return;
    } else {
        place += (long)column;
    }
    if (place < (long)places)
        STORE(T, dst, to + (idx_t)place * dst_step, LOAD(T, src, from + column * src_step));
}
