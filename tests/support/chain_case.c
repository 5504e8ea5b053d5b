/* SPDX-License-Identifier: Apache-2.0 */
#include "support/chain_case.h"
#include "support/map_reference.h"
#include "support/op_values.h"
#include <math.h>
#include <stdio.h>

rnl_chain_source chain_case_operand(chain_case *test, op_tensor *tensor, double low, double high)
{
    rnl_chain_source source;
    op_fill(tensor, OP_RANDOM, low, high);
    test->operands[test->chain.operand_count] = tensor;
    ck_assert(rnl_chain_add_operand(&test->chain, &tensor->view, &source));
    return source;
}

rnl_chain_source chain_case_scalar(chain_case *test, double value)
{
    rnl_chain_source source;
    ck_assert(rnl_chain_add_scalar(&test->chain, (float)value, &source));
    return source;
}

rnl_chain_source chain_case_stage(chain_case *test, rnl_map_op op, const rnl_chain_source *sources, double p0,
                                  double p1)
{
    rnl_chain_source source;
    ck_assert(rnl_chain_add_stage(&test->chain, op, sources, (float)p0, (float)p1, &source));
    return source;
}

/* A number that a float32 computation may be off by `error` from. */
typedef struct estimate {
    double value, error;
} estimate;

static estimate source_value(const chain_case *test, rnl_chain_source source, const estimate *stages, const int64_t *at)
{
    switch (source.kind) {
    case RNL_CHAIN_STAGE:
        return stages[source.index];
    case RNL_CHAIN_OPERAND:
        return (estimate){op_get_broadcast(test->operands[source.index], test->dst->view.rank, at).f, 0};
    case RNL_CHAIN_SCALAR:
        return (estimate){test->chain.scalars[source.index], 0};
    case RNL_CHAIN_INPUT:
        break;
    }
    ck_abort_msg("a chain of its own has no input");
    return (estimate){0, 0};
}

/* The operator at every corner of what its sources may be, and what it may be off by itself. */
static estimate stage_value(rnl_map_op op, const estimate *sources, double p0, double p1)
{
    const size_t count = rnl_map_sources(op);
    double x[RNL_MAP_MAX_SOURCES] = {0};
    for (size_t i = 0; i < count; i++)
        x[i] = sources[i].value;
    estimate result = {map_reference_float(op, x, p0, p1), 0};
    for (unsigned corner = 0; corner < 1u << count; corner++) {
        for (size_t i = 0; i < count; i++)
            x[i] = sources[i].value + (corner >> i & 1 ? sources[i].error : -sources[i].error);
        result.error = fmax(result.error, fabs(map_reference_float(op, x, p0, p1) - result.value));
    }
    const op_bound own = op_tolerance(RNL_F32);
    result.error = 1.25 * result.error + own.absolute + own.relative * fabs(result.value);
    return result;
}

static estimate chain_value(const chain_case *test, const int64_t *at)
{
    estimate stages[RNL_CHAIN_MAX_STAGES], sources[RNL_CHAIN_MAX_SOURCES];
    for (size_t i = 0; i < test->chain.stage_count; i++) {
        const rnl_chain_stage *stage = &test->chain.stages[i];
        const size_t count = rnl_map_sources(stage->op), parameters = rnl_map_parameters(stage->op);
        for (size_t j = 0; j < count + parameters; j++)
            sources[j] = source_value(test, stage->sources[j], stages, at);
        stages[i] = stage_value(stage->op, sources, parameters > 0 ? sources[count].value : 0,
                                parameters > 1 ? sources[count + 1].value : 0);
    }
    return stages[test->chain.stage_count - 1];
}

/* What came out where that is near enough, so that op_check needs no bound of its own. */
static op_value reference(void *user, const int64_t *at)
{
    const chain_case *test = user;
    const estimate expected = chain_value(test, at);
    const double got = op_get(test->dst, at).f;
    const double rounding = test->dst->view.dtype == RNL_F32 ? 0 : op_tolerance(test->dst->view.dtype).relative;
    const double allowed = expected.error + rounding * fabs(expected.value);
    return op_float(fabs(got - expected.value) <= allowed ? got : expected.value);
}

void chain_case_describe(const chain_case *test, char *text, size_t capacity)
{
    static const char letters[] = {
        [RNL_CHAIN_INPUT] = 'x', [RNL_CHAIN_STAGE] = 's', [RNL_CHAIN_OPERAND] = 'y', [RNL_CHAIN_SCALAR] = 'k'};
    size_t used = (size_t)snprintf(text, capacity, "width %u:", op_device()->vector_width);
    for (size_t i = 0; i < test->chain.stage_count && used < capacity; i++) {
        const rnl_chain_stage *stage = &test->chain.stages[i];
        used += (size_t)snprintf(text + used, capacity - used, " %s", rnl_map_name(stage->op));
        for (size_t j = 0; j < rnl_map_sources(stage->op) + rnl_map_parameters(stage->op) && used < capacity; j++)
            used += (size_t)snprintf(text + used, capacity - used, " %c%zu", letters[stage->sources[j].kind],
                                     stage->sources[j].index);
    }
}

void chain_case_run(chain_case *test)
{
    char text[400];
    if (!op_chosen()) {
        op_reset();
        return;
    }
    chain_case_describe(test, text, sizeof text);
    op_note("%s", text);
    op_expect(RNL_OK, rnl_op_chain(op_list(), &test->chain, &test->dst->view));
    op_run();
    op_check(test->dst, reference, test, (op_bound){0, 0});
    op_reset();
}
