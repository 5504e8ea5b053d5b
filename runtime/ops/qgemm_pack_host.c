/* SPDX-License-Identifier: Apache-2.0 */
/* Packing on the host what clkernels/qgemm_pack.cl packs on the device. */
#include "ops/qgemm_pack.h"
#include <string.h>

int64_t rnl_qgemm_source_rows(const rnl_qgemm_source *source)
{
    const int64_t line = source->outer * source->inner;
    return source->lines > 1 ? source->lines * ((line + 3) / 4 * 4) : line;
}

/* Four of k of a line of a column, as signed bytes from the lowest bits on; those behind the last k are 0. */
static uint32_t four_of(const rnl_qgemm_source *source, const uint8_t *line, int64_t k, uint8_t flip, int32_t *sum)
{
    uint32_t word = 0;
    for (int64_t i = 0; i < 4 && k + i < source->outer * source->inner; ++i) {
        const int64_t outer = (k + i) / source->inner, inner = (k + i) - outer * source->inner;
        const uint8_t byte = line[outer * source->outer_stride + inner * source->inner_stride] ^ flip;
        *sum += (int8_t)byte;
        word |= (uint32_t)byte << (8 * i);
    }
    return word;
}

void rnl_qgemm_pack_host(const rnl_qgemm_source *source, const void *bytes, void *target)
{
    const int64_t fours = (source->outer * source->inner + 3) / 4, rows = 1 + source->lines * fours;
    const uint8_t flip = (uint8_t)rnl_qgemm_flip(source->dtype, true);
    uint32_t *words = target;
    for (int64_t first = 0; first < source->columns; first += RNL_QGEMM_PANEL, words += rows * RNL_QGEMM_PANEL) {
        memset(words, 0, (size_t)rows * RNL_QGEMM_PANEL * sizeof *words);
        for (int64_t lane = 0; lane < RNL_QGEMM_PANEL && first + lane < source->columns; ++lane) {
            const uint8_t *column = (const uint8_t *)bytes + (first + lane) * source->column_stride;
            uint32_t *word = words + RNL_QGEMM_PANEL + lane;
            int32_t sum = 0;
            for (int64_t line = 0; line < source->lines; ++line)
                for (int64_t four = 0; four < fours; ++four, word += RNL_QGEMM_PANEL)
                    *word = four_of(source, column + line * source->line_stride, 4 * four, flip, &sum);
            words[lane] = (uint32_t)sum;
        }
    }
}
