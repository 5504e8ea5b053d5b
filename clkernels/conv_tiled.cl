// SPDX-License-Identifier: Apache-2.0
// Convolution by work-groups, through local memory: the product of pixels x (taps, channels) by (taps, channels) x output
// channels, whose first factor is read from the image as it is. With more than one part, each work-group sums a part of
// the terms into `partial`, and conv_sum adds the parts.
//
// gpu: hot
// Defines: those of tile.clh, and
//   T_SRC    type of src and weight
//   T_BIAS   type of bias
//   T_DST    type of dst
//   QUADS    a group's input channels are a multiple of 4
//   INDEX64  see common.clh
//   STAGES … see chain.clh
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DBM=32 -DBN=32 -DBK=16 -DTM=4 -DTN=4
// check: -DT_SRC=F16 -DT_BIAS=F32 -DT_DST=BF16 -DBM=64 -DBN=64 -DBK=16 -DTM=8 -DTN=4 -DQUADS -DINDEX64
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DBM=128 -DBN=128 -DBK=8 -DTM=8 -DTN=8 -DQUADS -DSTAGES=2 -DS1=OP_ADD(v0,y0) -DS2=OP_RELU(v1) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
#include "common.clh"
#include "index.clh"
#include "lanes.clh"
#if !defined(T_SRC) || !defined(T_BIAS) || !defined(T_DST)
#error "conv_tiled.cl needs T_SRC, T_BIAS and T_DST"
#endif
#define V 4
#define FLOATV float4
#define STRIDES_T idx4_t
#ifdef STAGES
#include "map_ops.clh"
#endif
#include "chain.clh"
#include "tile.clh"

// Sizes are (d, h, w, channels of a group); strides are (n, d, h, w), and the weights' are (group, panel of 16 output
// channels, 0, 0). terms: all of a sum's; those of a part; parts; fours in a row of `partial`. flags: there is a bias; dst
// and the operands are walked over as one long row of pixels; pixels.
#define CONV_ARGUMENTS                                                                                                 \
    __global const STORAGE(T_SRC) *src, idx_t src_offset, __global const STORAGE(T_SRC) *weight, idx_t weight_offset,  \
        __global const STORAGE(T_BIAS) *bias, idx_t bias_offset, __global STORAGE(T_DST) *dst, idx_t dst_offset,       \
        __global float *partial, idx_t partial_offset, int4 src_size, int4 dst_size, int4 taps, int4 stride,           \
        int4 dilation, int4 pad, idx4_t src_stride, idx4_t dst_stride, idx4_t weight_stride, int4 terms,               \
        int4 flags CHAIN_ARGUMENTS
#define PARTIAL_AT(part, group, pixel, m)                                                                              \
    (partial_offset + ((((idx_t)(part) * taps.w + (group)) * flags.z + (pixel)) * terms.w * 4 + (m)))

// One term of the sums: a tap and a channel.
typedef struct term_t {
    int channel, w, h, d;
} term_t;

static inline void advance(term_t *term, int by, int channels, int4 taps)
{
    term->channel += by;
    if (term->channel < channels)
        return;
    const int over = term->channel / channels;
    term->channel -= over * channels;
    term->w += over;
    if (term->w < taps.z)
        return;
    const int rows = term->w / taps.z;
    term->w -= rows * taps.z;
    term->h += rows;
    if (term->h < taps.y)
        return;
    const int planes = term->h / taps.y;
    term->h -= planes * taps.y;
    term->d += planes;
}

// What a work-item copies of the pixels: where the windows begin, whether there is such a pixel.
typedef struct window_t {
    int w, h, d;
    bool exists;
    idx_t at;
} window_t;

static inline window_t find_window(int pixel, int pixels, int4 dst_size, int4 stride, int4 pad, idx4_t src_stride)
{
    window_t window;
    idx_t n = pixel;
    window.w = (int)take_index(&n, dst_size.z) * stride.z - pad.z;
    window.h = (int)take_index(&n, dst_size.y) * stride.y - pad.y;
    window.d = (int)take_index(&n, dst_size.x) * stride.x - pad.x;
    window.exists = pixel < pixels;
    window.at = n * src_stride.x + window.d * src_stride.y + window.h * src_stride.z + window.w * src_stride.w;
    return window;
}

static inline bool is_inside(window_t window, term_t term, int4 dilation, int4 src_size)
{
    return window.exists && (uint)(window.w + term.w * dilation.z) < (uint)src_size.z &&
           (uint)(window.h + term.h * dilation.y) < (uint)src_size.y &&
           (uint)(window.d + term.d * dilation.x) < (uint)src_size.x;
}

static inline idx_t find_tap(term_t term, int4 dilation, idx4_t src_stride)
{
    return (idx_t)(term.d * dilation.x) * src_stride.y + (idx_t)(term.h * dilation.y) * src_stride.z +
           (idx_t)(term.w * dilation.z) * src_stride.w + term.channel;
}

// Four terms, from number `at` on, of each pixel that the work-item copies; `term` moves to the next that it copies.
#ifdef QUADS
static inline void fetch_pixels(__global const STORAGE(T_SRC) *src, idx4_t src_stride, int4 src_size, int4 taps,
                                int4 dilation, const window_t window[TILE_LOADS_A], term_t *term, int at, int end,
                                float4 fetched[TILE_LOADS_A])
{
    const bool aligned = IS_ALIGNED(T_SRC, src, src_stride.x | src_stride.y, src_stride.z | src_stride.w);
    const idx_t tap = find_tap(*term, dilation, src_stride);
#pragma unroll
    for (int i = 0; i < TILE_LOADS_A; i++)
        fetched[i] = at < end && is_inside(window[i], *term, dilation, src_size)
                         ? LOAD_WHOLE(T_SRC, src, window[i].at + tap, aligned)
                         : (float4)(0.0f);
    advance(term, BK, src_size.w, taps);
}
#else
#define FETCH_TERM(component, index)                                                                                   \
    {                                                                                                                  \
        const idx_t tap = find_tap(*term, dilation, src_stride);                                                       \
        for (int i = 0; i < TILE_LOADS_A; i++)                                                                         \
            fetched[i].component = at + (index) < end && is_inside(window[i], *term, dilation, src_size)               \
                                       ? LOAD(T_SRC, src, window[i].at + tap)                                          \
                                       : 0.0f;                                                                         \
        advance(term, 1, src_size.w, taps);                                                                            \
    }
static inline void fetch_pixels(__global const STORAGE(T_SRC) *src, idx4_t src_stride, int4 src_size, int4 taps,
                                int4 dilation, const window_t window[TILE_LOADS_A], term_t *term, int at, int end,
                                float4 fetched[TILE_LOADS_A])
{
    FETCH_TERM(x, 0)
    FETCH_TERM(y, 1)
    FETCH_TERM(z, 2)
    FETCH_TERM(w, 3)
    advance(term, BK - 4, src_size.w, taps);
}
#endif

// `padded`: output channels that the group's panels have.
static inline void fetch_weights(__global const STORAGE(T_SRC) *weight, idx_t panel_stride, int item, int first, int end,
                                 int first_channel, int padded, float4 fetched[TILE_LOADS_B])
{
    const bool aligned = IS_ALIGNED(T_SRC, weight, panel_stride, 0);
#pragma unroll
    for (int i = 0; i < TILE_LOADS_B; i++) {
        const int k = first + TILE_TERM(item + i * TILE_ITEMS, 0, BN);
        const int m = first_channel + TILE_SIDE(item + i * TILE_ITEMS, 0, BN);
        const idx_t from = (m >> 4) * panel_stride + (idx_t)k * 16 + (m & 15);
        fetched[i] = k < end && m < padded ? LOAD_WHOLE(T_SRC, weight, from, aligned) : (float4)(0.0f);
    }
}

#define FIND_OPERAND(i)                                                                                                \
    const idx_t at##i = offset_y##i + n * stride_y##i.x + d * stride_y##i.y + h * stride_y##i.z + w * stride_y##i.w +  \
                        Y##i##_STEP * c;
// Four output channels, from m of the group on, of a pixel.
#define STORE_FOUR(pixel, m, value)                                                                                    \
    do {                                                                                                               \
        const int count = dst_size.w - (m), c = group * dst_size.w + (m);                                              \
        idx_t n = 0, d = 0, h = 0, w = pixel;                                                                          \
        if (!flags.y) {                                                                                                \
            n = w;                                                                                                     \
            w = take_index(&n, dst_size.z);                                                                            \
            h = take_index(&n, dst_size.y);                                                                            \
            d = take_index(&n, dst_size.x);                                                                            \
        }                                                                                                              \
        const idx_t to =                                                                                               \
            dst_offset + n * dst_stride.x + d * dst_stride.y + h * dst_stride.z + w * dst_stride.w + c;                \
        float4 v0 = 0.0f;                                                                                              \
        if (flags.x && count >= 4)                                                                                     \
            v0 = LOADV(T_BIAS, 4, bias, bias_offset + c);                                                              \
        else if (flags.x)                                                                                              \
            LOAD_FIRST(T_BIAS, 4, bias, bias_offset + c, v0, count);                                                   \
        v0 += (value);                                                                                                 \
        FOR_OPERANDS(FIND_OPERAND)                                                                                     \
        if (count >= 4) {                                                                                              \
            LOAD_OPERANDS                                                                                              \
            CHAIN                                                                                                      \
            STOREV(T_DST, 4, dst, to, CHAIN_RESULT);                                                                   \
        } else {                                                                                                       \
            LOAD_OPERANDS_PART(count)                                                                                  \
            CHAIN                                                                                                      \
            STORE_FIRST(T_DST, 4, dst, to, CHAIN_RESULT, count);                                                       \
        }                                                                                                              \
    } while (0)

TILE_SUB_GROUP __attribute__((reqd_work_group_size(TILE_ITEMS, 1, 1))) __kernel void conv_tiled(CONV_ARGUMENTS)
{
    TILE_MEMORY;
    const int item = (int)get_local_id(0), tx = item % TILE_TX, ty = item / TILE_TX;
    const int columns = (dst_size.w + BN - 1) / BN, tile = (int)get_group_id(0), layer = (int)get_group_id(2);
    const int first_pixel = tile / columns * BM, first_channel = (tile - tile / columns * columns) * BN;
    const int group = layer / terms.z, part = layer - group * terms.z;
    const int begin = part * terms.y, end = min(terms.x, begin + terms.y);
    const int padded = (dst_size.w + 15) / 16 * 16;
    src += src_offset + (idx_t)group * src_size.w;
    weight += weight_offset + group * weight_stride.x;

    window_t window[TILE_LOADS_A];
#pragma unroll
    for (int i = 0; i < TILE_LOADS_A; i++)
        window[i] = find_window(first_pixel + TILE_SIDE(item + i * TILE_ITEMS, 1, BM), flags.z, dst_size, stride, pad,
                                src_stride);
    int at = begin + TILE_TERM(item, 1, BM);
    term_t term = {0, 0, 0, 0};
    advance(&term, at, src_size.w, taps);
    float4 sum[TILE_SUMS], next_a[TILE_LOADS_A], next_b[TILE_LOADS_B];
    clear_sums(sum);
    int which = 0;
    for (int first = begin;; first += BK) {
        fetch_pixels(src, src_stride, src_size, taps, dilation, window, &term, at, end, next_a);
        fetch_weights(weight, weight_stride.y, item, first, end, first_channel, padded, next_b);
        at += BK;
        if (first > begin)
            multiply_tiles(TILE_A(which), TILE_B(which), tx, ty, sum);
        if (first >= end)
            break;
        which ^= 1;
        put_fours(TILE_A(which), item, 1, BM, TILE_LOADS_A, next_a);
        put_fours(TILE_B(which), item, 0, BN, TILE_LOADS_B, next_b);
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    float4 sums[TILE_SUMS]; // a copy, for a loop that is not unrolled
#pragma unroll
    for (int i = 0; i < TILE_SUMS; i++)
        sums[i] = sum[i];
    UNROLL_STORES
    for (int i = 0; i < TILE_SUMS; i++) {
        const int pixel = first_pixel + TILE_SUM_ROW(i, ty), m = first_channel + TILE_SUM_COLUMN(i, tx);
        if (pixel >= flags.z || m >= dst_size.w)
            continue;
        if (terms.z > 1)
            vstore4(sums[i], 0, partial + PARTIAL_AT(part, group, pixel, m));
        else
            STORE_FOUR(pixel, m, sums[i]);
    }
}

// A work-item for each four of the result.
__kernel void conv_sum(CONV_ARGUMENTS)
{
    const idx_t four = (idx_t)get_global_id(0);
    const int group = (int)get_global_id(2), pixel = (int)(four / terms.w), m = (int)(four - (idx_t)pixel * terms.w) * 4;
    if (four >= (idx_t)flags.z * terms.w || group >= taps.w)
        return;
    float4 sum = 0.0f;
    for (int part = 0; part < terms.z; part++)
        sum += vload4(0, partial + PARTIAL_AT(part, group, pixel, m));
    STORE_FOUR(pixel, m, sum);
}
