/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/conv_step.h"
#include "ops/instruction.h"

void rnl_conv_add_defines(rnl_step_builder *step, const rnl_conv_problem *problem, const rnl_conv_tile *tile)
{
    rnl_step_type(step, "T_SRC", problem->src->dtype);
    const rnl_dtype absent = problem->pairs ? RNL_F32 : problem->src->dtype;
    rnl_step_type(step, "T_BIAS", rnl_view_exists(problem->bias) ? problem->bias->dtype : absent);
    rnl_step_type(step, "T_DST", problem->dst->dtype);
    const bool mixed = problem->src->dtype == RNL_BF16 && problem->weight->dtype == RNL_F32;
    if (mixed || problem->amx)
        rnl_step_type(step, "T_WEIGHT", problem->weight->dtype);
    if ((problem->weight->dtype == RNL_F32 || problem->pairs || problem->amx) && problem->dst->dtype == RNL_BF16 &&
        rnl_device_runs(step->list->device, RNL_INSTRUCTION_BF16))
        rnl_step_define(step, "HARDWARE_BF16");
    rnl_step_define(step, "V=%lld -DP=%lld", (long long)tile->vector, (long long)tile->pixels);
    rnl_chain_define(step, problem->chain, problem->operand_step);
}

static void add_int4(rnl_step_builder *step, const int64_t xyz[3], int64_t w)
{
    const int32_t values[4] = {(int32_t)xyz[0], (int32_t)xyz[1], (int32_t)xyz[2], (int32_t)w};
    rnl_step_value(step, values, sizeof values);
}

void rnl_conv_add_arguments(rnl_step_builder *step, const rnl_conv_problem *problem, bool blocks_last, int64_t first,
                            int64_t second, int64_t third)
{
    rnl_step_view(step, problem->src);
    rnl_step_view(step, problem->weight);
    rnl_step_view(step, problem->bias);
    rnl_step_view(step, problem->dst);
    add_int4(step, problem->src_size, problem->channels);
    add_int4(step, problem->dst_size, problem->filters);
    add_int4(step, problem->taps, problem->groups);
    add_int4(step, problem->stride, third);
    add_int4(step, problem->dilation, 0);
    add_int4(step, problem->pad, 0);
    rnl_step_indices(step, 4, problem->src_stride, 4, 0);
    rnl_step_indices(step, 4, problem->dst_stride, 4, 0);
    rnl_step_indices(step, 4, problem->weight_stride, 4, 0);
    add_int4(step, (const int64_t[]){blocks_last, rnl_view_exists(problem->bias), first}, second);
    rnl_chain_arguments(step, problem->chain, 4, problem->operand_stride, 4);
}

void rnl_conv_add_cost(rnl_step_builder *step, const rnl_conv_problem *problem)
{
    const uint64_t pair = problem->pairs ? 2 : 1;
    const uint64_t inputs = (uint64_t)rnl_view_elements(problem->src);
    const uint64_t outputs = (uint64_t)rnl_view_elements(problem->dst);
    const uint64_t taps = (uint64_t)(problem->taps[0] * problem->taps[1] * problem->taps[2]);
    step->step.flops =
        2 * taps *
        (problem->transposed ? inputs * (uint64_t)problem->filters : outputs * pair * (uint64_t)problem->channels);
    step->step.bytes = inputs * rnl_dtype_bytes(problem->src->dtype) / pair +
                       outputs * rnl_dtype_bytes(problem->dst->dtype) +
                       (uint64_t)rnl_view_elements(problem->weight) * rnl_dtype_bytes(problem->weight->dtype) / pair +
                       rnl_chain_bytes(problem->chain);
    step->step.flops += rnl_chain_flops(problem->chain, problem->dst);
}
