/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a session's runs are better done by a team of threads (kernel/team.h). Where nothing else wants the
 * processors they are; where something does, one thread that is held up holds up all. So both ways are measured, in
 * turns, at the first runs of a plan and every some hundred runs again. A plan whose launches a team collects is run by
 * it from the first run on, and measured so only once threads wait for each other for long: until then nobody needs the
 * driver's programs.
 */
#ifndef RUNNEL_MODEL_TEAMWORK_H
#define RUNNEL_MODEL_TEAMWORK_H

#include "kernel/team.h"

struct rnl_session;

#define RNL_TEAMWORK_TRIALS 5 /* of each way; odd */
#define RNL_TEAMWORK_PLANS 4  /* that are remembered, those that came last */

typedef struct rnl_teamwork_record {
    const void *plan;   /* to compare alone; NULL: nothing yet */
    bool is_collected;  /* most of its steps can be */
    bool is_trusted;    /* by the team, not measured */
    uint32_t doubts;    /* runs of it in a row in which threads waited for each other */
    uint32_t run;       /* of so many that follow each other … */
    uint32_t period;    /* … 0: not known yet */
    uint32_t far_worse; /* runs by the team */
    bool is_better;
    uint64_t took_ns[2][RNL_TEAMWORK_TRIALS]; /* alone, and by the team */
} rnl_teamwork_record;

typedef struct rnl_teamwork {
    rnl_teamwork_record records[RNL_TEAMWORK_PLANS], *now; /* now: of the run in progress, NULL: it is not measured */
    uint32_t next;                                         /* to be replaced */
    uint64_t start_ns, launches_before;
    rnl_team_mark mark;
} rnl_teamwork;

/* Around the steps of a run, and what waits for them. */
void rnl_teamwork_begin(struct rnl_session *session);
void rnl_teamwork_end(struct rnl_session *session);

#endif
