/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "ops/conv_fip.h"
#include "ops/conv_weight.h"
#include <string.h>

#define LANES RNL_CONV_PANEL
#define OTHERS 2        /* lines behind a chunk's terms */
#define WHOLE_TERMS 768 /* of a single chunk; … */
#define CHUNK_TERMS 512 /* … of one of several, at most */

/* Of scales, as conv_fip.cl has them. */
#define SMALLEST_EXPONENT 1
#define LARGEST_EXPONENT 253
#define ZEROS 0 /* instead of an exponent */

int64_t rnl_conv_fip_chunk(int64_t terms)
{
    if (terms <= WHOLE_TERMS)
        return terms;
    const int64_t chunks = rnl_divide_up(terms, CHUNK_TERMS);
    return rnl_divide_up(rnl_divide_up(terms, chunks), LANES) * LANES;
}

rnl_fip_layout rnl_conv_fip_find_layout(bool transposed, size_t rank, const int64_t *shape)
{
    const rnl_conv_layout l = rnl_conv_find_layout(transposed, 1, rank, shape);
    rnl_fip_layout fip = {.panels = l.panels, .terms = l.panel_stride / LANES};
    fip.chunk = rnl_conv_fip_chunk(fip.terms);
    fip.chunks = fip.chunk > 0 ? rnl_divide_up(fip.terms, fip.chunk) : 0;
    fip.chunk_stride = rnl_saturating_add(rnl_saturating_mul(fip.chunk, LANES), OTHERS * LANES);
    const int64_t others = rnl_saturating_mul(fip.chunks, OTHERS * LANES);
    fip.panel_stride = rnl_saturating_add(l.panel_stride, others);
    fip.elements = rnl_saturating_add(l.elements, rnl_saturating_mul(l.panels, others));
    return fip;
}

bool rnl_conv_fip_takes(bool transposed, size_t rank, const int64_t *shape, int64_t groups, rnl_dtype dtype)
{
    const int64_t channels = shape[transposed ? 0 : 1];
    return groups == 1 && dtype == RNL_F32 && shape[0] > 0 && shape[1] > 0 && channels % LANES == 0 &&
           (!transposed || rank == 2);
}

void rnl_conv_fip_layout(bool transposed, uint32_t slot, size_t rank, const int64_t *shape, rnl_view *out_view,
                         int64_t *out_elements)
{
    *out_view = (rnl_view){.slot = slot, .dtype = RNL_F32, .rank = rank};
    memcpy(out_view->shape, shape, rank * sizeof *shape);
    *out_elements = rnl_conv_fip_find_layout(transposed, rank, shape).elements;
}

/* ---- packing ---------------------------------------------------------------------------------------------------- */

static float power_of_two(uint32_t exponent)
{
    const uint32_t bits = exponent << 23;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Of a column's largest number, as scales can have it; of one that is not finite that of 1; or ZEROS. */
static uint32_t find_exponent(const rnl_fip_layout *l, const float *column)
{
    uint32_t largest = 0;
    for (int64_t i = 0; i < l->terms; ++i) {
        uint32_t bits;
        memcpy(&bits, &column[i * LANES + i / l->chunk * OTHERS * LANES], sizeof bits);
        bits &= 0x7fffffff;
        largest = bits > largest ? bits : largest;
    }
    const uint32_t exponent = largest >> 23;
    if (largest == 0)
        return ZEROS;
    if (exponent == 255)
        return 127;
    if (exponent < SMALLEST_EXPONENT)
        return SMALLEST_EXPONENT;
    return exponent > LARGEST_EXPONENT ? LARGEST_EXPONENT : exponent;
}

/* Signs of pairs as fip_floats.clh has them: of four terms the last two are subtracted. */
static void finish_column(const rnl_fip_layout *l, float *column)
{
    const uint32_t exponent = find_exponent(l, column);
    const float scale = exponent == ZEROS ? 1 : power_of_two(254 - exponent);
    for (int64_t chunk = 0; chunk < l->chunks; ++chunk, column += l->chunk_stride) {
        const int64_t left = l->terms - chunk * l->chunk, terms = left < l->chunk ? left : l->chunk;
        double own = 0;
        for (int64_t i = 0; i < terms; ++i)
            column[i * LANES] *= scale;
        for (int64_t i = 0; i < terms; i += 2) {
            const double product = (double)column[i * LANES] * column[(i + 1) * LANES];
            own += i % 4 == 0 ? product : -product;
        }
        column[terms * LANES] = (float)-own;
        column[(terms + 1) * LANES] = exponent == ZEROS ? 0 : 1 / scale;
    }
}

/* From the last one on: each goes behind where it was. */
static void spread_chunks(const rnl_fip_layout *l, float *panel, const float *from)
{
    for (int64_t chunk = l->chunks - 1; chunk >= 0; --chunk) {
        const int64_t left = l->terms - chunk * l->chunk, terms = left < l->chunk ? left : l->chunk;
        memmove(panel + chunk * l->chunk_stride, from + chunk * l->chunk * LANES,
                (size_t)(terms * LANES) * sizeof *panel);
    }
}

void rnl_conv_fip_pack(bool transposed, size_t rank, const int64_t *shape, const float *source, const double *factors,
                       float *target)
{
    const rnl_fip_layout l = rnl_conv_fip_find_layout(transposed, rank, shape);
    rnl_conv_pack(transposed, 1, RNL_F32, rank, shape, source, factors, target);
    for (int64_t panel = l.panels - 1; panel >= 0; --panel) {
        float *to = target + panel * l.panel_stride;
        spread_chunks(&l, to, target + panel * l.terms * LANES);
        for (int64_t lane = 0; lane < LANES; ++lane)
            finish_column(&l, to + lane);
    }
    memset(target + l.panels * l.panel_stride, 0, (size_t)(l.elements - l.panels * l.panel_stride) * sizeof *target);
}
