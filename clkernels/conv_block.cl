// SPDX-License-Identifier: Apache-2.0
// A depthwise convolution with the convolutions of single pixels before and behind it, for CPUs, as one kernel: what
// lies between them stays in a core's cache. One work-item a work-group; it walks down a band of an image:
//
//     expand     some rows of pixels into a ring of rows, S channels at a time, with the image's padding around them
//     depthwise  of the ring's rows, as long as they are in a cache, into `between`
//     project    those pixels into the result
//
// Without EXPAND the rows are copied, without PROJECT the depthwise results are stored. The memory for this is the
// work-item's own: the ring is [slice][row][column][S], `between` is [slice][pixel][S].
//
// gpu: never
// Defines: those of conv.clh, where P are the pixels of a tile of expanded ones, and
//   EXPAND, PROJECT       there are these
//   NB                    vectors of a slice's channels
//   Q, NQ                 pixels and vectors of channels of a tile of projected ones
//   WEIGHTS_ONCE          all pixels of some rows pass by a tile's weights, not all weights by a tile's pixels
//   COLUMNS               depthwise results of a row that are computed at once
//   TAPS, STRIDE          the window's side and its step, in both directions
//   E_STAGES, E_S1 …      what is done to what EXPAND computes, as STAGES and S1 … for the last result
//   D_STAGES, D_S1 …      likewise to the depthwise results, with PROJECT
//   PAIRS                 EXPAND and PROJECT multiply pairs of bfloat16 channels: src is U32 where EXPAND reads it, T_WEIGHT
//                         is, and `between` is bfloat16; the depthwise convolution is of float32 throughout
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=8 -DNB=3 -DQ=14 -DNQ=2 -DCOLUMNS=7 -DTAPS=3 -DSTRIDE=1 -DEXPAND -DPROJECT -DE_STAGES=1 -DE_S1=OP_RELU(v0) -DSTAGES=0
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=6 -DNB=2 -DCOLUMNS=4 -DTAPS=5 -DSTRIDE=2 -DEXPAND -DINDEX64 -DSTAGES=1 -DS1=OP_RELU(v0)
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=6 -DNB=2 -DQ=4 -DNQ=3 -DCOLUMNS=4 -DTAPS=3 -DSTRIDE=1 -DEXPAND -DPROJECT -DWEIGHTS_ONCE -DSTAGES=0
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=4 -DP=6 -DNB=2 -DQ=6 -DNQ=2 -DCOLUMNS=1 -DTAPS=3 -DSTRIDE=2 -DPROJECT -DD_STAGES=1 -DD_S1=OP_RELU(v0) -DSTAGES=1 -DS1=OP_ADD(v0,y0) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
// check: -DT_SRC=U32 -DT_WEIGHT=U32 -DT_BIAS=F32 -DT_DST=BF16 -DV=16 -DP=8 -DNB=3 -DQ=14 -DNQ=2 -DCOLUMNS=7 -DTAPS=3 -DSTRIDE=1 -DEXPAND -DPROJECT -DPAIRS -DMODEL -DE_STAGES=1 -DE_S1=OP_RELU(v0) -DSTAGES=0
// check: -DT_SRC=BF16 -DT_WEIGHT=U32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=6 -DNB=2 -DQ=6 -DNQ=2 -DCOLUMNS=1 -DTAPS=3 -DSTRIDE=2 -DPROJECT -DPAIRS -DMODEL -DSTAGES=0
#include "conv.clh"
#if !defined(NB) || !defined(COLUMNS) || !defined(TAPS) || !defined(STRIDE)
#error "conv_block.cl needs NB, COLUMNS, TAPS and STRIDE"
#endif

#define S (NB * V)
#ifdef PAIRS
#define T_BETWEEN BF16
#define FACTOR_CHANNELS 2
#define TO_FACTOR as_uint
typedef ushort2 factor_t;
#else
#define T_BETWEEN F32
#define FACTOR_CHANNELS 1
#define TO_FACTOR
typedef float factor_t;
#endif
#define BETWEEN_T STORAGE(T_BETWEEN)
#define LOADF PASTE2_(vload, V)
#define STOREF PASTE2_(vstore, V)

// The chains within: of numbers alone.
#define INNER_0(X)
#define INNER_1(X) const FLOATV v1 = X##_S1;
#define INNER_2(X) INNER_1(X) const FLOATV v2 = X##_S2;
#define INNER_3(X) INNER_2(X) const FLOATV v3 = X##_S3;
#define INNER_4(X) INNER_3(X) const FLOATV v4 = X##_S4;
#define INNER_5(X) INNER_4(X) const FLOATV v5 = X##_S5;
#define INNER_6(X) INNER_5(X) const FLOATV v6 = X##_S6;
#define INNER_7(X) INNER_6(X) const FLOATV v7 = X##_S7;
#define INNER_8(X) INNER_7(X) const FLOATV v8 = X##_S8;
#ifndef E_STAGES
#define E_STAGES 0
#endif
#ifndef D_STAGES
#define D_STAGES 0
#endif
#if E_STAGES > 0 || D_STAGES > 0
#ifndef STAGES
#error "chains within need STAGES, which may be 0"
#endif
#endif

#ifdef EXPAND
static inline FLOATV end_expanded(FLOATV v0, float8 chain_scalars)
{
    CHAIN_PASTE_(INNER_, E_STAGES)(E)
    return CHAIN_PASTE_(v, E_STAGES);
}
#endif

#ifdef PROJECT
static inline FLOATV end_depthwise(FLOATV v0, float8 chain_scalars)
{
    CHAIN_PASTE_(INNER_, D_STAGES)(D)
    return CHAIN_PASTE_(v, D_STAGES);
}
#endif

// What all parts of the kernel know; named for the arguments that they come from.
typedef struct block_shape {
    int src_height, src_width, channels, hidden, dst_height, dst_width, filters, pad_top, pad_left;
    int ring_rows, ring_width, rows; // rows: of results, at a time
    idx_t src_row, src_pixel, dst_row, dst_pixel, ring_slice, between_slice;
} block_shape;

static inline int ring_row(int row, int ring_rows)
{
    return (row + (ring_rows << 8)) % ring_rows;
}

// Image rows first … end - 1 of S channels from `channel` on, into their places in the ring.
#ifdef EXPAND
static inline void fill_rows(const block_shape *shape, __global const SRC_T *src, __global const WEIGHT_T *weight,
                             idx_t panel_stride, __global const STORAGE(T_BIAS) *bias, bool has_bias, int channel,
                             int first, int end, __global float *ring, float8 scalars)
{
    const int count = (end - first) * shape->src_width, height = shape->ring_rows, width = shape->src_width;
    int column = 0, slot = ring_row(first, height);
    __global const SRC_T *row = src + first * shape->src_row;
    for (int done = 0; done < count; done += P) {
        __global const SRC_T *pixel[P];
        __global const WEIGHT_T *panel[NB];
        int place[P];
        FLOATV acc[P * NB];
        if (column + P < width) {
            const int begin = (slot * shape->ring_width + column + shape->pad_left) * S;
#pragma unroll
            for (int p = 0; p < P; p++) {
                pixel[p] = row + (column + p) * shape->src_pixel;
                place[p] = begin + p * S;
            }
            column += P;
        } else {
#pragma unroll
            for (int p = 0; p < P; p++) {
                pixel[p] = row + column * shape->src_pixel;
                place[p] = (slot * shape->ring_width + column + shape->pad_left) * S;
                // Behind the last pixel: once more that one.
                const bool steps = done + p + 1 < count, wraps = steps && column + 1 == width;
                column = wraps ? 0 : column + (steps ? 1 : 0);
                row += wraps ? shape->src_row : 0;
                slot = !wraps ? slot : slot + 1 == height ? 0 : slot + 1;
            }
        }
        begin_tile(acc, panel, weight, bias + channel, has_bias, channel, shape->hidden, panel_stride);
        for (int c = 0; c < shape->channels; c++) {
            ADD_CHANNEL(OWN_PIXEL, panel)
        }
        USE_HERE(scalars);
#pragma unroll
        for (int p = 0; p < P; p++)
#pragma unroll
            for (int j = 0; j < NB; j++)
                STOREF(end_expanded(acc[p * NB + j], scalars), 0, ring + place[p] + j * V);
    }
}
#else
static inline void fill_rows(const block_shape *shape, __global const SRC_T *src, __global const WEIGHT_T *weight,
                             idx_t panel_stride, __global const STORAGE(T_BIAS) *bias, bool has_bias, int channel,
                             int first, int end, __global float *ring, float8 scalars)
{
    for (int h = first; h < end; h++)
        for (int w = 0; w < shape->src_width; w++) {
            __global const SRC_T *pixel = src + h * shape->src_row + w * shape->src_pixel + channel;
            __global float *to =
                ring + (ring_row(h, shape->ring_rows) * shape->ring_width + w + shape->pad_left) * S;
#pragma unroll
            for (int j = 0; j < NB; j++) {
                const int rest = shape->hidden - channel - j * V;
                FLOATV x = 0.0f;
                if (rest >= V)
                    x = LOADV(T_SRC, V, pixel, j * V);
                else if (rest > 0)
                    LOAD_FIRST(T_SRC, V, pixel, j * V, x, rest);
                STOREF(x, 0, to + j * V);
            }
        }
}
#endif

static inline void clear_floats(__global float *to, int count)
{
    for (int i = 0; i < count; i += V)
        STOREF((FLOATV)(0.0f), 0, to + i);
}

// Rows of the ring that lie outside of the image.
static inline void clear_rows(const block_shape *shape, int first, int end, __global float *ring)
{
    const int count = shape->ring_width * S;
    for (int h = first; h < end; h++)
        clear_floats(ring + ring_row(h, shape->ring_rows) * count, count);
}

// The columns beside the image, of all slices; nothing else is ever stored there.
static inline void clear_columns(const block_shape *shape, int slices, __global float *ring)
{
    for (int i = 0; i < slices * shape->ring_rows; i++) {
        __global float *row = ring + (idx_t)i * shape->ring_width * S;
        clear_floats(row, shape->pad_left * S);
        clear_floats(row + (shape->pad_left + shape->src_width) * S,
                     (shape->ring_width - shape->pad_left - shape->src_width) * S);
    }
}

// COLUMNS results of GROUP vectors of channels, from the rows of the ring at top[]. More than three rows of taps are a loop, or
// the compiler takes twice as long for the kernel.
#if V > 8
#define GROUP 1
#define UNROLL_FEW _Pragma("unroll")
static inline void convolve(FLOATV acc[COLUMNS], __global const float *const top[TAPS],
                            __global const float *weight, idx_t tap_stride)
{
#if TAPS <= 3
#pragma unroll
#endif
    for (int y = 0; y < TAPS; y++) {
        FLOATV in[(COLUMNS - 1) * STRIDE + TAPS];
#pragma unroll
        for (int i = 0; i < (COLUMNS - 1) * STRIDE + TAPS; i++)
            in[i] = LOADF(0, top[y] + i * S);
#pragma unroll
        for (int x = 0; x < TAPS; x++) {
            const FLOATV w = LOADF(0, weight + (y * TAPS + x) * tap_stride);
#pragma unroll
            for (int i = 0; i < COLUMNS; i++)
                acc[i] = fma(in[i * STRIDE + x], w, acc[i]);
        }
    }
}
#else
// Of 16 registers eight are sums, or else these wait for each other; of few taps a row of weights stays, and pixels pass
// one by one.
#if NB % 2 == 0
#define GROUP 2
#else
#define GROUP 1
#endif
#define UNROLL_FEW
static inline void convolve(FLOATV acc[GROUP * COLUMNS], __global const float *const top[TAPS],
                            __global const float *weight, idx_t tap_stride)
{
#if TAPS > 3
    // Within a row the sums do not wait for each other.
    for (int y = 0; y < TAPS; y++)
#pragma unroll
        for (int x = 0; x < TAPS; x++)
#pragma unroll
            for (int g = 0; g < GROUP; g++) {
                const FLOATV w = LOADF(0, weight + (y * TAPS + x) * tap_stride + g * V);
#pragma unroll
                for (int i = 0; i < COLUMNS; i++)
                    acc[g * COLUMNS + i] =
                        fma(LOADF(0, top[y] + (i * STRIDE + x) * S + g * V), w, acc[g * COLUMNS + i]);
            }
#else
#pragma unroll
    for (int y = 0; y < TAPS; y++)
#pragma unroll
        for (int g = 0; g < GROUP; g++) {
            FLOATV w[TAPS];
#pragma unroll
            for (int x = 0; x < TAPS; x++)
                w[x] = LOADF(0, weight + (y * TAPS + x) * tap_stride + g * V);
#pragma unroll
            for (int i = 0; i < (COLUMNS - 1) * STRIDE + TAPS; i++) {
                const FLOATV in = LOADF(0, top[y] + i * S + g * V);
#pragma unroll
                for (int x = 0; x < TAPS; x++)
                    if (i >= x && (i - x) % STRIDE == 0 && (i - x) / STRIDE < COLUMNS)
                        acc[g * COLUMNS + (i - x) / STRIDE] = fma(in, w[x], acc[g * COLUMNS + (i - x) / STRIDE]);
            }
        }
#endif
}
#endif

#define FIND_OPERAND(i) const idx_t at##i = OPERAND_AT(i, c);

// Stores one vector of channels from c on, of which `rest` are left, of the pixel (n, h, w); dst: that pixel's channel 0.
static inline void store_result(__global STORAGE(T_DST) *dst, FLOATV v0, int n, int h, int w, int c,
                                int rest CHAIN_ARGUMENTS)
{
    const int d = 0;
    (void)d;
    FOR_OPERANDS(FIND_OPERAND)
    if (rest >= V) {
        LOAD_OPERANDS
        CHAIN
        STOREV(T_DST, V, dst, c, CHAIN_RESULT);
    } else if (rest > 0) {
        LOAD_OPERANDS_PART(rest)
        CHAIN
        STORE_FIRST(T_DST, V, dst, c, CHAIN_RESULT, rest);
    }
}

// The depthwise results of rows first … end - 1, of S channels from `channel` on.
static inline void convolve_rows(const block_shape *shape, __global const float *ring, __global const float *weight,
                                 idx_t tap_stride, __global const STORAGE(T_BIAS) *bias, bool has_bias, int channel,
                                 int first, int end, __global BETWEEN_T *between, float8 inner,
                                 __global STORAGE(T_DST) *dst,
                                 int n CHAIN_ARGUMENTS)
{
    USE_SCALARS_HERE
    USE_HERE(inner);
    for (int h = first; h < end; h++)
        for (int j = 0; j < NB; j += GROUP) {
            const int rest = shape->hidden - channel - j * V;
            if (rest <= 0)
                break;
            FLOATV start[GROUP];
#pragma unroll
            for (int g = 0; g < GROUP; g++)
                start[g] = has_bias ? load_bias(bias + (channel + (j + g) * V), rest - g * V) : (FLOATV)(0.0f);
            for (int w = 0; w < shape->dst_width; w += COLUMNS) {
                const int left = min(w, shape->dst_width - COLUMNS);
                __global const float *top[TAPS];
                FLOATV acc[GROUP * COLUMNS];
#pragma unroll
                for (int y = 0; y < TAPS; y++)
                    top[y] = ring + (ring_row(h * STRIDE - shape->pad_top + y, shape->ring_rows) * shape->ring_width +
                                     left * STRIDE) * S + j * V;
#pragma unroll
                for (int i = 0; i < GROUP * COLUMNS; i++)
                    acc[i] = start[i / COLUMNS];
                convolve(acc, top, weight + (channel + j * V), tap_stride);
#ifdef PROJECT
                __global BETWEEN_T *to = between + ((h - first) * shape->dst_width + left) * S + j * V;
#pragma unroll
                for (int i = 0; i < GROUP * COLUMNS; i++)
                    STOREV(T_BETWEEN, V, to, i % COLUMNS * S + i / COLUMNS * V, end_depthwise(acc[i], inner));
#else
                FLOATV result[GROUP * COLUMNS];
#pragma unroll
                for (int i = 0; i < GROUP * COLUMNS; i++)
                    result[i] = acc[i];
                UNROLL_FEW
                for (int i = 0; i < COLUMNS; i++)
#pragma unroll
                    for (int g = 0; g < GROUP; g++)
                        store_result(dst + h * shape->dst_row + (left + i) * shape->dst_pixel, result[g * COLUMNS + i],
                                     n, h, left + i, channel + (j + g) * V,
                                     rest - g * V PASS_CHAIN_ARGUMENTS);
#endif
            }
        }
}

#ifdef PROJECT
#ifdef WEIGHTS_ONCE
#define FOR_TILES(count, filters)                                                                                      \
    for (int m = 0; m < (filters); m += V * NQ)                                                                        \
        for (int done = 0; done < (count); done += Q)
#define FETCH_PROJECTION(at) FETCH_WEIGHTS(at)
#else
#define FOR_TILES(count, filters)                                                                                      \
    for (int done = 0; done < (count); done += Q)                                                                      \
        for (int m = 0; m < (filters); m += V * NQ)
#define FETCH_PROJECTION(at)
#endif

// One channel (or pair) of `between`: 28 sums, their weights and a pixel are 33 registers.
#define BETWEEN_OF_P (FACTORV)(TO_FACTOR(factor[p * (S / FACTOR_CHANNELS) + c]))
#if defined(MULTIPLY_AT) && Q * NQ + NQ + 1 > 32 && NQ > 1
#define ADD_BETWEEN(at) ADD_LAST_BY_MEMORY(Q, NQ, BETWEEN_OF_P, panel, at)
#else
#define ADD_BETWEEN(at) ADD_BY_REGISTERS(Q, NQ, BETWEEN_OF_P, panel, at)
#endif

// Pixels of whole rows, from row `first` on, a tile of them at a time.
static inline void project(const block_shape *shape, __global const BETWEEN_T *between, __global const WEIGHT_T *weight,
                           idx_t panel_stride, __global const STORAGE(T_BIAS) *bias, bool has_bias, int first, int end,
                           __global STORAGE(T_DST) *dst,
                           int n CHAIN_ARGUMENTS)
{
    const int count = (end - first) * shape->dst_width;
    FOR_TILES(count, shape->filters)
        {
            USE_SCALARS_HERE
            __global const WEIGHT_T *panel[NQ];
            FLOATV acc[Q * NQ];
#pragma unroll
            for (int j = 0; j < NQ; j++) {
                panel[j] = weight + weight_at(min(m + j * V, (shape->filters - 1) & ~(V - 1)), panel_stride);
                acc[j] = has_bias ? load_bias(bias + (m + j * V), shape->filters - m - j * V) : (FLOATV)(0.0f);
            }
#pragma unroll
            for (int i = NQ; i < Q * NQ; i++)
                acc[i] = acc[i % NQ];
            __global const BETWEEN_T *x = between + done * S;
            for (int slice = 0; slice < shape->hidden; slice += S, x += shape->between_slice) {
                __global const factor_t *factor = (__global const factor_t *)x;
                const int count = min(S, shape->hidden - slice) / FACTOR_CHANNELS;
                for (int c = 0; c < count; c++) {
                    FETCH_PROJECTION(panel[0] + (slice / FACTOR_CHANNELS + c) * 16)
                    ADD_BETWEEN((slice / FACTOR_CHANNELS + c) * 16)
                }
            }
            FLOATV result[Q * NQ]; // a copy, for a loop that need not be unrolled: it compiles much faster
#pragma unroll
            for (int i = 0; i < Q * NQ; i++)
                result[i] = acc[i];
            int h = first + done / shape->dst_width, w = done - (h - first) * shape->dst_width;
            for (int q = 0; q < min(Q, count - done); q++) {
#pragma unroll
                for (int j = 0; j < NQ; j++)
                    store_result(dst + h * shape->dst_row + w * shape->dst_pixel, result[q * NQ + j], n, h, w,
                                 m + j * V, shape->filters - m - j * V PASS_CHAIN_ARGUMENTS);
                h += w + 1 == shape->dst_width;
                w = w + 1 == shape->dst_width ? 0 : w + 1;
            }
        }
}
#endif

// The range is parts of the slices (one with PROJECT) by work-items of some bands each.
// sizes: source height and width, channels, hidden channels; height and width of the result, its channels; padding above
// and to the left; rows and width of the ring; rows at a time; bands of an image and of all; bands of a work-item; 1, 2, 4:
// the first, second, third bias are there. places: offsets of src, dst, the first and the third weight; strides of src (image,
// row, pixel), of dst; from panel to panel of the first and third weight; from tap to tap; a work-item's floats; slices of
// a part; pixels of `between`. others: offsets of the second weight and of the biases.
#define BLOCK_ARGUMENTS                                                                                                \
    __global float *memory, __global const SRC_T *src, __global const WEIGHT_T *weight1,                               \
        __global const STORAGE(T_BIAS) * bias1, __global const float *weight2, __global const STORAGE(T_BIAS) * bias2, \
        __global const WEIGHT_T *weight3, __global const STORAGE(T_BIAS) * bias3, __global STORAGE(T_DST) * dst,       \
        idx_t memory_offset, int16 sizes, idx16_t places, idx4_t others, float16 inner_scalars CHAIN_ARGUMENTS
WORK compute_block(BLOCK_ARGUMENTS, const int part, const int item)
{
    const float8 e_scalars = (float8)(inner_scalars.s0, inner_scalars.s1, inner_scalars.s2, inner_scalars.s3,
                                      inner_scalars.s4, inner_scalars.s5, inner_scalars.s6, inner_scalars.s7);
    const float8 d_scalars = (float8)(inner_scalars.s8, inner_scalars.s9, inner_scalars.sa, inner_scalars.sb,
                                      inner_scalars.sc, inner_scalars.sd, inner_scalars.se, inner_scalars.sf);
    const block_shape shape = {sizes.s0,  sizes.s1,  sizes.s2,  sizes.s3,  sizes.s4,
                               sizes.s5,  sizes.s6,  sizes.s7,  sizes.s8,  sizes.s9,
                               sizes.sa,  sizes.sb,  places.s5, places.s6, places.s8,
                               places.s9, (idx_t)sizes.s9 * sizes.sa * S, places.sf * S};
    const int slices = (int)places.se, first_channel = part * slices * S;
    const int end_channel = min(first_channel + slices * S, shape.hidden), bands = sizes.sc;
    const int parts = (shape.hidden + slices * S - 1) / (slices * S);
    __global float *ring = memory + (memory_offset + (item * (idx_t)parts + part) * places.sd);
    __global BETWEEN_T *between = (__global BETWEEN_T *)(ring + slices * shape.ring_slice);
    clear_columns(&shape, slices, ring);

    for (int band = item * sizes.se; band < min((item + 1) * sizes.se, sizes.sd); band++) {
        const int n = band / bands, number = band - n * bands;
        const int first = (int)((long)shape.dst_height * number / bands);
        const int end = (int)((long)shape.dst_height * (number + 1) / bands);
        __global const SRC_T *image = src + (places.s0 + n * places.s4);
        __global STORAGE(T_DST) *target = dst + (places.s1 + n * places.s7);
        int filled = first * STRIDE - shape.pad_top; // rows before this one are in the ring
        for (int h = first; h < end; h += shape.rows) {
            const int stop = min(h + shape.rows, end), wanted = (stop - 1) * STRIDE - shape.pad_top + TAPS;
            filled = max(filled, h * STRIDE - shape.pad_top);
            const int inside = clamp(filled, 0, shape.src_height), outside = clamp(wanted, 0, shape.src_height);
            for (int c = first_channel; c < end_channel; c += S) {
                __global float *slice = ring + (c - first_channel) / S * shape.ring_slice;
                clear_rows(&shape, filled, min(wanted, 0), slice);
                fill_rows(&shape, image, weight1 + places.s2, places.sa, bias1 + others.s1, sizes.sf & 1, c, inside,
                          outside, slice, e_scalars);
                clear_rows(&shape, max(filled, shape.src_height), wanted, slice);
                convolve_rows(&shape, slice, weight2 + others.s0, places.sc, bias2 + others.s2, sizes.sf & 2, c, h,
                              stop, between + (c - first_channel) / S * shape.between_slice, d_scalars, target,
                              n PASS_CHAIN_ARGUMENTS);
            }
            filled = wanted;
#ifdef PROJECT
            project(&shape, between, weight3 + places.s3, places.sb, bias3 + others.s3, sizes.sf & 4, h, stop, target,
                    n PASS_CHAIN_ARGUMENTS);
#endif
        }
    }
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void conv_block(BLOCK_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    compute_block(memory, src, weight1, bias1, weight2, bias2, weight3, bias3, dst, memory_offset, sizes, places, others,
                  inner_scalars PASS_CHAIN_ARGUMENTS, (int)get_global_id(0), (int)get_global_id(1));
    TEAM_LEAVE
}
