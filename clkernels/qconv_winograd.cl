// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers with 3x3 taps, stride 1, requantised to 8 bits, for CPUs whose best product of bytes is
// x86's vpmaddwd: F(2x2, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (arXiv 1509.09308),
// in integers, so exactly. A tile of 2x2 pixels takes 16 products for each pair of channels instead of 36.
//
// What is multiplied has 16 bits: pixels times the points' values are within 4 * 255, and weights, of which all is twice as
// large in both directions so that halves are whole, within 9 * 128. Products wrap at 32 bits; the sum of a result is within
// 29 bits for up to 1,024 channels, so that a quarter of what comes out is it.
//
// One work-item a work-group. It takes some groups of R tiles at a time: turns their pixels into 16 matrices, multiplies
// each with that of the weights, and turns the products back into pixels, block of output channels by block. Matrices and
// products stay in memory of the work-item's own, which fits in a core's cache.
//
// gpu: never
// Defines:
//   T_A    I8 or U8: src's
//   SUM    to each result another quantised tensor is added, and the sum quantised, as qmap.cl's OP_ADD does
//   MODEL  in plain C
//   FIP    with fewer products (fip.clh): of 32 channels in the first 16 are even and the others odd
// check: -DT_A=U8
// check: -DT_A=I8 -DSUM -DMODEL
// check: -DT_A=I8 -DFIP
#include "qconv_end.clh"
#include "winograd.clh"
#ifndef T_A
#error "qconv_winograd.cl needs T_A"
#endif
#define R 6
#define TRANSFORMS 16
// Channels of a panel of weights: 16 sums, and for each transform the channels' own products (fip.clh) and the integers of
// each pair of channels in.
#define BLOCK 16
#define MAX_CHANNELS 1024 // as in qconv_winograd.c
#define FLIP (IS_UNSIGNED(T_A) ? (uchar)0 : (uchar)0x80)
// A group's matrix: pieces of 16 pairs of channels of R tiles.
#define PIECE (R * 16)
#define PRODUCTS (R * BLOCK)
#define MADD 8
#define MADD_ROWS R
#define MADD_NB 1
#define MADD_PANEL BLOCK
#include "madd.clh"

// Pixels into what is multiplied, along one dimension.
static inline void turn_pixels(const short16 d0, const short16 d1, const short16 d2, const short16 d3, short16 t[4])
{
    t[0] = d0 - d2;
    t[1] = d1 + d2;
    t[2] = d2 - d1;
    t[3] = d1 - d3;
}

// A tile into its rows of the matrices; `to`: of the first, `matrix` integers from one to the next. own: the rows' own
// products, R integers from one to the next.
static inline void turn_tile(__global const uchar *const pixel[16], int channels, __global uint *to, int matrix,
                             __global uint *own)
{
#ifdef FIP
    madd_uints products[TRANSFORMS];
    for (int i = 0; i < TRANSFORMS; i++)
        products[i] = 0;
#endif
    for (int c = 0; c < channels; c += 16) {
        short16 part[16];
#pragma unroll
        for (int y = 0; y < 4; y++) {
            short16 d[4];
#pragma unroll
            for (int x = 0; x < 4; x++)
                d[x] = convert_short16(vload16(0, pixel[y * 4 + x] + c) ^ (uchar16)(FLIP));
            turn_pixels(d[0], d[1], d[2], d[3], part + y * 4);
        }
        __global short *row = (__global short *)(to + ((c >> 5) * PIECE + (c & 31) / 2));
#pragma unroll
        for (int x = 0; x < 4; x++) {
            short16 t[4];
            turn_pixels(part[x], part[4 + x], part[8 + x], part[12 + x], t);
#pragma unroll
            for (int y = 0; y < 4; y++) {
                __global short *at = row + (y * 4 + x) * matrix * 2;
                vstore16(t[y], 0, at);
#ifdef FIP
                if (c & 16)
                    ADD_PAIRS(products[y * 4 + x], as_uint8(t[y]), as_uint8(vload16(0, at - 16)));
#endif
            }
        }
    }
#ifdef FIP
    for (int i = 0; i < TRANSFORMS; i++)
        own[i * R] = sum_of_lanes(products[i]);
#endif
}

// One matrix of a group times one of the weights, which has the own products of its channels before it. A function of its
// own, as add_wide is.
static __attribute__((noinline)) void multiply(__global int *product, __global const uint *x, __global const uint *own,
                                               __global const int *y, int pairs)
{
    madd_uints sum[MADD_SUMS];
#pragma unroll
    for (int i = 0; i < MADD_SUMS; i++)
#ifdef FIP
        sum[i] = -own[i / 2] - MADD_LOAD(y + i % 2 * 8);
#else
        sum[i] = 0;
#endif
    y += BLOCK;
    for (int first = 0; first < pairs; first += 16, x += PIECE)
#ifdef FIP
        for (int c = 0; c < 8; c++) {
            __global const int *even = y + (first + c) * BLOCK, *odd = even + 8 * BLOCK;
#pragma unroll
            for (int r = 0; r < R; r++)
                FIP_ROW2(sum + 2 * r, x[r * 16 + c], x[r * 16 + c + 8], MADD_AT(even), MADD_AT(odd), MADD_AT(even + MADD),
                         MADD_AT(odd + MADD));
        }
#else
        for (int c = 0, count = min(16, pairs - first); c < count; c++, y += BLOCK) {
            const madd_uints y0 = MADD_LOAD(y), y1 = MADD_LOAD(y + 8);
#pragma unroll
            for (int r = 0; r < R; r++)
                ADD_ROW(sum[2 * r], sum[2 * r + 1], x[r * 16 + c], y0, y1);
        }
#endif
#pragma unroll
    for (int i = 0; i < MADD_SUMS; i++)
        vstore8(as_int8(sum[i]), i, product);
}

// A tile's products of a block of channels into its four sums.
static inline void turn_back(__global const int *product, int step, uint16 result[4])
{
    uint16 part[8];
#pragma unroll
    for (int x = 0; x < 4; x++) {
        uint16 m[4];
#pragma unroll
        for (int y = 0; y < 4; y++)
            m[y] = as_uint16(vload16(0, product + (y * 4 + x) * step));
        part[x] = m[0] + m[1] + m[2];
        part[4 + x] = m[1] - m[2] - m[3];
    }
#pragma unroll
    for (int y = 0; y < 2; y++) {
        const uint16 *m = part + 4 * y;
        result[2 * y] = as_uint16(as_int16(m[0] + m[1] + m[2]) >> 2);
        result[2 * y + 1] = as_uint16(as_int16(m[1] - m[2] - m[3]) >> 2);
    }
}

// Where a tile's 4x4 pixels are read; those in the padding at `outside`.
static inline void find_pixels(__global const uchar *pixel[16], __global const uchar *image, __global const uchar *outside,
                               int top, int left, int4 src_size, int4 src_stride)
{
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++) {
            const int h = top + y, w = left + x;
            const bool inside = h >= 0 && h < src_size.y && w >= 0 && w < src_size.z;
            pixel[y * 4 + x] = inside ? image + (h * src_stride.z + w * src_stride.w) : outside;
        }
}

// What is added to the sums of a block of channels, what scales them, and how many there are.
typedef struct block_end {
    uint16 added;
    float16 scale;
    int channel, count;
} block_end;

// The sizes and strides that results are stored by, from the first of a pass on.
typedef struct result_places {
    int4 dst_size, dst_stride, addend_stride;
    int dst_offset, addend_offset, first, count;
} result_places;

static inline void store_tiles(__global uchar *dst, __global const int *products, const block_end *block,
                               const tile_end *end, const result_places *to ADDENDS)
{
    for (int t = 0; t < to->count; t++) {
        const tile_place tile = find_tile(to->first + t, to->dst_size, 2);
        uint16 result[4];
        turn_back(products + (t / R * TRANSFORMS * PRODUCTS + t % R * BLOCK), PRODUCTS, result);
        for (int i = 0; i < 4; i++) {
            const int h = tile.top + i / 2, w = tile.left + i % 2;
            if (h < to->dst_size.y && w < to->dst_size.z)
                store_channels(dst + (to->dst_offset + PLACES(to->dst_stride, tile.n, 0, h, w) + block->channel),
                               result[i] + block->added, block->scale, end,
                               block->count PASS_ADDEND(addend + (to->addend_offset +
                                                                  PLACES(to->addend_stride, tile.n, 0, h, w) +
                                                                  block->channel)));
        }
    }
}

// The range is blocks of channels, flags.s3 of a work-item, by groups of tiles, flags.s2 of a work-item; flags.s1: tiles.
// own: where the memory begins, bytes of it for each work-item, groups that pass by the weights together, integers of a panel.
WORK convolve(__global uchar *memory, int4 own, KERNEL_ARGUMENTS SUM_ARGUMENTS SIZE_ARGUMENTS, const int grid0,
              const int grid1)
{
    const int blocks = (dst_size.w + BLOCK - 1) / BLOCK, pairs = src_size.w / 2, matrix = (pairs + 15) / 16 * PIECE;
    const int first_block = grid0 * flags.s3, end_block = min(first_block + flags.s3, blocks);
    const int end_tile = min((grid1 + 1) * flags.s2 * R, flags.s1);
    const int block_items = (blocks + flags.s3 - 1) / flags.s3;
    __global uchar *outside = memory + (own.x + (grid1 * block_items + grid0) * own.y);
    __global uint *groups = (__global uint *)(outside + MAX_CHANNELS);
    __global int *products = (__global int *)(groups + own.z * TRANSFORMS * matrix);
    __global uint *own_products = (__global uint *)(products + own.z * TRANSFORMS * PRODUCTS);
    const uchar zero = HAS(HAS_ZA) ? za[za_offset] : (uchar)0;
    const float dst_scale_of = SCALE(dst_scale, HAS_DST_SCALE), all_scale = SCALE(a_scale, HAS_A_SCALE);
    tile_end end;
    FIND_END
    for (int c = 0; c < src_size.w; c++)
        outside[c] = zero;
    result_places to = {dst_size, dst_stride, addend_stride, dst_offset, 0, 0, 0};
#ifdef SUM
    to.addend_offset = addend_offset;
#endif
    for (to.first = grid1 * flags.s2 * R; to.first < end_tile; to.first += own.z * R) {
        to.count = min(own.z * R, end_tile - to.first);
        for (int t = 0; t < to.count; t++) {
            const tile_place tile = find_tile(to.first + t, dst_size, 2);
            __global const uchar *pixel[16];
            find_pixels(pixel, src + (src_offset + tile.n * src_stride.x), outside, tile.top - pad.y, tile.left - pad.z,
                        src_size, src_stride);
            turn_tile(pixel, src_size.w, groups + (t / R * TRANSFORMS * matrix + t % R * 16), matrix,
                      own_products + (t / R * TRANSFORMS * R + t % R));
        }
        for (int i = first_block; i < end_block; i++) {
            __global const int *panel = weight + (weight_offset + i * own.w);
            const int c = i * BLOCK, left = dst_size.w - c;
            const uint16 bias_of = HAS(HAS_BIAS) ? as_uint16(LOAD_CHANNELS(bias, flags.s5)) : (uint16)(0);
            const float16 scale = HAS(HAS_B_SCALE) ? as_float16(LOAD_CHANNELS(b_scale, flags.s6)) : (float16)(1.0f);
            const block_end block = {bias_of - (uint16)(zero ^ FLIP) * as_uint16(vload16(0, panel)),
                                     (float16)(all_scale) * scale / (float16)(dst_scale_of), c, left};
            for (int j = 0; j < TRANSFORMS; j++)
                for (int g = 0; g * R < to.count; g++)
                    multiply(products + (g * TRANSFORMS + j) * PRODUCTS, groups + (g * TRANSFORMS + j) * matrix,
                             own_products + (g * TRANSFORMS + j) * R, panel + (BLOCK + j * (1 + pairs) * BLOCK), pairs);
            store_tiles(dst, products, &block, &end, &to PASS_ADDENDS);
        }
    }
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
qconv_winograd(__global uchar *memory, int4 own, KERNEL_ARGUMENTS SUM_ARGUMENTS SIZE_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    convolve(memory, own, PASS_KERNEL PASS_SUM, dst_size, src_size, taps, stride, dilation, pad, dst_stride, src_stride,
             addend_stride, flags, (int)get_global_id(0), (int)get_global_id(1));
    TEAM_LEAVE
}
