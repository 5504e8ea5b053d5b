/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_weight.h"
#include "base/memory.h"
#include <string.h>

#define LANES RNL_CONV_PANEL
#define TILE 16 /* elements of a source row that are turned at once: a cache line or more of each row */

rnl_conv_layout rnl_conv_find_layout(bool transposed, int64_t groups, size_t rank, const int64_t *shape)
{
    rnl_conv_layout l = {.groups = groups > 0 ? groups : 1, .taps = 1};
    l.channels = transposed ? shape[0] / l.groups : shape[1];
    l.filters = transposed ? shape[1] : shape[0] / l.groups;
    for (size_t i = 2; i < rank; ++i)
        l.taps = rnl_saturating_mul(l.taps, shape[i]);
    l.depthwise = !transposed && l.channels == 1 && l.filters == 1 && l.groups >= 4;
    if (l.depthwise) {
        l.filters = l.groups;
        l.groups = 1;
    }
    l.panels = rnl_saturating_add(l.filters, LANES - 1) / LANES;
    const int64_t row = rnl_saturating_mul(l.channels, LANES), panel = rnl_saturating_mul(row, l.taps);
    l.tap_stride = l.depthwise ? rnl_saturating_mul(l.panels, LANES) : row;
    l.panel_stride = l.depthwise ? LANES : panel;
    l.group_stride = l.depthwise ? 1 : rnl_saturating_mul(panel, l.panels);
    l.zeros_at = rnl_saturating_mul(rnl_saturating_mul(panel, l.panels), l.groups);
    l.elements = rnl_saturating_add(l.zeros_at, l.channels > RNL_CONV_ZEROS ? l.channels : RNL_CONV_ZEROS);
    return l;
}

void rnl_conv_weight_layout(bool transposed, int64_t groups, uint32_t slot, rnl_dtype dtype, size_t rank,
                            const int64_t *shape, rnl_view *out_view, int64_t *out_elements)
{
    rnl_view view = {.slot = slot, .dtype = dtype, .rank = rank};
    for (size_t i = 0; i < rank; ++i)
        view.shape[i] = shape[i];
    *out_view = view;
    *out_elements = rnl_conv_find_layout(transposed, groups, rank, shape).elements;
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

/* A panel's source: element (lane, channel, tap) is at lane * lane_stride + channel * channel_stride + tap. */
typedef struct panel_source {
    const unsigned char *data;
    int64_t lanes, lane_stride, channel_stride;
} panel_source;

/* `count` neighbours of each lane's row become `count` lines of LANES elements; lanes that are not there are zero. */
static inline __attribute__((always_inline)) void turn(const panel_source *source, int64_t at, int64_t count,
                                                       unsigned char *tile, size_t bytes)
{
    for (int64_t lane = 0; lane < source->lanes; ++lane) {
        const unsigned char *row = source->data + (size_t)(lane * source->lane_stride + at) * bytes;
        for (int64_t i = 0; i < count; ++i)
            memcpy(tile + (size_t)(i * LANES + lane) * bytes, row + (size_t)i * bytes, bytes);
    }
}

/* The source's neighbours are (channel, tap) where rows are whole, and taps of one channel where they are not. */
static inline __attribute__((always_inline)) void pack_panel_of(const rnl_conv_layout *l, const panel_source *source,
                                                                unsigned char *target, size_t bytes)
{
    unsigned char tile[TILE * LANES * sizeof(double)];
    memset(tile, 0, sizeof tile);
    const int64_t run = source->channel_stride == l->taps ? l->channels * l->taps : l->taps;
    for (int64_t first = 0; first < l->channels * l->taps; first += run) {
        int64_t channel = first / l->taps, tap = 0;
        for (int64_t done = 0; done < run; done += TILE) {
            const int64_t count = run - done < TILE ? run - done : TILE;
            turn(source, first / l->taps * source->channel_stride + done, count, tile, bytes);
            for (int64_t i = 0; i < count; ++i) {
                memcpy(target + (size_t)(tap * l->tap_stride + channel * LANES) * bytes,
                       tile + (size_t)(i * LANES) * bytes, LANES * bytes);
                tap = tap + 1 == l->taps ? 0 : tap + 1;
                channel += tap == 0;
            }
        }
    }
}

static void pack_panel(const rnl_conv_layout *l, const panel_source *source, unsigned char *target, size_t bytes)
{
    switch (bytes) {
    case 2:
        pack_panel_of(l, source, target, 2);
        break;
    case 4:
        pack_panel_of(l, source, target, 4);
        break;
    default:
        pack_panel_of(l, source, target, bytes);
        break;
    }
}

static void scale_panel(const rnl_conv_layout *l, const double *factors, int64_t lanes, float *panel)
{
    for (int64_t tap = 0; tap < l->taps; ++tap)
        for (int64_t c = 0; c < l->channels; ++c)
            for (int64_t lane = 0; lane < lanes; ++lane) {
                float *element = panel + tap * l->tap_stride + c * LANES + lane;
                *element = (float)(*element * factors[lane]);
            }
}

void rnl_conv_pack(bool transposed, int64_t groups, rnl_dtype dtype, size_t rank, const int64_t *shape,
                   const void *source, const double *factors, void *target)
{
    const rnl_conv_layout l = rnl_conv_find_layout(transposed, groups, rank, shape);
    const size_t bytes = rnl_dtype_bytes(dtype);
    panel_source from = {.lane_stride = transposed ? l.taps : l.channels * l.taps,
                         .channel_stride = transposed ? l.filters * l.taps : l.taps};
    for (int64_t group = 0; group < l.groups; ++group)
        for (int64_t panel = 0; panel < l.panels; ++panel) {
            const int64_t left = l.filters - panel * LANES;
            const int64_t start = group * l.channels * l.filters * l.taps + panel * LANES * from.lane_stride;
            unsigned char *to =
                (unsigned char *)target + (size_t)(group * l.group_stride + panel * l.panel_stride) * bytes;
            from.lanes = left < LANES ? left : LANES;
            from.data = (const unsigned char *)source + (size_t)start * bytes;
            pack_panel(&l, &from, to, bytes);
            if (factors)
                scale_panel(&l, factors + group * l.filters + panel * LANES, from.lanes, (float *)(void *)to);
        }
    memset((unsigned char *)target + (size_t)l.zeros_at * bytes, 0, (size_t)(l.elements - l.zeros_at) * bytes);
}
