// SPDX-License-Identifier: Apache-2.0
// Direct convolution and transposed convolution for any device.
//
// Defines: those of conv.clh, and
//   NB          vectors of channels that a work-item computes for each pixel
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=4 -DNB=2
// check: -DT_SRC=F16 -DT_BIAS=F32 -DT_DST=F16 -DV=8 -DP=2 -DNB=1 -DINDEX64
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=1 -DNB=2 -DTRANSPOSED
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=4 -DP=4 -DNB=2 -DSTAGES=2 -DS1=OP_ADD(v0,y0) -DS2=OP_RELU(v1) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
#include "conv.clh"
#ifndef NB
#error "conv.cl needs NB"
#endif

// acc[pixel][block] += the product over the channels of one tap. Each pixel has a pointer of its own: one in the padding
// points to zeros, so that the inner loop knows nothing of borders.
static inline void accumulate(FLOATV acc[P * NB], __global const SRC_T *const pixel[P],
                              __global const WEIGHT_T *const weight[NB], int channels)
{
    for (int c = 0; c < channels; c++) {
        FLOATV w[NB];
#pragma unroll
        for (int j = 0; j < NB; j++)
            w[j] = LOADV(T_WEIGHT, V, weight[j], c * 16);
#pragma unroll
        for (int p = 0; p < P; p++) {
            const FLOATV x = (FLOATV)(LOAD(T_SRC, pixel[p], c));
#pragma unroll
            for (int j = 0; j < NB; j++)
                acc[p * NB + j] = fma(x, w[j], acc[p * NB + j]);
        }
    }
}

#define FIND_OPERAND(i) const idx_t at##i = OPERAND_AT(i, c);
__kernel void conv(CONV_ARGUMENTS)
{
    FIND_GRID;
    const int blocks = (dst_size.w + V * NB - 1) / (V * NB);
    const pixel_run run = get_run(run_index, dst_size.z, stride.z);
    if (block >= blocks * taps.w || row >= flags.z || run.begin >= run.end)
        return;
    const int group = block / blocks, m = (block - group * blocks) * (V * NB);
    idx_t n = row;
    const int h = (int)take_index(&n, dst_size.y), d = (int)take_index(&n, dst_size.x);
    __global const SRC_T *image = src + (src_offset + n * src_stride.x + (idx_t)group * src_size.w);
    __global const WEIGHT_T *panel[NB];
    FLOATV acc[P * NB];
    weight += weight_offset;
    begin_tile(acc, panel, weight + group * weight_stride.y, bias + (bias_offset + group * dst_size.w + m), flags.y, m,
               dst_size.w, weight_stride.z);

    for (int tap = 0; tap < taps.x * taps.y * taps.z; tap++) {
        idx_t kd = tap;
        const int kw = (int)take_index(&kd, taps.z), kh = (int)take_index(&kd, taps.y);
        const int sd = source_coordinate(d, (int)kd, stride.x, dilation.x, pad.x, src_size.x);
        const int sh = source_coordinate(h, kh, stride.y, dilation.y, pad.y, src_size.y);
        int column, step;
        if (sd < 0 || sh < 0 || !get_columns(run, kw, stride.z, dilation.z, pad.z, &column, &step))
            continue;
        __global const SRC_T *row_at = image + (sd * src_stride.y + sh * src_stride.z);
        __global const SRC_T *pixel[P];
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int i = column + p * step;
            pixel[p] = i >= 0 && i < src_size.z ? row_at + i * src_stride.w : (__global const SRC_T *)(weight + weight_stride.w);
        }
        __global const WEIGHT_T *lines[NB];
#pragma unroll
        for (int j = 0; j < NB; j++)
            lines[j] = panel[j] + tap * weight_stride.x;
        accumulate(acc, pixel, lines, src_size.w);
    }

    FLOATV result[P * NB]; // a copy, for a loop that need not be unrolled: it compiles much faster
#pragma unroll
    for (int i = 0; i < P * NB; i++)
        result[i] = acc[i];
    for (int p = run.begin; p < run.end; p++)
        for (int j = 0; j < NB; j++) {
            const int w = run.first + p * run.step, c = group * dst_size.w + m + j * V, count = dst_size.w - m - j * V;
            const idx_t at = dst_offset + n * dst_stride.x + d * dst_stride.y + h * dst_stride.z + w * dst_stride.w + c;
            const FLOATV v0 = result[p * NB + j];
            FOR_OPERANDS(FIND_OPERAND)
            if (count >= V) {
                LOAD_OPERANDS
                CHAIN
                STOREV(T_DST, V, dst, at, CHAIN_RESULT);
            } else if (count > 0) {
                LOAD_OPERANDS_PART(count)
                CHAIN
                STORE_FIRST(T_DST, V, dst, at, CHAIN_RESULT, count);
            }
        }
}
