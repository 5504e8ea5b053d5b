/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_OPS_DESCRIBE_STEP_H
#define RUNNEL_OPS_DESCRIBE_STEP_H

#include "device/watch.h"
#include "ops/execute.h"

/* Tells of a step's launch, or adds to the failure `status` what was launched. Returns `status`. */
rnl_status rnl_step_describe(const rnl_watch *watch, const rnl_step_list *list, const rnl_step *step,
                             const rnl_range *range, const rnl_slot_memory *slots, rnl_status status);

#endif
