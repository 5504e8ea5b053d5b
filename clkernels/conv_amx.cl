// SPDX-License-Identifier: Apache-2.0
// Convolution by x86's matrix tiles (amx.clh), one work-item a work-group. Factors are bfloat16: one part of each number, or
// three, whose sum it is (8 + 8 + 8 bits). Of the nine products of parts the six largest are added up; the others are less than
// 2^-25 of the whole, so results are float32's.
//
// A work-item takes bands of an image. Of each it makes a picture of its own, padded and in parts: a plane for each part of 32
// channels, of 64 bytes a position. So a tile's rows are pixels that follow each other, wherever the tap. Sums of 2 by 16 pixels
// and 32 channels stay in tiles while all taps and channels pass.
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
#include "amx_lines.clh"
#include "conv_amx_picture.clh"

#define BLOCK 32 // output channels that are computed together
#define TILE_SHORTS 512
#define STEP_SHORTS (NUMBER * 2 * TILE_SHORTS) // weights of 32 channels of a tap and 32 channels of results
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
#define ADD_UPPER                                                                                                      \
    TILE_ADD_BF16(0, 4, 6);                                                                                            \
    TILE_ADD_BF16(1, 4, 7);
#define ADD_LOWER                                                                                                      \
    TILE_ADD_BF16(2, 5, 6);                                                                                            \
    TILE_ADD_BF16(3, 5, 7);
#define IF_BOTH(statements) statements
#define IF_ONE(statements)
// LOWER: IF_BOTH or IF_ONE. The smallest products first; a tile is loaded anew as soon as nothing needs it any more.
#if NUMBER == 1
#define ADD_CHUNK(LOWER)                                                                                               \
    LOAD_UPPER(0);                                                                                                     \
    LOWER(LOAD_LOWER(0);)                                                                                              \
    LOAD_LEFT(0);                                                                                                      \
    LOAD_RIGHT(0);                                                                                                     \
    ADD_UPPER                                                                                                          \
    LOWER(ADD_LOWER)
#else
#define ADD_LEFT(LOWER)                                                                                                \
    TILE_ADD_BF16(0, 4, 6);                                                                                            \
    LOWER(TILE_ADD_BF16(2, 5, 6);)
#define ADD_RIGHT(LOWER)                                                                                               \
    TILE_ADD_BF16(1, 4, 7);                                                                                            \
    LOWER(TILE_ADD_BF16(3, 5, 7);)
#define ADD_CHUNK(LOWER)                                                                                               \
    LOAD_UPPER(0);                                                                                                     \
    LOWER(LOAD_LOWER(0);)                                                                                              \
    LOAD_LEFT(2);                                                                                                      \
    LOAD_RIGHT(2);                                                                                                     \
    ADD_LEFT(LOWER)                                                                                                    \
    LOAD_LEFT(1);                                                                                                      \
    ADD_RIGHT(LOWER)                                                                                                   \
    LOAD_RIGHT(1);                                                                                                     \
    ADD_UPPER                                                                                                          \
    LOAD_UPPER(1);                                                                                                     \
    LOWER(ADD_LOWER LOAD_LOWER(1);)                                                                                    \
    ADD_LEFT(LOWER)                                                                                                    \
    LOAD_LEFT(0);                                                                                                      \
    ADD_RIGHT(LOWER)                                                                                                   \
    LOAD_RIGHT(0);                                                                                                     \
    ADD_UPPER                                                                                                          \
    LOAD_UPPER(2);                                                                                                     \
    LOWER(ADD_LOWER LOAD_LOWER(2);)                                                                                    \
    ADD_UPPER                                                                                                          \
    LOAD_UPPER(0);                                                                                                     \
    LOWER(ADD_LOWER LOAD_LOWER(0);)                                                                                    \
    ADD_UPPER                                                                                                          \
    LOWER(ADD_LOWER)
#endif

// Two tiles of pixels, or one, and 32 channels: what their sums begin with, and where they go.
static inline void load_sums(__global const float *sums, bool begins, bool both TILES_PARAMETER)
{
    if (begins) {
        TILE_CLEAR(0);
        TILE_CLEAR(1);
        TILE_CLEAR(2);
        TILE_CLEAR(3);
        return;
    }
    TILE_LOAD(0, sums, BLOCK * sizeof(float));
    TILE_LOAD(1, sums + 16, BLOCK * sizeof(float));
    if (both) {
        TILE_LOAD(2, sums + TILE_ROWS * BLOCK, BLOCK * sizeof(float));
        TILE_LOAD(3, sums + TILE_ROWS * BLOCK + 16, BLOCK * sizeof(float));
    }
}

static inline void store_sums(__global float *sums, bool both TILES_PARAMETER)
{
    TILE_STORE(0, sums, BLOCK * sizeof(float));
    TILE_STORE(1, sums + 16, BLOCK * sizeof(float));
    if (both) {
        TILE_STORE(2, sums + TILE_ROWS * BLOCK, BLOCK * sizeof(float));
        TILE_STORE(3, sums + TILE_ROWS * BLOCK + 16, BLOCK * sizeof(float));
    }
}

// Adds steps `begin` to `end`, of which each tap has `chunks`, for tiles that begin at these positions.
static inline void add_steps(const picture *p, int2 position, bool both, __global const ushort *weight, int begin, int end,
                             int chunks, int4 taps, int4 dilation, long step, next_weights *next TILES_PARAMETER)
{
    const long plane = p->plane, chunk = NUMBER * plane;
    weight += (long)begin * STEP_SHORTS;
    for (int tap = begin / chunks, c = begin - tap * chunks; begin < end; tap++, c = 0) {
        const int kh = tap / taps.z, kw = tap - kh * taps.z;
        const long at = kh * dilation.y * p->columns + kw * dilation.z;
        __global const ushort *first = p->planes + ((position.x + at) * PITCH + c * chunk);
        __global const ushort *second = p->planes + ((position.y + at) * PITCH + c * chunk);
        const int last = min(end, begin + chunks - c);
        if (both)
            for (; begin < last; begin++) {
                ADD_CHUNK(IF_BOTH)
                read_ahead(next);
                first += chunk;
                second += chunk;
                weight += STEP_SHORTS;
            }
        else
            for (; begin < last; begin++) {
                ADD_CHUNK(IF_ONE)
                read_ahead(next);
                first += chunk;
                weight += STEP_SHORTS;
            }
    }
}

// ---- results ----------------------------------------------------------------------------------------------------------

#define TAKE_OPERAND(i) , __global const STORAGE(T_Y##i) *operand##i, idx_t offset_y##i, idx4_t stride_y##i
#define PASS_OPERAND(i) , operand##i, offset_y##i, stride_y##i
#define FIND_OPERAND(i) const idx_t at##i = OPERAND_AT(i, c);

typedef float16 loose_floats __attribute__((aligned(4)));

// Of float32 not vstore, of which pocl makes quarters.
#define STORE_WHOLE(T) PASTE2_(STORE_WHOLE_, T)
#define STORE_WHOLE_F32(to, v) *(__global loose_floats *)(to) = v
#define STORE_WHOLE_F16(to, v) STOREV(F16, 16, to, 0, v)
#define STORE_WHOLE_BF16(to, v) STOREV(BF16, 16, to, 0, v)

// One pixel's 32 sums, of which `count` are channels.
static inline void store_pixel(__global const float *sums, __global STORAGE(T_DST) *dst, idx_t place,
                               const float16 shift[2], int n, int h, int w, int m,
                               int count CHAIN_SCALARS FOR_OPERANDS(TAKE_OPERAND))
{
    const int d = 0;
    (void)n, (void)d, (void)h, (void)w;
    UNROLL_SHORT_CHAIN
    for (int j = 0; j < 2; j++) {
        const int c = m + j * 16, rest = count - j * 16;
        const FLOATV v0 = *(__global const loose_floats *)(sums + j * 16) + shift[j];
        FOR_OPERANDS(FIND_OPERAND)
        if (rest >= 16) {
            LOAD_OPERANDS
            CHAIN
            STORE_WHOLE(T_DST)(dst + (place + c), CHAIN_RESULT);
        } else if (rest > 0) {
            LOAD_OPERANDS_PART(rest)
            CHAIN
            STORE_FIRST(T_DST, 16, dst, place + c, CHAIN_RESULT, rest);
        }
    }
}

// A tile's pixels follow each other in the band, whose rows are `period` positions long; those that are no results, and the
// first `begin` ones, which another tile stores, are left out.
static inline void store_tile(const picture *p, __global const float *sums, int2 at, int begin, int rows, int period,
                              __global STORAGE(T_DST) *dst, idx_t image, idx4_t dst_stride, const float16 shift[2],
                              int n, int m, int count CHAIN_SCALARS FOR_OPERANDS(TAKE_OPERAND))
{
    int y = at.x, x = at.y + begin;
    for (int i = begin; i < rows; i++, x++) {
        while (x >= period) {
            x -= period;
            y++;
        }
        if (x >= p->width || y >= p->height)
            continue;
        const int h = p->first_h + y, w = p->first_w + x;
        store_pixel(sums + i * BLOCK, dst, image + (idx_t)h * dst_stride.z + (idx_t)w * dst_stride.w, shift, n, h, w, m,
                    count PASS_SCALARS FOR_OPERANDS(PASS_OPERAND));
    }
}

// ---- bands ------------------------------------------------------------------------------------------------------------

#define STORE_RESULTS(tile, sums)                                                                                      \
    store_tile(p, sums, find_result(lines, tile), tile.begin, lines->rows, lines->period, dst, image, dst_stride,      \
               shift, n, m, count PASS_SCALARS FOR_OPERANDS(PASS_OPERAND));

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

// Steps of 32 channels, from m on, of a pair: what is added to its sums, and at the end its results.
static inline void compute_pair(const picture *p, const tile_lines *lines, const tile_pair *pair, __global float *sums,
                                __global const ushort *weight, next_weights *next, int begin, int end, int chunks,
                                int4 taps, int4 dilation, __global STORAGE(T_DST) *dst, idx_t image,
                                idx4_t dst_stride, const float16 shift[2], int n, int m, int count CHAIN_SCALARS FOR_OPERANDS(TAKE_OPERAND) TILES_PARAMETER)
{
    const int2 positions = (int2)(find_position(lines, pair->first), find_position(lines, pair->second));
    load_sums(sums, begin == 0, pair->both PASS_TILES);
    add_steps(p, positions, pair->both, weight, begin, end, chunks, taps, dilation,
              lines->to_next * (PITCH * 2), next PASS_TILES);
    store_sums(sums, pair->both PASS_TILES);
    if (end < taps.y * taps.z * chunks)
        return;
    STORE_RESULTS(pair->first, sums)
    if (pair->both)
        STORE_RESULTS(pair->second, sums + TILE_ROWS * BLOCK)
}

#define COMPUTE_PAIR(sums, begin, end)                                                                                      \
    compute_pair(p, lines, &pair, sums, weight, &next, begin, end, chunks, taps, dilation, dst, image, dst_stride, shift,  \
                 n, m, count PASS_SCALARS FOR_OPERANDS(PASS_OPERAND) PASS_TILES);

// Blocks of 32 channels of all results of a band. Where their weights stay in a second cache, all of them for each pair of
// tiles, whose lines of memory then follow each other; else block by block, and the weights of a segment's steps pass once.
// is_first: the weights have not been read before.
static inline void compute_band(const picture *p, const tile_lines *lines, bool pairs_first, int first_block,
                                int end_block, bool is_first, __global const ushort *weights, idx_t block_stride,
                                int chunks, int4 taps, int4 dilation, __global const STORAGE(T_BIAS) *bias,
                                bool has_bias, int filters, __global STORAGE(T_DST) *dst, idx_t image, idx4_t dst_stride,
                                int n CHAIN_SCALARS FOR_OPERANDS(TAKE_OPERAND) TILES_PARAMETER)
{
    const int steps = taps.y * taps.z * chunks;
    const int pairs_at_once = pairs_first ? 2 : lines->count;
    const int pairs = (pairs_at_once + 1) / 2;
    tile_pair pair = {.next = {0, 0, 0}};
    next_weights next = {.lines = 0};
    for (int from = 0; from < lines->count; from += pairs_at_once) {
        if (pairs_first)
            go_to_pair(&pair, lines, from);
        for (int block = first_block; block < end_block; block++) {
            const int m = block * BLOCK, count = filters - m;
            __global const ushort *weight = weights + 2 * block * block_stride;
            const bool ahead = is_first && from == 0 && block + 1 < end_block;
            float16 shift[2] = {0.0f, 0.0f};
            if (has_bias) {
                shift[0] = load_bias(bias + m, count);
                shift[1] = load_bias(bias + (m + 16), count - 16);
            }
            next.lines = ahead ? (STEP_LINES + pairs - 1) / pairs : 0;
            if (pairs_first) {
                next.at = weight + (long)steps * STEP_SHORTS;
                COMPUTE_PAIR(p->sums, 0, steps)
                continue;
            }
            for (int begin = 0, end; begin < steps; begin = end) {
                end = steps - begin < 2 * SEGMENT || lines->count <= 2 ? steps : begin + SEGMENT;
                pair.next = (tile_place){0, 0, 0};
                next.at = weight + (long)end * STEP_SHORTS;
                for (int t = 0; t < lines->count; t += 2) {
                    go_to_pair(&pair, lines, t);
                    COMPUTE_PAIR(p->sums + t * (TILE_ROWS * BLOCK), begin, end)
                }
            }
        }
    }
}

// own: where the memory begins, how many shorts each work-item has, and how many of them are sums. shape: rows of a tile, rows and columns of a band,
// bits: 1 where a tile may span rows of a band, 2 where pairs of tiles come first. The range is blocks of channels, stride.w a work-item, by bands, flags.w a work-item;
// flags.z: bands. weight_stride.z: of a block.
WORK convolve(__global ushort *memory, idx4_t own, int4 shape, CONV_ARGUMENTS, const int grid0, const int grid1)
{
    const int blocks = (dst_size.w + BLOCK - 1) / BLOCK, chunks = (src_size.w + CHUNK - 1) / CHUNK;
    const int first_block = grid0 * stride.w, end_block = min(first_block + stride.w, blocks);
    const int bands_down = (dst_size.y + shape.y - 1) / shape.y, bands_across = (dst_size.z + shape.z - 1) / shape.z;
    const int first_band = grid1 * flags.w, end_band = min(first_band + flags.w, flags.z);
    const int items_across = (blocks + stride.w - 1) / stride.w;
    const int to_next = taps.z == 1 ? 1 : stride.z, to_row = taps.y == 1 ? 1 : stride.y;
    __global ushort *mine = memory + (own.x + (grid1 * (idx_t)items_across + grid0) * own.y);
    picture p;
    p.sums = (__global float *)mine;
    p.planes = mine + own.z;
    p.step_h = taps.y == 1 ? stride.y : 1;
    p.step_w = taps.z == 1 ? stride.z : 1;
    TILES_BEGIN(shape.x)
    for (int band = first_band; band < end_band; band++) {
        idx_t rest = band;
        const int across = (int)take_index(&rest, bands_across), down = (int)take_index(&rest, bands_down);
        const int n = (int)rest;
        p.first_h = down * shape.y;
        p.first_w = across * shape.z;
        p.height = min(shape.y, dst_size.y - p.first_h);
        p.width = min(shape.z, dst_size.z - p.first_w);
        p.rows = (p.height - 1) * to_row + (taps.y - 1) * dilation.y + 1;
        p.columns = (p.width - 1) * to_next + (taps.z - 1) * dilation.z + 1;
        p.plane = plane_shorts(&p, to_next);
        make_picture(&p, src + (src_offset + n * src_stride.x), src_size, stride, pad, src_stride);
        const tile_lines lines = find_lines(p.height, p.width, p.columns, shape, to_next, to_row * p.columns);
        compute_band(&p, &lines, (shape.w & 2) != 0, first_block, end_block,
                     band == first_band, (__global const ushort *)weight + 2 * weight_offset, weight_stride.z, chunks,
                     STEP_TAPS, dilation, bias + bias_offset, flags.y, dst_size.w, dst, dst_offset + n * dst_stride.x, dst_stride,
                     n PASS_SCALARS FOR_OPERANDS(PASS_OPERAND) PASS_TILES);
    }
    TILES_END
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void conv_amx(__global ushort *memory, idx4_t own,
                                                                                     int4 shape,
                                                                                     CONV_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    convolve(memory, own, shape, PASS_CONV, (int)get_global_id(0), (int)get_global_id(1));
    TEAM_LEAVE
}
