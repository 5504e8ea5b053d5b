// SPDX-License-Identifier: Apache-2.0
// Convolution of 8-bit integers by x86's matrix tiles (amx.clh), requantised to 8 bits, one work-item a work-group. The weights
// are in qgemm_pack.cl's panels, taps before channels: sixteen fours of 16 of its columns are a tile.
//
// A work-item takes bands of an image. Where windows are pixels whose channels fill tiles, it reads them from the image
// itself. Else it makes a picture of the band of its own, padded: a plane for each 64 channels, of 64 bytes a position; so a
// tile's rows are pixels that follow each other, wherever the tap. Sums of 2 by 16 pixels and 32 channels stay in tiles
// while all taps and channels pass. Those of the tiles before become results meanwhile.
//
// gpu: never
// Defines:
//   T_A   I8 or U8: src's
//   SUM   see qconv_end.clh
//   MODEL see amx.clh
// check: -DT_A=U8 -DMODEL
// check: -DT_A=I8 -DMODEL -DSUM
#include "qconv_end.clh"
#include "amx_lines.clh"
#ifndef T_A
#error "qconv_amx.cl needs T_A"
#endif
#define CHUNK 64 // channels of a tile's row
#define BLOCK 32 // output channels that are computed together: a panel
#define TILE_FOURS (CHUNK / 4)
#define PAIR_INTS (2 * TILE_ROWS * BLOCK)      // sums of two tiles of pixels
#define TAIL_INTS (2 * TILE_FOURS * BLOCK)     // see copy_tail
#define CHANNEL_INTS (2 * BLOCK)               // what is added to a block's sums, and what scales them
#define ROW_BYTES (BLOCK * 4)                  // of a panel

#if IS_UNSIGNED(T_A)
#define TILE_ADD TILE_ADD_U8
#else
#define TILE_ADD TILE_ADD_I8
#endif

// What the tiles of a band read, and where its results are.
typedef struct picture {
    __global const uchar *planes;  // or the image
    int rows, columns;             // positions
    int first_h, first_w;          // of the results
    int height, width;             // of the results
    int step_h, step_w;            // from position to position, in the image
    int chunk;                     // bytes to the next 64 channels
} picture;

// ---- pictures ---------------------------------------------------------------------------------------------------------

typedef ulong8 loose_line __attribute__((aligned(1)));
typedef uint8 loose_half __attribute__((aligned(1)));
typedef uint4 loose_quarter __attribute__((aligned(1)));
typedef uint2 loose_eighth __attribute__((aligned(1)));
typedef uint loose_four __attribute__((aligned(1)));

// Channels that are not there are zeros: they meet weights of others.
static inline void copy_rest(__global uchar *to, __global const uchar *from, int bytes)
{
    *(__global loose_line *)to = (ulong8)(0ul);
    int at = 0;
    if (bytes & 32) {
        *(__global loose_half *)to = *(__global const loose_half *)from;
        at = 32;
    }
    if (bytes & 16) {
        *(__global loose_quarter *)(to + at) = *(__global const loose_quarter *)(from + at);
        at += 16;
    }
    if (bytes & 8) {
        *(__global loose_eighth *)(to + at) = *(__global const loose_eighth *)(from + at);
        at += 8;
    }
    if (bytes & 4)
        *(__global loose_four *)(to + at) = *(__global const loose_four *)(from + at);
}

static inline void copy_pixel(__global uchar *to, __global const uchar *from, int channels, int plane)
{
    for (; channels >= CHUNK; channels -= CHUNK, from += CHUNK, to += plane)
        *(__global loose_line *)to = *(__global const loose_line *)from;
    if (channels)
        copy_rest(to, from, channels);
}

static inline void store_padding(__global uchar *to, ulong zero, int channels, int plane)
{
    for (; channels > 0; channels -= CHUNK, to += plane) {
        ulong words[CHUNK / 8];
        for (int i = 0; i < CHUNK / 8; i++) {
            const int bytes = clamp(channels - 8 * i, 0, 8);
            words[i] = bytes == 0 ? 0ul : zero >> (64 - 8 * bytes);
        }
        *(__global loose_line *)to = vload8(0, words);
    }
}

// `zero`: the source's zero point in each byte.
static inline void make_picture(const picture *p, __global uchar *planes, __global const uchar *src, ulong zero,
                                int4 src_size, int4 stride, int4 pad, int4 src_stride)
{
    for (int y = 0; y < p->rows; y++) {
        const int h = p->first_h * stride.y - pad.y + y * p->step_h;
        __global uchar *to = planes + y * p->columns * CHUNK;
        for (int x = 0; x < p->columns; x++, to += CHUNK) {
            const int w = p->first_w * stride.z - pad.z + x * p->step_w;
            if (h >= 0 && h < src_size.y && w >= 0 && w < src_size.z)
                copy_pixel(to, src + (h * src_stride.z + w * src_stride.w), src_size.w, p->chunk);
            else
                store_padding(to, zero, src_size.w, p->chunk);
        }
    }
}

// ---- results ----------------------------------------------------------------------------------------------------------

// Sums of tiles that are not results yet, of these channels.
typedef struct pending {
    __global const int *sums, *places;
    __global const float *scales;
    __global uchar *dst;
#ifdef SUM
    __global const uchar *addend;
#endif
    int count, to_addends; // channels, from places to those of addends
    int next, end, each;   // rows: the first and the last one that are not done, how many go together
    tile_end of;
} pending;

typedef uint16 loose_ints __attribute__((aligned(4)));
typedef uint8 loose_bytes __attribute__((aligned(1)));

#ifndef MODEL
// To the nearest integer, halves to even; what is not a number, or too low for one, becomes the lowest one.
static inline uint16 to_integers(float16 x)
{
    const float16 most = 65536.0f; // leaves 16 bits
    uint16 integers;
    __asm__("vcvtps2dq %1,%0" : "=v"(integers) : "v"(most < x ? most : x));
    return integers;
}

#if IS_UNSIGNED(T_A)
#define PACK_BYTES "vpackuswb %2,%1,%0"
#else
#define PACK_BYTES "vpacksswb %2,%1,%0"
#endif
#define COMBINE(code, x, y, result) __asm__(code : "=v"(result) : "v"(x), "v"(y))

// Both pixels' 32 integers, with a zero point added to each, within the 8 bits; zeros: in each short.
static inline uint16 pack_pixels(const uint16 of[4], uint16 zeros)
{
    uint16 first, second, both;
    COMBINE("vpackssdw %2,%1,%0", of[0], of[1], first);
    COMBINE("vpackssdw %2,%1,%0", of[2], of[3], second);
    COMBINE("vpaddsw %2,%1,%0", first, zeros, first);
    COMBINE("vpaddsw %2,%1,%0", second, zeros, second);
    COMBINE(PACK_BYTES, first, second, both);
    return both.s048c159d26ae37bf;
}

// 16 sums before their zero point is added; as `finish`, whose clamping packing does.
static inline uint16 round_sums(uint16 sum, float16 scale, const tile_end *end ADDEND)
{
    const float16 result = convert_float16(as_int16(sum)) * scale;
#ifdef SUM
    const float16 other = fma(convert_float16(BYTES_OF(addend)), (float16)(end->addend_part), (float16)(-end->less));
    return to_integers(fma(ROUND(clamp_to_bytes(result, end->low, end->high)), (float16)(end->result_part), other));
#else
    (void)end;
    return to_integers(result);
#endif
}

#ifdef SUM
#define ZERO_OF_END sum_zero
#else
#define ZERO_OF_END zero
#endif

static inline void store_two(const pending *r, const float16 scale[2], int i)
{
    uint16 of[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        of[k] = round_sums(*(__global const loose_ints *)(r->sums + (i * BLOCK + k * W)), scale[k & 1],
                           &r->of PASS_ADDEND(vload16(0, r->addend + (r->places[r->to_addends + i + k / 2] + k % 2 * W))));
    const uint16 bytes = pack_pixels(of, (uint16)((uint)(r->of.ZERO_OF_END & 0xffff) * 0x10001u));
    const int first = r->places[i], second = r->places[i + 1];
    if (first >= 0)
        *(__global loose_bytes *)(r->dst + first) = bytes.lo;
    if (second >= 0)
        *(__global loose_bytes *)(r->dst + second) = bytes.hi;
}
#endif

static inline void store_one(const pending *r, const float16 scale[2], int i)
{
    const int place = r->places[i];
    if (place < 0)
        return;
    for (int j = 0; j < 2 && j * W < r->count; j++)
        store_channels(r->dst + (place + j * W), *(__global const loose_ints *)(r->sums + (i * BLOCK + j * W)), scale[j],
                       &r->of, r->count - j * W PASS_ADDEND(r->addend + (r->places[r->to_addends + i] + j * W)));
}

// An even number of rows, up to `end`. A function of its own: it is called between products.
static __attribute__((noinline)) void store_some(pending *of, int end)
{
    const pending r = *of;
    const float16 scale[2] = {vload16(0, r.scales), vload16(1, r.scales)};
    int i = r.next;
    of->next = end;
#ifndef MODEL
    if (r.count >= BLOCK)
        for (; i < end; i += 2)
            store_two(&r, scale, i);
#endif
    for (; i < end; i++)
        store_one(&r, scale, i);
}

// ---- products ---------------------------------------------------------------------------------------------------------

// Weights of a block. A tap's last channels may fill a tile in part only: its other rows are weights of the next tap, and
// behind the last of them `tail` is read, which has them and room behind them.
typedef struct weights {
    __global const int *block, *ahead; // ahead: what is read next
    __global int *tail;
    int fours, depth; // fours of k: of a tap, of all
    int lines;        // of 64 bytes that each step reads ahead
} weights;

static inline void copy_tail(const weights *w)
{
    const int first = max(w->depth - TILE_FOURS, 0);
    for (int i = first; i < w->depth; i++)
        for (int j = 0; j < BLOCK; j += W)
            vstore16(vload16(0, w->block + (i * BLOCK + j)), 0, w->tail + ((i - first) * BLOCK + j));
}

// Where a tile's weights lie, from this four of k on.
static inline __global const int *find_weights(const weights *w, int four)
{
    return four + TILE_FOURS <= w->depth ? w->block + four * BLOCK
                                         : w->tail + (four - max(w->depth - TILE_FOURS, 0)) * BLOCK;
}

static inline void read_ahead(weights *w)
{
    for (int i = 0; i < w->lines; i++, w->ahead += W)
        READ_AHEAD(w->ahead);
}

#define ADD_UPPER                                                                                                      \
    TILE_LOAD(6, from, ROW_BYTES);                                                                                     \
    TILE_LOAD(4, first, step);                                                                                         \
    TILE_ADD(0, 4, 6);                                                                                                 \
    TILE_LOAD(7, from + W, ROW_BYTES);                                                                                 \
    TILE_ADD(1, 4, 7);
#define ADD_BOTH                                                                                                       \
    ADD_UPPER                                                                                                          \
    TILE_LOAD(5, second, step);                                                                                        \
    TILE_ADD(2, 5, 6);                                                                                                 \
    TILE_ADD(3, 5, 7);
// All channels of a tap. Between products results are made of the sums before: tiles are multiplied meanwhile.
#define ADD_TAP(ADD)                                                                                                   \
    for (int c = 0; c < w->fours; c += TILE_FOURS, first += p->chunk, second += p->chunk) {                            \
        __global const int *from = find_weights(w, four + c);                                                          \
        ADD                                                                                                            \
        read_ahead(w);                                                                                                 \
        if (last->next < last->end)                                                                                    \
            store_some(last, min(last->next + last->each, last->end));                                                 \
    }

// Sums of the tiles that begin at these bytes of the picture, `step` from a pixel to the next.
static inline void add_steps(const picture *p, int2 position, bool both, weights *w, __global const int *added,
                             int4 taps, int4 dilation, long step, pending *last TILES_PARAMETER)
{
    int four = 0;
    TILE_LOAD(0, added, 0);
    TILE_LOAD(1, added + W, 0);
    if (both) {
        TILE_LOAD(2, added, 0);
        TILE_LOAD(3, added + W, 0);
    }
    for (int kh = 0; kh < taps.y; kh++)
        for (int kw = 0; kw < taps.z; kw++, four += w->fours) {
            __global const uchar *at = p->planes + (kh * dilation.y * p->columns + kw * dilation.z) * CHUNK;
            __global const uchar *first = at + position.x, *second = at + position.y;
            if (both) {
                ADD_TAP(ADD_BOTH)
            } else {
                ADD_TAP(ADD_UPPER)
            }
        }
}

static inline void store_sums(__global int *sums, bool both TILES_PARAMETER)
{
    TILE_STORE(0, sums, ROW_BYTES);
    TILE_STORE(1, sums + W, ROW_BYTES);
    if (both) {
        TILE_STORE(2, sums + TILE_ROWS * BLOCK, ROW_BYTES);
        TILE_STORE(3, sums + (TILE_ROWS * BLOCK + W), ROW_BYTES);
    }
}

// ---- bands ------------------------------------------------------------------------------------------------------------

// For each row of all tiles where its pixel's results go, less than 0 for those that are none or another tile's; and
// where what is added to them lies.
static inline void find_places(__global int *places, const picture *p, const tile_lines *lines, int to_addends, int n,
                               int dst_offset, int4 dst_stride, int addend_offset, int4 addend_stride)
{
    tile_place at = {0, 0, 0};
    for (int t = 0; t < lines->count; t++, places += TILE_ROWS) {
        int16 h, w;
        const int16 is_result = find_pixels(lines, at, &h, &w) & (w < p->width) & (h < p->height);
        h += p->first_h;
        w += p->first_w;
        vstore16(select((int16)(-1), dst_offset + PLACES(dst_stride, n, 0, h, w), is_result), 0, places);
#ifdef SUM
        vstore16(select((int16)(addend_offset), addend_offset + PLACES(addend_stride, n, 0, h, w), is_result), 0,
                 places + to_addends);
#endif
        at = next_tile(lines, at, lines->rows);
    }
}

// What is added to sums and scales them, of these blocks of channels.
static inline void find_channels(__global int *channels, int first_block, int end_block, KERNEL_ARGUMENTS, int filters,
                                 int8 flags)
{
    const int zero = ZERO_POINT(za, HAS_ZA);
    const float dst_scale_of = SCALE(dst_scale, HAS_DST_SCALE), all_scale = SCALE(a_scale, HAS_A_SCALE);
    (void)dst, (void)dst_offset, (void)src, (void)src_offset, (void)zd, (void)zd_offset;
    for (int c = first_block * BLOCK; c < end_block * BLOCK; c += W) {
        const int left = filters - c, j = c % BLOCK / W;
        const uint16 from = HAS(HAS_BIAS) ? as_uint16(LOAD_CHANNELS(bias, flags.s5)) : (uint16)(0);
        const float16 scale = HAS(HAS_B_SCALE) ? as_float16(LOAD_CHANNELS(b_scale, flags.s6)) : (float16)(1.0f);
        const uint16 sums = as_uint16(vload16(0, weight + (weight_offset + c / BLOCK * flags.s7 + c % BLOCK)));
        vstore16(as_int16(from - (uint16)((uint)zero) * sums), j, channels);
        vstore16(as_int16((float16)(all_scale) * scale / (float16)(dst_scale_of)), 2 + j, channels);
        channels += j * CHANNEL_INTS;
    }
}

// A work-item's memory.
typedef struct item_memory {
    __global int *sums, *tail, *channels, *places;
    __global uchar *planes;
} item_memory;

// All tiles of a band, for a block of channels after the other. is_first: the weights have not been read before.
static inline void compute_band(const picture *p, const tile_lines *lines, const item_memory *mine,
                                __global const int *panels, int first_block, int end_block, int panel, bool is_first,
                                int channels, int filters, int4 taps, int4 dilation, __global uchar *dst,
                                const tile_end *end ADDENDS TILES_PARAMETER)
{
    weights w = {.tail = mine->tail, .fours = channels / 4, .depth = panel / BLOCK - 1};
    const int pairs = (lines->count + 1) / 2, steps = taps.y * taps.z * ((w.fours + TILE_FOURS - 1) / TILE_FOURS);
    pending last = {.of = *end, .to_addends = lines->count * TILE_ROWS};
    last.each = (2 * TILE_ROWS + 2 * steps - 1) / (2 * steps) * 2;
    for (int block = first_block, pair = 0; block < end_block; block++) {
        w.block = panels + (block * panel + BLOCK);
        w.ahead = w.block + panel;
        w.lines = is_first && block + 1 < end_block ? (BLOCK + pairs - 1) / pairs : 0;
        if (w.fours % TILE_FOURS)
            copy_tail(&w);
        __global const int *of_block = mine->channels + (block - first_block) * CHANNEL_INTS;
        tile_place first = {0, 0, 0}, second = first, next = first;
        for (int t = 0; t < lines->count; t += 2, pair ^= 1) {
            const bool both = t + 1 < lines->count;
            first = next;
            second = both ? next_tile(lines, first, lines->rows) : first;
            next = next_tile(lines, second, lines->rows);
            add_steps(p, (int2)(find_position(lines, first), find_position(lines, second)), both, &w, of_block, taps,
                      dilation, lines->to_next, &last PASS_TILES);
            if (last.next < last.end)
                store_some(&last, last.end);
            __global int *sums = mine->sums + pair * PAIR_INTS;
            store_sums(sums, both PASS_TILES);
            last.sums = sums;
            last.places = mine->places + t * TILE_ROWS;
            last.scales = (__global const float *)(of_block + BLOCK);
            last.dst = dst + block * BLOCK;
#ifdef SUM
            last.addend = addend + block * BLOCK;
#endif
            last.count = filters - block * BLOCK;
            last.next = 0;
            last.end = both ? 2 * TILE_ROWS : TILE_ROWS;
        }
    }
    if (last.next < last.end)
        store_some(&last, last.end);
}

// own: where the memory begins, how many bytes each work-item has, where its places and where its planes begin. shape:
// rows of a tile, rows and columns of a band, whether a tile may span rows. flags: see qconv_end.clh; bands; bands and blocks
// of channels of a work-item; windows are read from the image; strides of bias and b_scale; integers of a panel. The range is
// blocks by bands.
WORK convolve(__global uchar *memory, int4 own, int4 shape, KERNEL_ARGUMENTS SUM_ARGUMENTS SIZE_ARGUMENTS,
              const int grid0, const int grid1)
{
    const int blocks = (dst_size.w + BLOCK - 1) / BLOCK;
    const int first_block = grid0 * flags.s3, end_block = min(first_block + flags.s3, blocks);
    const int bands_down = (dst_size.y + shape.y - 1) / shape.y, bands_across = (dst_size.z + shape.z - 1) / shape.z;
    const int first_band = grid1 * flags.s2, end_band = min(first_band + flags.s2, flags.s1);
    const int to_next = taps.z == 1 ? 1 : stride.z, to_row = taps.y == 1 ? 1 : stride.y;
    __global uchar *memory_of = memory + (own.x + (grid1 * ((blocks + flags.s3 - 1) / flags.s3) + grid0) * own.y);
    const float dst_scale_of = SCALE(dst_scale, HAS_DST_SCALE);
    const ulong zero = (HAS(HAS_ZA) ? za[za_offset] : 0) * 0x0101010101010101ul;
    tile_end end;
    FIND_END
    (void)dst_scale_of;
    item_memory mine = {.sums = (__global int *)memory_of, .planes = memory_of + own.w};
    mine.tail = mine.sums + 2 * PAIR_INTS;
    mine.channels = mine.tail + TAIL_INTS;
    mine.places = (__global int *)(memory_of + own.z);
    find_channels(mine.channels, first_block, end_block, PASS_KERNEL, dst_size.w, flags);
    picture p = {.step_h = taps.y == 1 ? stride.y : 1, .step_w = taps.z == 1 ? stride.z : 1};
    TILES_BEGIN(shape.x, TILE_ROW_BYTES)
    for (int band = first_band; band < end_band; band++) {
        int n = band;
        const int across = take_index(&n, bands_across), down = take_index(&n, bands_down);
        p.first_h = down * shape.y;
        p.first_w = across * shape.z;
        p.height = min(shape.y, dst_size.y - p.first_h);
        p.width = min(shape.z, dst_size.z - p.first_w);
        p.rows = (p.height - 1) * to_row + (taps.y - 1) * dilation.y + 1;
        p.columns = (p.width - 1) * to_next + (taps.z - 1) * dilation.z + 1;
        __global const uchar *image = src + (src_offset + n * src_stride.x);
        tile_lines lines;
        if (flags.s4) {
            lines = find_lines(p.height, p.width, p.columns, shape, stride.z * src_stride.w, stride.y * src_stride.z);
            p.planes = image + p.first_h * lines.to_row + p.first_w * lines.to_next;
            p.chunk = CHUNK;
        } else {
            lines = find_lines(p.height, p.width, p.columns, shape, to_next * CHUNK, to_row * p.columns * CHUNK);
            p.planes = mine.planes;
            p.chunk = ((p.rows * p.columns + TILE_ROWS * to_next) | 1) * CHUNK;
            make_picture(&p, mine.planes, image, zero, src_size, stride, pad, src_stride);
        }
        const int to_addends = lines.count * TILE_ROWS;
        find_places(mine.places, &p, &lines, to_addends, n, dst_offset, dst_stride,
#ifdef SUM
                    addend_offset, addend_stride);
#else
                    0, addend_stride);
#endif
        compute_band(&p, &lines, &mine, weight + weight_offset, first_block, end_block, flags.s7, band == first_band,
                     src_size.w, dst_size.w, taps, dilation, dst, &end PASS_ADDENDS PASS_TILES);
    }
    TILES_END
}

NOT_VECTORIZED __attribute__((reqd_work_group_size(1, 1, 1))) __kernel void
qconv_amx(__global uchar *memory, int4 own, int4 shape, KERNEL_ARGUMENTS SUM_ARGUMENTS SIZE_ARGUMENTS TEAM_ARGUMENTS)
{
    TEAM_ENTER
    convolve(memory, own, shape, PASS_KERNEL PASS_SUM, dst_size, src_size, taps, stride, dilation, pad, dst_stride,
             src_stride, addend_stride, flags, (int)get_global_id(0), (int)get_global_id(1));
    TEAM_LEAVE
}
