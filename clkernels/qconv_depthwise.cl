// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers with one channel a group, for CPUs: a work-item computes 8 channels of a row of pixels.
// Channels are neighbours in src and dst; the last 8 are moved back to be full.
// gpu: never
// check:
// check: -DINDEX64
#include "qconv.clh"

#define V 8
#define MAX_TAPS 64 // as in qconv.c

// The arguments are qconv.cl's.
__kernel void qconv_depthwise(__global int *restrict dst, const idx_t dst_offset, __global const uchar *src,
                              const idx_t src_offset, __global const uchar *weight, const idx_t weight_offset,
                              __global const uchar *src_zero, const idx_t src_zero_offset,
                              __global const uchar *weight_zero, const idx_t weight_zero_offset, const idx8_t sizes,
                              const idx4_t src_size, const idx4_t taps, const idx4_t step, const idx4_t dilation,
                              const idx4_t pad, const idx8_t dst_stride, const idx8_t src_stride,
                              const idx8_t weight_stride, const int4 flags)
{
    const idx_t m = min((idx_t)get_global_id(0) * V, sizes.s1 - V);
    idx_t rest = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    const idx_t h = take_index(&rest, sizes.s3), d = take_index(&rest, sizes.s2);
    if ((idx_t)get_global_id(0) * V >= sizes.s1 || rest >= sizes.s0)
        return;
    int8 weights[MAX_TAPS];
    int t = 0;
    for (idx_t kd = 0; kd < taps.s0; kd++)
        for (idx_t kh = 0; kh < taps.s1; kh++)
            for (idx_t kw = 0; kw < taps.s2; kw++, t++) {
                int lanes[V];
                for (int i = 0; i < V; i++) {
                    const idx_t at = weight_offset + (m + i) * weight_stride.s0 + kd * weight_stride.s2 +
                                     kh * weight_stride.s3 + kw * weight_stride.s4;
                    const idx_t zero_at = weight_zero_offset + (m + i) * sizes.s7;
                    lanes[i] = LOAD_BYTE(weight, at, flags.s1) -
                               (flags.s3 ? LOAD_BYTE(weight_zero, zero_at, flags.s1) : 0);
                }
                weights[t] = vload8(0, lanes);
            }
    const int8 zero = flags.s2 ? LOAD_BYTE(src_zero, src_zero_offset, flags.s0) : 0;
    __global const uchar *image = src + (src_offset + rest * src_stride.s0 + m);
    for (idx_t w = 0; w < sizes.s4; w++) {
        int8 sum = 0;
        for (idx_t kd = 0; kd < taps.s0; kd++) {
            const idx_t sd = d * step.s0 - pad.s0 + kd * dilation.s0;
            if (sd < 0 || sd >= src_size.s0)
                continue;
            for (idx_t kh = 0; kh < taps.s1; kh++) {
                const idx_t sh = h * step.s1 - pad.s1 + kh * dilation.s1;
                if (sh < 0 || sh >= src_size.s1)
                    continue;
                const int first = (int)((kd * taps.s1 + kh) * taps.s2);
                for (idx_t kw = 0; kw < taps.s2; kw++) {
                    const idx_t sw = w * step.s2 - pad.s2 + kw * dilation.s2;
                    if (sw < 0 || sw >= src_size.s2)
                        continue;
                    const uchar8 bytes =
                        vload8(0, image + (sd * src_stride.s2 + sh * src_stride.s3 + sw * src_stride.s4));
                    const int8 value = flags.s0 ? convert_int8(as_char8(bytes)) : convert_int8(bytes);
                    sum += (value - zero) * weights[first + (int)kw];
                }
            }
        }
        vstore8(sum, 0,
                dst + (dst_offset + rest * dst_stride.s0 + m + d * dst_stride.s2 + h * dst_stride.s3 +
                       w * dst_stride.s4));
    }
}
