// SPDX-License-Identifier: Apache-2.0
// A convolution's windows as rows of a matrix: [image, depth, row, column] [tap] [channel] bytes, the zero point where a
// tap is in the padding. A work-item copies one tap's channels.
// check:
// check: -DINDEX64
#define T U8
#include "qconv.clh"
#include "rows.clh"

// sizes is (images, depth, rows, columns of the result, channels, 0, 0, 0); strides as in qconv.cl.
__kernel void qconv_columns(__global uchar *dst, const idx_t dst_offset, __global const uchar *src,
                            const idx_t src_offset, __global const uchar *src_zero, const idx_t src_zero_offset,
                            const idx8_t sizes, const idx4_t src_size, const idx4_t taps, const idx4_t step,
                            const idx4_t dilation, const idx4_t pad, const idx8_t src_stride, const int has_zero)
{
    const idx_t tap = (idx_t)get_global_id(0), count = taps.s0 * taps.s1 * taps.s2;
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    idx_t rest = row, kd = tap;
    const idx_t w = take_index(&rest, sizes.s3), h = take_index(&rest, sizes.s2), d = take_index(&rest, sizes.s1);
    const idx_t kw = take_index(&kd, taps.s2), kh = take_index(&kd, taps.s1);
    if (tap >= count || rest >= sizes.s0)
        return;
    const idx_t sd = d * step.s0 - pad.s0 + kd * dilation.s0, sh = h * step.s1 - pad.s1 + kh * dilation.s1;
    const idx_t sw = w * step.s2 - pad.s2 + kw * dilation.s2;
    __global uchar *to = dst + (dst_offset + (row * count + tap) * sizes.s4);
    if (sd < 0 || sd >= src_size.s0 || sh < 0 || sh >= src_size.s1 || sw < 0 || sw >= src_size.s2) {
        const uchar zero = has_zero ? src_zero[src_zero_offset] : 0;
        for (idx_t c = 0; c < sizes.s4; c++)
            to[c] = zero;
        return;
    }
    __global const uchar *from = src + (src_offset + rest * src_stride.s0 + sd * src_stride.s2 + sh * src_stride.s3 +
                                        sw * src_stride.s4);
    if (src_stride.s1 == 1) {
        copy_row(to, from, sizes.s4);
        return;
    }
    for (idx_t c = 0; c < sizes.s4; c++)
        to[c] = from[c * src_stride.s1];
}
