/* SPDX-License-Identifier: Apache-2.0 */
/* RUNNEL_VERBOSE=dispatch. */
#ifndef RUNNEL_MODEL_TELL_H
#define RUNNEL_MODEL_TELL_H

#include "model/lower.h"

/* A line for each step of the plan: what runs it, and which node, of which shapes, it is for. */
void rnl_plan_tell(const rnl_planner *planner);

#endif
