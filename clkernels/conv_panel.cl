// SPDX-License-Identifier: Apache-2.0
// Direct convolution for CPUs: a tile of pixels and output channels in registers, one work-item a work-group.
//
// Pixels are counted over the whole batch, so that a tile may span rows and images. Each pixel of a tile has a pointer of
// its own into src; where a tap falls into padding, it points to zeros behind the weights, and the inner loop knows
// nothing of borders.
//
// Defines: those of conv.clh, where P pixels need not be of one row, and
//   NB          vectors of channels that a work-item computes for each pixel
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=14 -DNB=2
// check: -DT_SRC=F16 -DT_BIAS=F32 -DT_DST=BF16 -DV=8 -DP=6 -DNB=1 -DINDEX64
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=4 -DP=1 -DNB=4 -DSTAGES=2 -DS1=OP_ADD(v0,y0) -DS2=OP_RELU(v1) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
#include "conv.clh"
#ifndef NB
#error "conv_panel.cl needs NB"
#endif

// acc[pixel][block] += the products of `count` channels.
static inline void accumulate(FLOATV acc[P * NB], __global const SRC_T *const pixel[P],
                              __global const SRC_T *const weight[NB], int count)
{
    for (int c = 0; c < count; c++) {
        FLOATV w[NB];
#pragma unroll
        for (int j = 0; j < NB; j++)
            w[j] = LOADV(T_SRC, V, weight[j], c * 16);
#pragma unroll
        for (int p = 0; p < P; p++) {
            const FLOATV x = (FLOATV)(LOAD(T_SRC, pixel[p], c));
#pragma unroll
            for (int j = 0; j < NB; j++)
                acc[p * NB + j] = fma(x, w[j], acc[p * NB + j]);
        }
    }
}

// Steps from a pixel to the next one of its image, or to the next image's first.
#define NEXT_PIXEL                                                                                                     \
    do {                                                                                                               \
        if (++w == dst_size.z) {                                                                                       \
            w = 0;                                                                                                     \
            if (++h == dst_size.y) {                                                                                   \
                h = 0;                                                                                                 \
                if (++d == dst_size.x) {                                                                               \
                    d = 0;                                                                                             \
                    n++;                                                                                               \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)
#define FIND_OPERAND(i) const idx_t at##i = OPERAND_AT(i, c);
#define PART_OF_IMAGE(i, size) ((uint)(i) < (uint)(size))

// flags.z: pixels; flags.w: runs of P pixels that a work-item computes one after the other.
__attribute__((reqd_work_group_size(1, 1, 1))) __kernel void conv_panel(CONV_ARGUMENTS)
{
    const int grid0 = (int)get_global_id(0), grid1 = (int)get_global_id(1);
    const int block = flags.x ? grid1 : grid0, item = flags.x ? grid0 : grid1;
    const int blocks = (dst_size.w + V * NB - 1) / (V * NB);
    const int group = block / blocks, m = (block - group * blocks) * (V * NB);
    const int pixels = flags.z, runs = min((item + 1) * flags.w, (pixels + P - 1) / P);
    const bool whole = m + V * NB <= dst_size.w;

    __global const SRC_T *zeros = weight + (weight_offset + weight_stride.w);
    __global const SRC_T *panel[NB]; // vectors behind the last one, which are not stored, read that one
    FLOATV start[NB];
#pragma unroll
    for (int j = 0; j < NB; j++) {
        const int at = min(m + j * V, (dst_size.w - 1) & ~(V - 1));
        panel[j] = weight + (weight_offset + group * weight_stride.y + weight_at(at, weight_stride.z));
        start[j] = flags.y ? load_bias(bias + (bias_offset + group * dst_size.w + m + j * V), dst_size.w - m - j * V)
                           : (FLOATV)(0.0f);
    }
    // How far the last tap lies from the first; and whether the taps of a row are neighbours in memory.
    const int reach_d = (taps.x - 1) * dilation.x, reach_h = (taps.y - 1) * dilation.y;
    const int reach_w = (taps.z - 1) * dilation.z;
    const bool joined = src_stride.w == src_size.w && (dilation.z == 1 || taps.z == 1) && weight_stride.x == src_size.w * 16;
    src += src_offset + (idx_t)group * src_size.w;

    for (int run = item * flags.w; run < runs; run++) {
        const int first = min(run * P, max(pixels - P, 0)), begin = run * P - first, end = min(P, pixels - first);
        idx_t image = first;
        const int w0 = (int)take_index(&image, dst_size.z), h0 = (int)take_index(&image, dst_size.y);
        const int d0 = (int)take_index(&image, dst_size.x);
        const bool one_row = w0 + P <= dst_size.z;

        // Where the first tap of each pixel lies, which may be outside of the image.
        int front[P], top[P], left[P];
        idx_t corner[P];
        bool inside = true;
        if (one_row) {
            const int z = d0 * stride.x - pad.x, y = h0 * stride.y - pad.y, x = w0 * stride.z - pad.z;
            const idx_t at = image * src_stride.x + z * src_stride.y + y * src_stride.z + x * src_stride.w;
#pragma unroll
            for (int p = 0; p < P; p++) {
                front[p] = z;
                top[p] = y;
                left[p] = x + p * stride.z;
                corner[p] = at + p * stride.z * src_stride.w;
            }
            inside = z >= 0 && z + reach_d < src_size.x && y >= 0 && y + reach_h < src_size.y && x >= 0 &&
                     x + (P - 1) * stride.z + reach_w < src_size.z;
        } else {
            int w = w0, h = h0, d = d0;
            idx_t n = image;
            for (int p = 0; p < P; p++) {
                const int z = d * stride.x - pad.x, y = h * stride.y - pad.y;
                const int x = p < end ? w * stride.z - pad.z : -0x40000000;
                front[p] = z;
                top[p] = y;
                left[p] = x;
                corner[p] = n * src_stride.x + z * src_stride.y + y * src_stride.z + x * src_stride.w;
                inside = inside && z >= 0 && z + reach_d < src_size.x && y >= 0 && y + reach_h < src_size.y && x >= 0 &&
                         x + reach_w < src_size.z;
                NEXT_PIXEL;
            }
        }

        FLOATV acc[P * NB];
#pragma unroll
        for (int i = 0; i < P * NB; i++)
            acc[i] = start[i % NB];
        const bool join = inside && joined;
        const int columns = join ? 1 : taps.z, count = join ? src_size.w * taps.z : src_size.w;
        idx_t tap = 0;
        for (int kd = 0; kd < taps.x; kd++)
            for (int kh = 0; kh < taps.y; kh++)
                for (int kw = 0; kw < columns; kw++, tap += weight_stride.x) {
                    const int z = kd * dilation.x, y = kh * dilation.y, x = kw * dilation.z;
                    const idx_t offset = z * src_stride.y + y * src_stride.z + x * src_stride.w;
                    __global const SRC_T *pixel[P], *line[NB];
                    bool any = inside;
                    if (inside) {
#pragma unroll
                        for (int p = 0; p < P; p++)
                            pixel[p] = src + (corner[p] + offset);
                    } else {
#pragma unroll
                        for (int p = 0; p < P; p++) {
                            const bool reads = PART_OF_IMAGE(front[p] + z, src_size.x) &
                                               PART_OF_IMAGE(top[p] + y, src_size.y) &
                                               PART_OF_IMAGE(left[p] + x, src_size.z);
                            pixel[p] = reads ? src + (corner[p] + offset) : zeros;
                            any |= reads;
                        }
                    }
#pragma unroll
                    for (int j = 0; j < NB; j++)
                        line[j] = panel[j] + tap;
                    if (any)
                        accumulate(acc, pixel, line, count);
                    tap += join ? (taps.z - 1) * weight_stride.x : 0;
                }

#if STAGES <= 3
        if (whole && one_row && begin == 0) {
            idx_t n = image;
            const int d = d0, h = h0;
#pragma unroll
            for (int p = 0; p < P; p++) {
                const int w = w0 + p;
#pragma unroll
                for (int j = 0; j < NB; j++) {
                    const int c = group * dst_size.w + m + j * V;
                    const idx_t at =
                        dst_offset + n * dst_stride.x + d * dst_stride.y + h * dst_stride.z + w * dst_stride.w + c;
                    const FLOATV v0 = acc[p * NB + j];
                    FOR_OPERANDS(FIND_OPERAND)
                    LOAD_OPERANDS
                    CHAIN
                    STOREV(T_DST, V, dst, at, CHAIN_RESULT);
                }
            }
            continue;
        }
#endif
        FLOATV result[P * NB]; // a copy, for a loop that need not be unrolled: it compiles much faster
#pragma unroll
        for (int i = 0; i < P * NB; i++)
            result[i] = acc[i];
        int w = w0, h = h0, d = d0;
        idx_t n = image;
        for (int p = 0; p < end; p++) {
            for (int j = 0; j < NB && p >= begin; j++) {
                const int c = group * dst_size.w + m + j * V, left_over = dst_size.w - m - j * V;
                const idx_t at =
                    dst_offset + n * dst_stride.x + d * dst_stride.y + h * dst_stride.z + w * dst_stride.w + c;
                const FLOATV v0 = result[p * NB + j];
                FOR_OPERANDS(FIND_OPERAND)
                if (left_over >= V) {
                    LOAD_OPERANDS
                    CHAIN
                    STOREV(T_DST, V, dst, at, CHAIN_RESULT);
                } else if (left_over > 0) {
                    LOAD_OPERANDS_PART(left_over)
                    CHAIN
                    STORE_FIRST(T_DST, V, dst, at, CHAIN_RESULT, left_over);
                }
            }
            NEXT_PIXEL;
        }
    }
}
