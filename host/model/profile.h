/* SPDX-License-Identifier: Apache-2.0 */
/* Runs whose steps are measured. A session that never asks for one carries a NULL pointer. */
#ifndef RUNNEL_MODEL_PROFILE_H
#define RUNNEL_MODEL_PROFILE_H

#include "model/session.h"
#include "ops/timing.h"

struct rnl_profile {
    rnl_step_timer *timers; /* of the run in progress */
    size_t timer_count, timer_capacity;
    rnl_step_profile *steps; /* lent to the caller */
    size_t step_capacity;
    bool waits; /* the device gives no times */
};

/* rnl_session_profile, without the flags that guard against a second run. */
RNL_NODISCARD rnl_status rnl_profile_run(rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                                         const rnl_step_profile **out_steps, size_t *out_count);
/* Enqueues the bound plan's next step and measures it. */
RNL_NODISCARD rnl_status rnl_profile_step(rnl_session *session, size_t step);
void rnl_profile_free(rnl_profile *profile);

#endif
