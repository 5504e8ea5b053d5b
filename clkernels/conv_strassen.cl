// SPDX-License-Identifier: Apache-2.0
// Convolution of single pixels, which is a matrix product, with seven eighths of the multiplications, for CPUs: one level of
// Strassen's algorithm (strassen.clh): 7 products of blocks and 15 sums
// of blocks instead of 8 products. Those of the weights are done when these are packed (conv_strassen_weight.c).
//
// One work-item a work-group. It takes slabs of 2 * R pixels, of which the first R are the upper half of the first factor's
// rows, so that any number of rows will do. The columns' halves are 16 channels in turn, the terms' halves the channels
// of the source. A slab's blocks and their sums are copied into memory of the work-item's own, in vectors that
// follow each other as they are read; products of blocks are added up there, too, in a core's first cache. The last slabs of
// a work-item may be shorter, of 2 * SHORT pixels, so that few rows are computed twice. Where at most half a slab's
// pixels are left at the end, they are multiplied plainly, with what is there of the weights.
//
// gpu: never
// Defines: those of conv.clh, where P are the rows of half a slab, and
//   NB          vectors of channels that are multiplied at once
//   SHORT       rows of half a short slab, if there may be any; fewer than P
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=7 -DNB=4
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=6 -DNB=2 -DINDEX64 -DCAN_FETCH
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=6 -DNB=2 -DSHORT=4 -DCAN_FETCH
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=4 -DP=6 -DNB=2 -DSTAGES=2 -DS1=OP_ADD(v0,y0) -DS2=OP_RELU(v1) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
#include "conv.clh"
#include "strassen.clh"
// The channel of vector j of a half's block that begins with its channel m.
#define CHANNEL(m, j) ((((m) + (j) * V) >> 4) * 32 + (((m) + (j) * V) & 15))
#include "conv_rows.clh"
#define R P
#ifndef SHORT
#define SHORT R
#endif
// A block of a slab: [16 terms][row][term]. A sum of products: [row][vector][channel].
#define PIECE (R * 16)
#define SUM (R * NB * V)
#define SUMS 4
// Places of rows: [half][row].
#define PLACES (2 * R * PLACES_OF_ROW * 2) // floats, of which two hold any index

// While products are computed, a line of memory a step is asked for: of the next slab's pixels, and of what the results are
// stored to and added. Hardware foresees none of that, since each pixel is elsewhere.
#if R <= 8
#define ROWS 16
#define ROWS_BITS 4
#else
#define ROWS 32
#define ROWS_BITS 5
#endif
#if V == 16 && defined(CAN_FETCH)
#define FETCH(row, floats) __builtin_prefetch((__global const float *)(row) + (floats));
#else
#define FETCH(row, floats)
#endif
// The next block of weights, which comes from memory, is asked for while several slabs pass by this one, a part by each of
// them; a single slab asks for what is near. After the last one comes the first again: where there is no memory, asking
// for it takes as long as 200 instructions.
#if V >= 8 && defined(CAN_FETCH)
#define NEAR 512 // floats
#define AHEAD , __global const SRC_T *later, int pace
#define PASS_AHEAD , later + (s * terms * pace), pace
#define FETCH_LATER __builtin_prefetch(later + c * pace, 0, 2);
#define FIND_LATER                                                                                                     \
    const int pace = (V * NB + count - 1) / count;                                                                     \
    const idx_t following = i < 6 ? weight_at(m, weight_stride.z) + (i + 1) * weight_stride.x                          \
                                  : weight_at((block + 1 < end_block ? block + 1 : first_block) * (V * NB),            \
                                              weight_stride.z);                                                        \
    __global const SRC_T *later = count == 1 ? panel[0] + NEAR : weight + (weight_offset + following);
#else
#define AHEAD
#define PASS_AHEAD
#define FETCH_LATER
#define FIND_LATER
#endif
// Rows of a slab are asked for while those before are copied. With 16 registers where results go is asked for outside of the
// loop over terms, which has no register left.
#if V >= 8 && defined(CAN_FETCH)
#define FETCH_NEXT(row) __builtin_prefetch((row) + next), __builtin_prefetch((row) + next + terms);
#else
#define FETCH_NEXT(row)
#endif
#if V == 8 && defined(CAN_FETCH)
#define FETCH_RESULTS                                                                                                  \
    if (ends < 4) {                                                                                                    \
        for (int r = 0; r < rows.height; r++)                                                                          \
        {                                                                                                              \
            __builtin_prefetch(dst + (place[r * PLACES_OF_ROW] + CHANNEL(m, 0) + right));                              \
            if (OPERANDS > 0)                                                                                          \
                __builtin_prefetch((__global const float *)FIRST_OPERAND(r));                                          \
        }                                                                                                              \
    }
#else
#define FETCH_RESULTS
#endif
typedef struct fetched {
    ulong row[ROWS];        // where rows begin
    int first, last, floats; // lines of a row, and how far they are apart
} fetched;

// One row of the upper half and one of the lower: a11, a12, s2, s3, a22, s1 and s4, as the products take them. next: floats
// to the rows that follow.
static inline void copy_rows(__global const SRC_T *upper, __global const SRC_T *lower, int terms, int next,
                             __global float *to)
{
    const int block = terms * R;
    for (int c = 0; c < terms; c += V) {
        const FLOATV a11 = LOADF(upper + c), a12 = LOADF(upper + c + terms);
        const FLOATV a21 = LOADF(lower + c), a22 = LOADF(lower + c + terms);
        FETCH_NEXT(upper + c)
        FETCH_NEXT(lower + c)
        __global float *at = to + ((c >> 4) * PIECE + (c & 15));
        FLOATV sums[STRASSEN_PRODUCTS];
        STRASSEN_LEFT(a11, a12, a21, a22, sums);
#pragma unroll
        for (int i = 0; i < STRASSEN_PRODUCTS; i++)
            STOREF(sums[i], at + i * block);
    }
}

// to = what is at `from`, or 0, + a block of a slab times one of the weights. height: a constant where it is called.
INLINE void multiply(const int height, __global const float *slab, __global const SRC_T *const weight[NB], int terms,
                     bool adds, __global const float *from, __global float *to, const fetched *ahead AHEAD)
{
    FLOATV acc[R * NB];
#pragma unroll
    for (int i = 0; i < height * NB; i++)
        acc[i] = 0.0f;
    if (adds) {
#pragma unroll
        for (int i = 0; i < height * NB; i++)
            acc[i] = LOADF(from + i * V);
    }
    // One loop: of two, a compiler moves sums to and fro between registers.
    for (int c = 0; c < terms; c++) {
        __global const float *row = slab + ((c >> 4) * PIECE + (c & 15));
        FLOATV w[NB];
        FETCH_LATER
        FETCH(ahead->row[c & (ROWS - 1)], min(ahead->first + (c >> ROWS_BITS), ahead->last) * ahead->floats)
#pragma unroll
        for (int j = 0; j < NB; j++)
            w[j] = LOADF(weight[j] + c * 16);
#pragma unroll
        for (int r = 0; r < height; r++) {
            const FLOATV x = (FLOATV)(row[r * 16]);
#pragma unroll
            for (int j = 0; j < NB; j++)
                ADD_PRODUCT(V, acc[r * NB + j], x, w[j]);
        }
    }
#pragma unroll
    for (int i = 0; i < height * NB; i++)
        STOREF(acc[i], to + i * V);
}

#if OPERANDS > 0
#define FIRST_OPERAND(r) (ulong)(operand0 + (place[(r) * PLACES_OF_ROW + 1] + Y0_STEP * (CHANNEL(m, 0) + right)))
#else
#define FIRST_OPERAND(r) (ulong)(dst + (place[(r) * PLACES_OF_ROW] + CHANNEL(m, 0) + right))
#endif
// What product i of a slab is added to, or 4, and where the result goes: sums are p1, u2, u3 and one for what is used at
// once. Behind it one quarter of the results is complete, or 4.
#define STEP_FROM(i, whole) (((whole ? 0x1421004 : 0x1000004) >> (4 * (i))) & 15)
#define STEP_TO(i, whole) (((whole ? 0x3332130 : 0x3100030) >> (4 * (i))) & 15)
#define STEP_ENDS(i, whole) (((whole ? 0x1324404 : 0x1444404) >> (4 * (i))) & 15)

// The pixels of a slab: its two halves, each of `height` pixels, or as many for both. Those before `begin` are another
// slab's: where too few are left this one is moved back to be full, and what its first pixels get is not stored again.
typedef struct slab_rows {
    int begin, first, lower, height;
    bool whole;
} slab_rows;

// Where a slab of a work-item begins whose first pixel is `first`, and whose first `tall` slabs are not short.
static inline int slab_begins(int slab, int first, int tall)
{
    const int before = min(slab, tall);
    return first + 2 * (before * R + (slab - before) * SHORT);
}

static inline slab_rows find_rows(int slab, int first, int tall, int pixels)
{
    slab_rows rows = {.begin = slab_begins(slab, first, tall), .height = slab < tall ? R : SHORT};
    rows.whole = pixels - rows.begin > rows.height;
    rows.first = min(rows.begin, pixels - (rows.whole ? 2 : 1) * rows.height);
    rows.lower = rows.whole ? rows.first + rows.height : rows.first;
    return rows;
}

static inline void copy_slab(__global const SRC_T *src, slab_rows rows, bool is_last, int terms, int4 dst_size,
                             idx4_t src_stride, int4 stride, __global float *to)
{
    pixel_place upper = find_pixel(rows.first, dst_size), lower = find_pixel(rows.lower, dst_size);
    for (int r = 0; r < rows.height; r++) {
        copy_rows(src + SOURCE_AT(upper), src + SOURCE_AT(lower), terms, is_last && r + 1 == rows.height ? 0 : 2 * terms,
                  to + r * 16);
        upper = next_pixel(upper, dst_size);
        lower = next_pixel(lower, dst_size);
    }
}

static inline void find_places(__global idx_t *place, slab_rows rows, int4 dst_size, idx_t dst_offset,
                               idx4_t dst_stride FOR_OPERANDS(STRIDED_OPERAND))
{
    for (int lower = 0; lower < 2; lower++) {
        pixel_place at = find_pixel(lower ? rows.lower : rows.first, dst_size);
        for (int r = 0; r < R; r++, place += PLACES_OF_ROW) {
            place[0] = PLACE(at, dst_offset, dst_stride);
            FOR_OPERANDS(FIND_PLACE)
            if (r < rows.height - 1) // what lies behind a short slab's rows is asked for, too
                at = next_pixel(at, dst_size);
        }
    }
}

static inline void find_source(fetched *ahead, __global const SRC_T *src, slab_rows rows, int4 dst_size,
                               idx4_t src_stride, int4 stride)
{
    pixel_place at = find_pixel(rows.first, dst_size);
    for (int r = 0; r < ROWS; r++) {
        ahead->row[r] = (ulong)(src + SOURCE_AT(at));
        if (r < (rows.whole ? 2 : 1) * rows.height - 1)
            at = next_pixel(at, dst_size);
    }
}

// Where u2 and u3 are: p5, which is the last sum, is added to both, and the second becomes the last sum.
static inline void add_fifth(__global float *sums, int height)
{
    for (int k = 0; k < height * NB; k++) {
        const FLOATV p5 = LOADF(sums + (3 * SUM + k * V));
        STOREF(LOADF(sums + (SUM + k * V)) + p5, sums + (SUM + k * V));
        STOREF(LOADF(sums + (2 * SUM + k * V)) + p5, sums + (3 * SUM + k * V));
    }
}

// Those of the `most` slabs of a work-item that begin before all pixels end.
static inline int count_slabs(int most, int first, int tall, int pixels)
{
    while (slab_begins(most - 1, first, tall) >= pixels)
        most--;
    return most;
}

#define MULTIPLY_ROWS(height)                                                                                          \
    multiply(height, slabs + (s * slab_floats + a * block_floats), panel, terms, from < SUMS, sums + (from & 3) * SUM, \
             sums + to * SUM, ahead PASS_AHEAD)
#define MULTIPLY_SLAB                                                                                                  \
    if (SHORT == R || rows.height == R)                                                                                \
        MULTIPLY_ROWS(R);                                                                                              \
    else                                                                                                               \
        MULTIPLY_ROWS(SHORT);

// The range is blocks of NB vectors of both halves, stride.w of them a work-item, by slabs, flags.w a work-item; flags.z:
// pixels. own: where the memory begins, floats of it for each work-item, slabs that pass by the weights together, those of
// a work-item that are not short.
// weight_stride: of a block of the weights, -, of 2 * 16 channels. Terms are a multiple of 32.
WORK convolve_slabs(__global float *memory, idx4_t own, CONV_ARGUMENTS, const int grid0, const int grid1)
{
    const int terms = src_size.w / 2, side = ((dst_size.w + 31) / 32) * 16, blocks = (side + V * NB - 1) / (V * NB);
    const int first_block = grid0 * stride.w, end_block = min(first_block + stride.w, blocks);
    const int tall = (int)own.w, first_row = grid1 * slab_begins(flags.w, 0, tall);
    const int slab_count = count_slabs(flags.w, first_row, tall, flags.z);
    const int block_floats = terms * R, slab_floats = 7 * block_floats + SUMS * SUM + PLACES;
    __global float *slabs = memory + (own.x + (grid1 * (idx_t)((blocks + stride.w - 1) / stride.w) + grid0) * own.y);
    for (int slab = 0; slab < slab_count; slab += (int)own.z) {
        const int count = min((int)own.z, slab_count - slab);
        for (int s = 0; s < count; s++) {
            const slab_rows rows = find_rows(slab + s, first_row, tall, flags.z);
            __global float *to = slabs + s * slab_floats;
            copy_slab(src + src_offset, rows, slab + s + 1 == slab_count, terms, dst_size, src_stride, stride, to);
            find_places((__global idx_t *)(to + (slab_floats - PLACES)), rows, dst_size, dst_offset,
                        dst_stride FOR_OPERANDS(PASS_STRIDES));
        }
        fetched next = {.last = terms / 8 - 1, .floats = 16}, target = {.last = NB - 1, .floats = 32};
        find_source(&next, src + src_offset, find_rows(min(slab + count, slab_count - 1), first_row, tall, flags.z),
                    dst_size, src_stride, stride);
        for (int block = first_block; block < end_block; block++) {
            const int m = block * (V * NB);
            for (int i = 0; i < 7; i++) {
                __global const SRC_T *panel[NB];
#pragma unroll
                for (int j = 0; j < NB; j++)
                    panel[j] = weight + (weight_offset + weight_at(min(m + j * V, side - V), weight_stride.z) +
                                         i * weight_stride.x);
                FIND_LATER
                for (int s = 0; s < count; s++) {
                    const slab_rows rows = find_rows(slab + s, first_row, tall, flags.z);
                    if (!rows.whole && i >= 2 && i <= 4)
                        continue;
                    __global float *sums = slabs + (s * slab_floats + 7 * block_floats);
                    const int from = STEP_FROM(i, rows.whole), to = STEP_TO(i, rows.whole);
                    const int ends = STEP_ENDS(i, rows.whole), right = (ends & 1) * 16;
                    const int a = rows.whole || i < 2 ? i : i - 5;
                    __global const idx_t *place = (__global idx_t *)(sums + SUMS * SUM) + (ends < 2 ? 0 : R * PLACES_OF_ROW);
                    for (int r = 0; r < ROWS; r++)
                        target.row[r] = r < R ? (ulong)(dst + (place[r * PLACES_OF_ROW] + CHANNEL(m, 0) + right))
                                              : FIRST_OPERAND(r % R);
                    FETCH_RESULTS
                    const fetched *ahead = ends < 4 ? &target : &next;
                    MULTIPLY_SLAB
                    if (rows.whole && i == 5)
                        add_fifth(sums, rows.height);
                    if (ends < 4)
                        store_sum(dst, place, bias + bias_offset, flags.y, sums + 3 * SUM,
                                  clamp(rows.begin - (ends < 2 ? rows.first : rows.lower), 0, rows.height), rows.height,
                                  m, right, dst_size.w PASS_SCALARS FOR_OPERANDS(PASS_OPERAND));
                    else
                        next.first += terms >> ROWS_BITS;
                }
            }
        }
    }
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void conv_strassen(__global float *memory, idx4_t own,
                                                                           CONV_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    convolve_slabs(memory, own, PASS_CONV, (int)get_global_id(0), (int)get_global_id(1));
    TEAM_LEAVE
}
