/* SPDX-License-Identifier: Apache-2.0 */
/* What reductions and softmax share: kept dimensions number the results, the others are walked in each. */
#ifndef RUNNEL_OPS_REDUCE_PLAN_H
#define RUNNEL_OPS_REDUCE_PLAN_H

#include "ops/step_build.h"

/* Whether a work-group for each result is the better choice; src is view `src_index` of `taken`. */
bool rnl_reduce_by_group(const rnl_dims *taken, size_t src_index, int64_t results);
void rnl_reduce_range(rnl_step_builder *step, bool by_group, int64_t results);
/* The arguments from the number of results on. */
void rnl_reduce_dims(rnl_step_builder *step, const rnl_dims *kept, const rnl_dims *taken);

#endif
