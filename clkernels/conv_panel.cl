// SPDX-License-Identifier: Apache-2.0
// Direct convolution for CPUs: a tile of pixels and output channels in registers, one work-item a work-group.
//
// Pixels are counted over the whole batch, so that a tile may span rows and images. Each pixel of a tile has a pointer
// of its own into src; where a tap falls into padding, it points to zeros behind the weights, and the inner loop knows
// nothing of borders.
//
// gpu: never
// Defines: those of conv.clh, where P pixels need not be of one row, and
//   NB          vectors of channels that a work-item computes for each pixel
//   TRANSPOSED  one phase of a transposed convolution: stride and dilation are 1, taps are counted backwards, and stride is
//               the step from tap to tap among the weights
//   PAIRS       see conv.clh; T_SRC=U32
//   NEXT        each run asks for its part of the weights of the next block, which come from memory; not TRANSPOSED
//   SUMS_MOVE   sums that have no register move, instead of weights being read for each product; see conv.clh
//   LONG_CHAIN  a function of the chain takes dozens of instructions
//   LINE, STEP  few numbers, those of a row of taps, which is one stretch of memory, and from pixel to pixel of a row; no
//               groups
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=14 -DNB=2
// check: -DT_SRC=F16 -DT_BIAS=F32 -DT_DST=BF16 -DV=8 -DP=6 -DNB=1 -DINDEX64
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=8 -DNB=3 -DTRANSPOSED
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=8 -DNB=3
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=5 -DNB=2 -DNEXT -DCAN_FETCH
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=7 -DNB=4 -DNEXT -DCAN_FETCH
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=7 -DNB=4 -DNEXT -DCAN_FETCH -DSUMS_MOVE
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=8 -DP=6 -DNB=2 -DLINE=9 -DSTEP=6
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=8 -DNB=3 -DSTAGES=1 -DS1=OP_GELU(v0) -DLONG_CHAIN
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=7 -DNB=4 -DLINE=21 -DSTEP=6 -DSTAGES=1 -DS1=OP_RELU(v0)
// check: -DT_SRC=U32 -DT_BIAS=F32 -DT_DST=BF16 -DV=16 -DP=7 -DNB=4 -DPAIRS -DMODEL -DLINE=14 -DSTEP=4
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=4 -DP=1 -DNB=4 -DSTAGES=2 -DS1=OP_ADD(v0,y0) -DS2=OP_RELU(v1) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
// check: -DT_SRC=U32 -DT_BIAS=F32 -DT_DST=BF16 -DV=16 -DP=7 -DNB=4 -DPAIRS -DMODEL -DSTAGES=2 -DS1=OP_ADD(v0,y0) -DS2=OP_RELU(v1) -DOPERANDS=1 -DT_Y0=BF16 -DY0_STEP=1
#include "conv.clh"
#ifndef NB
#error "conv_panel.cl needs NB"
#endif

// What differs from pixel to pixel is computed in vectors of L pixels, of which there are PARTS.
#if P <= 4
#define L 4
#define LANE (int4)(0, 1, 2, 3)
#elif P <= 8
#define L 8
#define LANE (int8)(0, 1, 2, 3, 4, 5, 6, 7)
#else
#define L 16
#define LANE (int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#endif
#define PARTS ((P + L - 1) / L)

// What a tile reads and writes at its end, and what the next run's pixels read (`ahead` bytes on), is asked for while
// products are computed, a line of memory a step: hardware foresees none of that, since each pixel is elsewhere. Only
// where a step is long enough to hide it.
#if V == 16 && P * NB >= 24 && defined(CAN_FETCH) && !defined(NEXT)
#define FETCHES 1
#else
#define FETCHES 0
#endif
// With 16 registers an instruction a step costs more than it hides: only what a tile adds is asked for, when it begins.
#if V == 8 && P * NB >= 12 && defined(CAN_FETCH)
#define FETCH_LINE(i) __builtin_prefetch(operand##i + (place##i[p] + Y##i##_STEP * (c + j * V)));
#define FETCH_TILE                                                                                                     \
    _Pragma("unroll") for (int p = 0; p < P; p++) for (int j = 0; j < NB; j += 2)                                      \
    {                                                                                                                  \
        FOR_OPERANDS(FETCH_LINE)                                                                                       \
    }
#else
#define FETCH_TILE
#endif
#if FETCHES
#define FETCH_AT(i) ((i) & (PARTS * L - 1))
#define FETCH_OPERAND(i)                                                                                               \
    __builtin_prefetch(operand##i + (place##i[FETCH_AT(c / NB)] + Y##i##_STEP * (channel + c % NB * V)));
#define FETCH                                                                                                          \
    __builtin_prefetch(dst + (place[FETCH_AT(c / NB)] + channel + c % NB * V), 1);                                     \
    FOR_OPERANDS(FETCH_OPERAND)                                                                                        \
    __builtin_prefetch((__global const SRC_T *)(address[FETCH_AT(c)] + ahead) + c);
#define FETCHED                                                                                                        \
    , ulong ahead, __global const STORAGE(T_DST) *dst, const idx_t *place, int channel FOR_OPERANDS(PLACED_OPERAND)
#define PASS_FETCHED , ahead, dst, place, channel FOR_OPERANDS(PASS_OPERAND)
#elif defined(NEXT) && defined(CAN_FETCH)
#define FETCHES_NEXT
#define FETCHED , next_weights *next
#define PASS_FETCHED , next
#else
#define FETCH
#define FETCHED
#define PASS_FETCHED
#endif
#define PLACED_OPERAND(i) , __global const STORAGE(T_Y##i) *operand##i, const idx_t *place##i
#define PASS_OPERAND(i) , operand##i, place##i

#ifdef FETCHES_NEXT
#if V > 8
#define CHANNELS_A_FETCH 16 // the fewer lines are asked for at once the better, as measured on a Zen 5
#else
#define CHANNELS_A_FETCH 64
#endif
#define LINE_BYTES 64
typedef struct next_weights {
    ulong at, end;
    int bytes; // for as many channels
} next_weights;

static inline void fetch_next(next_weights *next)
{
    const ulong end = min(next->at + next->bytes, next->end);
    for (; next->at < end; next->at += LINE_BYTES)
        __builtin_prefetch((__global const char *)next->at, 0, 2);
}
#endif

// acc[pixel][block] += the products of `count` channels.
static inline void accumulate(FLOATV acc[P * NB], __global const SRC_T *const pixel[P],
                              __global const SRC_T *const weight[NB], int count, const ulong *address FETCHED)
{
#ifdef FETCHES_NEXT
    for (int c = 0; c < count;) {
        fetch_next(next);
        for (const int end = min(c + CHANNELS_A_FETCH, count); c < end; c++) {
            ADD_CHANNEL(OWN_PIXEL, weight)
        }
    }
#else
    for (int c = 0; c < count; c++) {
        FETCH
        ADD_CHANNEL(OWN_PIXEL, weight)
    }
#endif
}

#define INTL PASTE2_(int, L)
#ifdef INDEX64
#define IDXL PASTE2_(long, L)
#define TO_IDXL PASTE2_(convert_long, L)
#else
#define IDXL INTL
#define TO_IDXL
#endif
#define ULONGL PASTE2_(ulong, L)
#define TO_ULONGL PASTE2_(convert_ulong, L)
#define STOREL(v, array, part) PASTE2_(vstore, L)(v, part, array)

// Moves what exceeds a dimension's size over to the next one.
#define CARRY(coordinate, size, next)                                                                                  \
    for (INTL over = coordinate >= size; any(over); over = coordinate >= size) {                                       \
        coordinate -= over & size;                                                                                     \
        next -= over;                                                                                                  \
    }
#define PLACES(stride, origin)                                                                                         \
    ((origin) + TO_IDXL(n) * (stride).x + TO_IDXL(d) * (stride).y + TO_IDXL(h) * (stride).z + TO_IDXL(w) * (stride).w)
#ifdef TRANSPOSED
#define STRIDE(d) 1
#define DILATION(d) -1
#define MAY_JOIN false
#define NEXT_LINE (idx_t)((kd * stride.x + kh * stride.y + kw * stride.z)) * tap_stride
#else
#define STRIDE(d) stride.d
#define DILATION(d) dilation.d
#define MAY_JOIN true
#define NEXT_LINE line + (idx_t)width * 16
#endif
#define IN_IMAGE(i, size) (((i) >= 0) & ((i) < (size)))

// Where the first tap of each pixel of a run lies, which may be outside of the image. `begin` and `end`: the pixels that
// this run is to store.
typedef struct run_pixels {
    INTL front[PARTS], top[PARTS], left[PARTS], inside;
    IDXL corner[PARTS];
    int begin, end;
} run_pixels;

// All taps of the pixel read the image.
static inline INTL reads_inside(const run_pixels *pixels, int part, int4 src_size, int4 reach)
{
    return (part * L + LANE >= P) |
           (IN_IMAGE(pixels->front[part], src_size.x - reach.x) & IN_IMAGE(pixels->top[part], src_size.y - reach.y) &
            IN_IMAGE(pixels->left[part], src_size.z - reach.z));
}

// Pixels that are not there read none.
static inline void set_part(run_pixels *pixels, int part, INTL n, INTL d, INTL h, INTL w, int4 src_size, int4 taps,
                            int4 stride, int4 dilation, int4 pad, idx4_t src_stride)
{
    const int4 reach = (taps - 1) * dilation;
    const INTL number = part * L + LANE;
    d = d * STRIDE(x) - pad.x;
    h = h * STRIDE(y) - pad.y;
    w = select(w * STRIDE(z) - pad.z, (INTL)(-0x40000000), number >= pixels->end);
    pixels->front[part] = d;
    pixels->top[part] = h;
    pixels->left[part] = w;
    pixels->corner[part] = PLACES(src_stride, 0);
    pixels->inside &= reads_inside(pixels, part, src_size, reach);
}

// To the next P pixels of the row that all are in.
static inline void advance(run_pixels *pixels, int4 src_size, int4 taps, int4 stride, int4 dilation, idx4_t src_stride)
{
    const int4 reach = (taps - 1) * dilation;
    const int columns = P * STRIDE(z);
    pixels->inside = -1;
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        pixels->left[part] += columns;
        pixels->corner[part] += columns * src_stride.w;
        pixels->inside &= reads_inside(pixels, part, src_size, reach);
    }
}

// Where tap (z, y, x) of each pixel is read, or `zeros`. False: it reaches no pixel.
static inline bool find_tap(const run_pixels *pixels, int z, int y, int x, int4 src_size, idx4_t src_stride,
                            ulong source, ulong zeros, ulong address[PARTS * L])
{
    const idx_t offset = z * src_stride.y + y * src_stride.z + x * src_stride.w;
    INTL used = 0;
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        const INTL reads = IN_IMAGE(pixels->front[part] + z, src_size.x) & IN_IMAGE(pixels->top[part] + y, src_size.y) &
                           IN_IMAGE(pixels->left[part] + x, src_size.z);
        const ULONGL from = source + TO_ULONGL(pixels->corner[part] + offset) * (ulong)sizeof(SRC_T);
        STOREL(select((ULONGL)(zeros), from, TO_ULONGL(reads)), address, part);
        used |= reads;
    }
    return any(used);
}

#ifdef LINE
#define NEXT_PIXEL(p) pixel + (p)*STEP
// acc += all taps of P pixels that lie beside each other, all of whose taps read the image.
static inline void accumulate_lines(FLOATV acc[P * NB], const run_pixels *pixels, __global const WEIGHT_T *const panel[NB],
                                    __global const SRC_T *source, int4 taps, int4 dilation, idx4_t src_stride)
{
    __global const WEIGHT_T *weight[NB];
#pragma unroll
    for (int j = 0; j < NB; j++)
        weight[j] = panel[j];
    for (int kd = 0; kd < taps.x; kd++)
        for (int kh = 0; kh < taps.y; kh++) {
            __global const SRC_T *pixel = source + (pixels->corner[0].s0 + kd * dilation.x * src_stride.y +
                                                    kh * dilation.y * src_stride.z);
#pragma unroll 1
            for (int c = 0; c < LINE; c++) {
                ADD_CHANNEL(NEXT_PIXEL, weight)
            }
#pragma unroll
            for (int j = 0; j < NB; j++)
                weight[j] += LINE * 16;
        }
}
#define ADD_LINES                                                                                                      \
    if (in_row >= 0 && all(pixels.inside))                                                                             \
        accumulate_lines(acc, &pixels, panel, src + src_offset, taps, dilation, src_stride);                           \
    else
#else
#define ADD_LINES
#endif

// acc += all taps. Where no tap falls into padding all are as far from the first one for each pixel; where moreover a row
// of taps is one stretch of memory, that is read as one tap.
// found: `address` holds those of the run's only tap or of its first, as it stays for the next block of the same group.
static inline void accumulate_taps(FLOATV acc[P * NB], const run_pixels *pixels, __global const SRC_T *const panel[NB],
                                   ulong address[PARTS * L], bool *found, ulong source, ulong zeros, int4 src_size,
                                   int4 taps, int4 stride, int4 dilation, idx4_t src_stride, idx_t tap_stride FETCHED)
{
    const bool inside = MAY_JOIN && all(pixels->inside);
    const bool join = inside && src_stride.w == src_size.w && (dilation.z == 1 || taps.z == 1);
    const int columns = join ? 1 : taps.z, width = join ? src_size.w * taps.z : src_size.w;
    const int tap_count = taps.x * taps.y * columns;
    const bool finds_each = !inside || tap_count > (FETCHES ? 1 : INT_MAX);
    bool used = *found;
    idx_t line = 0;
    for (int tap = 0, kd = 0, kh = 0, kw = 0; tap < tap_count; tap++) {
        __global const SRC_T *pixel[P], *weights[NB];
        const int z = kd * DILATION(x), y = kh * DILATION(y), x = kw * DILATION(z);
        idx_t further = z * src_stride.y + y * src_stride.z + x * src_stride.w;
        // What is asked for ahead goes by the addresses of the tap at hand.
        if (finds_each || (tap == 0 && !*found)) {
            used = find_tap(pixels, z, y, x, src_size, src_stride, source, zeros, address);
            further = 0;
        }
#pragma unroll
        for (int p = 0; p < P; p++)
            pixel[p] = (__global const SRC_T *)address[p] + further;
#pragma unroll
        for (int j = 0; j < NB; j++)
            weights[j] = panel[j] + line;
        accumulate(acc, pixel, weights, used ? width : 0, address PASS_FETCHED);
        kw = kw + 1 == columns ? 0 : kw + 1;
        kh = kw ? kh : kh + 1 == taps.y ? 0 : kh + 1;
        kd = kw || kh ? kd : kd + 1;
        line = NEXT_LINE;
    }
    *found = !finds_each && taps.w == 1;
}

#define FIND_OPERAND(i) const idx_t at##i = place##i[p] + Y##i##_STEP * c;
#define STORE_SUM(sum)                                                                                                 \
    {                                                                                                                  \
        const int c = channel + j * V;                                                                                 \
        const FLOATV v0 = sum;                                                                                         \
        FOR_OPERANDS(FIND_OPERAND)                                                                                     \
        LOAD_OPERANDS                                                                                                  \
        CHAIN                                                                                                          \
        STOREV(T_DST, V, dst, place[p] + c, CHAIN_RESULT);                                                             \
    }

// Stores the results of channels from `channel` on, of which `count` are left; place: of each pixel's channel 0.
static inline void store_tile(__global STORAGE(T_DST) *dst, const FLOATV acc[P * NB], const idx_t *place, int begin,
                              int end, int channel, int count CHAIN_SCALARS FOR_OPERANDS(PLACED_OPERAND))
{
// Each of these is compiled. A long function is in a loop of NB: in a row of all the processor would have to look far ahead
// for two that do not wait for each other.
#if V >= 8 && STAGES <= V / 8 && !defined(LONG_CHAIN)
    if (begin == 0 && end == P && count >= V * NB) {
#pragma unroll
        for (int p = 0; p < P; p++) {
#pragma unroll
            for (int j = 0; j < NB; j++)
                STORE_SUM(acc[p * NB + j])
        }
        return;
    }
#endif
    FLOATV result[P * NB]; // a copy, for a loop that need not be unrolled: it compiles much faster
#pragma unroll
    for (int i = 0; i < P * NB; i++)
        result[i] = acc[i];
    for (int p = begin; p < end; p++) {
        if (count >= V * NB) {
            UNROLL_SHORT_CHAIN
            for (int j = 0; j < NB; j++)
                STORE_SUM(result[p * NB + j])
            continue;
        }
        for (int j = 0; j < NB; j++) {
            const int c = channel + j * V, rest = count - j * V;
            const FLOATV v0 = result[p * NB + j];
            FOR_OPERANDS(FIND_OPERAND)
            if (rest >= V) {
                LOAD_OPERANDS
                CHAIN
                STOREV(T_DST, V, dst, place[p] + c, CHAIN_RESULT);
            } else if (rest > 0) {
                LOAD_OPERANDS_PART(rest)
                CHAIN
                STORE_FIRST(T_DST, V, dst, place[p] + c, CHAIN_RESULT, rest);
            }
        }
    }
}

#define ADVANCES (V >= 8) // as measured; unknown with shorter registers
#define ADVANCE_PLACES(places, stride) STOREL(PASTE2_(vload, L)(part, places) + P * (stride).w, places, part);
#define ADVANCE_OPERAND(i) ADVANCE_PLACES(place##i, stride_y##i)
#define ADVANCE_ALL_PLACES                                                                                             \
    _Pragma("unroll") for (int part = 0; part < PARTS; part++)                                                         \
    {                                                                                                                  \
        ADVANCE_PLACES(place, dst_stride)                                                                              \
        FOR_OPERANDS(ADVANCE_OPERAND)                                                                                  \
    }
#define DECLARE_PLACES(i) idx_t place##i[PARTS * L];
#define TAKE_PLACES(i) , idx_t place##i[PARTS * L], idx_t offset_y##i, idx4_t stride_y##i
#define PASS_PLACES(i) , place##i, offset_y##i, stride_y##i
#define FIND_PLACES(i) STOREL(PLACES(stride_y##i, offset_y##i), place##i, part);

#ifdef FETCHES_NEXT
// The part of run `run`, of `runs`, of what `next` begins with; `steps`: channels of all taps.
static inline next_weights find_next(__global const SRC_T *next, int steps, int run, int runs)
{
    const ulong all = (ulong)steps * (NB * V * sizeof(SRC_T));
    const ulong fetches = steps / CHANNELS_A_FETCH + 1;
    const int bytes = (int)(all / (runs * fetches) + LINE_BYTES) & ~(LINE_BYTES - 1);
    const ulong begin = (ulong)next + run * fetches * bytes;
    const next_weights part = {begin, min(begin + fetches * bytes, (ulong)next + all), bytes};
    return part;
}
#endif

// The run of P pixels from `first` on; returns how many more its first one's row has behind them.
static inline int find_run(run_pixels *pixels, idx_t first, idx_t place[PARTS * L], int4 dst_size, idx_t dst_offset,
                           idx4_t dst_stride, int4 src_size, int4 taps, int4 stride, int4 dilation, int4 pad,
                           idx4_t src_stride FOR_OPERANDS(TAKE_PLACES))
{
    const int first_w = (int)take_index(&first, dst_size.z), first_h = (int)take_index(&first, dst_size.y);
    const int first_d = (int)take_index(&first, dst_size.x);
    pixels->inside = -1;
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        INTL w = first_w + part * L + LANE, h = first_h, d = first_d, n = (int)first;
        CARRY(w, dst_size.z, h)
        CARRY(h, dst_size.y, d)
        CARRY(d, dst_size.x, n)
        STOREL(PLACES(dst_stride, dst_offset), place, part);
        FOR_OPERANDS(FIND_PLACES)
        set_part(pixels, part, n, d, h, w, src_size, taps, stride, dilation, pad, src_stride);
    }
    return dst_size.z - first_w - P;
}

// flags.z: pixels; flags.w: runs of P pixels that a work-item computes one after the other; stride.w: blocks of
// channels, for each run.
WORK convolve(CONV_ARGUMENTS, const int grid0, const int grid1)
{
    const int blocks = (dst_size.w + V * NB - 1) / (V * NB);
    const int first_block = (flags.x ? grid1 : grid0) * stride.w, first_run = (flags.x ? grid0 : grid1) * flags.w;
    const int end_block = min(first_block + stride.w, blocks * taps.w);
    const int runs = (flags.z + P - 1) / P, end_run = min(first_run + flags.w, runs);
#if FETCHES
    const ulong pixel_bytes = (ulong)(STRIDE(z) * src_stride.w) * sizeof(SRC_T);
    // Pixels that meet in the same sets of a first cache would be driven out of it.
    const ulong next_run = pixel_bytes % 4096 == 0 ? 0 : P * pixel_bytes;
#endif
    const ulong zeros = (ulong)(weight + (weight_offset + weight_stride.w));

    run_pixels pixels;
    idx_t place[PARTS * L];
    FOR_OPERANDS(DECLARE_PLACES)
    int in_row = 0; // pixels of the row behind this run's
    for (int run = first_run; run < end_run; run++) {
        // The last run is moved back to be full; what its first pixels get is not stored again.
        const int first = min(run * P, max(flags.z - P, 0));
        pixels.begin = run * P - first;
        pixels.end = min(P, flags.z - first);
        if (ADVANCES && in_row >= P && pixels.begin == 0) {
            in_row -= P;
            advance(&pixels, src_size, taps, stride, dilation, src_stride);
            ADVANCE_ALL_PLACES
        } else {
            in_row = find_run(&pixels, first, place, dst_size, dst_offset, dst_stride, src_size, taps, stride, dilation,
                              pad, src_stride FOR_OPERANDS(PASS_PLACES));
        }

        ulong address[PARTS * L];
        bool found = false;
        for (int block = first_block; block < end_block; block++) {
            const int group = block / blocks, m = (block - group * blocks) * (V * NB), c = group * dst_size.w + m;
            __global const SRC_T *panel[NB];
            FLOATV acc[P * NB];
#if FETCHES
            const ulong ahead = block == first_block && run + 1 < end_run ? next_run : 0;
            const int channel = c;
#elif defined(FETCHES_NEXT)
            next_weights part = {0}, *next = &part;
            const int later = block + stride.w;
            if (flags.x && later < blocks * taps.w)
                part = find_next(weight + (weight_offset + later / blocks * weight_stride.y +
                                           weight_at(later % blocks * (V * NB), weight_stride.z)),
                                 taps.x * taps.y * taps.z * src_size.w, run, runs);
#endif
            FETCH_TILE
            begin_tile(acc, panel, weight + (weight_offset + group * weight_stride.y), bias + (bias_offset + c),
                       flags.y, m, dst_size.w, weight_stride.z);
            ADD_LINES
            accumulate_taps(acc, &pixels, panel, address, &found,
                            (ulong)(src + (src_offset + (idx_t)group * src_size.w)), zeros, src_size, taps, stride,
                            dilation, src_stride, weight_stride.x PASS_FETCHED);
            store_tile(dst, acc, place, pixels.begin, pixels.end, c, dst_size.w - m PASS_SCALARS
                       FOR_OPERANDS(PASS_OPERAND));
        }
    }
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void conv_panel(CONV_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    convolve(PASS_CONV, (int)get_global_id(0), (int)get_global_id(1));
    TEAM_LEAVE
}
