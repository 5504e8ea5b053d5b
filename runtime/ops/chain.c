/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/chain.h"
#include "ops/map_table.h"
#include <stdio.h>

bool rnl_chain_takes(rnl_map_op op)
{
    const rnl_map_row *row = rnl_map_row_of(op);
    return row && (row->types & RNL_MAP_FLOATS) && !row->makes_bool && op != RNL_MAP_SELECT;
}

bool rnl_chain_add_scalar(rnl_chain *chain, float value, rnl_chain_source *out_source)
{
    if (chain->scalar_count == RNL_CHAIN_MAX_SCALARS)
        return false;
    *out_source = (rnl_chain_source){RNL_CHAIN_SCALAR, chain->scalar_count};
    chain->scalars[chain->scalar_count++] = value;
    return true;
}

bool rnl_chain_add_operand(rnl_chain *chain, const rnl_view *view, rnl_chain_source *out_source)
{
    if (chain->operand_count == RNL_CHAIN_MAX_OPERANDS)
        return false;
    *out_source = (rnl_chain_source){RNL_CHAIN_OPERAND, chain->operand_count};
    chain->operands[chain->operand_count++] = *view;
    return true;
}

/* One order for the sources of what is the same either way: each other text would be another program. */
static void order_sources(rnl_chain_stage *stage)
{
    const rnl_chain_source a = stage->sources[0], b = stage->sources[1];
    const bool swap = a.kind != b.kind ? a.kind > b.kind : a.index > b.index;
    if ((stage->op == RNL_MAP_ADD || stage->op == RNL_MAP_MUL) && swap) {
        stage->sources[0] = b;
        stage->sources[1] = a;
    }
}

bool rnl_chain_add_stage(rnl_chain *chain, rnl_map_op op, const rnl_chain_source *sources, float p0, float p1,
                         rnl_chain_source *out_source)
{
    const size_t count = rnl_map_sources(op), parameters = rnl_map_parameters(op);
    if (chain->stage_count == RNL_CHAIN_MAX_STAGES || chain->scalar_count + parameters > RNL_CHAIN_MAX_SCALARS ||
        count + parameters > RNL_CHAIN_MAX_SOURCES || !rnl_chain_takes(op))
        return false;
    rnl_chain_stage *stage = &chain->stages[chain->stage_count];
    *stage = (rnl_chain_stage){.op = op};
    for (size_t i = 0; i < count; i++)
        stage->sources[i] = sources[i];
    order_sources(stage);
    for (size_t i = 0; i < parameters; i++)
        if (!rnl_chain_add_scalar(chain, i ? p1 : p0, &stage->sources[count + i]))
            return false;
    *out_source = (rnl_chain_source){RNL_CHAIN_STAGE, chain->stage_count++};
    return true;
}

bool rnl_chain_takes_type(rnl_dtype dtype)
{
    return dtype == RNL_F32 || dtype == RNL_F16 || dtype == RNL_BF16;
}

static bool source_exists(const rnl_chain *chain, size_t stage, rnl_chain_source source)
{
    switch (source.kind) {
    case RNL_CHAIN_INPUT:
        return true;
    case RNL_CHAIN_STAGE:
        return source.index < stage;
    case RNL_CHAIN_OPERAND:
        return source.index < chain->operand_count;
    case RNL_CHAIN_SCALAR:
        return source.index < chain->scalar_count;
    }
    return false;
}

rnl_status rnl_chain_check(const rnl_chain *chain, const rnl_view *dst)
{
    if (chain->stage_count < 1 || chain->stage_count > RNL_CHAIN_MAX_STAGES ||
        chain->operand_count > RNL_CHAIN_MAX_OPERANDS || chain->scalar_count > RNL_CHAIN_MAX_SCALARS)
        return FAIL(RNL_INVALID_ARGUMENT, "a chain of %zu stages, %zu operands and %zu scalars", chain->stage_count,
                    chain->operand_count, chain->scalar_count);
    for (size_t i = 0; i < chain->stage_count; i++) {
        const rnl_chain_stage *stage = &chain->stages[i];
        const size_t count = rnl_map_sources(stage->op) + rnl_map_parameters(stage->op);
        if (!rnl_chain_takes(stage->op) || count > RNL_CHAIN_MAX_SOURCES)
            return FAIL(RNL_INVALID_ARGUMENT, "%s in a chain", rnl_map_name(stage->op));
        for (size_t j = 0; j < count; j++)
            if (!source_exists(chain, i, stage->sources[j]))
                return FAIL(RNL_INVALID_ARGUMENT, "source %zu of stage %zu of a chain does not exist", j, i);
    }
    int64_t strides[RNL_MAX_RANK];
    for (size_t i = 0; i < chain->operand_count; i++) {
        if (!rnl_chain_takes_type(chain->operands[i].dtype))
            return FAIL(RNL_INVALID_ARGUMENT, "a chain with an operand of %s",
                        rnl_dtype_name(chain->operands[i].dtype));
        TRY(rnl_chain_broadcast(chain, i, dst, strides));
    }
    return rnl_chain_takes_type(dst->dtype) ? RNL_OK
                                            : FAIL(RNL_INVALID_ARGUMENT, "a chain into %s", rnl_dtype_name(dst->dtype));
}

rnl_status rnl_chain_broadcast(const rnl_chain *chain, size_t index, const rnl_view *dst,
                               int64_t out_stride[RNL_MAX_RANK])
{
    TRY(rnl_view_broadcast(&chain->operands[index], dst->rank, dst->shape, out_stride), "operand %zu of a chain",
        index);
    return RNL_OK;
}

/* "v0", "v2", "y1", "K(3)" */
static void add_source(rnl_text *text, rnl_chain_source source)
{
    switch (source.kind) {
    case RNL_CHAIN_INPUT:
        rnl_text_add(text, "v0");
        break;
    case RNL_CHAIN_STAGE:
        rnl_text_add(text, "v%zu", source.index + 1);
        break;
    case RNL_CHAIN_OPERAND:
        rnl_text_add(text, "y%zu", source.index);
        break;
    case RNL_CHAIN_SCALAR:
        rnl_text_add(text, "K(%zu)", source.index);
        break;
    }
}

static void define_stage(rnl_step_builder *step, const char *prefix, size_t index, const rnl_chain_stage *stage)
{
    const size_t count = rnl_map_sources(stage->op) + rnl_map_parameters(stage->op);
    rnl_step_define(step, "%sS%zu=%s(", prefix, index + 1, rnl_map_row_of(stage->op)->option + sizeof "OP=" - 1);
    for (size_t i = 0; i < count; i++) {
        add_source(&step->options, stage->sources[i]);
        rnl_text_add(&step->options, i + 1 < count ? "," : ")");
    }
}

void rnl_chain_define(rnl_step_builder *step, const rnl_chain *chain, const int64_t *steps)
{
    if (!chain)
        return;
    rnl_step_define(step, "STAGES=%zu", chain->stage_count);
    for (size_t i = 0; i < chain->stage_count; i++)
        define_stage(step, "", i, &chain->stages[i]);
    if (chain->operand_count)
        rnl_step_define(step, "OPERANDS=%zu", chain->operand_count);
    for (size_t i = 0; i < chain->operand_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "T_Y%zu", i);
        rnl_step_type(step, name, chain->operands[i].dtype);
        rnl_step_define(step, "Y%zu_STEP=%d", i, steps[i] != 0);
    }
}

void rnl_chain_define_inner(rnl_step_builder *step, const char *prefix, const rnl_chain *chain)
{
    const size_t count = chain ? chain->stage_count : 0;
    rnl_step_define(step, "%sSTAGES=%zu", prefix, count);
    for (size_t i = 0; i < count; i++)
        define_stage(step, prefix, i, &chain->stages[i]);
}

void rnl_chain_arguments(rnl_step_builder *step, const rnl_chain *chain, size_t width,
                         const int64_t (*strides)[RNL_MAX_RANK], size_t stride_count)
{
    if (!chain)
        return;
    rnl_step_value(step, chain->scalars, sizeof chain->scalars);
    for (size_t i = 0; i < chain->operand_count; i++) {
        rnl_step_view(step, &chain->operands[i]);
        rnl_step_indices(step, width, strides[i], stride_count, 0);
    }
}

bool rnl_chain_is_long(const rnl_chain *chain)
{
    for (size_t i = 0; chain && i < chain->stage_count; i++)
        switch (chain->stages[i].op) {
        case RNL_MAP_ERF:
        case RNL_MAP_GELU:
        case RNL_MAP_GELU_SUM:
        case RNL_MAP_GELU_TANH:
        case RNL_MAP_MISH:
            return true;
        default:
            break;
        }
    return false;
}

uint64_t rnl_chain_flops(const rnl_chain *chain, const rnl_view *dst)
{
    return chain ? chain->stage_count * (uint64_t)rnl_view_elements(dst) : 0;
}

uint64_t rnl_chain_bytes(const rnl_chain *chain)
{
    uint64_t bytes = 0;
    for (size_t i = 0; chain && i < chain->operand_count; i++)
        bytes += (uint64_t)rnl_view_elements(&chain->operands[i]) * rnl_dtype_bytes(chain->operands[i].dtype);
    return bytes;
}
