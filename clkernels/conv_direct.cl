// SPDX-License-Identifier: Apache-2.0
// Convolution and its transpose as they are defined, for types that have no faster way. Weights are not packed.
//
// Defines:
//   T           float type
//   TRANSPOSED  the transpose
//   INDEX64     see common.clh
// check: -DT=F32
// check: -DT=F32 -DTRANSPOSED -DINDEX64
#include "common.clh"
#include "index.clh"
#ifndef T
#error "conv_direct.cl needs T"
#endif

// Where tap `tap` of the window around result `at` lies along one axis; -1: nowhere.
static inline int source_of(const int at, const int tap, const int stride, const int dilation, const int pad,
                            const int size)
{
#ifdef TRANSPOSED
    const int spread = at + pad - tap * dilation, found = spread < 0 ? -1 : spread / stride;
    return found >= 0 && found * stride == spread && found < size ? found : -1;
#else
    const int found = at * stride - pad + tap * dilation;
    return found >= 0 && found < size ? found : -1;
#endif
}

// Sizes are (d, h, w, a group's channels), strides (n, c, d, h, w), the weights' (dst's channel, src's channel, d, h, w).
// `window`: and how many groups. The range: pixels, channels, images.
__kernel void conv_direct(__global STORAGE(T) *dst, const idx_t dst_offset, __global const STORAGE(T) *src,
                          const idx_t src_offset, __global const STORAGE(T) *weight, const idx_t weight_offset,
                          __global const STORAGE(T) *bias, const idx_t bias_offset, const idx_t bias_stride,
                          const int4 src_size, const int4 dst_size, const int4 window, const int4 stride,
                          const int4 dilation, const int4 pad, const idx8_t src_stride, const idx8_t weight_stride,
                          const idx8_t dst_stride, const int images)
{
    idx_t pixel = (idx_t)get_global_id(0);
    const int filter = (int)get_global_id(1), n = (int)get_global_id(2);
    if (pixel >= (idx_t)dst_size.x * dst_size.y * dst_size.z || filter >= dst_size.w * window.w || n >= images)
        return;
    const int w = (int)take_index(&pixel, dst_size.z), h = (int)take_index(&pixel, dst_size.y), d = (int)pixel;
    const int group = filter / dst_size.w, first = group * src_size.w;
    COMPUTE(T) sum = bias ? LOAD(T, bias, bias_offset + filter * bias_stride) : 0;
#ifdef TRANSPOSED
    const idx_t weights = weight_offset + (filter - group * dst_size.w) * weight_stride.s0 + first * weight_stride.s1;
#else
    const idx_t weights = weight_offset + filter * weight_stride.s0;
#endif
    const idx_t image = src_offset + n * src_stride.s0 + first * src_stride.s1;
    for (int i = 0; i < window.x; i++)
        for (int j = 0; j < window.y; j++)
            for (int k = 0; k < window.z; k++) {
                const int z = source_of(d, i, stride.x, dilation.x, pad.x, src_size.x);
                const int y = source_of(h, j, stride.y, dilation.y, pad.y, src_size.y);
                const int x = source_of(w, k, stride.z, dilation.z, pad.z, src_size.z);
                if (z < 0 || y < 0 || x < 0)
                    continue;
                const idx_t from = image + z * src_stride.s2 + y * src_stride.s3 + x * src_stride.s4;
                const idx_t tap = weights + i * weight_stride.s2 + j * weight_stride.s3 + k * weight_stride.s4;
                for (int c = 0; c < src_size.w; c++)
                    sum += LOAD(T, src, from + c * src_stride.s1) * LOAD(T, weight, tap + c * weight_stride.s1);
            }
    STORE(T, dst,
          dst_offset + n * dst_stride.s0 + filter * dst_stride.s1 + d * dst_stride.s2 + h * dst_stride.s3 +
              w * dst_stride.s4,
          sum);
}
