/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each value while planning: its description, and its contents where the host can work them out. */
#ifndef RUNNEL_MODEL_EVALUATE_H
#define RUNNEL_MODEL_EVALUATE_H

#include "graph/op_common.h"
#include "model/lower.h"

/* Describes every value in topological order; evaluates small tensors whose inputs are all known. */
RNL_NODISCARD rnl_status rnl_plan_describe(rnl_planner *planner);
rnl_tensor_desc rnl_desc_of(const rnl_host_tensor *tensor);
/* Marks what the outputs need on the device, backwards. */
void rnl_plan_mark_needed(rnl_planner *planner);
/* Fills in the descriptions that a node's inference, evaluation or lowering sees. The arrays are the planner's scratch.
 */
RNL_NODISCARD rnl_status rnl_plan_context(rnl_planner *planner, const rnl_node *node, rnl_op_context *out_context);

/* Which values' contents shapes depend on, and who reads each value last: two backward walks. */
RNL_NODISCARD rnl_status rnl_model_find_reads(rnl_model *model);
/* After describing: what the plan gives to whoever comes after it. */
RNL_NODISCARD rnl_status rnl_plan_find_outputs(rnl_planner *planner);

#endif
