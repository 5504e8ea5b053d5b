/* SPDX-License-Identifier: Apache-2.0 */
/* GELU that is written out, v / 2 * (1 + erf(v / sqrt 2)) with the factors in any order: one stage of a chain. */
#include "model/fuse.h"
#include <math.h>

#define SQRT_HALF 0.70710678118654752

/* Up to the rounding of float32. */
static bool is_number(const rnl_chain *chain, rnl_chain_source source, double number)
{
    return source.kind == RNL_CHAIN_SCALAR && fabs((double)chain->scalars[source.index] - number) <= number * 0x1p-23;
}

static bool same(rnl_chain_source a, rnl_chain_source b)
{
    return a.kind == b.kind && a.index == b.index;
}

/* The one stage that reads this one, once; NULL where there are more, or none. */
static const rnl_chain_stage *reader_of(const rnl_chain *chain, const rnl_chain_stage *made)
{
    const rnl_chain_source source = {RNL_CHAIN_STAGE, (size_t)(made - chain->stages)};
    const rnl_chain_stage *reader = NULL;
    for (size_t i = source.index + 1; i < chain->stage_count; i++)
        for (size_t j = 0; j < RNL_CHAIN_MAX_SOURCES; j++)
            if (j < rnl_map_sources(chain->stages[i].op) && same(chain->stages[i].sources[j], source)) {
                if (reader)
                    return NULL;
                reader = &chain->stages[i];
            }
    return reader;
}

/* Numbers stand behind what they are multiplied by. */
static bool is_scaled(const rnl_chain *chain, const rnl_chain_stage *stage, double number)
{
    return (stage->op == RNL_MAP_MUL && is_number(chain, stage->sources[1], number)) ||
           (stage->op == RNL_MAP_DIV && is_number(chain, stage->sources[1], 1 / number));
}

static rnl_chain_source source_of(const rnl_chain *chain, const rnl_chain_stage *stage)
{
    return (rnl_chain_source){RNL_CHAIN_STAGE, (size_t)(stage - chain->stages)};
}

/* v times half of `sum`: the last of the products, and the one between; NULL where it is something else. */
static const rnl_chain_stage *find_products(const rnl_chain *chain, const rnl_chain_stage *sum, rnl_chain_source v,
                                            const rnl_chain_stage **out_between)
{
    const rnl_chain_stage *first = reader_of(chain, sum), *second;
    if (!first)
        return NULL;
    if (is_scaled(chain, first, 0.5)) {
        second = reader_of(chain, *out_between = first);
        const rnl_chain_source half = source_of(chain, first);
        return second && second->op == RNL_MAP_MUL &&
                       ((same(second->sources[0], v) && same(second->sources[1], half)) ||
                        (same(second->sources[1], v) && same(second->sources[0], half)))
                   ? second
                   : NULL;
    }
    if (first->op != RNL_MAP_MUL)
        return NULL;
    const rnl_chain_source other = first->sources[same(first->sources[0], source_of(chain, sum)) ? 1 : 0];
    if (same(other, v)) {
        second = reader_of(chain, *out_between = first);
        return second && is_scaled(chain, second, 0.5) ? second : NULL;
    }
    if (other.kind != RNL_CHAIN_STAGE)
        return NULL;
    *out_between = &chain->stages[other.index];
    return is_scaled(chain, *out_between, 0.5) && same((*out_between)->sources[0], v) &&
                   reader_of(chain, *out_between) == first
               ? first
               : NULL;
}

static void remove_stage(rnl_chain *chain, size_t index)
{
    chain->stage_count--;
    for (size_t i = index; i < chain->stage_count; i++)
        chain->stages[i] = chain->stages[i + 1];
    for (size_t i = index; i < chain->stage_count; i++)
        for (size_t j = 0; j < RNL_CHAIN_MAX_SOURCES; j++) {
            rnl_chain_source *source = &chain->stages[i].sources[j];
            if (source->kind == RNL_CHAIN_STAGE && source->index > index)
                source->index--;
        }
}

static bool replace(rnl_chain *chain, size_t erf)
{
    const rnl_chain_stage *error = &chain->stages[erf], *between = NULL;
    if (error->op != RNL_MAP_ERF || error->sources[0].kind != RNL_CHAIN_STAGE)
        return false;
    const rnl_chain_stage *scaled = &chain->stages[error->sources[0].index], *sum = reader_of(chain, error);
    if (!is_scaled(chain, scaled, SQRT_HALF) || reader_of(chain, scaled) != error || !sum || sum->op != RNL_MAP_ADD ||
        !is_number(chain, sum->sources[1], 1))
        return false;
    const rnl_chain_source v = scaled->sources[0];
    const rnl_chain_stage *last = find_products(chain, sum, v, &between);
    if (!last)
        return false;
    const size_t gone[4] = {(size_t)(scaled - chain->stages), erf, (size_t)(sum - chain->stages),
                            (size_t)(between - chain->stages)};
    chain->stages[last - chain->stages] = (rnl_chain_stage){.op = RNL_MAP_GELU_SUM, .sources = {v}};
    for (size_t i = chain->stage_count; i-- > 0;)
        if (i == gone[0] || i == gone[1] || i == gone[2] || i == gone[3])
            remove_stage(chain, i);
    return true;
}

void rnl_fuse_gelu(rnl_chain *chain)
{
    for (size_t i = 0; i < chain->stage_count; i++)
        if (replace(chain, i))
            i = 0;
}
