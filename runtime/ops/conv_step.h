/* SPDX-License-Identifier: Apache-2.0 */
/* What the steps of direct convolutions share: clkernels/conv.clh's arguments and defines. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_STEP_H
#define RUNNEL_OPS_CONV_STEP_H

#include "ops/conv_problem.h"

/* The part of the grid that one work-item computes: vectors of `vector` channels for each of the pixels. */
typedef struct rnl_conv_tile {
    int64_t vector, vectors, pixels;
} rnl_conv_tile;

/* T_SRC …, V, P and the chain. */
void rnl_conv_add_defines(rnl_step_builder *step, const rnl_conv_problem *problem, const rnl_conv_tile *tile);
/* CONV_ARGUMENTS. The grid's last dimension are the blocks of channels, or its first; the other three are
 * the kernel's own: flags.z, flags.w and stride.w. */
void rnl_conv_add_arguments(rnl_step_builder *step, const rnl_conv_problem *problem, bool blocks_last, int64_t first,
                            int64_t second, int64_t third);
void rnl_conv_add_cost(rnl_step_builder *step, const rnl_conv_problem *problem);

#endif
