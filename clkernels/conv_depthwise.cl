// SPDX-License-Identifier: Apache-2.0
// Convolution with one channel in and one out of each group: vectors lie over the groups, of which there are at least V.
//
// Defines: those of conv.clh, and
//   ROW_TAPS, ROW_STEP  a row's taps, which are not dilated, and the step from pixel to pixel; then a row of weights stays in
//                       registers, and each pixel is loaded once
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=4 -DP=4
// check: -DT_SRC=BF16 -DT_BIAS=F32 -DT_DST=F16 -DV=8 -DP=1 -DINDEX64 -DSTAGES=1 -DS1=OP_MUL(v0,y0) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=0
// check: -DT_SRC=BF16 -DT_WEIGHT=F32 -DT_BIAS=F32 -DT_DST=BF16 -DV=16 -DP=7
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=8 -DROW_TAPS=5 -DROW_STEP=2
// check: -DT_SRC=BF16 -DT_WEIGHT=F32 -DT_BIAS=F32 -DT_DST=BF16 -DV=16 -DP=7 -DROW_TAPS=3 -DROW_STEP=1
#include "conv.clh"

#define FIND_OPERAND(i) const idx_t at##i = OPERAND_AT(i, c);
// The first tap that reads the image, and the one behind the last, of those at `first`, `first` + dilation, …
#define FIRST_TAP(first, dilation) ((first) < 0 ? (dilation - 1 - (first)) / dilation : 0)
#define END_TAP(first, dilation, size, taps) min(taps, (size - (first) + dilation - 1) / dilation)

#ifdef ROW_TAPS
static inline void accumulate_pixels(FLOATV acc[P], __global const SRC_T *src, idx_t at, const FLOATV w[ROW_TAPS],
                                     int left, bool inside, int width, idx_t pixel_stride)
{
#pragma unroll
    for (int i = 0; i < (P - 1) * ROW_STEP + ROW_TAPS; i++)
        if (inside || (left + i >= 0 && left + i < width)) {
            const FLOATV in = LOADV(T_SRC, V, src, at + i * pixel_stride);
#pragma unroll
            for (int x = 0; x < ROW_TAPS; x++)
                if (i >= x && (i - x) % ROW_STEP == 0 && (i - x) / ROW_STEP < P)
                    acc[(i - x) / ROW_STEP] = fma(in, w[x], acc[(i - x) / ROW_STEP]);
        }
}

// acc += a row of taps, the first of which reads element `at` of src, in column `left` of the image.
static inline void accumulate_row(FLOATV acc[P], __global const SRC_T *src, idx_t at, idx_t step,
                                  __global const WEIGHT_T *weight, idx_t tap_stride, int taps, int left, bool inside,
                                  int stride, int dilation, int width, idx_t pixel_stride)
{
    FLOATV w[ROW_TAPS];
#pragma unroll
    for (int x = 0; x < ROW_TAPS; x++)
        w[x] = LOADV(T_WEIGHT, V, weight, x * tap_stride);
    if (inside)
        accumulate_pixels(acc, src, at, w, left, true, width, pixel_stride);
    else
        accumulate_pixels(acc, src, at, w, left, false, width, pixel_stride);
}
#else
// acc += a row of taps, the first of which reads element `at` of src, in column `left` of the image.
static inline void accumulate_row(FLOATV acc[P], __global const SRC_T *src, idx_t at, idx_t step,
                                  __global const WEIGHT_T *weight, idx_t tap_stride, int taps, int left, bool inside,
                                  int stride, int dilation, int width, idx_t pixel_stride)
{
    for (int kw = 0; kw < taps; kw++) {
        const FLOATV w = LOADV(T_WEIGHT, V, weight, kw * tap_stride);
        if (inside) {
#pragma unroll
            for (int p = 0; p < P; p++)
                acc[p] = fma(LOADV(T_SRC, V, src, at + p * step), w, acc[p]);
        } else {
#pragma unroll
            for (int p = 0; p < P; p++) {
                const int i = left + p * stride;
                if (i >= 0 && i < width)
                    acc[p] = fma(LOADV(T_SRC, V, src, at + p * step), w, acc[p]);
            }
        }
        at += dilation * pixel_stride;
        left += dilation;
    }
}
#endif

// flags.z: rows; flags.w: vectors of channels that a work-item computes one after the other.
WORK convolve_run(CONV_ARGUMENTS, const int block, const int run_index, const int row)
{
    const pixel_run run = get_run(run_index, dst_size.z, stride.z);
    const int blocks = min((block + 1) * flags.w, (taps.w + V - 1) / V);
    if (row >= flags.z || run.begin >= run.end)
        return;
    idx_t n = row;
    const int h = (int)take_index(&n, dst_size.y), d = (int)take_index(&n, dst_size.x);
    const int front = d * stride.x - pad.x, top = h * stride.y - pad.y, left = run.first * stride.z - pad.z;
    const int first_kd = FIRST_TAP(front, dilation.x), first_kh = FIRST_TAP(top, dilation.y);
    const int end_kd = END_TAP(front, dilation.x, src_size.x, taps.x);
    const int end_kh = END_TAP(top, dilation.y, src_size.y, taps.y);
    const bool inside = left >= 0 && left + (P - 1) * stride.z + (taps.z - 1) * dilation.z < src_size.z;
    const idx_t corner = src_offset + n * src_stride.x + front * src_stride.y + top * src_stride.z + left * src_stride.w;
    const idx_t step = stride.z * src_stride.w;
    weight += weight_offset;

    for (int b = block * flags.w; b < blocks; b++) {
        const int c = min(b * V, taps.w - V); // the last block is moved back to be full
        const FLOATV start = flags.y ? load_bias(bias + (bias_offset + c), V) : (FLOATV)(0.0f);
        FLOATV acc[P];
#pragma unroll
        for (int p = 0; p < P; p++)
            acc[p] = start;
        for (int kd = first_kd; kd < end_kd; kd++)
            for (int kh = first_kh; kh < end_kh; kh++) {
                const idx_t at = corner + kd * dilation.x * src_stride.y + kh * dilation.y * src_stride.z + c;
                const idx_t tap = (kd * taps.y + kh) * taps.z * weight_stride.x + c;
                accumulate_row(acc, src, at, step, weight + tap, weight_stride.x, taps.z, left, inside, stride.z,
                               dilation.z, src_size.z, src_stride.w);
            }

#pragma unroll
        for (int p = 0; p < P; p++)
            if (p >= run.begin && p < run.end) {
                const int w = run.first + p;
                const idx_t at =
                    dst_offset + n * dst_stride.x + d * dst_stride.y + h * dst_stride.z + w * dst_stride.w + c;
                const FLOATV v0 = acc[p];
                FOR_OPERANDS(FIND_OPERAND)
                LOAD_OPERANDS
                CHAIN
                if (c == b * V)
                    STOREV(T_DST, V, dst, at, CHAIN_RESULT);
                else
                    STORE_LANES(T_DST, V, dst, at, CHAIN_RESULT, b * V - c, V);
            }
    }
}

NOT_VECTORIZED __kernel void conv_depthwise(CONV_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    FIND_GRID;
    convolve_run(PASS_CONV, block, run_index, row);
    TEAM_LEAVE
}
