/* SPDX-License-Identifier: Apache-2.0 */
/* Runs whose steps are measured. A session that never asks for one carries a NULL pointer. */
#ifndef RUNNEL_MODEL_PROFILE_H
#define RUNNEL_MODEL_PROFILE_H

#include "model/session.h"
#include "ops/timing.h"

/* A plan of the run, and where its steps stand in the profile; a plan that ran again has its times added up. */
typedef struct rnl_profile_piece {
    rnl_plan *plan; /* retained */
    size_t first_step;
} rnl_profile_piece;

struct rnl_profile {
    rnl_step_timer *timers; /* of the plan that runs */
    size_t timer_count, timer_capacity;
    rnl_step_profile *steps; /* lent to the caller: of all plans of the run */
    size_t step_count, step_capacity;
    rnl_profile_piece *pieces;
    size_t piece_count, piece_capacity;
    bool waits;    /* the device gives no times */
    bool is_timed; /* the run: false when the driver had no time for some step */
};

/* Adds the times of the bound plan, which has run. */
RNL_NODISCARD rnl_status rnl_profile_collect(rnl_session *session);

/* rnl_session_profile, without the flags that guard against a second run. */
RNL_NODISCARD rnl_status rnl_profile_run(rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                                         const rnl_step_profile **out_steps, size_t *out_count);
/* Enqueues the bound plan's next step and measures it. */
RNL_NODISCARD rnl_status rnl_profile_step(rnl_session *session, size_t step);
/* What the plan's step is, without times. */
rnl_step_profile rnl_profile_describe(const rnl_plan *plan, size_t step);
void rnl_profile_free(rnl_profile *profile);

#endif
