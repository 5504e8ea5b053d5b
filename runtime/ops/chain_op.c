/* SPDX-License-Identifier: Apache-2.0 */
/* A chain on its own. */
#include "ops/chain.h"
#include "ops/pieces.h"

static bool uses_input(const rnl_chain *chain)
{
    for (size_t i = 0; i < chain->stage_count; i++) {
        const rnl_chain_stage *stage = &chain->stages[i];
        const size_t count = rnl_map_sources(stage->op) + rnl_map_parameters(stage->op);
        for (size_t j = 0; j < count; j++)
            if (stage->sources[j].kind == RNL_CHAIN_INPUT)
                return true;
    }
    return false;
}

static rnl_status check(const rnl_chain *chain, const rnl_view *dst, bool *out_index64)
{
    const rnl_view *views[1 + RNL_CHAIN_MAX_OPERANDS] = {dst};
    TRY(rnl_chain_check(chain, dst));
    if (uses_input(chain))
        return FAIL(RNL_INVALID_ARGUMENT, "a chain of its own has no operator whose result it could use");
    for (size_t i = 0; i < chain->operand_count; i++) {
        views[i + 1] = &chain->operands[i];
        if (!rnl_view_exists(views[i + 1]))
            return FAIL(RNL_INVALID_ARGUMENT, "operand %zu of a chain does not exist", i);
    }
    if (!rnl_view_exists(dst))
        return FAIL(RNL_INVALID_ARGUMENT, "a chain without a destination");
    return rnl_views_check(views, chain->operand_count + 1, out_index64);
}

static rnl_status collect_dims(const rnl_chain *chain, const rnl_view *dst, rnl_dims *out_dims)
{
    *out_dims = (rnl_dims){.rank = dst->rank, .views = chain->operand_count + 1};
    for (size_t i = 0; i < dst->rank; i++) {
        out_dims->shape[i] = dst->shape[i];
        out_dims->stride[0][i] = dst->stride[i];
    }
    for (size_t i = 0; i < chain->operand_count; i++)
        TRY(rnl_chain_broadcast(chain, i, dst, out_dims->stride[i + 1]));
    return RNL_OK;
}

static void add_chain(rnl_step_builder *step, const rnl_chain *chain, const rnl_dims *dims, size_t vector)
{
    int64_t strides[RNL_CHAIN_MAX_OPERANDS][RNL_MAX_RANK] = {{0}}, along[RNL_CHAIN_MAX_OPERANDS] = {0};
    for (size_t i = 0; i < chain->operand_count; i++) {
        for (size_t d = 0; d < dims->rank; d++)
            strides[i][RNL_MAX_RANK - dims->rank + d] = dims->stride[i + 1][d];
        along[i] = vector > 1 ? strides[i][RNL_MAX_RANK - 1] : 0;
    }
    rnl_chain_define(step, chain, along);
    rnl_chain_arguments(step, chain, RNL_MAX_RANK, (const int64_t(*)[RNL_MAX_RANK])strides, RNL_MAX_RANK);
}

rnl_status rnl_op_chain(rnl_step_list *list, const rnl_chain *chain, const rnl_view *dst)
{
    bool index64 = false;
    rnl_dims dims;
    rnl_step_builder step;
    TRY(check(chain, dst, &index64));
    TRY(collect_dims(chain, dst, &dims));
    if (rnl_view_elements(dst) == 0)
        return RNL_OK;
    rnl_dims_coalesce(&dims);
    const size_t vector = rnl_pieces_vector(&dims, list->device->vector_width);

    rnl_step_begin(&step, list, vector > 1 ? "chain:vectors" : "chain:portable", index64 || rnl_pieces_index64(&dims));
    rnl_step_type(&step, "T_DST", dst->dtype);
    rnl_step_define(&step, "V=%zu", vector);
    rnl_step_view(&step, dst);
    rnl_step_pieces(&step, &dims, vector);
    rnl_step_dims(&step, dims.stride[0], dims.rank, 0);
    add_chain(&step, chain, &dims, vector);
    step.step.flops = rnl_chain_flops(chain, dst);
    step.step.bytes = (uint64_t)rnl_view_elements(dst) * rnl_dtype_bytes(dst->dtype) + rnl_chain_bytes(chain);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "chain.cl", "chain");
}
