/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "ops/conv_amx.h"
#include <string.h>

#define HALF 16 /* filters, and pairs of channels */
#define TILE_INTEGERS 256
#define MOST_PARTS 3

static int64_t blocks_of(int64_t count)
{
    return count / RNL_AMX_BLOCK + (count % RNL_AMX_BLOCK > 0);
}

/* Channels first are those of a matrix, or of a transposed convolution. */
static bool is_line(bool transposed, size_t rank, const int64_t *shape)
{
    return !transposed && rank >= 3 && shape[1] <= RNL_AMX_PITCH && shape[rank - 1] > 1 &&
           shape[rank - 1] <= RNL_AMX_BLOCK / RNL_AMX_PITCH;
}

/* Few more chunks than there must be. */
static int64_t find_depth(int64_t parts, int64_t taps, int64_t channels)
{
    const int64_t least = blocks_of(channels);
    for (int64_t chunks = least; parts == 1 && taps == 1 && chunks <= least + least / 4 + 1; ++chunks)
        if (channels % (2 * chunks) == 0)
            return channels / chunks;
    return RNL_AMX_BLOCK;
}

rnl_amx_layout rnl_amx_find_layout(int64_t parts, bool transposed, size_t rank, const int64_t *shape)
{
    rnl_amx_layout l = {.filters = shape[transposed ? 1 : 0], .channels = shape[transposed ? 0 : 1], .taps = 1};
    l.line = is_line(transposed, rank, shape);
    for (size_t i = 2; i < rank - l.line; ++i)
        l.taps = rnl_saturating_mul(l.taps, shape[i]);
    l.blocks = blocks_of(l.filters);
    l.depth = l.line ? RNL_AMX_BLOCK : find_depth(parts, l.taps, l.channels);
    l.chunks = l.channels / l.depth + (l.channels % l.depth > 0);
    l.block_stride = rnl_saturating_mul(rnl_saturating_mul(l.taps, l.chunks), parts * 2 * TILE_INTEGERS);
    l.elements = rnl_saturating_mul(l.blocks, l.block_stride);
    return l;
}

bool rnl_conv_amx_takes(int64_t parts, size_t rank, const int64_t *shape, int64_t groups)
{
    return (parts == 1 || parts == MOST_PARTS) && rank >= 2 && rank <= 4 && groups == 1 && shape[0] > 0 && shape[1] > 0;
}

void rnl_conv_amx_layout(int64_t parts, bool transposed, uint32_t slot, size_t rank, const int64_t *shape,
                         rnl_view *out_view, int64_t *out_elements)
{
    *out_view = (rnl_view){.slot = slot, .dtype = RNL_U32, .rank = rank};
    memcpy(out_view->shape, shape, rank * sizeof *shape);
    *out_elements = rnl_amx_find_layout(parts, transposed, rank, shape).elements;
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

/* How a source lies: filter f, channel c and tap t are at f * filter + c * channel + t. */
typedef struct amx_source {
    const void *data;
    const double *factors; /* of each filter, or NULL */
    int64_t filter, channel;
} amx_source;

/* Files give no alignment. */
static float read_weight(const amx_source *source, int64_t filter, int64_t channel, int64_t tap)
{
    float value;
    const int64_t at = filter * source->filter + channel * source->channel + tap;
    memcpy(&value, (const char *)source->data + at * (int64_t)sizeof value, sizeof value);
    return source->factors ? (float)(value * source->factors[filter]) : value;
}

/* To the nearest even; NaN stays NaN. */
static uint32_t round_to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value)
        return bits >> 16 | 0x40;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static void put_parts(float value, int64_t parts, unsigned shift, uint32_t *target)
{
    for (int64_t part = 0; part < parts; ++part) {
        const uint32_t upper = round_to_bf16(value), bits = upper << 16;
        float taken;
        memcpy(&taken, &bits, sizeof taken);
        target[part * 2 * TILE_INTEGERS] |= upper << shift;
        value -= taken;
    }
}

/* The tiles of all parts of one row of `columns` taps, and 32 filters. */
static void pack_line(const rnl_amx_layout *l, const amx_source *source, int64_t parts, int64_t first_filter,
                      int64_t first_tap, int64_t columns, uint32_t *target)
{
    const int64_t filters = l->filters - first_filter;
    memset(target, 0, (size_t)(parts * 2 * TILE_INTEGERS) * sizeof *target);
    for (int64_t f = 0; f < filters && f < RNL_AMX_BLOCK; ++f)
        for (int64_t i = 0; i < columns * RNL_AMX_PITCH; ++i)
            if (i % RNL_AMX_PITCH < l->channels)
                put_parts(read_weight(source, first_filter + f, i % RNL_AMX_PITCH, first_tap + i / RNL_AMX_PITCH),
                          parts, i % 2 ? 16 : 0, target + f / HALF * TILE_INTEGERS + i / 2 * HALF + f % HALF);
}

/* The tiles of all parts of one tap, a chunk of channels and 32 filters. */
static void pack_chunk(const rnl_amx_layout *l, const amx_source *source, int64_t parts, int64_t first_filter,
                       int64_t first_channel, int64_t tap, uint32_t *target)
{
    const int64_t filters = l->filters - first_filter, channels = l->channels - first_channel;
    memset(target, 0, (size_t)(parts * 2 * TILE_INTEGERS) * sizeof *target);
    for (int64_t f = 0; f < filters && f < RNL_AMX_BLOCK; ++f)
        for (int64_t c = 0; c < channels && c < l->depth; ++c)
            put_parts(read_weight(source, first_filter + f, first_channel + c, tap), parts, c % 2 ? 16 : 0,
                      target + f / HALF * TILE_INTEGERS + c / 2 * HALF + f % HALF);
}

void rnl_conv_amx_pack(int64_t parts, bool transposed, size_t rank, const int64_t *shape, const void *source,
                       const double *factors, uint32_t *target)
{
    const rnl_amx_layout l = rnl_amx_find_layout(parts, transposed, rank, shape);
    const int64_t columns = l.line ? shape[rank - 1] : 1, taps = l.taps * columns;
    const amx_source from = {source, factors, transposed ? taps : l.channels * taps,
                             transposed ? l.filters * taps : taps};
    for (int64_t block = 0; block < l.blocks; ++block)
        for (int64_t tap = 0; tap < l.taps; ++tap)
            for (int64_t chunk = 0; chunk < l.chunks; ++chunk) {
                if (l.line)
                    pack_line(&l, &from, parts, block * RNL_AMX_BLOCK, tap * columns, columns, target);
                else
                    pack_chunk(&l, &from, parts, block * RNL_AMX_BLOCK, chunk * l.depth, tap, target);
                target += parts * 2 * TILE_INTEGERS;
            }
}
