// SPDX-License-Identifier: Apache-2.0
// Convolution with two thirds of the multiplications, for CPUs whose additions have units of their own: fip_floats.clh.
//
// One work-item a work-group. It takes slabs of R pixels, or of SHORT ones at the end, and copies what their windows hold
// into memory of its own, scaled row by row, with the sums of its own products that are subtracted. Some slabs pass by each
// block of weights together. These are scaled column by column, and hold what is subtracted and the scale behind their
// terms (conv_fip_weight.c). Slabs with numbers that are not finite are multiplied plainly.
//
// gpu: never
// Defines: those of conv.clh, where P are the rows of a slab, and
//   NB          vectors of channels that are multiplied at once: 2
//   SHORT       rows of a short slab, fewer than P
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=12 -DNB=2 -DSHORT=8 -DCAN_FETCH
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=12 -DNB=2 -DSHORT=8 -DINDEX64
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=4 -DP=12 -DNB=2 -DSHORT=8 -DSTAGES=2 -DS1=OP_ADD(v0,y0) -DS2=OP_RELU(v1) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
#include "conv.clh"
#define CHANNEL(m, j) ((m) + (j) * V)
#include "conv_rows.clh"
#if NB != 2
#error "conv_fip.cl multiplies two vectors of channels at once"
#endif
#define R P
// A slab: [16 terms][row][term]; then of each row its scale; whether all of it is finite; places of rows; and what is
// subtracted from sums, [chunk][row]. Terms are multiplied a chunk at a time, as many as leave room in a second cache: there
// are as many lines of weights as terms in a chunk, and two others.
#define PIECE (R * 16)
#define SCALES 0
#define IS_FINITE 16
#define PLACES 32
#define OWN_PRODUCTS (PLACES + R * PLACES_OF_ROW * 2)
#define OTHERS(chunks) (OWN_PRODUCTS + (chunks)*16)
// Sums of products: [row][vector][channel].
#define SUM (R * NB * V)

#include "fip_floats.clh"

#if V == 16
typedef uint16 bits_t;
#define AS_BITS(v) as_uint16(v)
#define SWAPPED(v) (v).s1032547698badcfe
#define SIGNS (float16)(0.5f, 0.5f, -0.5f, -0.5f, 0.5f, 0.5f, -0.5f, -0.5f, 0.5f, 0.5f, -0.5f, -0.5f, 0.5f, 0.5f, -0.5f, -0.5f)
#elif V == 8
typedef uint8 bits_t;
#define AS_BITS(v) as_uint8(v)
#define SWAPPED(v) (v).s10325476
#define SIGNS (float8)(0.5f, 0.5f, -0.5f, -0.5f, 0.5f, 0.5f, -0.5f, -0.5f)
#else
typedef uint4 bits_t;
#define AS_BITS(v) as_uint4(v)
#define SWAPPED(v) (v).s1032
#define SIGNS (float4)(0.5f, 0.5f, -0.5f, -0.5f)
#endif

typedef struct window_source {
    __global const SRC_T *src;
    int4 src_size, taps, stride, dilation, pad;
    idx4_t src_stride;
} window_source;

// What a tap of a pixel's window reads, or NULL.
static inline __global const SRC_T *find_tap(const window_source *from, pixel_place at, int d, int h, int w)
{
    d = source_coordinate(at.d, d, from->stride.x, from->dilation.x, from->pad.x, from->src_size.x);
    h = source_coordinate(at.h, h, from->stride.y, from->dilation.y, from->pad.y, from->src_size.y);
    w = source_coordinate(at.w, w, from->stride.z, from->dilation.z, from->pad.z, from->src_size.z);
    if (d < 0 || h < 0 || w < 0)
        return 0;
    return from->src + ((idx_t)at.n * from->src_stride.x + (idx_t)d * from->src_stride.y +
                        (idx_t)h * from->src_stride.z + (idx_t)w * from->src_stride.w);
}

#if V == 16
#define FOLD(op, v) op(op((v).lo.lo, (v).lo.hi), op((v).hi.lo, (v).hi.hi))
#elif V == 8
#define FOLD(op, v) op((v).lo, (v).hi)
#else
#define FOLD(op, v) (v)
#endif
#define ADD_OF(a, b) ((a) + (b))

static inline uint largest_lane(bits_t v)
{
    const uint4 four = FOLD(max, v);
    const uint2 two = max(four.lo, four.hi);
    return max(two.x, two.y);
}

static inline float sum_lanes(FLOATV v)
{
    const float4 four = FOLD(ADD_OF, v);
    const float2 two = four.lo + four.hi;
    return two.x + two.y;
}

// A row is copied as stretches, one for each tap of its window.
typedef struct row_copy {
    bits_t largest;
    FLOATV own[2];
} row_copy;

static inline void see_stretch(row_copy *row, __global const SRC_T *from, int channels)
{
    bits_t one = row->largest, other = 0;
    int c = 0;
    for (; c + 2 * V <= channels; c += 2 * V) {
        one = max(one, AS_BITS(LOADF(from + c)) & (bits_t)(0x7fffffff));
        other = max(other, AS_BITS(LOADF(from + c + V)) & (bits_t)(0x7fffffff));
    }
    for (; c < channels; c += V)
        one = max(one, AS_BITS(LOADF(from + c)) & (bits_t)(0x7fffffff));
    row->largest = max(one, other);
}

#define COPY_VECTOR(i, c)                                                                                              \
    do {                                                                                                               \
        const FLOATV x = LOADF(from + (c)) * scale;                                                                    \
        STOREF(x, to + (((term + (c)) >> 4) * PIECE + ((term + (c)) & 15)));                                           \
        own##i = fma(x * signs, SWAPPED(x), own##i);                                                                   \
    } while (0)
// from: NULL for zeros.
static inline void copy_part(row_copy *row, __global const SRC_T *from, int channels, float scale, int term,
                             __global float *to)
{
    const FLOATV signs = SIGNS;
    FLOATV own0 = row->own[0], own1 = row->own[1];
    int c = 0;
    for (; !from && c < channels; c += V)
        STOREF((FLOATV)(0.0f), to + (((term + c) >> 4) * PIECE + ((term + c) & 15)));
    for (; c + 2 * V <= channels; c += 2 * V) {
        COPY_VECTOR(0, c);
        COPY_VECTOR(1, c + V);
    }
    for (; c < channels; c += V)
        COPY_VECTOR(0, c);
    row->own[0] = own0;
    row->own[1] = own1;
}

// The parts of a stretch that belong to one chunk each, of which `own` takes what is subtracted.
static inline void copy_stretch(row_copy *row, __global const SRC_T *from, int channels, float scale, int term,
                                int chunk, __global float *to, __global float *own)
{
    for (int done = 0; done < channels;) {
        const int place = (term + done) % chunk, some = min(channels - done, chunk - place);
        copy_part(row, from ? from + done : from, some, scale, term + done, to);
        done += some;
        if (place + some == chunk) {
            own[(term + done) / chunk * 16 - 16] = sum_lanes(row->own[0] + row->own[1]);
            row->own[0] = row->own[1] = 0.0f;
        }
    }
}

#define FOR_TAPS(STRETCH)                                                                                              \
    for (int d = 0; d < from->taps.x; d++)                                                                             \
        for (int h = 0; h < from->taps.y; h++)                                                                         \
            for (int w = 0; w < from->taps.z; w++) {                                                                   \
                __global const SRC_T *stretch = find_tap(from, at, d, h, w);                                           \
                STRETCH                                                                                                \
            }

// Of scales and their inverses. What is smaller counts as that large.
#define SMALLEST_EXPONENT 1
#define LARGEST_EXPONENT 253

static inline void copy_slab(const window_source *from, int first, int height, int4 dst_size, int terms, int chunk,
                             __global float *to)
{
    const int channels = from->src_size.w;
    const bool is_pixel = channels == terms;
    __global float *of = to + terms * R;
    pixel_place at = find_pixel(first, dst_size);
    uint worst = 0;
    for (int r = 0; r < height; r++) {
        row_copy row = {.largest = 0};
        __global const SRC_T *pixel = is_pixel ? find_tap(from, at, 0, 0, 0) : 0;
        if (pixel)
            see_stretch(&row, pixel, channels);
        else
            FOR_TAPS(if (stretch) see_stretch(&row, stretch, channels);)
        const uint largest = largest_lane(row.largest), exponent = largest >> 23;
        const uint kept = clamp(exponent, (uint)SMALLEST_EXPONENT, (uint)LARGEST_EXPONENT);
        const float scale = as_float((254 - kept) << 23);
        worst = max(worst, exponent);
        if (pixel)
            copy_stretch(&row, pixel, channels, scale, 0, chunk, to + r * 16, of + (OWN_PRODUCTS + r));
        else {
            int term = 0;
            FOR_TAPS(copy_stretch(&row, stretch, channels, scale, term, chunk, to + r * 16, of + (OWN_PRODUCTS + r));
                     term += channels;)
        }
        if (terms % chunk)
            of[OWN_PRODUCTS + terms / chunk * 16 + r] = sum_lanes(row.own[0] + row.own[1]);
        of[SCALES + r] = largest ? as_float(kept << 23) : 0.0f; // zeros give zeros
        at = next_pixel(at, dst_size);
    }
    of[IS_FINITE] = worst < 255;
}

static inline void find_places(__global idx_t *place, int first, int height, int4 dst_size, idx_t dst_offset,
                               idx4_t dst_stride FOR_OPERANDS(STRIDED_OPERAND))
{
    pixel_place at = find_pixel(first, dst_size);
    for (int r = 0; r < R; r++, place += PLACES_OF_ROW) {
        place[0] = PLACE(at, dst_offset, dst_stride);
        FOR_OPERANDS(FIND_PLACE)
        if (r < height - 1) // what lies behind a short slab's rows is asked for, too
            at = next_pixel(at, dst_size);
    }
}

// As multiply_fip.
static inline void multiply_plainly(int height, __global const float *slab, __global const float *scales,
                                    __global const SRC_T *const weight[NB], int terms, __global float *sums)
{
    for (int r = 0; r < height; r++)
        for (int j = 0; j < NB; j++) {
            FLOATV sum = 0.0f;
            for (int c = 0; c < terms; c++)
                sum = fma((FLOATV)(slab[(c >> 4) * PIECE + r * 16 + (c & 15)]), LOADF(weight[j] + c * 16), sum);
            STOREF(sum * (LOADF(weight[j] + (terms * 16 + 16)) * scales[r]), sums + (r * NB + j) * V);
        }
}

// of: what belongs to a slab's rows; part: the chunk's number.
static inline void multiply(int height, __global const float *slab, __global const float *of, int part,
                            __global const SRC_T *const weight[NB], int terms, __global float *sums,
                            __global const SRC_T *later, int pace)
{
    if (of[IS_FINITE] == 0.0f)
        multiply_plainly(height, slab, of + SCALES, weight, terms, sums);
    else
        multiply_fip(height, slab, of + SCALES, of + (OWN_PRODUCTS + part * 16), weight, terms, sums, later, pace);
}

// What the next slab's results are added to is asked for while this one is multiplied: from memory it would come too late.
// Asking for what they are stored to gains nothing.
#if V == 16 && defined(CAN_FETCH) && OPERANDS > 0
#define FETCH_OPERAND(i)                                                                                               \
    if (Y##i##_STEP)                                                                                                   \
        for (int j = 0; j < NB; j++)                                                                                   \
            __builtin_prefetch(operand##i + (place[i + 1] + CHANNEL(m, j)));
static inline void fetch_operands(__global const idx_t *place, int m FOR_OPERANDS(GIVEN_OPERAND))
{
    for (int r = 0; r < R; r++, place += PLACES_OF_ROW) {
        FOR_OPERANDS(FETCH_OPERAND)
    }
}
#define FETCH_OPERANDS                                                                                                 \
    fetch_operands((__global const idx_t *)(slabs + ((s + 1) % count * slab_floats + terms * R + PLACES)),             \
                   s + 1 < count ? m : m + V * NB FOR_OPERANDS(PASS_OPERAND));
#else
#define FETCH_OPERANDS
#endif

static inline void add_sums(int height, __global float *total, __global const float *sums)
{
    for (int i = 0; i < height * NB * V; i += V)
        STOREF(LOADF(total + i) + LOADF(sums + i), total + i);
}

// Where slab i begins of a work-item whose first pixel is `first`, and whose first `tall` slabs are not short.
static inline int slab_begins(int slab, int first, int tall)
{
    const int before = min(slab, tall);
    return first + before * R + (slab - before) * SHORT;
}

// Those of the `most` slabs of a work-item that begin before all pixels end.
static inline int count_slabs(int most, int first, int tall, int pixels)
{
    while (slab_begins(most - 1, first, tall) >= pixels)
        most--;
    return most;
}

// The pixels of a slab. Those before `begin` are another slab's: where too few are left this one is moved back to be full.
typedef struct slab_rows {
    int begin, first, height;
} slab_rows;

static inline slab_rows find_rows(int slab, int first, int tall, int pixels)
{
    slab_rows rows = {.begin = slab_begins(slab, first, tall), .height = slab < tall ? R : SHORT};
    rows.first = min(rows.begin, pixels - rows.height);
    return rows;
}

// The range is blocks of NB vectors, stride.w of them a work-item, by slabs, flags.w a work-item; flags.z: pixels. own: where
// the memory begins, floats of it for each work-item, slabs that pass by the weights together, those of a work-item that
// are not short. weight_stride: of a chunk, -, of 16 channels. Channels in are a multiple of 16. A work-item's memory: sums
// of a slab, of all chunks of some slabs and all blocks where there are several chunks, slabs.
WORK convolve_slabs(__global float *memory, idx4_t own, CONV_ARGUMENTS, const int grid0, const int grid1)
{
    const int terms = src_size.w * taps.x * taps.y * taps.z, blocks = (dst_size.w + V * NB - 1) / (V * NB);
    const int first_block = grid0 * stride.w, end_block = min(first_block + stride.w, blocks);
    const int chunk = (int)(weight_stride.x / 16) - 2, chunks = (terms + chunk - 1) / chunk;
    const int tall = (int)own.w, first_row = grid1 * slab_begins(flags.w, 0, tall);
    const int slab_count = count_slabs(flags.w, first_row, tall, flags.z), slab_floats = terms * R + OTHERS(chunks);
    const window_source from = {src + src_offset, src_size, taps, stride, dilation, pad, src_stride};
    __global float *sums = memory + (own.x + (grid1 * (idx_t)((blocks + stride.w - 1) / stride.w) + grid0) * own.y);
    __global float *totals = sums + SUM;
    __global float *slabs = totals + (chunks > 1 ? (int)own.z * stride.w * SUM : 0);
    for (int slab = 0; slab < slab_count; slab += (int)own.z) {
        const int count = min((int)own.z, slab_count - slab), pace = (V * NB + count - 1) / count;
        for (int s = 0; s < count; s++) {
            const slab_rows rows = find_rows(slab + s, first_row, tall, flags.z);
            __global float *to = slabs + s * slab_floats;
            copy_slab(&from, rows.first, rows.height, dst_size, terms, chunk, to);
            find_places((__global idx_t *)(to + (terms * R + PLACES)), rows.first, rows.height, dst_size, dst_offset,
                        dst_stride FOR_OPERANDS(PASS_STRIDES));
        }
        for (int part = 0; part < chunks; part++) {
            const int some = min(chunk, terms - part * chunk);
            __global const SRC_T *lines = weight + (weight_offset + part * weight_stride.x);
            for (int block = first_block; block < end_block; block++) {
                const int m = block * (V * NB), last = (dst_size.w - 1) & ~(V - 1);
                __global const SRC_T *panel[NB];
#pragma unroll
                for (int j = 0; j < NB; j++)
                    panel[j] = lines + weight_at(min(m + j * V, last), weight_stride.z);
                // After the last one comes the first again, of the next chunk or the first: asking for what has no page takes
                // long.
                __global const SRC_T *later =
                    block + 1 < end_block
                        ? lines + weight_at(m + V * NB, weight_stride.z)
                        : weight + (weight_offset + weight_at(first_block * (V * NB), weight_stride.z) +
                                    (part + 1 < chunks ? part + 1 : 0) * weight_stride.x);
                for (int s = 0; s < count; s++) {
                    const slab_rows rows = find_rows(slab + s, first_row, tall, flags.z);
                    __global const float *at = slabs + s * slab_floats, *of = at + terms * R;
                    __global float *total = totals + (s * stride.w + block - first_block) * SUM;
                    __global float *to = part == 0 && chunks > 1 ? total : sums;
                    const int ahead = s * some * pace; // which may be in the second panel
                    __global const SRC_T *fetched =
                        later + (ahead < some * 16 ? ahead : weight_stride.z + ahead - some * 16);
                    FETCH_OPERANDS
                    multiply(rows.height, at + part * chunk * R, of, part, panel, some, to, fetched, pace);
                    if (part > 0)
                        add_sums(rows.height, total, sums);
                    if (part + 1 == chunks)
                        store_sum(dst, (__global const idx_t *)(of + PLACES), bias + bias_offset, flags.y,
                                  part > 0 ? total : sums, rows.begin - rows.first, rows.height, m, 0,
                                  dst_size.w PASS_SCALARS FOR_OPERANDS(PASS_OPERAND));
                }
            }
        }
    }
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void conv_fip(__global float *memory, idx4_t own,
                                                                      CONV_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    convolve_slabs(memory, own, PASS_CONV, (int)get_global_id(0), (int)get_global_id(1));
    TEAM_LEAVE
}
