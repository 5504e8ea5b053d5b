// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers with 3x3 taps, stride 1, requantised to 8 bits, for CPUs: F(2x2, 3x3) or F(4x4, 3x3) of Lavin
// and Gray, "Fast Algorithms for Convolutional Neural Networks" (arXiv 1509.09308), in integers, so exactly. A tile of 2x2
// pixels takes 16 products for each pair of channels instead of 36, one of 4x4 pixels 36 instead of 144. What is multiplied has
// 16 bits; products wrap at 32 bits, as all that comes behind them.
//
// One work-item a work-group. It takes some groups of R tiles at a time: turns their pixels into matrices, one for each
// point, multiplies each with that of the weights, and turns the products back into pixels, block of output channels by
// block. Matrices and products stay in memory of the work-item's own, which fits in a core's cache.
//
// gpu: never
// Defines:
//   T_A    I8 or U8: src's
//   SUM    to each result another quantised tensor is added, and the sum quantised, as qmap.cl's OP_ADD does
//   SIDE   pixels of a tile in each direction, 2 or 4
//   WIDE   with vpdpwssd (qwinograd_words.clh), else vpmaddwd (qwinograd_madd.clh); and what these say
// check: -DT_A=U8 -DSIDE=2
// check: -DT_A=I8 -DSIDE=2 -DSUM -DMODEL
// check: -DT_A=I8 -DSIDE=2 -DFIP
// check: -DT_A=U8 -DSIDE=4 -DWIDE
// check: -DT_A=I8 -DSIDE=4 -DWIDE -DSUM -DMODEL
// check: -DT_A=U8 -DSIDE=2 -DWIDE -DFIP
// check: -DT_A=U8 -DSIDE=4 -DWIDE -DFIP -DMODEL
#include "qconv_end.clh"
#include "winograd.clh"
#if !defined(T_A) || !defined(SIDE)
#error "qconv_winograd.cl needs T_A and SIDE"
#endif
#define MAX_CHANNELS 1024 // as in qconv_winograd.c
#if IS_UNSIGNED(T_A)
typedef uchar byte_of_a;
#else
typedef char byte_of_a;
#endif
#define POINTS (SIDE + 2) // in each direction, and pixels that a tile reads
#define TRANSFORMS (POINTS * POINTS)
// A block's sums for each of R tiles, and a group's matrix: pieces of 16 pairs of channels of R tiles.
#define BLOCK (NB * 16)
#define PRODUCTS (R * BLOCK)
#define PIECE (R * 16)
#ifdef WIDE
#include "qwinograd_words.clh"
#else
#include "qwinograd_madd.clh"
#endif
// Of weights: pairs of channels, and, where there may be FIP, what the channels' own products come to before them.
#define MATRIX_INTS(pairs) ((OWN_ROWS + (pairs)) * BLOCK)

// Along one dimension. turn_pixels: pixels into what is multiplied, by the polynomials that are 0 at all points but one.
// turn_products: products into pixels, values at the points into coefficients. What comes out of both directions is
// 2^LESS_BITS times the sums, and what DIVIDED takes off. Pixels are counted from CENTER on: of what all of a tile have in
// common there is a product, 36 times as much, at the point of 1 in both directions alone.
#if SIDE == 2
// The points are 0, 1, -1 and infinity. Pixels times their values are within 4 * 255, and weights, of which all is twice as
// large in each direction so that halves are whole, within 9 * 128. A sum is within 29 bits for up to 1,024 channels.
#define CENTER 0
#define LESS_BITS 2
#define DIVIDED(v) (v)
static inline void turn_pixels(const words d[POINTS], words t[POINTS])
{
    TURN_PIXELS_2(d, t)
}

static inline void turn_products(const uint16 m[POINTS], uint16 y[SIDE])
{
    TURN_PRODUCTS_2(m, y)
}
#else
// The points are 0, 1, -1, 2, -2 and infinity. Pixels times their values are within 100 * 128, and weights, 24 times as large
// in each direction less what turn_products has for them, within 144 * 128: both together within 16 bits, as FIP adds them. 64
// * 9 times a sum leaves its lowest 26 bits: all of it for up to 227 channels.
#define CENTER (IS_UNSIGNED(T_A) ? 128 : 0)
#define LESS_BITS 6
#define DIVIDED(v) ((v)*0x38e38e39u) // by 9, of which this is the inverse: their product is 2 * 2^32 + 1
static inline void turn_pixels(const words d[POINTS], words t[POINTS])
{
    const words near = d[4] - (d[2] << (short)2), odd_near = d[3] - (d[1] << (short)2);
    const words far = d[4] - d[2], half_far = d[3] - d[1], odd_far = half_far + half_far;
    t[0] = far + ((d[0] - d[2]) << (short)2);
    t[1] = near + odd_near;
    t[2] = near - odd_near;
    t[3] = far + odd_far;
    t[4] = far - odd_far;
    t[5] = (d[5] - d[3]) - (odd_far + odd_far);
}

static inline void turn_products(const uint16 m[POINTS], uint16 y[SIDE])
{
    const uint16 near = m[1] + m[2], odd_near = m[1] - m[2], far = m[3] + m[4], odd_far = (m[3] - m[4]) << 1;
    y[0] = m[0] + near + far;
    y[1] = odd_near + odd_far;
    y[2] = near + (far << 2);
    y[3] = odd_near + (odd_far << 2) + (m[5] << 1);
}
#endif

typedef words loose_words __attribute__((aligned(2)));

// A tile into its rows of the matrices; `to`: of the first, `matrix` integers from one to the next. own: the rows' own
// products, R integers from one to the next.
static inline void turn_tile(__global const uchar *const pixel[TRANSFORMS], int channels, __global uint *to, int matrix,
                             __global uint *own)
{
#ifdef FIP
    uint8 products[TRANSFORMS];
    for (int i = 0; i < TRANSFORMS; i++)
        products[i] = 0;
#endif
    for (int c = 0; c < channels; c += WORDS) {
        words part[TRANSFORMS];
#pragma unroll
        for (int x = 0; x < POINTS; x++) {
            words d[POINTS], t[POINTS];
#pragma unroll
            for (int y = 0; y < POINTS; y++)
                d[y] = WORDS_OF_BYTES(pixel[y * POINTS + x] + c);
            turn_pixels(d, t);
#pragma unroll
            for (int y = 0; y < POINTS; y++)
                part[y * POINTS + x] = t[y];
        }
        __global short *row = (__global short *)(to + ((c >> 5) * PIECE + (c & 31) / 2));
#pragma unroll
        for (int y = 0; y < POINTS; y++) {
            words t[POINTS];
            turn_pixels(part + y * POINTS, t);
#pragma unroll
            for (int x = 0; x < POINTS; x++) {
                __global short *at = row + (y * POINTS + x) * matrix * 2;
                if (CENTER != 0 && y == 1 && x == 1)
                    t[x] -= (short)(36 * CENTER);
                *(__global loose_words *)at = t[x];
#ifdef FIP
                ADD_OWN_PRODUCTS(products[y * POINTS + x], t[x], c, at);
#endif
            }
        }
    }
#ifdef FIP
    for (int i = 0; i < TRANSFORMS; i++)
        own[i * R] = sum_of_lanes(products[i]);
#else
    (void)own;
#endif
}

// A tile's products of 16 channels into what leaves their sums, `step` integers from one to the next.
static inline void turn_back(__global const int *product, int step, uint16 result[SIDE * SIDE])
{
    uint16 part[SIDE * POINTS];
#pragma unroll
    for (int x = 0; x < POINTS; x++) {
        uint16 m[POINTS], y[SIDE];
#pragma unroll
        for (int i = 0; i < POINTS; i++)
            m[i] = as_uint16(vload16(0, product + (i * POINTS + x) * step));
        turn_products(m, y);
#pragma unroll
        for (int i = 0; i < SIDE; i++)
            part[i * POINTS + x] = y[i];
    }
#pragma unroll
    for (int i = 0; i < SIDE; i++)
        turn_products(part + i * POINTS, result + i * SIDE);
}

// Where a tile's pixels are read; those in the padding at `outside`.
static inline void find_pixels(__global const uchar *pixel[TRANSFORMS], __global const uchar *image, __global const uchar *outside,
                               int top, int left, int4 src_size, int4 src_stride)
{
    if (top >= 0 && left >= 0 && top + POINTS <= src_size.y && left + POINTS <= src_size.z) {
        image += top * src_stride.z + left * src_stride.w;
        for (int y = 0; y < POINTS; y++)
            for (int x = 0; x < POINTS; x++)
                pixel[y * POINTS + x] = image + (y * src_stride.z + x * src_stride.w);
        return;
    }
    for (int y = 0; y < POINTS; y++)
        for (int x = 0; x < POINTS; x++) {
            const int h = top + y, w = left + x;
            const bool inside = h >= 0 && h < src_size.y && w >= 0 && w < src_size.z;
            pixel[y * POINTS + x] = inside ? image + (h * src_stride.z + w * src_stride.w) : outside;
        }
}

// What scales the sums of a block of channels, and what is added to them.
typedef struct block_end {
    float16 scale[NB];
    uint16 added[NB];
    int channel, channels; // the first, and of all
} block_end;

// The sizes and strides that results are stored by, from the first of a pass on.
typedef struct result_places {
    int4 dst_size, dst_stride, addend_stride;
    int dst_offset, addend_offset, first, count;
} result_places;

// A tile's results of 16 channels from c on.
static inline void store_tile(__global uchar *dst, const uint16 result[SIDE * SIDE], const block_end *block, int j,
                              const tile_place *tile, const tile_end *end, const result_places *to ADDENDS)
{
    const int c = block->channel + j * 16;
    for (int i = 0; i < SIDE * SIDE; i++) {
        const int h = tile->top + i / SIDE, w = tile->left + i % SIDE;
        if (h >= to->dst_size.y || w >= to->dst_size.z)
            continue;
        const uint16 sum = as_uint16(as_int16(DIVIDED(result[i])) >> LESS_BITS) + block->added[j];
        store_channels(dst + (to->dst_offset + PLACES(to->dst_stride, tile->n, 0, h, w) + c), sum, block->scale[j], end,
                       block->channels - c PASS_ADDEND(addend + (to->addend_offset +
                                                                 PLACES(to->addend_stride, tile->n, 0, h, w) + c)));
    }
}

static inline void store_tiles(__global uchar *dst, __global const int *products, const block_end *block,
                               const tile_end *end, const result_places *to ADDENDS)
{
    for (int t = 0; t < to->count; t++) {
        const tile_place tile = find_tile(to->first + t, to->dst_size, SIDE);
        for (int j = 0; j < NB && block->channel + j * 16 < block->channels; j++) {
            uint16 result[SIDE * SIDE];
            turn_back(products + (t / R * TRANSFORMS * PRODUCTS + t % R * BLOCK + j * 16), PRODUCTS, result);
            store_tile(dst, result, block, j, &tile, end, to PASS_ADDENDS);
        }
    }
}

// All groups of `count` tiles times a matrix of weights. These come from far: each group asks for a part of the next matrix,
// which lies behind it, but for the last one.
static inline void multiply_groups(__global int *products, __global const uint *groups, __global const uint *own,
                                   __global const int *weights, int pairs, int count, bool is_last)
{
    const int passes = (count + R - 1) / R, step = STEP_PAIRS * BLOCK * (int)sizeof(int);
    const int pace = (step + passes - 1) / passes, matrix = (pairs + 15) / 16 * PIECE;
    __global const uchar *next = (__global const uchar *)(is_last ? weights : weights + MATRIX_INTS(pairs));
    for (int g = 0; g < passes; g++)
        multiply(products + g * TRANSFORMS * PRODUCTS, groups + g * TRANSFORMS * matrix, own + g * TRANSFORMS * R, weights,
                 pairs, next + g * pace * (pairs / STEP_PAIRS), pace);
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
            const tile_place tile = find_tile(to.first + t, dst_size, SIDE);
            __global const uchar *pixel[TRANSFORMS];
            find_pixels(pixel, src + (src_offset + tile.n * src_stride.x), outside, tile.top - pad.y, tile.left - pad.z,
                        src_size, src_stride);
            turn_tile(pixel, src_size.w, groups + (t / R * TRANSFORMS * matrix + t % R * 16), matrix,
                      own_products + (t / R * TRANSFORMS * R + t % R));
        }
        for (int i = first_block; i < end_block; i++) {
            __global const int *panel = weight + (weight_offset + i * own.w);
            block_end block = {.channel = i * BLOCK, .channels = dst_size.w};
#pragma unroll
            for (int j = 0; j < NB; j++) {
                const int c = i * BLOCK + j * 16, left = dst_size.w - c;
                const uint16 sums = as_uint16(vload16(j, panel));
                const uint16 bias_of = HAS(HAS_BIAS) ? as_uint16(LOAD_CHANNELS(bias, flags.s5)) : (uint16)(0);
                const float16 scale = HAS(HAS_B_SCALE) ? as_float16(LOAD_CHANNELS(b_scale, flags.s6)) : (float16)(1.0f);
                block.added[j] = bias_of + (uint16)(CENTER - OF_BYTE(zero)) * sums;
                block.scale[j] = (float16)(all_scale) * scale / (float16)(dst_scale_of);
            }
            for (int j = 0; j < TRANSFORMS; j++)
                multiply_groups(products + j * PRODUCTS, groups + j * matrix, own_products + j * R,
                                panel + (BLOCK + j * MATRIX_INTS(pairs)), pairs, to.count,
                                i + 1 == end_block && j + 1 == TRANSFORMS);
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
