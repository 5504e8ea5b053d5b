/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "ops/conv_strassen.h"
#include <string.h>

#define LANES RNL_CONV_PANEL

rnl_strassen_layout rnl_strassen_find_layout(int64_t filters, int64_t channels)
{
    rnl_strassen_layout l = {.filters = filters, .channels = channels};
    l.pairs = filters / (2 * LANES) + (filters % (2 * LANES) > 0);
    l.block_stride = rnl_saturating_mul(channels / 2, LANES);
    l.pair_stride = rnl_saturating_mul(7, l.block_stride);
    l.elements = rnl_saturating_mul(l.pairs, l.pair_stride);
    return l;
}

bool rnl_conv_strassen_takes(size_t rank, const int64_t *shape, int64_t groups, rnl_dtype dtype)
{
    for (size_t i = 2; i < rank; ++i)
        if (shape[i] != 1)
            return false;
    return groups == 1 && dtype == RNL_F32 && shape[0] > 0 && shape[1] > 0 && shape[1] % (2 * LANES) == 0;
}

void rnl_conv_strassen_layout(bool transposed, uint32_t slot, size_t rank, const int64_t *shape, rnl_view *out_view,
                              int64_t *out_elements)
{
    *out_view = (rnl_view){.slot = slot, .dtype = RNL_F32, .rank = rank};
    memcpy(out_view->shape, shape, rank * sizeof *shape);
    *out_elements = rnl_strassen_find_layout(shape[transposed ? 1 : 0], shape[transposed ? 0 : 1]).elements;
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

/* The weights as they are given: a filter's and a channel's distance. */
typedef struct matrix_source {
    const float *data;
    const double *factors;
    int64_t filters, filter_stride, channel_stride;
} matrix_source;

/* Of one channel, the filters from `first` on; 0 where there are none. Files give no alignment. */
static void read_line(const matrix_source *source, int64_t channel, int64_t first, double line[LANES])
{
    for (int64_t lane = 0; lane < LANES; ++lane) {
        const int64_t filter = first + lane;
        float value = 0;
        if (filter < source->filters)
            memcpy(&value,
                   (const char *)(const void *)source->data +
                       (filter * source->filter_stride + channel * source->channel_stride) * (int64_t)sizeof value,
                   sizeof value);
        line[lane] = value * (source->factors && filter < source->filters ? source->factors[filter] : 1);
    }
}

/* The blocks as conv_strassen.cl multiplies them, in its order: b11, b21, t2, t3, -t4, t1, b22. */
static void pack_line(const double b11[LANES], const double b12[LANES], const double b21[LANES],
                      const double b22[LANES], int64_t block_stride, float *target)
{
    for (size_t lane = 0; lane < LANES; ++lane) {
        const double t1 = b12[lane] - b11[lane], t2 = b22[lane] - t1;
        const double blocks[7] = {b11[lane], b21[lane], t2, b22[lane] - b12[lane], b21[lane] - t2, t1, b22[lane]};
        for (int64_t i = 0; i < 7; ++i)
            target[i * block_stride + (int64_t)lane] = (float)blocks[i];
    }
}

void rnl_conv_strassen_pack(bool transposed, const int64_t *shape, const float *source, const double *factors,
                            float *target)
{
    const rnl_strassen_layout l = rnl_strassen_find_layout(shape[transposed ? 1 : 0], shape[transposed ? 0 : 1]);
    const matrix_source from = {source, factors, l.filters, transposed ? 1 : l.channels, transposed ? l.filters : 1};
    const int64_t half = l.channels / 2;
    for (int64_t pair = 0; pair < l.pairs; ++pair)
        for (int64_t c = 0; c < half; ++c) {
            const int64_t first = pair * 2 * LANES;
            double b11[LANES], b12[LANES], b21[LANES], b22[LANES];
            read_line(&from, c, first, b11);
            read_line(&from, c, first + LANES, b12);
            read_line(&from, c + half, first, b21);
            read_line(&from, c + half, first + LANES, b22);
            pack_line(b11, b12, b21, b22, l.block_stride, target + pair * l.pair_stride + c * LANES);
        }
}
