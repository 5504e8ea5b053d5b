// SPDX-License-Identifier: Apache-2.0
// Convolution by x86's matrix tiles (amx.clh), one work-item a work-group. Factors are bfloat16: one part of each number, or
// three, whose sum it is (8 + 8 + 8 bits). Of the nine products of parts the six largest are added up; the others are less than
// 2^-25 of the whole, so results are float32's.
//
// A work-item takes bands of an image. Of each it makes a picture of its own, padded and in parts: a plane for each part of 32
// channels, of 64 bytes a position. So a tile's rows are pixels that follow each other, wherever the tap. Where windows are single
// pixels in bfloat16, whose channels are a number of steps, it reads the image itself. Sums of 2 by 16 pixels and 32 channels
// stay in tiles while all taps and channels pass. Those of the tiles before become results meanwhile.
//
// gpu: never
// Defines: those of conv.clh, V=16, P=1; MODEL: see amx.clh; and
//   NUMBER  parts of a number: 1 or 3
//   LINE    up to four channels, and up to eight taps a row, undilated: they are a step of 32 channels
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=1 -DNUMBER=3 -DMODEL
// check: -DT_SRC=BF16 -DT_WEIGHT=U32 -DT_BIAS=F32 -DT_DST=BF16 -DV=16 -DP=1 -DNUMBER=1 -DMODEL -DINDEX64
// check: -DT_SRC=F32 -DT_WEIGHT=U32 -DT_BIAS=F32 -DT_DST=BF16 -DV=16 -DP=1 -DNUMBER=3 -DMODEL -DLINE
// check: -DT_SRC=F32 -DT_BIAS=F32 -DT_DST=F32 -DV=16 -DP=1 -DNUMBER=3 -DMODEL -DSTAGES=2 -DS1=OP_ADD(v0,y0) -DS2=OP_RELU(v1) -DOPERANDS=1 -DT_Y0=F32 -DY0_STEP=1
#include "conv.clh"
#include "conv_amx_results.clh"

#define TILE_SHORTS 512
#define STEP_SHORTS (NUMBER * 2 * TILE_SHORTS) // weights of 32 channels of a tap and 32 channels of results
#define IS_BF16_BF16 1
#if NUMBER == 1 && !defined(LINE) && PASTE2_(IS_BF16_, T_SRC)
#define READS_IMAGE 1
#else
#define READS_IMAGE 0
#endif
#define SEGMENT (48 / NUMBER)                   // steps whose weights stay in a second cache while all tiles pass
#define STEP_LINES (STEP_SHORTS / 32)

// Weights that come next, and how many of their lines each step reads ahead.
typedef struct next_weights {
    __global const ushort *at;
    int lines;
} next_weights;

static inline void read_ahead(next_weights *next)
{
    for (int i = 0; i < next->lines; i++, next->at += 32)
        READ_AHEAD(next->at);
}

// ---- products ---------------------------------------------------------------------------------------------------------

#define LOAD_UPPER(part) TILE_LOAD(4, first + (part)*plane, step)
#define LOAD_LOWER(part) TILE_LOAD(5, second + (part)*plane, step)
#define LOAD_LEFT(part) TILE_LOAD(6, weight + (part) * (2 * TILE_SHORTS), TILE_ROW_BYTES)
#define LOAD_RIGHT(part) TILE_LOAD(7, weight + ((part) * (2 * TILE_SHORTS) + TILE_SHORTS), TILE_ROW_BYTES)
// Whether a block needs its second tile of channels. Not asked in three parts, which would be compiled twice.
#if NUMBER == 1
#define IS_WIDE(channels) ((channels) > 16)
#else
#define IS_WIDE(channels) true
#endif
#define YES(statements) statements
#define NO(statements)
// LOWER, RIGHT: YES or NO, whether there is a second tile of pixels, and one of channels. The smallest products first; a tile is
// loaded anew as soon as nothing needs it any more.
#define ADD_LEFT(LOWER)                                                                                                \
    TILE_ADD_BF16(0, 4, 6);                                                                                            \
    LOWER(TILE_ADD_BF16(2, 5, 6);)
#define ADD_RIGHT(LOWER, RIGHT) RIGHT(TILE_ADD_BF16(1, 4, 7); LOWER(TILE_ADD_BF16(3, 5, 7);))
#if NUMBER == 1
#define ADD_CHUNK(LOWER, RIGHT)                                                                                        \
    LOAD_UPPER(0);                                                                                                     \
    LOWER(LOAD_LOWER(0);)                                                                                              \
    LOAD_LEFT(0);                                                                                                      \
    RIGHT(LOAD_RIGHT(0);)                                                                                              \
    ADD_LEFT(LOWER)                                                                                                    \
    ADD_RIGHT(LOWER, RIGHT)
#else
#define ADD_CHUNK(LOWER, RIGHT)                                                                                        \
    LOAD_UPPER(0);                                                                                                     \
    LOWER(LOAD_LOWER(0);)                                                                                              \
    LOAD_LEFT(2);                                                                                                      \
    RIGHT(LOAD_RIGHT(2);)                                                                                              \
    ADD_LEFT(LOWER)                                                                                                    \
    LOAD_LEFT(1);                                                                                                      \
    ADD_RIGHT(LOWER, RIGHT)                                                                                            \
    RIGHT(LOAD_RIGHT(1);)                                                                                              \
    ADD_LEFT(LOWER)                                                                                                    \
    ADD_RIGHT(LOWER, RIGHT)                                                                                            \
    LOAD_UPPER(1);                                                                                                     \
    LOWER(LOAD_LOWER(1);)                                                                                              \
    ADD_LEFT(LOWER)                                                                                                    \
    LOAD_LEFT(0);                                                                                                      \
    ADD_RIGHT(LOWER, RIGHT)                                                                                            \
    RIGHT(LOAD_RIGHT(0);)                                                                                              \
    ADD_LEFT(LOWER)                                                                                                    \
    ADD_RIGHT(LOWER, RIGHT)                                                                                            \
    LOAD_UPPER(2);                                                                                                     \
    LOWER(LOAD_LOWER(2);)                                                                                              \
    ADD_LEFT(LOWER)                                                                                                    \
    ADD_RIGHT(LOWER, RIGHT)                                                                                            \
    LOAD_UPPER(0);                                                                                                     \
    LOWER(LOAD_LOWER(0);)                                                                                              \
    ADD_LEFT(LOWER)                                                                                                    \
    ADD_RIGHT(LOWER, RIGHT)
#endif

// How much of two tiles of pixels and 32 channels there is.
typedef struct tile_extent {
    bool both, wide; // tiles of pixels, of channels
} tile_extent;

// Two tiles of pixels, or one, and 32 channels: what their sums begin with, and where they go. step: bytes, to the next pixel.
static inline void load_sums(__global const float *sums, long step, tile_extent extent TILES_PARAMETER)
{
    __global const float *second = step ? sums + TILE_ROWS * BLOCK : sums;
    TILE_LOAD(0, sums, step);
    if (extent.wide)
        TILE_LOAD(1, sums + 16, step);
    if (extent.both)
        TILE_LOAD(2, second, step);
    if (extent.both && extent.wide)
        TILE_LOAD(3, second + 16, step);
}

static inline void store_sums(__global float *sums, tile_extent extent TILES_PARAMETER)
{
    TILE_STORE(0, sums, BLOCK * sizeof(float));
    if (extent.wide)
        TILE_STORE(1, sums + 16, BLOCK * sizeof(float));
    if (extent.both)
        TILE_STORE(2, sums + TILE_ROWS * BLOCK, BLOCK * sizeof(float));
    if (extent.both && extent.wide)
        TILE_STORE(3, sums + TILE_ROWS * BLOCK + 16, BLOCK * sizeof(float));
}

// Steps of a tap. Between products results are made of the sums before: tiles are multiplied meanwhile.
#define ADD_TAP(LOWER, RIGHT)                                                                                          \
    for (; begin < end_of_tap; begin++) {                                                                              \
        ADD_CHUNK(LOWER, RIGHT)                                                                                        \
        read_ahead(next);                                                                                              \
        if (last->next < last->end)                                                                                    \
            store_some(last, min(last->next + last->each, last->end));                                                 \
        first += p->chunk;                                                                                             \
        second += p->chunk;                                                                                            \
        weight += STEP_SHORTS;                                                                                         \
    }

// Adds steps `begin` to `end`, of which each tap has `chunks`, for tiles that begin at these shorts. step: bytes, to the next pixel.
static inline void add_steps(const picture *p, int2 position, tile_extent extent, __global const ushort *weight, int begin,
                             int end, int chunks, int4 taps, int4 dilation, long step, next_weights *next,
                             results *last TILES_PARAMETER)
{
    const long plane = p->plane;
    (void)plane;
    weight += (long)begin * STEP_SHORTS;
    for (int tap = begin / chunks, c = begin - tap * chunks; begin < end; tap++, c = 0) {
        const int kh = tap / taps.z, kw = tap - kh * taps.z;
        const long at = (kh * dilation.y * p->columns + kw * dilation.z) * PITCH + c * p->chunk;
        __global const ushort *first = p->planes + (position.x + at), *second = p->planes + (position.y + at);
        const int end_of_tap = min(end, begin + chunks - c);
        if (extent.both && extent.wide) {
            ADD_TAP(YES, YES)
        } else if (extent.both) {
            ADD_TAP(YES, NO)
        } else if (extent.wide) {
            ADD_TAP(NO, YES)
        } else {
            ADD_TAP(NO, NO)
        }
    }
}

// ---- bands ------------------------------------------------------------------------------------------------------------

// Two tiles, or one.
typedef struct tile_pair {
    tile_place first, second, next;
    bool both;
} tile_pair;

static inline void go_to_pair(tile_pair *pair, const tile_lines *lines, int t)
{
    pair->first = pair->next;
    pair->both = t + 1 < lines->count;
    pair->second = pair->both ? next_tile(lines, pair->first, lines->step) : pair->first;
    pair->next = next_tile(lines, pair->second, lines->step);
}

// A work-item's memory, without its picture. shifts: what the sums of each block begin with.
typedef struct item_memory {
    __global float *shifts, *sums;
    result_places places;
} item_memory;

static inline void find_shifts(__global float *shifts, int first_block, int end_block,
                               __global const STORAGE(T_BIAS) *bias, bool has_bias, int filters)
{
    for (int m = first_block * BLOCK; m < end_block * BLOCK; m += 16, shifts += 16)
        *(__global loose_floats *)shifts = has_bias ? load_bias(bias + m, filters - m) : (float16)(0.0f);
}

// Adds steps to a pair's sums, which begin with the bias; meanwhile those of the pair before become results.
static inline void compute_pair(const picture *p, const tile_lines *lines, const tile_pair *pair, __global float *sums,
                                __global const float *shift, __global const ushort *weight, next_weights *next,
                                int begin, int end, int chunks, int4 taps, int4 dilation, bool wide,
                                results *last TILES_PARAMETER)
{
    const tile_extent extent = {pair->both, wide};
    const int2 positions = (int2)(find_position(lines, pair->first), find_position(lines, pair->second));
    load_sums(begin ? sums : shift, begin ? BLOCK * sizeof(float) : 0, extent PASS_TILES);
    add_steps(p, positions, extent, weight, begin, end, chunks, taps, dilation, lines->to_next * 2, next,
              last PASS_TILES);
    store_rest(last);
    store_sums(sums, extent PASS_TILES);
}

static inline void set_results(results *last, __global const float *sums, result_places places, bool both,
                               int m, int filters)
{
    last->sums = sums;
    last->places = places;
    last->m = m;
    last->count = filters - m;
    last->next = 0;
    last->end = both ? 2 * TILE_ROWS : TILE_ROWS;
}

// Blocks of 32 channels of all results of a band. Where their weights stay in a second cache, all of them for each pair of
// tiles, whose lines of memory then follow each other; else block by block, and the weights of a segment's steps pass once.
// is_first: the weights have not been read before.
static inline void compute_band(const picture *p, const tile_lines *lines, const item_memory *mine, bool pairs_first,
                                int first_block, int end_block, bool is_first, __global const ushort *weights,
                                idx_t block_stride, int chunks, int4 taps, int4 dilation, int filters,
                                results *last TILES_PARAMETER)
{
    const int steps = taps.y * taps.z * chunks;
    const int segment = pairs_first || steps < 2 * SEGMENT || lines->count <= 2 ? steps : SEGMENT;
    const int pairs_at_once = pairs_first ? 2 : lines->count, pairs = (pairs_at_once + 1) / 2;
    tile_pair pair = {.next = {0, 0, 0}};
    next_weights next = {.lines = 0};
    int turn = 0;
    last->each = (2 * TILE_ROWS + segment - 1) / segment;
    for (int from = 0; from < lines->count; from += pairs_at_once) {
        if (pairs_first)
            go_to_pair(&pair, lines, from);
        for (int block = first_block; block < end_block; block++) {
            __global const ushort *weight = weights + 2 * block * block_stride;
            __global const float *shift = mine->shifts + (block - first_block) * BLOCK;
            next.lines = is_first && from == 0 && block + 1 < end_block ? (STEP_LINES + pairs - 1) / pairs : 0;
            for (int begin = 0, end; begin < steps; begin = end) {
                end = steps - begin < 2 * segment ? steps : begin + segment;
                next.at = weight + (long)end * STEP_SHORTS;
                if (!pairs_first)
                    pair.next = (tile_place){0, 0, 0};
                for (int t = from; t < min(from + pairs_at_once, lines->count); t += 2, turn ^= 2) {
                    if (!pairs_first)
                        go_to_pair(&pair, lines, t);
                    __global float *sums = mine->sums + (segment < steps ? t : turn) * (TILE_ROWS * BLOCK);
                    compute_pair(p, lines, &pair, sums, shift, weight, &next, begin, end, chunks, taps, dilation,
                                 IS_WIDE(filters - block * BLOCK), last PASS_TILES);
                    if (end == steps)
                        set_results(last, sums, skip_places(&mine->places, t * TILE_ROWS), pair.both, block * BLOCK, filters);
                }
            }
        }
    }
    store_rest(last);
}

// own: where the memory begins, how many shorts each work-item has, where its places and where its picture begin. shape: rows of
// a tile, rows and columns of a band, bits: 1 where a tile may span rows of a band, 2 where pairs of tiles come first, 4 where the image
// is read itself; channels of a step. The range is blocks of channels, stride.w a work-item, by bands, flags.w a work-item; flags.z:
// bands. weight_stride.z: of a block.
WORK convolve(__global ushort *memory, idx4_t own, int8 shape, CONV_ARGUMENTS, const int grid0, const int grid1)
{
    const int blocks = (dst_size.w + BLOCK - 1) / BLOCK, chunks = (src_size.w + shape.s4 - 1) / shape.s4;
    const int first_block = grid0 * stride.w, end_block = min(first_block + stride.w, blocks);
    const int bands_down = (dst_size.y + shape.s1 - 1) / shape.s1, bands_across = (dst_size.z + shape.s2 - 1) / shape.s2;
    const int first_band = grid1 * flags.w, end_band = min(first_band + flags.w, flags.z);
    const int items_across = (blocks + stride.w - 1) / stride.w;
    const int to_next = taps.z == 1 ? 1 : stride.z, to_row = taps.y == 1 ? 1 : stride.y;
    __global ushort *memory_of = memory + (own.x + (grid1 * (idx_t)items_across + grid0) * own.y);
    item_memory mine = {.shifts = (__global float *)memory_of,
                        .sums = (__global float *)memory_of + stride.w * BLOCK,
                        .places = {.at = (__global idx_t *)(memory_of + own.z)}};
    results last = begin_results(dst PASS_CHAIN_ARGUMENTS);
    picture p = {.planes = memory_of + own.w, .depth = shape.s4};
    p.step_h = taps.y == 1 ? stride.y : 1;
    p.step_w = taps.z == 1 ? stride.z : 1;
    find_shifts(mine.shifts, first_block, end_block, bias + bias_offset, flags.y, dst_size.w);
    TILES_BEGIN(shape.s0, shape.s4 * 2)
    for (int band = first_band; band < end_band; band++) {
        idx_t rest = band;
        const int across = (int)take_index(&rest, bands_across), down = (int)take_index(&rest, bands_down);
        p.first_h = down * shape.s1;
        p.first_w = across * shape.s2;
        p.height = min(shape.s1, dst_size.y - p.first_h);
        p.width = min(shape.s2, dst_size.z - p.first_w);
        p.rows = (p.height - 1) * to_row + (taps.y - 1) * dilation.y + 1;
        p.columns = (p.width - 1) * to_next + (taps.z - 1) * dilation.z + 1;
        last.n = (int)rest;
        __global const SRC_T *image = src + (src_offset + last.n * src_stride.x);
        tile_lines lines;
#if READS_IMAGE
        if (shape.s3 & 4) { // a tile that is not full would read behind the image
            p.skipped = max(shape.s0 - p.width, 0);
            p.first_w -= p.skipped;
            p.width += p.skipped;
            lines = find_lines(p.height, p.width, p.columns, shape.lo, (int)(stride.z * src_stride.w),
                               (int)(stride.y * src_stride.z));
            p.planes = (__global ushort *)image + (p.first_h * lines.to_row + p.first_w * lines.to_next);
            p.chunk = p.depth;
        } else
#endif
        {
            lines = find_lines(p.height, p.width, p.columns, shape.lo, to_next * PITCH, to_row * p.columns * PITCH);
            p.plane = plane_shorts(&p, to_next);
            p.chunk = NUMBER * p.plane;
            make_picture(&p, image, src_size, stride, pad, src_stride);
        }
        mine.places.h = (__global int *)(mine.places.at + lines.count * TILE_ROWS);
        mine.places.w = mine.places.h + lines.count * TILE_ROWS;
        find_places(&mine.places, &p, &lines, dst_offset + last.n * dst_stride.x, dst_stride);
        compute_band(&p, &lines, &mine, (shape.s3 & 2) != 0, first_block, end_block, band == first_band,
                     (__global const ushort *)weight + 2 * weight_offset, weight_stride.z, chunks, STEP_TAPS, dilation,
                     dst_size.w, &last PASS_TILES);
    }
    TILES_END
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void conv_amx(__global ushort *memory, idx4_t own,
                                                                                     int8 shape,
                                                                                     CONV_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    convolve(memory, own, shape, PASS_CONV, (int)get_global_id(0), (int)get_global_id(1));
    TEAM_LEAVE
}
