// SPDX-License-Identifier: Apache-2.0
// ONNX's Col2Im: each pixel is the sum of what the blocks hold of it.
//
// Defines:
//   T        type of src and dst
//   INDEX64  see common.clh
// check: -DT=F32
// check: -DT=U8 -DINDEX64
#include "common.clh"
#include "index.clh"
#include "walk.clh"
#ifndef T
#error "col2im.cl needs T"
#endif

// Along one axis: the tap `k % block` of the block that has the pixel, if one starts where it must.
#define FIND_BLOCK(axis)                                                                                               \
    {                                                                                                                  \
        const idx_t tap = take_index(&k, block.axis), first = pixel.axis + pad.axis - tap * dilation.axis;             \
        const idx_t number = first < 0 ? -1 : first / step.axis;                                                       \
        found = found && number >= 0 && number < blocks.axis && number * step.axis == first;                           \
        column += number * before;                                                                                     \
        before *= blocks.axis;                                                                                         \
    }
#define FIND_PIXEL(axis) pixel.axis = take_index(&rest, image.axis);

// Components 2 to 7 are the spatial dimensions, unused ones have size 1; strides: n, c, the spatial ones for dst; n, c,
// tap, column for src. sizes: pixels, taps, channels, images.
__kernel void col2im(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src,
                     const idx_t src_offset, const idx4_t sizes, const idx8_t image, const idx8_t block,
                     const idx8_t blocks, const idx8_t pad, const idx8_t dilation, const idx8_t step,
                     const idx8_t dst_stride, const idx4_t src_stride)
{
    const idx_t at = (idx_t)get_global_id(0), c = (idx_t)get_global_id(1), n = (idx_t)get_global_id(2);
    if (at >= sizes.x || c >= sizes.z || n >= sizes.w)
        return;
    idx_t rest = at;
    idx8_t pixel = (idx8_t)(0);
    FIND_PIXEL(s7)
    FIND_PIXEL(s6)
    FIND_PIXEL(s5)
    FIND_PIXEL(s4)
    FIND_PIXEL(s3)
    FIND_PIXEL(s2)
    COMPUTE(T) sum = 0;
    const idx_t from = src_offset + n * src_stride.x + c * src_stride.y;
    for (idx_t tap_number = 0; tap_number < sizes.y; tap_number++) {
        idx_t k = tap_number, column = 0, before = 1;
        bool found = true;
        FIND_BLOCK(s7)
        FIND_BLOCK(s6)
        FIND_BLOCK(s5)
        FIND_BLOCK(s4)
        FIND_BLOCK(s3)
        FIND_BLOCK(s2)
        if (found)
            sum += LOAD(T, src, from + tap_number * src_stride.z + column * src_stride.w);
    }
    const idx8_t product = pixel * dst_stride;
    STORE(T, dst,
          dst_offset + n * dst_stride.s0 + c * dst_stride.s1 + product.s2 + product.s3 + product.s4 + product.s5 +
              product.s6 + product.s7,
          sum);
}
