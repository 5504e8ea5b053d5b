/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "ops/conv_winograd.h"
#include <string.h>

#define LANES RNL_CONV_PANEL

rnl_winograd_layout rnl_winograd_find_layout(int64_t side, const int64_t shape[4])
{
    rnl_winograd_layout l = {.panels = rnl_saturating_add(shape[0], LANES - 1) / LANES};
    l.padded_channels = rnl_saturating_mul(rnl_saturating_add(shape[1], LANES - 1) / LANES, LANES);
    l.transform_stride = rnl_saturating_mul(l.padded_channels, LANES);
    l.panel_stride = rnl_saturating_mul((side + 2) * (side + 2), l.transform_stride);
    l.zeros_at = rnl_saturating_mul(l.panels, l.panel_stride);
    l.elements = rnl_saturating_add(l.zeros_at, rnl_saturating_add(l.padded_channels, RNL_CONV_ZEROS));
    return l;
}

void rnl_conv_winograd_layout(int64_t side, uint32_t slot, const int64_t shape[4], rnl_view *out_view,
                              int64_t *out_elements)
{
    *out_view =
        (rnl_view){.slot = slot, .dtype = RNL_F32, .rank = 4, .shape = {shape[0], shape[1], shape[2], shape[3]}};
    *out_elements = rnl_winograd_find_layout(side, shape).elements;
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

typedef double lanes[LANES];

/*
 * Three taps along one dimension, `step` lanes apart, as the values of their polynomial at some points; each over the
 * product of its distances to the others, since the pixels' transform leaves that out. These: 0, 3/4, -3/4, 3/2, -3/2
 * and infinity.
 */
static void turn_six(lanes *taps, size_t step, lanes *out, size_t out_step)
{
    static const double a = 0.75, b = 1.5;
    const double at_zero = 1 / (a * a * b * b), at_a = 1 / (2 * a * a * (a * a - b * b)),
                 at_b = 1 / (2 * b * b * (b * b - a * a));
    for (size_t i = 0; i < LANES; ++i) {
        const double first = taps[0][i], middle = taps[step][i], last = taps[2 * step][i];
        const double even_a = at_a * (first + a * a * last), odd_a = at_a * a * middle;
        const double even_b = at_b * (first + b * b * last), odd_b = at_b * b * middle;
        out[0][i] = at_zero * first;
        out[out_step][i] = even_a + odd_a;
        out[2 * out_step][i] = even_a - odd_a;
        out[3 * out_step][i] = even_b + odd_b;
        out[4 * out_step][i] = even_b - odd_b;
        out[5 * out_step][i] = last;
    }
}

/* 0, 1, -1 and infinity. */
static void turn_four(lanes *taps, size_t step, lanes *out, size_t out_step)
{
    for (size_t i = 0; i < LANES; ++i) {
        const double even = (taps[0][i] + taps[2 * step][i]) / 2, odd = taps[step][i] / 2;
        out[0][i] = taps[0][i];
        out[out_step][i] = even + odd;
        out[2 * out_step][i] = even - odd;
        out[3 * out_step][i] = taps[2 * step][i];
    }
}

/* The taps of one channel, for a panel's filters; lanes that are not there stay as they are. */
static void read_taps(const void *source, int64_t filter_stride, int64_t count, const double *factors, lanes taps[9])
{
    for (int64_t lane = 0; lane < count; ++lane) {
        const double factor = factors ? factors[lane] : 1;
        float nine[9]; /* files give no alignment */
        memcpy(nine, (const char *)source + lane * filter_stride * (int64_t)sizeof *nine, sizeof nine);
        for (size_t i = 0; i < 9; ++i)
            taps[i][lane] = nine[i] * factor;
    }
}

static void pack_channel(int64_t side, lanes taps[9], int64_t transform_stride, float *target)
{
    void (*const turn)(lanes *, size_t, lanes *, size_t) = side == 4 ? turn_six : turn_four;
    const size_t points = (size_t)side + 2;
    lanes columns[18], all[36];
    for (size_t x = 0; x < 3; ++x)
        turn(taps + x, 3, columns + x, 3);
    for (size_t y = 0; y < points; ++y)
        turn(columns + 3 * y, 1, all + points * y, 1);
    for (size_t i = 0; i < points * points; ++i)
        for (size_t lane = 0; lane < LANES; ++lane)
            target[(int64_t)i * transform_stride + (int64_t)lane] = (float)all[i][lane];
}

void rnl_conv_winograd_pack(int64_t side, const int64_t shape[4], const float *source, const double *factors,
                            float *target)
{
    const rnl_winograd_layout l = rnl_winograd_find_layout(side, shape);
    const int64_t channels = shape[1];
    for (int64_t panel = 0; panel < l.panels; ++panel) {
        const int64_t first = panel * LANES, left = shape[0] - first, count = left < LANES ? left : LANES;
        float *to = target + panel * l.panel_stride;
        lanes taps[9] = {{0}};
        for (int64_t c = 0; c < channels; ++c) {
            read_taps(source + (first * channels + c) * 9, channels * 9, count, factors ? factors + first : NULL, taps);
            pack_channel(side, taps, l.transform_stride, to + c * LANES);
        }
        for (int64_t i = 0; i < (side + 2) * (side + 2) && channels < l.padded_channels; ++i)
            memset(to + i * l.transform_stride + channels * LANES, 0,
                   (size_t)((l.padded_channels - channels) * LANES) * sizeof *to);
    }
    memset(target + l.zeros_at, 0, (size_t)(l.elements - l.zeros_at) * sizeof *target);
}
