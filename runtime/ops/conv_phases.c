/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results of a transposed convolution whose coordinates are the same modulo the stride, a phase, have the same
 * taps, every stride-th one, and are an ordinary convolution with stride 1 that counts taps backwards: one step for
 * each phase.
 */
#include "ops/conv_phases.h"
#include "ops/conv_panel.h"
#include "ops/implementation.h"

#define MOST_PHASES 16 /* each is a step */

bool rnl_conv_phases_apply(const rnl_device *device, const void *data)
{
    const rnl_conv_problem *problem = data;
    int64_t phases = 1;
    for (size_t i = 0; i < 3; ++i) {
        if (problem->dilation[i] != 1 || problem->stride[i] > MOST_PHASES)
            return false;
        phases *= problem->stride[i];
    }
    return problem->taps[0] * problem->taps[1] * problem->taps[2] <= INT32_MAX / MOST_PHASES && phases <= MOST_PHASES &&
           rnl_conv_panel_applies(device, problem);
}

/* A phase, and what of the whole is different for it. */
typedef struct conv_phase {
    rnl_conv_problem problem;
    rnl_view weight, dst;
    rnl_chain chain;
} conv_phase;

/* Of tensors at the destination's pixels: only those of this phase. */
static void move_results(conv_phase *phase, const rnl_conv_problem *whole, size_t i, int64_t at)
{
    const int64_t stride = whole->stride[i];
    rnl_conv_problem *problem = &phase->problem;
    phase->dst.offset += at * whole->dst_stride[i + 1];
    problem->dst_stride[i + 1] *= stride;
    for (size_t k = 0; problem->chain && k < phase->chain.operand_count; ++k) {
        phase->chain.operands[k].offset += at * whole->operand_stride[k][i + 1];
        problem->operand_stride[k][i + 1] *= stride;
    }
}

/* What dimension i of a phase is. */
static void make_dimension(conv_phase *phase, const rnl_conv_problem *whole, size_t i, int64_t at, int64_t *out_tap)
{
    rnl_conv_problem *problem = &phase->problem;
    const size_t spatial = whole->dst->rank - 2;
    const int64_t stride = whole->stride[i], taps = whole->taps[i], shifted = at + whole->pad[i];
    const int64_t tap = (shifted % stride + stride) % stride;
    problem->dst_size[i] = (whole->dst_size[i] - at + stride - 1) / stride;
    problem->taps[i] = tap < taps ? (taps - tap + stride - 1) / stride : 0;
    problem->pad[i] = (tap - shifted) / stride;
    /* The kernel's strides are steps from tap to tap. */
    problem->stride[i] = stride * (i < 2 ? whole->taps[2] : 1) * (i < 1 ? whole->taps[1] : 1);
    if (i + spatial >= 3)
        phase->dst.shape[i + spatial - 1] = problem->dst_size[i];
    move_results(phase, whole, i, at);
    *out_tap = tap;
}

static void make_phase(conv_phase *phase, const rnl_conv_problem *whole, const int64_t at[3])
{
    rnl_conv_problem *problem = &phase->problem;
    int64_t tap[3];
    *problem = *whole;
    problem->weight = &phase->weight;
    problem->dst = &phase->dst;
    phase->weight = *whole->weight;
    phase->dst = *whole->dst;
    if (whole->chain) {
        phase->chain = *whole->chain;
        problem->chain = &phase->chain;
    }
    for (size_t i = 0; i < 3; ++i)
        make_dimension(phase, whole, i, at[i], &tap[i]);
    if (problem->taps[0] && problem->taps[1] && problem->taps[2]) {
        const int64_t first = (tap[0] * whole->taps[1] + tap[1]) * whole->taps[2] + tap[2];
        phase->weight.offset += first * whole->weight_stride[0];
        problem->weight_stride[3] -= first * whole->weight_stride[0];
    }
}

rnl_status rnl_conv_phases_append(rnl_step_list *list, const char *name, const void *data)
{
    const rnl_conv_problem *whole = data;
    const int64_t *stride = whole->stride, *size = whole->dst_size;
    int64_t at[3];
    for (at[0] = 0; at[0] < stride[0] && at[0] < size[0]; ++at[0])
        for (at[1] = 0; at[1] < stride[1] && at[1] < size[1]; ++at[1])
            for (at[2] = 0; at[2] < stride[2] && at[2] < size[2]; ++at[2]) {
                conv_phase phase;
                make_phase(&phase, whole, at);
                TRY(rnl_conv_panel_append(list, name, &phase.problem));
            }
    return RNL_OK;
}
