// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers for CPUs with x86's vpdpbusd or vpmaddwd, requantised to 8 bits: a tile of P pixels and 16
// or 32 channels of the result in registers, one work-item a work-group. Windows are read from the image itself, four channels at a time.
//
// Pixels are counted over the whole batch, so that a tile may span rows and images. Each pixel of a tile has a pointer
// of its own into src; where a tap falls into padding, it points to zero points, and the inner loop knows nothing of
// borders. The weights are in qgemm_pack.cl's panels, taps before channels. What is multiplied is said in qgemm.clh.
//
// gpu: never
// Defines:
//   VNNI  with vpdpbusd; else
//   MADD  with vpmaddwd, of 8 or 16 lanes; else in plain C
//   FOURS with MADD of 8 lanes: with vpdpbusd of AVX-VNNI
//   FIP   with fewer products (fip.clh), of 8 lanes; P is a multiple of 3 then
//   T_A   I8 or U8: src's
//   P     pixels of a tile, up to 16
//   FLAT  with VNNI, of few steps: where all taps of a tile are inside the image, they go as one
//   SUM   to each result another quantised tensor is added, and the sum quantised, as qmap.cl's OP_ADD does
// check: -DT_A=U8 -DP=7
// check: -DT_A=U8 -DP=14 -DFLAT
// check: -DT_A=I8 -DP=4 -DSUM
// check: -DT_A=U8 -DP=6 -DMADD=8
// check: -DT_A=U8 -DP=6 -DMADD=8 -DFOURS
// check: -DT_A=I8 -DP=12 -DMADD=8 -DFIP -DSUM
#include "assembly.clh"
#include "qconv_end.clh"
#if !defined(T_A) || !defined(P)
#error "qconv_panel.cl needs T_A and P"
#endif
#define PANEL 32
#if defined(MADD) && MADD == 8 && !defined(FIP)
#define NB 1
#else
#define NB 2
#endif
#define BLOCK (W * NB)
#ifdef FIP
#define RUNS 5       // that share widened weights, as in qconv_panel.c
#define MAX_BLOCKS 8 // of a work-item, likewise
#else
#define RUNS 1
#define MAX_BLOCKS 16
#endif
#define MAX_CHANNELS 4096 // likewise
#include "qconv_windows.clh"
#define FIFTHS ((P + 4) / 5)
#define FLIP (IS_UNSIGNED(T_A) ? 0u : 0x80808080u)

#ifdef MADD
#define MADD_ROWS P
#define MADD_NB NB
#define MADD_PANEL PANEL
#include "madd.clh"
#endif

// sum += of each lane four products of unsigned bytes of x and signed bytes of y.
#ifdef VNNI
#define ADD_PRODUCTS(sum, x, y) __asm__("vpdpbusd %2,%1,%0" : "+v"(sum) : "v"(x), "v"(y))
#else
#define ADD_BYTES(sum, x, y, left) sum += (((x) << (left)) >> 24) * as_uint16(as_int16((y) << (left)) >> 24)
#define ADD_PRODUCTS(sum, x, y)                                                                                        \
    do {                                                                                                               \
        ADD_BYTES(sum, x, y, 24);                                                                                      \
        ADD_BYTES(sum, x, y, 16);                                                                                      \
        ADD_BYTES(sum, x, y, 8);                                                                                       \
        ADD_BYTES(sum, x, y, 0);                                                                                       \
    } while (0)
#endif

#ifdef SUM
#define PASS_ADDENDS_AT(address) , (__global const uchar *)(address)
#else
#define PASS_ADDENDS_AT(address)
#endif

// Of a block of channels, behind the sums of its panel.
#define WEIGHTS(block) (panels + ((block) * BLOCK / PANEL * panel_ints + PANEL + (block) * BLOCK % PANEL))

// Where a tile's results go and what they are added to, and what scales its block of channels. With vpdpbusd they are stored
// while the next tile's products are added up, which leave a core instructions for it: from the registers that they are in,
// a vector at each step, where both tiles' sums have registers, else from memory, a pixel at each.
typedef struct late_tile {
    ulong result[W], addend[W]; // as a run's, of the block's first channel
    const float *scale;         // of its channels; NULL: there is none
} late_tile;

#if P <= 7
#define LATE_VECTORS 1
#define UNROLL_LATE _Pragma("unroll")
#else
#define LATE_VECTORS NB
#define UNROLL_LATE
#endif
#define LATE_STEPS (P * NB / LATE_VECTORS)

INLINE void store_vector(const late_tile *late, const uint16 sum[P * NB], int i, tile_end *end)
{
    USE_HERE(*end);
    store_whole((__global uchar *)(late->result[i / NB] + i % NB * W), sum[i], vload16(i % NB, late->scale),
                end PASS_ADDENDS_AT(late->addend[i / NB] + i % NB * W));
}

INLINE void store_tile(const late_tile *late, const uint16 sum[P * NB], tile_end *end)
{
    UNROLL_LATE
    for (int i = 0; i < P * NB; i++)
        store_vector(late, sum, i, end);
}

#ifdef MADD
// Fours of a run's pixels, from `first` on.
static inline void widen_run(wide_rows *to, const run_pixels *run, int first, int count)
{
    int tap = first / run->fours, at = first % run->fours;
    for (int filled = 0; filled < count; tap++, at = 0) {
        const int some = min(count - filled, run->fours - at);
        for (int p = 0; p < P; p++)
            widen(to, p, filled, (__global const uchar *)run->address[tap * W + p] + 4 * at, some, FLIP);
        filled += some;
    }
#ifdef FIP
    find_own_products(to, count);
#endif
}

// sums[run][pixel][register] of a block += the products of a chunk; `step`: registers from run to run.
static inline void add_chunk(madd_uints *sums, int step, const run_pixels *runs, const wide_rows *wide, int run_count,
                             __global const int *weights, __global const int *next, int count)
{
#ifdef FIP
    fip_columns columns;
    widen_columns(&columns, weights, count);
    for (int i = 0, at = 0, pace = FIP_PACE(count, run_count * P); i < run_count; i++)
        at = add_rows_by_fip(sums + i * step, &wide[i], runs[i].begin, runs[i].end, &columns, count, next, at, pace);
#else
    add_wide(sums, wide, weights, count);
#endif
}

// sums[run][block][pixel][register] += the products of some runs and the weights. A chunk of the runs is widened once for
// all blocks.
static inline void accumulate(madd_uints *sums, const run_pixels *runs, int run_count, __global const int *panels,
                              int first_block, int end_block, int panel_ints)
{
    const int all = runs->taps * runs->fours, step = (end_block - first_block) * MADD_SUMS;
    wide_rows wide[RUNS];
    for (int first = 0; first < all; first += MADD_CHUNK) {
        const int count = min(all - first, MADD_CHUNK);
        for (int i = 0; i < run_count; i++)
            widen_run(&wide[i], &runs[i], first, count);
        for (int block = first_block; block < end_block; block++)
            add_chunk(sums + (block - first_block) * MADD_SUMS, step, runs, wide, run_count,
                      WEIGHTS(block) + first * PANEL,
                      block + 1 < end_block ? WEIGHTS(block + 1) + first * PANEL
                                            : WEIGHTS(first_block) + (first + count < all ? first + count : 0) * PANEL,
                      count);
    }
}
#else
// The bytes of four channels of a pixel in all lanes of x. A pixel is `steps` times `step` bytes, up to 4 times, behind another:
// processors add that up as they read, so that 7 pixels take four registers. Compilers take one for each, or read some from
// memory, where ends of late tiles have little room for it; and some vbroadcastss, for which a Zen 4 has the units that
// multiply and add.
#ifdef VNNI
typedef struct any_bytes { // of src, which nobody writes meanwhile
    uchar bytes[4 * MAX_CHANNELS];
} any_bytes;
#define SPREAD_AT(x, place, from, distance)                                                                            \
    __asm__("vpbroadcastd " place ",%0" : "=v"(x) : "r"(from), "r"(distance), "m"(*(__global const any_bytes *)(from)))
#define SPREAD(x, from, step, thrice, steps)                                                                           \
    if ((steps) == 0)                                                                                                  \
        SPREAD_AT(x, "(%1)", from, step);                                                                              \
    else if ((steps) == 1)                                                                                             \
        SPREAD_AT(x, "(%1,%2)", from, step);                                                                           \
    else if ((steps) == 2)                                                                                             \
        SPREAD_AT(x, "(%1,%2,2)", from, step);                                                                         \
    else if ((steps) == 3)                                                                                             \
        SPREAD_AT(x, "(%1,%2)", from, thrice);                                                                         \
    else                                                                                                               \
        SPREAD_AT(x, "(%1,%2,4)", from, step)
#else
#define SPREAD(x, from, step, thrice, steps)                                                                           \
    x = (uint16)(as_uint(vload4(0, (from) + ((steps) == 3 ? (thrice) : (steps) * (step)))))
#endif

// sum[pixel][vector] += the products of four channels of a run's pixels and the weights, where pixels are `step` bytes from one
// to the next, every fifth one `place` bytes behind `fifth`, …
INLINE void add_even_step(uint16 sum[P * NB], __global const uchar *const fifth[FIFTHS], int place, long step, long thrice,
                          __global const int *weight)
{
    const uint16 y0 = as_uint16(vload16(0, weight)), y1 = as_uint16(vload16(1, weight));
#pragma unroll
    for (int p = 0; p < P; p++) {
        uint16 x;
        SPREAD(x, fifth[p / 5] + place, step, thrice, p % 5);
        x ^= (uint16)(FLIP);
        ADD_PRODUCTS(sum[p * NB], x, y0);
        ADD_PRODUCTS(sum[p * NB + 1], x, y1);
    }
}

// … or each such that far behind `pixel`.
INLINE void add_step(uint16 sum[P * NB], __global const uchar *const pixel[P], long place, __global const int *weight)
{
    const uint16 y0 = as_uint16(vload16(0, weight)), y1 = as_uint16(vload16(1, weight));
#pragma unroll
    for (int p = 0; p < P; p++) {
        uint16 x;
        SPREAD(x, pixel[p] + place, 0, 0, 0);
        x ^= (uint16)(FLIP);
        ADD_PRODUCTS(sum[p * NB], x, y0);
        ADD_PRODUCTS(sum[p * NB + 1], x, y1);
    }
}

#ifdef CAN_FETCH
#define FETCH(address) __builtin_prefetch(address, 0, 2)
#else
#define FETCH(address) (void)(address)
#endif

// sum[pixel][vector] += the products of a tap's fours of channels, from `first` on, and the weights. Each asks for `pace`
// bytes from `next` on.
INLINE void add_tap(uint16 sum[P * NB], const run_pixels *run, int tap, int first, __global const int *weight,
                    __global const uchar *next, int pace)
{
    if (run->step[tap] != UNEVEN) {
        const long step = run->step[tap], thrice = 3 * step;
        __global const uchar *fifth[FIFTHS];
        for (int i = 0; i < FIFTHS; i++)
            fifth[i] = (__global const uchar *)run->address[tap * W + i * 5];
        for (int c = first; c < run->fours; c++) {
            FETCH(next + c * pace);
            add_even_step(sum, fifth, PLACE(c), step, thrice, weight + c * PANEL);
        }
        return;
    }
    __global const uchar *pixel[P];
#pragma unroll
    for (int p = 0; p < P; p++)
        pixel[p] = (__global const uchar *)run->address[tap * W + p];
    for (int c = first; c < run->fours; c++) {
        FETCH(next + c * pace);
        add_step(sum, pixel, PLACE(c), weight + c * PANEL);
    }
}

// sum[pixel][vector] += the products of a run and the weights, while the late tile is stored. 28 products take a Zen 5 14
// cycles, and 2 more with a pixel's results, 6 with those that are added to others; 14 take a Zen 4 14, and with a vector's 15 or
// 17. Where there is no room for that, or pixels are not at equal distances, it is stored before.
INLINE void accumulate(uint16 sum[P * NB], const run_pixels *run, __global const int *weight, __global const uchar *next,
                       int pace, const late_tile *late, const uint16 late_sum[P * NB], tile_end *end)
{
    int first = 0;
    if (late->scale && run->taps > 0 && run->step[0] != UNEVEN && run->fours >= LATE_STEPS) {
        const int before = run->number[0] * run->fours;
        __global const int *first_weight = weight + before * PANEL;
        __global const uchar *first_next = next + before * pace;
        const long step = run->step[0], thrice = 3 * step;
        __global const uchar *fifth[FIFTHS];
        for (int i = 0; i < FIFTHS; i++)
            fifth[i] = (__global const uchar *)run->address[i * 5];
        UNROLL_LATE
        for (int c = 0; c < LATE_STEPS; c++) {
            FETCH(first_next + c * pace);
            add_even_step(sum, fifth, PLACE(c), step, thrice, first_weight + c * PANEL);
            for (int i = 0; i < LATE_VECTORS; i++)
                store_vector(late, late_sum, c * LATE_VECTORS + i, end);
        }
        first = LATE_STEPS;
    } else if (late->scale)
        store_tile(late, late_sum, end);
    for (int tap = 0; tap < run->taps; tap++, first = 0) {
        const int before = run->number[tap] * run->fours;
        add_tap(sum, run, tap, first, weight + before * PANEL, next + before * pace, pace);
    }
}
#endif

// What is added to the sums of a work-item's channels, and what scales them.
typedef struct item_channels {
    int added[MAX_BLOCKS * BLOCK];
    float scale[MAX_BLOCKS * BLOCK];
} item_channels;

// Of channels from `first` to `end`; zero: src's zero point as it is multiplied.
static inline void find_channels(item_channels *of, KERNEL_ARGUMENTS, int4 dst_size, int8 flags, int first, int end, uint zero)
{
    __global const int *panels = weight + weight_offset;
    const float dst_scale_of = SCALE(dst_scale, HAS_DST_SCALE), all_scale = SCALE(a_scale, HAS_A_SCALE);
    for (int c = first, i = 0; c < end; c += W, i++) {
        const int left = dst_size.w - c;
        const uint16 from = HAS(HAS_BIAS) ? as_uint16(LOAD_CHANNELS(bias, flags.s5)) : (uint16)(0);
        const float16 scale = HAS(HAS_B_SCALE) ? as_float16(LOAD_CHANNELS(b_scale, flags.s6)) : (float16)(1.0f);
        const uint16 sums = as_uint16(vload16(0, panels + (c / PANEL * flags.s7 + c % PANEL)));
        vstore16(as_int16(from - (uint16)(zero) * sums), i, of->added);
        vstore16((float16)(all_scale) * scale / (float16)(dst_scale_of), i, of->scale);
    }
}

// Where a work-item is: its run and how many it has, the blocks of each work-item, and all blocks.
typedef struct item_place {
    int run, runs, item_blocks, blocks;
} item_place;

// Where a tile's results of a block of channels from `channel` on go.
static inline void place_tile(late_tile *late, const run_pixels *run, int channel, const float *scale)
{
    vstore16(vload16(0, run->result) + (ulong16)((ulong)channel), 0, late->result);
#ifdef SUM
    vstore16(vload16(0, run->addend) + (ulong16)((ulong)channel), 0, late->addend);
#endif
    late->scale = scale;
}

static inline bool is_whole(const run_pixels *run, int channels)
{
    return run->begin == 0 && run->end == P && channels >= BLOCK;
}

// The results of some of a tile's pixels, or of some of the channels of its block: `count` of them.
static __attribute__((noinline)) void store_part(const late_tile *late, const uint16 *sum, const run_pixels *run, int count,
                                                 const tile_end *end)
{
    for (int p = run->begin; p < run->end; p++)
        for (int j = 0; j < NB && j * W < count; j++)
            store_channels((__global uchar *)(late->result[p] + j * W), sum[p * NB + j], vload16(j, late->scale), end,
                           count - j * W PASS_ADDENDS_AT(late->addend[p] + j * W));
}

#ifdef MADD
// The results of some runs, of some blocks of channels.
static inline void compute_blocks(const run_pixels *runs, int run_count, const item_channels *of, tile_end *end,
                                  __global const int *panels, int panel_ints, int first_block, int end_block,
                                  int channels)
{
    const int blocks = end_block - first_block;
    madd_uints sums[RUNS * MAX_BLOCKS * MADD_SUMS];
    for (int i = 0; i < run_count; i++)
        for (int j = 0; j < blocks * NB; j++)
            for (int p = 0; p < P; p++)
                split_sum(sums + ((i * blocks + j / NB) * MADD_SUMS + (p * NB + j % NB) * MADD_HALVES),
                          as_uint16(vload16(j, of->added)));
    accumulate(sums, runs, run_count, panels, first_block, end_block, panel_ints);
    for (int block = 0; block < blocks; block++)
        for (int i = 0; i < run_count; i++) {
            const int channel = (first_block + block) * BLOCK;
            uint16 sum[P * NB];
            late_tile late;
            join_sums(sum, sums + (i * blocks + block) * MADD_SUMS);
            place_tile(&late, &runs[i], channel, of->scale + block * BLOCK);
            if (is_whole(&runs[i], channels - channel))
                store_tile(&late, sum, end);
            else
                store_part(&late, sum, &runs[i], channels - channel, end);
        }
}
#else
// The results of a run, of some blocks of channels. late_sum: those of the late tile, if there is one, before and after.
INLINE void compute_blocks(const run_pixels *run, const item_place *place, const item_channels *of, tile_end *end,
                           __global const int *panels, int panel_ints, int first_block, int end_block, int channels,
                           late_tile *late, uint16 late_sum[P * NB])
{
    const int blocks = end_block - first_block, steps = run->taps * run->fours;
    for (int block = 0; block < blocks; block++) {
        const int channel = (first_block + block) * BLOCK;
        uint16 sum[P * NB];
#pragma unroll
        for (int j = 0; j < NB; j++) {
            const uint16 added = as_uint16(vload16(block * NB + j, of->added));
#pragma unroll
            for (int p = 0; p < P; p++)
                sum[p * NB + j] = added;
        }
        // The weights that the next blocks' items begin with come from far: each of the item's runs asks for a part of them.
        const bool last = first_block + block + place->item_blocks >= place->blocks;
        const int bytes = PANEL * (int)sizeof(int), pace = last ? 0 : (bytes + place->runs - 1) / place->runs;
        __global const int *next = WEIGHTS(first_block + block + (last ? 0 : place->item_blocks));
        accumulate(sum, run, WEIGHTS(first_block + block),
                   (__global const uchar *)next + min(place->run * pace, bytes - pace) * steps, pace, late, late_sum, end);
        place_tile(late, run, channel, of->scale + block * BLOCK);
        if (is_whole(run, channels - channel)) {
#pragma unroll
            for (int i = 0; i < P * NB; i++)
                late_sum[i] = sum[i];
        } else {
            uint16 all[P * NB];
#pragma unroll
            for (int i = 0; i < P * NB; i++)
                all[i] = sum[i];
            store_part(late, all, run, channels - channel, end);
            late->scale = 0;
        }
    }
}
#endif

// dst_size and src_size are (depth, rows, columns, channels), taps, stride, dilation and pad (depth, rows, columns, …),
// and strides (image, depth, row, column). flags: see above; pixels; runs of P pixels, and blocks of channels, of a
// work-item; 0; strides of bias and b_scale; integers of a panel of weights. The range is runs by blocks, with vpdpbusd blocks by
// runs: a thread's work-items in a row then have the same runs, and the next blocks are what it asks for.
#ifdef VNNI
#define GRID_OF_RUNS grid1
#define GRID_OF_BLOCKS grid0
#else
#define GRID_OF_RUNS grid0
#define GRID_OF_BLOCKS grid1
#endif
WORK convolve(KERNEL_ARGUMENTS SUM_ARGUMENTS SIZE_ARGUMENTS, const int grid0, const int grid1)
{
    const int first_run = GRID_OF_RUNS * flags.s2, first_block = GRID_OF_BLOCKS * flags.s3;
    const int end_run = min(first_run + flags.s2, (flags.s1 + P - 1) / P);
    if (taps.x * taps.y * taps.z * stride.x * stride.y * stride.z == 1 && (pad.x | pad.y | pad.z) == 0 &&
        IS_ONE_ROW(dst_size, dst_stride) && IS_ONE_ROW(dst_size, src_stride) && IS_ONE_ROW(dst_size, addend_stride))
        dst_size.xyz = src_size.xyz = (int3)(1, 1, flags.s1);
    item_place place = {0, end_run - first_run, flags.s3, (dst_size.w + BLOCK - 1) / BLOCK};
    const int end_block = min(first_block + flags.s3, place.blocks);
    const uint zero_of_a = (uint)((HAS(HAS_ZA) ? za[za_offset] : 0) ^ (FLIP & 255u));
    tile_end end;
    FIND_END
    item_channels of;
    find_channels(&of, PASS_KERNEL, dst_size, flags, first_block * BLOCK, end_block * BLOCK, zero_of_a);
    uint padding[MAX_CHANNELS / 4]; // as src has it
    for (int c = 0; c < src_size.w / 4; c++)
        padding[c] = (zero_of_a ^ (FLIP & 255u)) * 0x01010101u;

    window inside;
    find_window(&inside, src_size, taps, dilation, src_stride);
#ifdef SUM
    const ulong addends = (ulong)(addend + addend_offset);
#else
    const ulong addends = 0;
#endif
#ifdef MADD
    const bool skips = false; // runs that share widened weights have as many taps
#else
    const bool skips = zero_of_a == 0; // padding adds nothing
    late_tile late = {.scale = 0};
    uint16 late_sum[P * NB];
#pragma unroll
    for (int i = 0; i < P * NB; i++)
        late_sum[i] = 0;
#endif
    for (int i = first_run; i < end_run; i += RUNS) {
        run_pixels runs[RUNS];
        const int run_count = min(end_run - i, RUNS);
        for (int j = 0; j < run_count; j++) {
            // The last run is moved back to be full; what its first pixels get is not stored again.
            const int first = min((i + j) * P, max(flags.s1 - P, 0));
            runs[j].begin = (i + j) * P - first;
            runs[j].end = min(P, flags.s1 - first);
            find_run(&runs[j], &inside, first, (ulong)(dst + dst_offset), (ulong)(src + src_offset), addends, (ulong)padding,
                     skips, dst_size, src_size, taps, stride, dilation, pad, dst_stride, src_stride, addend_stride);
        }
#ifdef MADD
        compute_blocks(runs, run_count, &of, &end, weight + weight_offset, flags.s7, first_block, end_block, dst_size.w);
#else
        place.run = i - first_run;
        compute_blocks(runs, &place, &of, &end, weight + weight_offset, flags.s7, first_block, end_block, dst_size.w, &late,
                       late_sum);
#endif
    }
#ifndef MADD
    if (late.scale)
        store_tile(&late, late_sum, &end);
#endif
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
qconv_panel(KERNEL_ARGUMENTS SUM_ARGUMENTS SIZE_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    convolve(PASS_KERNEL PASS_SUM, dst_size, src_size, taps, stride, dilation, pad, dst_stride, src_stride, addend_stride,
             flags, (int)get_global_id(0), (int)get_global_id(1));
    TEAM_LEAVE
}
