/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RUNNEL_CHECK_NAN: a run stops at the first step that makes a NaN of values that held none. While planning, each value
 * of floats that comes to lie in memory is noted, with the step behind which it is there and what it was made of; while
 * running, it is copied to the host and looked at. Plans without notes pay nothing.
 */
#ifndef RUNNEL_MODEL_NAN_H
#define RUNNEL_MODEL_NAN_H

#include "model/lower.h"
#include "model/session.h"

/* RUNNEL_CHECK_NAN: unset, empty or 0: off; inf: both; else NaN alone. */
rnl_nan_mode rnl_nan_wanted(void);

/* A value that is there when `steps` steps have run. */
struct rnl_nan_check {
    size_t steps;
    uint32_t node, value;
    rnl_view view;
    size_t first_source, source_count; /* in the plan's nan_sources: values that it was made of */
    bool has_tainted_constant;         /* … or a constant that holds one */
};

/* Notes the outputs of a node that was just lowered; those that are in no memory belong to who reads them. */
RNL_NODISCARD rnl_status rnl_nan_note(rnl_planner *planner, uint32_t node);

/* Looks at the bound plan's inputs. */
RNL_NODISCARD rnl_status rnl_nan_begin(rnl_session *session);
/* Looks at what is there when `steps` steps have run; *next: the check to go on with, 0 at first. */
RNL_NODISCARD rnl_status rnl_nan_look(rnl_session *session, size_t steps, size_t *next);

#endif
