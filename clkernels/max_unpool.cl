// SPDX-License-Identifier: Apache-2.0
// ONNX's MaxUnpool: elements go where indices say, which count the elements of `shape`, row-major.
//
// Defines:
//   T        type of src and dst; bits are moved, so the unsigned integer of the size
//   INDEX64  see common.clh
//
// What an index puts outside is left out. Where several put one element, one of them stays.
// check: -DT=U32
// check: -DT=U16 -DINDEX64
#include "common.clh"
#include "index.clh"
#include "walk.clh"
#ifndef T
#error "max_unpool.cl needs T"
#endif

__kernel void max_unpool(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src,
                         const idx_t src_offset, __global const long *indices, const idx_t indices_offset,
                         const idx_t count, const idx_t places, const idx8_t src_shape, const idx8_t src_stride,
                         const idx8_t indices_stride, const idx8_t shape, const idx8_t dst_stride)
{
    const idx_t at = (idx_t)get_global_id(0);
    if (at >= count)
        return;
    const long place = indices[indices_offset + element_index(at, 1, src_shape, indices_stride)];
    if (place < 0 || place >= (long)places)
        return;
    const idx_t to = dst_offset + element_index((idx_t)place, 1, shape, dst_stride);
    STORE(T, dst, to, LOAD(T, src, src_offset + element_index(at, 1, src_shape, src_stride)));
}
