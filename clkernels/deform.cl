// SPDX-License-Identifier: Apache-2.0
// The columns of a deformable convolution: for each tap of its window, the source where an offset moves it.
//
// Defines:
//   T        float type
//   MASK     each is multiplied by a number of the mask
//   INDEX64  see common.clh
// check: -DT=F32
// check: -DT=F16 -DMASK -DINDEX64
#include "common.clh"
#include "index.clh"
#ifndef T
#error "deform.cl needs T"
#endif
#define VALUE COMPUTE(T)

static inline VALUE pixel(__global const STORAGE(T) *src, const idx_t from, const idx2_t stride, const int2 size,
                          const int y, const int x)
{
    const bool inside = y >= 0 && y < size.y && x >= 0 && x < size.x;
    return inside ? LOAD(T, src, from + y * stride.y + x * stride.x) : 0;
}

// Whole pixels below a position; what is far outside, or NaN, some number outside.
static inline VALUE below(const VALUE x, const int size)
{
    return fmax(fmin(floor(x), (VALUE)size + 1), (VALUE)-3);
}

// Pairs are (x, y). dst: n, c, tap, h, w. Offsets: n, pair and tap (offset_stride.y; y before x), h, w; the mask's
// likewise. `sizes`: channels, those that share offsets, n, taps.
__kernel void deform(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src,
                     const idx_t src_offset, __global const STORAGE(T) *offsets, const idx_t offsets_offset,
#ifdef MASK
                     __global const STORAGE(T) *mask, const idx_t mask_offset, const idx4_t mask_stride,
#endif
                     const int4 sizes, const int2 src_size, const int2 dst_size, const int2 window, const int2 step,
                     const int2 dilation, const int2 pad, const idx4_t src_stride, const idx8_t dst_stride,
                     const idx4_t offset_stride)
{
    const int at = (int)get_global_id(0), tap_of_image = (int)get_global_id(2);
    idx_t rest = at, other = (idx_t)get_global_id(1), image = tap_of_image;
    if (at >= dst_size.x * dst_size.y || other >= sizes.x || tap_of_image >= sizes.z * sizes.w)
        return;
    const int w = (int)take_index(&rest, dst_size.x), h = (int)rest, c = (int)other;
    const int tap = (int)take_index(&image, sizes.w), n = (int)image;
    idx_t row = tap;
    const int kx = (int)take_index(&row, window.x), ky = (int)row;
    const idx_t group = c / sizes.y, shared = group * sizes.w + tap;
    const idx_t moved = offsets_offset + n * offset_stride.x + 2 * shared * offset_stride.y + h * offset_stride.z +
                        w * offset_stride.w;
    const VALUE y = (VALUE)(h * step.y - pad.y + ky * dilation.y) + LOAD(T, offsets, moved);
    const VALUE x = (VALUE)(w * step.x - pad.x + kx * dilation.x) + LOAD(T, offsets, moved + offset_stride.y);
    const VALUE low_y = below(y, src_size.y), low_x = below(x, src_size.x);
    const bool outside = y < -1 || y > src_size.y || x < -1 || x > src_size.x;
    const VALUE part_y = outside ? 0 : y - low_y, part_x = outside ? 0 : x - low_x;
    const idx_t from = src_offset + n * src_stride.x + c * src_stride.y;
    const int top = (int)low_y, left = (int)low_x;
    VALUE value = (1 - part_y) * (1 - part_x) * pixel(src, from, src_stride.wz, src_size, top, left) +
                  (1 - part_y) * part_x * pixel(src, from, src_stride.wz, src_size, top, left + 1) +
                  part_y * (1 - part_x) * pixel(src, from, src_stride.wz, src_size, top + 1, left) +
                  part_y * part_x * pixel(src, from, src_stride.wz, src_size, top + 1, left + 1);
    value = outside ? 0 : value;
#ifdef MASK
    value *= LOAD(T, mask, mask_offset + n * mask_stride.x + shared * mask_stride.y + h * mask_stride.z +
                               w * mask_stride.w);
#endif
    STORE(T, dst,
          dst_offset + n * dst_stride.s0 + c * dst_stride.s1 + tap * dst_stride.s2 + h * dst_stride.s3 +
              w * dst_stride.s4,
          value);
}
