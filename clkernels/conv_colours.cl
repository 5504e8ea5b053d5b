// SPDX-License-Identifier: Apache-2.0
// A picture of three colours, in planes of float32, as pixels of four bfloat16 of which the last is zero: two pairs of
// channels for a first layer. For CPUs.
//
// gpu: never
// check:
// check: -DINDEX64
#include "common.clh"

#define PIXELS 8
#define BITS(plane) convert_uint8(bf16_from_float8(vload8(0, (plane) + pixel)))

// The range is parts of `each` pixels by 1 by pictures. src_plane, src_picture: strides of src; a picture of dst is dense.
NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
conv_colours(__global uint *dst, const idx_t dst_offset, __global const float *src, const idx_t src_offset,
             const idx_t pixels, const idx_t src_plane, const idx_t src_picture, const idx_t each TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const idx_t picture = (idx_t)get_global_id(2), first = (idx_t)get_global_id(0) * each, end = min(first + each, pixels);
    __global const float *red = src + (src_offset + picture * src_picture), *green = red + src_plane,
                         *blue = green + src_plane;
    __global uint *to = dst + (dst_offset + picture * pixels * 2);
    idx_t pixel = first;
    for (; pixel + PIXELS <= end; pixel += PIXELS) {
        const uint8 low = BITS(red) | BITS(green) << 16, high = BITS(blue);
        vstore16((uint16)(low.s0, high.s0, low.s1, high.s1, low.s2, high.s2, low.s3, high.s3, low.s4, high.s4, low.s5,
                          high.s5, low.s6, high.s6, low.s7, high.s7),
                 0, to + 2 * pixel);
    }
    for (; pixel < end; pixel++) {
        to[2 * pixel] = bf16_from_float(red[pixel]) | (uint)bf16_from_float(green[pixel]) << 16;
        to[2 * pixel + 1] = bf16_from_float(blue[pixel]);
    }
    TEAM_LEAVE
}
