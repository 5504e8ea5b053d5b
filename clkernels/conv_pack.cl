// SPDX-License-Identifier: Apache-2.0
// A convolution's weights, in any strides, into the panels that its kernels read.
//
// Defines:
//   T        the elements' type
//   INDEX64  see common.clh
// check: -DT=U32
// check: -DT=U16 -DINDEX64
#include "common.clh"
#include "index.clh"
#ifndef T
#error "conv_pack.cl needs T"
#endif

// A work-item writes one element. size: groups, panels of a group, taps, channels of a group; what lies behind them is
// zero. taps: (d, h, w), and the output channels of a group. stride: of a group, an output channel, a channel, a tap in
// d, h, w. taps_first: taps are farthest apart.
__kernel void conv_pack(__global const STORAGE(T) *src, const idx_t src_offset, __global STORAGE(T) *dst,
                        const idx_t dst_offset, const idx_t elements, const idx4_t size, const int4 taps,
                        const idx8_t stride, const int taps_first)
{
    const idx_t at = (idx_t)get_global_id(0);
    if (at >= elements)
        return;
    idx_t group = at;
    const idx_t lane = take_index(&group, 16);
    idx_t channel = 0, tap = 0, panel = 0;
    if (taps_first) {
        panel = take_index(&group, size.y);
        tap = take_index(&group, size.z);
    } else {
        channel = take_index(&group, size.w);
        tap = take_index(&group, size.z);
        panel = take_index(&group, size.y);
    }
    const idx_t filter = panel * 16 + lane;
    const int kw = (int)take_index(&tap, taps.z), kh = (int)take_index(&tap, taps.y);
    COMPUTE(T) value = 0;
    if (group < size.x && filter < taps.w)
        value = LOAD(T, src, src_offset + group * stride.s0 + filter * stride.s1 + channel * stride.s2 +
                                 tap * stride.s3 + kh * stride.s4 + kw * stride.s5);
    STORE(T, dst, dst_offset + at, value);
}
