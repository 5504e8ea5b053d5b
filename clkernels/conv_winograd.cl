// SPDX-License-Identifier: Apache-2.0
// Convolution of 3x3 taps, stride 1, by Winograd's way for CPUs: F(4x4, 3x3) and F(2x2, 3x3) of Lavin and Gray, "Fast
// Algorithms for Convolutional Neural Networks" (arXiv 1509.09308). A tile of 4x4 pixels takes 36 products for each pair of
// channels instead of 144, one of 2x2 pixels 16 instead of 36, and less than half of the weights. The points are 0, 3/4, -3/4,
// 3/2, -3/2 and infinity, not the usual 0, 1, -1, 2, -2: all constants are exact, and errors in f32 are a quarter as large; of
// 2x2 pixels they are 0, 1, -1 and infinity.
//
// One work-item a work-group. It takes some slabs of R tiles at a time: turns their pixels into matrices [tile][channel], one
// for each point, multiplies each with that of the weights, and turns the products back into pixels, block of output channels
// by block. Matrices and products stay in memory of the work-item's own, which fits in a core's cache.
//
// gpu: never
// Defines: those of conv.clh, where P are the tiles of a slab, and
//   NB          vectors of channels that are multiplied at once
//   SIDE        pixels of a tile in each direction, 4 or 2
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=7 -DNB=4 -DSIDE=4
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=6 -DNB=2 -DSIDE=4 -DINDEX64
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=4 -DNB=3 -DSIDE=4
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=4 -DNB=3 -DSIDE=2 -DCAN_FETCH
// check: -DT_SRC=BF16 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=8 -DNB=3 -DSIDE=2 -DINDEX64 -DCAN_FETCH
// check: -DT_SRC=BF16 -DT_BIAS=F32 -DT_DST=BF16 -DV=16 -DP=7 -DNB=4 -DSIDE=4
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=4 -DP=6 -DNB=2 -DSIDE=4 -DSTAGES=2 -DS1=OP_ADD(v0,y0) -DS2=OP_RELU(v1) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
#ifndef T_WEIGHT
#define T_WEIGHT F32
#endif
#include "conv.clh"
#include "winograd.clh"
#if !defined(NB) || !defined(SIDE)
#error "conv_winograd.cl needs NB and SIDE"
#endif
#define R P
#define POINTS (SIDE + 2) // in each direction, and pixels that a tile reads
#define MATRICES (POINTS * POINTS)

#define NEAR 2048 // floats that are asked for ahead
#define LOADF PASTE2_(vload, V)
#define STOREF PASTE2_(vstore, V)
// A slab's matrices: [transform][16 channels][tile][channel]. Products of a block: [transform][tile][vector][channel].
#define PIECE (R * 16)
#define PRODUCTS (R * NB * V)

// Along one dimension. turn_pixels: pixels into what is multiplied, by the polynomials that are 0 at all points but one.
// turn_products: products into pixels, values at the points into coefficients.
#if SIDE == 4
#define A 0.75f
#define B 1.5f
static inline void turn_pixels(const FLOATV d[POINTS], FLOATV t[POINTS])
{
    const FLOATV even_a = d[4] - (B * B) * d[2], odd_a = A * (d[3] - (B * B) * d[1]);
    const FLOATV even_b = d[4] - (A * A) * d[2], odd_b = B * (d[3] - (A * A) * d[1]);
    t[0] = d[4] + ((A * A * B * B) * d[0] - (A * A + B * B) * d[2]);
    t[1] = even_a + odd_a;
    t[2] = even_a - odd_a;
    t[3] = even_b + odd_b;
    t[4] = even_b - odd_b;
    t[5] = d[5] + ((A * A * B * B) * d[1] - (A * A + B * B) * d[3]);
}

static inline void turn_products(const FLOATV m[POINTS], FLOATV y[SIDE])
{
    const FLOATV even_a = m[1] + m[2], odd_a = m[1] - m[2], even_b = m[3] + m[4], odd_b = m[3] - m[4];
    y[0] = m[0] + even_a + even_b;
    y[1] = A * odd_a + B * odd_b;
    y[2] = (A * A) * even_a + (B * B) * even_b;
    y[3] = m[5] + ((A * A * A) * odd_a + (B * B * B) * odd_b);
}
#else
static inline void turn_pixels(const FLOATV d[POINTS], FLOATV t[POINTS])
{
    TURN_PIXELS_2(d, t)
}

static inline void turn_products(const FLOATV m[POINTS], FLOATV y[SIDE])
{
    TURN_PRODUCTS_2(m, y)
}
#endif

// Where the pixels that a tile reads are; those in the padding at `zeros`.
static inline void find_pixels(__global const SRC_T *pixel[MATRICES], __global const SRC_T *image, int top, int left,
                               int4 src_size, idx4_t src_stride, __global const SRC_T *zeros)
{
    for (int y = 0; y < POINTS; y++)
        for (int x = 0; x < POINTS; x++) {
            const int h = top + y, w = left + x;
            const bool inside = h >= 0 && h < src_size.y && w >= 0 && w < src_size.z;
            pixel[y * POINTS + x] = inside ? image + (h * src_stride.z + w * src_stride.w) : zeros;
        }
}

// The last channels, which are no whole vector, with zeros behind them: into `spare`, from where they are read then.
static inline void copy_rest(__global const SRC_T *pixel[MATRICES], int c, int channels, __global SRC_T *spare)
{
    for (int i = 0; i < MATRICES; i++) {
        for (int k = 0; k < 16; k++)
            spare[i * 16 + k] = c + k < channels ? pixel[i][c + k] : (SRC_T)0;
        pixel[i] = spare + i * 16 - c;
    }
}

// A tile into its rows of the matrices; `to`: of the first, `matrix` floats from one to the next.
static inline void turn_tile(__global const SRC_T *pixel[MATRICES], int channels, __global float *to, int matrix,
                             __global SRC_T *spare)
{
    for (int c = 0; c < channels; c += V) {
        FLOATV part[MATRICES];
        if (channels - c < V)
            copy_rest(pixel, c, channels, spare);
        for (int x = 0; x < POINTS; x++) {
            FLOATV d[POINTS], t[POINTS];
#pragma unroll
            for (int y = 0; y < POINTS; y++)
                d[y] = LOADV(T_SRC, V, pixel[y * POINTS + x], c);
            turn_pixels(d, t);
#pragma unroll
            for (int y = 0; y < POINTS; y++)
                part[y * POINTS + x] = t[y];
        }
        __global float *row = to + (c >> 4) * PIECE + (c & 15);
        for (int y = 0; y < POINTS; y++) {
            FLOATV t[POINTS];
            turn_pixels(part + y * POINTS, t);
#pragma unroll
            for (int x = 0; x < POINTS; x++)
                STOREF(t[x], 0, row + (y * POINTS + x) * matrix);
        }
    }
}

#define LAST_VECTOR ((dst_size.w - 1) & ~(V - 1)) // of channels
// Weights come from memory: where several slabs pass by a matrix of them, the next one is asked for meanwhile, a part by each
// slab, and a single slab asks for what is near. ahead: of the first and the last panel; pace: sixteenths of it for this slab.
// With 16 registers an instruction a step is all that costs less than it hides.
// 32 registers have room for all of it, whatever the slab.
#if V == 8 && defined(CAN_FETCH)
#define AHEAD , __global const float *const ahead[2], int pace
#define PASS_AHEAD , ahead, pace
// Behind a block's last matrix comes the next block's first one; behind the last block there need not be any memory, and
// asking for what is not there takes as long as 200 instructions.
#define FIND_AHEAD                                                                                                     \
    const int passes = (count + R - 1) / R, pace = (15 + passes) / passes;                                             \
    const int later = i + 1 < MATRICES ? m : (block + 1 < end_block ? block + 1 : first_block) * (V * NB);             \
    __global const float *const of_later =                                                                             \
        weights + ((i + 1 < MATRICES ? i + 1 : 0) * weight_stride.x + s * pieces * pace * 16);                         \
    __global const float *const ahead[2] = {                                                                           \
        pace == 16 ? panel[0] + NEAR : of_later + weight_at(min(later, LAST_VECTOR), weight_stride.z),                 \
        pace == 16 ? panel[NB - 1] + NEAR                                                                              \
                   : of_later + weight_at(min(later + (NB - 1) * V, LAST_VECTOR), weight_stride.z)};
#if NB > 2
#define FETCH_AHEAD                                                                                                    \
    for (int i = piece * pace; pace < 16 && i < (piece + 1) * pace; i++) {                                             \
        __builtin_prefetch(ahead[0] + i * 16, 0, 2);                                                                   \
        __builtin_prefetch(ahead[1] + i * 16, 0, 2);                                                                   \
    }
#define FETCH_STEP FETCH_WEIGHTS(weight[0] + (piece * 16 + c) * 16)
#else
#define FETCH_AHEAD
#define FETCH_STEP __builtin_prefetch(ahead[0] + (piece * 16 + c) * pace, 0, 2);
#endif
#else
#define AHEAD
#define PASS_AHEAD
#define FIND_AHEAD
#define FETCH_AHEAD
#if V == 16 && defined(CAN_FETCH)
#define FETCH_STEP                                                                                                     \
    _Pragma("unroll") for (int j = 0; j < NB; j++)                                                                     \
        __builtin_prefetch(weight[j] + (piece * 16 + c) * 16 + NEAR, 0, 2);
#else
#define FETCH_STEP
#endif
#endif

// Of 32 registers one is missing for the last vector of weights where sums, the other ones and a pixel take them all.
#if V == 16 && R * NB + NB == 32 && defined(ADD_PRODUCT_AT)
#define ADD_LAST(sum, x, w, at) ADD_PRODUCT_AT(sum, x, at)
#else
#define ADD_LAST(sum, x, w, at) ADD_PRODUCT(V, sum, x, w)
#endif

// One matrix of a slab times one of the weights: `pieces` of 16 channels. Sums of 64 channels are added up in memory: one
// sum over all of them would have twice the error.
static inline void multiply(__global const float *slab, __global const float *const weight[NB], int pieces,
                            __global float *product AHEAD)
{
    for (int first = 0; first < pieces; first += 4) {
        const int end = min(first + 4, pieces);
        FLOATV acc[R * NB];
#pragma unroll
        for (int i = 0; i < R * NB; i++)
            acc[i] = 0.0f;
        for (int piece = first; piece < end; piece++) {
            FETCH_AHEAD
            for (int c = 0; c < 16; c++) {
                FLOATV w[NB];
                FETCH_STEP
#pragma unroll
                for (int j = 0; j < NB; j++)
                    w[j] = LOADF(0, weight[j] + (piece * 16 + c) * 16);
#pragma unroll
                for (int r = 0; r < R; r++) {
                    const FLOATV x = (FLOATV)(slab[piece * PIECE + r * 16 + c]);
#pragma unroll
                    for (int j = 0; j < NB - 1; j++)
                        ADD_PRODUCT(V, acc[r * NB + j], x, w[j]);
                    ADD_LAST(acc[r * NB + NB - 1], x, w[NB - 1], weight[NB - 1] + (piece * 16 + c) * 16);
                }
            }
        }
        if (first > 0) {
#pragma unroll
            for (int i = 0; i < R * NB; i++)
                acc[i] += LOADF(0, product + i * V);
        }
#pragma unroll
        for (int i = 0; i < R * NB; i++)
            STOREF(acc[i], 0, product + i * V);
    }
}

// A tile's products of one vector of channels into its pixels.
static inline void turn_back(__global const float *product, FLOATV bias, FLOATV result[SIDE * SIDE])
{
    FLOATV part[SIDE * POINTS];
    for (int x = 0; x < POINTS; x++) {
        FLOATV m[POINTS], y[SIDE];
#pragma unroll
        for (int i = 0; i < POINTS; i++)
            m[i] = LOADF(0, product + (i * POINTS + x) * PRODUCTS);
        turn_products(m, y);
#pragma unroll
        for (int i = 0; i < SIDE; i++)
            part[i * POINTS + x] = y[i];
    }
    for (int i = 0; i < SIDE; i++) {
        FLOATV y[SIDE];
        turn_products(part + i * POINTS, y);
#pragma unroll
        for (int x = 0; x < SIDE; x++)
            result[i * SIDE + x] = y[x] + bias;
    }
}

#define FIND_OPERAND(i) const idx_t at##i = OPERAND_AT(i, c);

// Stores those pixels of a tile that the image has, and of channels from c on the `rest` that are left.
static inline void store_tile(__global STORAGE(T_DST) *dst, idx_t dst_offset, idx4_t dst_stride, int4 dst_size,
                              const FLOATV result[SIDE * SIDE], int n, int top, int left, int c,
                              int rest CHAIN_ARGUMENTS)
{
    const int d = 0, rows = min(SIDE, dst_size.y - top), columns = min(SIDE, dst_size.z - left);
    (void)d;
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            const int h = top + y, w = left + x;
            const idx_t place = dst_offset + n * dst_stride.x + h * dst_stride.z + w * dst_stride.w + c;
            const FLOATV v0 = result[y * SIDE + x];
            FOR_OPERANDS(FIND_OPERAND)
            if (rest >= V) {
                LOAD_OPERANDS
                CHAIN
                STOREV(T_DST, V, dst, place, CHAIN_RESULT);
            } else {
                LOAD_OPERANDS_PART(rest)
                CHAIN
                STORE_FIRST(T_DST, V, dst, place, CHAIN_RESULT, rest);
            }
        }
}

// The range is blocks of NB vectors of output channels, stride.w of them a work-item, by slabs, flags.w a work-item; flags.z:
// tiles. own: where the memory begins, floats of it for each work-item, slabs that pass by the weights together.
WORK convolve_slabs(__global float *memory, idx4_t own, CONV_ARGUMENTS, const int grid0, const int grid1)
{
    const int blocks = (dst_size.w + V * NB - 1) / (V * NB), pieces = (src_size.w + 15) / 16, matrix = pieces * PIECE;
    const int first_block = grid0 * stride.w, end_block = min(first_block + stride.w, blocks);
    const int end_tile = min((grid1 + 1) * flags.w * R, flags.z);
    __global const float *weights = weight + weight_offset;
    __global const SRC_T *zeros = (__global const SRC_T *)(weights + weight_stride.w);
    const int block_items = (blocks + stride.w - 1) / stride.w;
    __global float *spare = memory + (own.x + (grid1 * (idx_t)block_items + grid0) * own.y);
    __global float *slabs = spare + MATRICES * 16, *products = slabs + own.z * (MATRICES * matrix);

    for (int first = grid1 * flags.w * R; first < end_tile; first += (int)own.z * R) {
        const int count = min((int)own.z * R, end_tile - first);
        for (int t = 0; t < count; t++) {
            const tile_place tile = find_tile(first + t, dst_size, SIDE);
            __global const SRC_T *pixel[MATRICES];
            find_pixels(pixel, src + (src_offset + tile.n * src_stride.x), tile.top - pad.y, tile.left - pad.z,
                        src_size, src_stride, zeros);
            turn_tile(pixel, src_size.w, slabs + ((t / R) * (MATRICES * matrix) + t % R * 16), matrix,
                      (__global SRC_T *)spare);
        }
        for (int block = first_block; block < end_block; block++) {
            const int m = block * (V * NB);
            for (int i = 0; i < MATRICES; i++) {
                __global const float *panel[NB];
#pragma unroll
                for (int j = 0; j < NB; j++)
                    panel[j] = weights + (weight_at(min(m + j * V, LAST_VECTOR), weight_stride.z) +
                                          i * weight_stride.x);
                for (int s = 0; s * R < count; s++) {
                    FIND_AHEAD
                    multiply(slabs + (s * MATRICES + i) * matrix, panel, pieces,
                             products + (s * MATRICES + i) * PRODUCTS PASS_AHEAD);
                }
            }
            for (int t = 0; t < count; t++) {
                const tile_place tile = find_tile(first + t, dst_size, SIDE);
                for (int c = m; c < min(m + V * NB, dst_size.w); c += V) {
                    const int rest = dst_size.w - c;
                    FLOATV result[SIDE * SIDE];
                    turn_back(products + ((t / R) * (MATRICES * PRODUCTS) + t % R * (NB * V) + (c - m)),
                              flags.y ? load_bias(bias + (bias_offset + c), rest) : (FLOATV)(0.0f), result);
                    store_tile(dst, dst_offset, dst_stride, dst_size, result, tile.n, tile.top, tile.left, c,
                               rest PASS_CHAIN_ARGUMENTS);
                }
            }
        }
    }
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void conv_winograd(__global float *memory, idx4_t own,
                                                                           CONV_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    convolve_slabs(memory, own, PASS_CONV, (int)get_global_id(0), (int)get_global_id(1));
    TEAM_LEAVE
}
