// SPDX-License-Identifier: Apache-2.0
// Direct convolution and transposed convolution, channels last. Spatial dimensions are (d, h, w); absent ones are 1.
//
// Defines:
//   T_SRC       type of src and weight
//   T_BIAS      type of bias
//   T_DST       type of dst
//   V           channels in a vector: 4, 8 or 16
//   P           pixels of one row that a work-item computes
//   NB          vectors of channels that a work-item computes for each (not with DEPTHWISE)
//   TRANSPOSED  transposed convolution, as a gather
//   DEPTHWISE   one input and one output channel a group; at least V groups
//   INDEX64     see common.clh
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=4 -DNB=2
// check: -DT_SRC=F16 -DT_BIAS=F32 -DT_DST=F16 -DV=8 -DP=2 -DNB=1 -DINDEX64
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=4 -DP=4 -DDEPTHWISE
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=1 -DNB=2 -DTRANSPOSED
#include "common.clh"
#include "index.clh"
#include "lanes.clh"
#if !defined(T_SRC) || !defined(T_BIAS) || !defined(T_DST) || !defined(V) || !defined(P)
#error "conv.cl needs T_SRC, T_BIAS, T_DST, V and P"
#endif
#if !defined(DEPTHWISE) && !defined(NB)
#error "conv.cl needs NB"
#endif

#define FLOATV PASTE2_(float, V)
#define SRC_T STORAGE(T_SRC)

// Sizes are (d, h, w, channels of a group); taps.w is the number of groups; strides are (n, d, h, w), and the weights'
// are (tap, group, channel, where the zeros are). flags: channel blocks are the grid's last dimension instead of its
// first; there is a bias; rows.
#define CONV_ARGUMENTS                                                                                                 \
    __global const SRC_T *src, idx_t src_offset, __global const SRC_T *weight, idx_t weight_offset,                    \
        __global const STORAGE(T_BIAS) * bias, idx_t bias_offset, __global STORAGE(T_DST) * dst, idx_t dst_offset,     \
        int4 src_size, int4 dst_size, int4 taps, int4 stride, int4 dilation, int4 pad, idx4_t src_stride,              \
        idx4_t dst_stride, idx4_t weight_stride, int4 flags
// Read unconditionally: pocl fails on a get_global_id in one branch of a condition.
#define FIND_GRID                                                                                                      \
    const int grid0 = (int)get_global_id(0), grid1 = (int)get_global_id(1), grid2 = (int)get_global_id(2);             \
    const int block = flags.x ? grid2 : grid0, run_index = flags.x ? grid0 : grid1, row = flags.x ? grid1 : grid2

// The source coordinate that kernel tap k reads for output coordinate o, or -1 where there is none.
static inline int source_coordinate(int o, int k, int stride, int dilation, int pad, int size)
{
#ifdef TRANSPOSED
    const int scaled = o + pad - k * dilation;
    const int quotient = scaled / stride;
    const int i = scaled >= 0 && quotient * stride == scaled ? quotient : -1;
#else
    const int i = o * stride - pad + k * dilation;
#endif
    return i >= 0 && i < size ? i : -1;
}

// P pixels of one output row: pixel p is at first + p * step; those with begin <= p < end are this work-item's.
typedef struct pixel_run {
    int first, step, begin, end;
} pixel_run;

// Runs at the end of a row are moved back to be full, so that they read no padding that the row does not have. For a
// transposed convolution the pixels of a run have one phase (coordinate modulo stride), and so the same taps.
static inline pixel_run get_run(int block, int width, int stride)
{
    pixel_run run;
#ifdef TRANSPOSED
    const int blocks = ((width + stride - 1) / stride + P - 1) / P;
    const int phase = block / blocks;
    const int index = block - phase * blocks;
    const int pixels = (width - phase + stride - 1) / stride;
    run.step = stride;
#else
    const int phase = 0;
    const int index = block;
    const int pixels = width;
    run.step = 1;
#endif
    const int start = pixels < P ? 0 : min(index * P, pixels - P);
    run.first = phase + start * run.step;
    run.begin = index * P - start;
    run.end = min(P, pixels - start);
    return run;
}

// The source column that tap k reads for the run's first pixel, which may lie outside of the row, and the distance to the
// next pixel's. False: the tap reaches no pixel of the run.
static inline bool get_columns(pixel_run run, int k, int stride, int dilation, int pad, int *column, int *step)
{
#ifdef TRANSPOSED
    const int scaled = run.first + pad - k * dilation;
    *column = scaled / stride;
    *step = 1;
    return *column * stride == scaled;
#else
    *column = run.first * stride - pad + k * dilation;
    *step = stride;
    return true;
#endif
}

// `count` may be less than a vector: nothing is read behind the last channel.
static inline FLOATV load_bias(__global const STORAGE(T_BIAS) *bias, int count)
{
    FLOATV value = 0.0f;
    if (count >= V)
        value = LOADV(T_BIAS, V, bias, 0);
    else if (count > 0)
        LOAD_LANES(T_BIAS, V, bias, 0, value, count);
    return value;
}

static inline void store_pixel(__global STORAGE(T_DST) *dst, idx_t at, FLOATV value, int begin, int end)
{
    if (begin <= 0 && end >= V)
        STOREV(T_DST, V, dst, at, value);
    else if (end > 0)
        STORE_LANES(T_DST, V, dst, at, value, begin, end);
}

#ifndef DEPTHWISE
// acc[pixel][block] += the product over the channels of one tap. Each pixel has a pointer of its own: one in the padding
// points to zeros, so that the inner loop knows nothing of borders.
static inline void accumulate(FLOATV acc[P * NB], __global const SRC_T *const pixel[P], __global const SRC_T *weight,
                              int channels, idx_t channel_stride)
{
    for (int c = 0; c < channels; c++) {
        FLOATV w[NB];
#pragma unroll
        for (int j = 0; j < NB; j++)
            w[j] = LOADV(T_SRC, V, weight, j * V);
#pragma unroll
        for (int p = 0; p < P; p++) {
            const FLOATV x = (FLOATV)(LOAD(T_SRC, pixel[p], c));
#pragma unroll
            for (int j = 0; j < NB; j++)
                acc[p * NB + j] = fma(x, w[j], acc[p * NB + j]);
        }
        weight += channel_stride;
    }
}

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
    weight += weight_offset;

    FLOATV acc[P * NB];
#pragma unroll
    for (int j = 0; j < NB; j++) {
        const int at = group * dst_size.w + m + j * V;
        acc[j] = flags.y ? load_bias(bias + (bias_offset + at), dst_size.w - m - j * V) : (FLOATV)(0.0f);
    }
#pragma unroll
    for (int i = NB; i < P * NB; i++)
        acc[i] = acc[i % NB];

    for (int tap = 0; tap < taps.x * taps.y * taps.z; tap++) {
        idx_t kd = tap;
        const int kw = (int)take_index(&kd, taps.z), kh = (int)take_index(&kd, taps.y);
        const int sd = source_coordinate(d, (int)kd, stride.x, dilation.x, pad.x, src_size.x);
        const int sh = source_coordinate(h, kh, stride.y, dilation.y, pad.y, src_size.y);
        int column, step;
        if (sd < 0 || sh < 0 || !get_columns(run, kw, stride.z, dilation.z, pad.z, &column, &step))
            continue;
        __global const SRC_T *line = image + (sd * src_stride.y + sh * src_stride.z);
        __global const SRC_T *pixel[P];
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int i = column + p * step;
            pixel[p] = i >= 0 && i < src_size.z ? line + i * src_stride.w : weight + weight_stride.w;
        }
        accumulate(acc, pixel, weight + (tap * weight_stride.x + group * weight_stride.y + m), src_size.w,
                   weight_stride.z);
    }

    const idx_t at = dst_offset + n * dst_stride.x + d * dst_stride.y + h * dst_stride.z + group * dst_size.w + m;
    FLOATV result[P * NB]; // a copy, for a loop that need not be unrolled: it compiles much faster
#pragma unroll
    for (int i = 0; i < P * NB; i++)
        result[i] = acc[i];
    for (int p = run.begin; p < run.end; p++)
        for (int j = 0; j < NB; j++)
            store_pixel(dst, at + (run.first + p * run.step) * dst_stride.w + j * V, result[p * NB + j], 0,
                        dst_size.w - m - j * V);
}
#else
// As conv, with one channel in and out of each group: vectors lie over the groups.
__kernel void conv_depthwise(CONV_ARGUMENTS)
{
    FIND_GRID;
    const pixel_run run = get_run(run_index, dst_size.z, stride.z);
    if (block * V >= taps.w || row >= flags.z || run.begin >= run.end)
        return;
    // The last block is moved back to be full.
    const int c = min(block * V, taps.w - V);
    idx_t n = row;
    const int h = (int)take_index(&n, dst_size.y), d = (int)take_index(&n, dst_size.x);
    const idx_t image = src_offset + n * src_stride.x + c;

    FLOATV acc[P];
#pragma unroll
    for (int p = 0; p < P; p++)
        acc[p] = flags.y ? load_bias(bias + (bias_offset + c), V) : (FLOATV)(0.0f);
    for (int tap = 0; tap < taps.x * taps.y * taps.z; tap++) {
        idx_t kd = tap;
        const int kw = (int)take_index(&kd, taps.z), kh = (int)take_index(&kd, taps.y);
        const int sd = source_coordinate(d, (int)kd, stride.x, dilation.x, pad.x, src_size.x);
        const int sh = source_coordinate(h, kh, stride.y, dilation.y, pad.y, src_size.y);
        int column, step;
        if (sd < 0 || sh < 0 || !get_columns(run, kw, stride.z, dilation.z, pad.z, &column, &step))
            continue;
        const idx_t line = image + sd * src_stride.y + sh * src_stride.z;
        const FLOATV w = LOADV(T_SRC, V, weight, weight_offset + tap * weight_stride.x + c);
#pragma unroll
        for (int p = 0; p < P; p++) {
            const int i = column + p * step;
            if (i >= 0 && i < src_size.z)
                acc[p] = fma(LOADV(T_SRC, V, src, line + i * src_stride.w), w, acc[p]);
        }
    }

    const idx_t at = dst_offset + n * dst_stride.x + d * dst_stride.y + h * dst_stride.z + c;
#pragma unroll
    for (int p = 0; p < P; p++)
        if (p >= run.begin && p < run.end)
            store_pixel(dst, at + (run.first + p * run.step) * dst_stride.w, acc[p], block * V - c, V);
}
#endif
