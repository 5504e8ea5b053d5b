// SPDX-License-Identifier: Apache-2.0
// A convolution's windows as rows of a matrix: [image, depth, row, column] [tap] [channel] bytes, the zero point where a
// tap is in the padding. A work-item copies the windows of `each` columns of a row.
// check:
// check: -DINDEX64
#define T U8
#include "qconv.clh"
#include "rows.clh"

// `count` taps of a line, the first at column `first` of it: those from `begin` to `end` are inside.
static inline void copy_line(__global uchar *to, __global const uchar *line, const idx_t first, const idx_t count,
                             const idx_t begin, const idx_t end, const idx_t step, const idx_t channels,
                             const idx_t pixel_stride, const idx_t channel_stride, const uchar zero)
{
    for (idx_t i = 0; i < begin * channels; i++)
        to[i] = zero;
    for (idx_t i = end * channels; i < count * channels; i++)
        to[i] = zero;
    if (channel_stride == 1 && pixel_stride == channels && step == 1) {
        copy_row(to + begin * channels, line + (first + begin) * pixel_stride, (end - begin) * channels);
        return;
    }
    for (idx_t k = begin; k < end; k++) {
        __global const uchar *from = line + (first + k * step) * pixel_stride;
        if (channel_stride == 1) {
            copy_row(to + k * channels, from, channels);
            continue;
        }
        for (idx_t c = 0; c < channels; c++)
            to[k * channels + c] = from[c * channel_stride];
    }
}

// sizes is (images, depth, rows, columns of the result, channels, 0, 0, 0); strides as in qconv.cl.
__kernel void qconv_columns(__global uchar *dst, const idx_t dst_offset, __global const uchar *src,
                            const idx_t src_offset, __global const uchar *src_zero, const idx_t src_zero_offset,
                            const idx8_t sizes, const idx4_t src_size, const idx4_t taps, const idx4_t step,
                            const idx4_t dilation, const idx4_t pad, const idx8_t src_stride, const int has_zero,
                            const int each TEAM_ARGUMENTS)
{
    TEAM_ENTER
    const idx_t first = (idx_t)get_global_id(0) * each, last = min(first + (idx_t)each, sizes.s3);
    const idx_t row = (idx_t)get_global_id(2) * (idx_t)get_global_size(1) + (idx_t)get_global_id(1);
    idx_t rest = row;
    const idx_t h = take_index(&rest, sizes.s2), d = take_index(&rest, sizes.s1);
    if (rest >= sizes.s0) {
        TEAM_LEAVE
        return;
    }
    const uchar zero = has_zero ? src_zero[src_zero_offset] : 0;
    const idx_t line_bytes = taps.s2 * sizes.s4, window_bytes = taps.s0 * taps.s1 * line_bytes;
    __global uchar *to = dst + (dst_offset + (row * sizes.s3 + first) * window_bytes);
    for (idx_t w = first; w < last; w++) {
        const idx_t sw = w * step.s2 - pad.s2;
        const idx_t before = sw < 0 ? (-sw + dilation.s2 - 1) / dilation.s2 : 0;
        const idx_t inside = sw < src_size.s2 ? (src_size.s2 - sw + dilation.s2 - 1) / dilation.s2 : 0;
        const idx_t begin = min(before, taps.s2), end = max(min(inside, taps.s2), begin);
        for (idx_t kd = 0; kd < taps.s0; kd++)
            for (idx_t kh = 0; kh < taps.s1; kh++) {
                const idx_t sd = d * step.s0 - pad.s0 + kd * dilation.s0;
                const idx_t sh = h * step.s1 - pad.s1 + kh * dilation.s1;
                const bool outside = sd < 0 || sd >= src_size.s0 || sh < 0 || sh >= src_size.s1;
                __global const uchar *line = src + src_offset;
                if (!outside)
                    line += rest * src_stride.s0 + sd * src_stride.s2 + sh * src_stride.s3;
                copy_line(to, line, sw, taps.s2, outside ? 0 : begin, outside ? 0 : end, dilation.s2, sizes.s4,
                          src_stride.s4, src_stride.s1, zero);
                to += line_bytes;
            }
    }
    TEAM_LEAVE
}
