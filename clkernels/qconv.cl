// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers with zero points: sums of products, any strides, groups. One element a work-item.
// check:
// check: -DINDEX64
#include "qconv.clh"

// sizes is (images, channels of dst, its depth, rows, columns, input channels of a group, channels of dst of a group,
// stride of the weight's zero points). Strides of dst and src: image, channel, depth, row, column; of the weight: channel
// of dst, channel of src, depth, row, column.
__kernel void qconv(__global int *dst, const idx_t dst_offset, __global const uchar *src, const idx_t src_offset,
                    __global const uchar *weight, const idx_t weight_offset, __global const uchar *src_zero,
                    const idx_t src_zero_offset, __global const uchar *weight_zero, const idx_t weight_zero_offset,
                    const idx8_t sizes, const idx4_t src_size, const idx4_t taps, const idx4_t step,
                    const idx4_t dilation, const idx4_t pad, const idx8_t dst_stride, const idx8_t src_stride,
                    const idx8_t weight_stride, const int4 flags)
{
    const idx_t m = (idx_t)get_global_id(0);
    idx_t rest = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    const idx_t w = take_index(&rest, sizes.s4), h = take_index(&rest, sizes.s3), d = take_index(&rest, sizes.s2);
    if (m >= sizes.s1 || rest >= sizes.s0)
        return;
    const int zero = flags.s2 ? LOAD_BYTE(src_zero, src_zero_offset, flags.s0) : 0;
    const int weight_is = flags.s3 ? LOAD_BYTE(weight_zero, weight_zero_offset + m * sizes.s7, flags.s1) : 0;
    const idx_t group = m / sizes.s6;
    __global const uchar *image = src + (src_offset + rest * src_stride.s0 + group * sizes.s5 * src_stride.s1);
    __global const uchar *kernel_of = weight + (weight_offset + m * weight_stride.s0);
    uint sum = 0;
    for (idx_t kd = 0; kd < taps.s0; kd++) {
        const idx_t sd = d * step.s0 - pad.s0 + kd * dilation.s0;
        if (sd < 0 || sd >= src_size.s0)
            continue;
        for (idx_t kh = 0; kh < taps.s1; kh++) {
            const idx_t sh = h * step.s1 - pad.s1 + kh * dilation.s1;
            if (sh < 0 || sh >= src_size.s1)
                continue;
            for (idx_t kw = 0; kw < taps.s2; kw++) {
                const idx_t sw = w * step.s2 - pad.s2 + kw * dilation.s2;
                if (sw < 0 || sw >= src_size.s2)
                    continue;
                idx_t at = sd * src_stride.s2 + sh * src_stride.s3 + sw * src_stride.s4;
                idx_t by = kd * weight_stride.s2 + kh * weight_stride.s3 + kw * weight_stride.s4;
                for (idx_t c = 0; c < sizes.s5; c++) {
                    sum += (uint)((LOAD_BYTE(image, at, flags.s0) - zero) *
                                  (LOAD_BYTE(kernel_of, by, flags.s1) - weight_is));
                    at += src_stride.s1;
                    by += weight_stride.s1;
                }
            }
        }
    }
    dst[dst_offset + rest * dst_stride.s0 + m * dst_stride.s1 + d * dst_stride.s2 + h * dst_stride.s3 +
        w * dst_stride.s4] = as_int(sum);
}
