/* SPDX-License-Identifier: Apache-2.0 */
#include "model/teamwork.h"

#include "base/clock.h"
#include "kernel/team.h"
#include "model/session.h"
#include <stdlib.h>
#include <string.h>

#define SHORTEST 32u   /* runs, the first to warm up and the next to measure: a process's first ones tell little; … */
#define PERIOD 256u    /* … twice as many each time up to these, and up to … */
#define LONGEST 65536u /* … while the team turns out to be the slower way */
#define FAR_WORSE 1.5  /* two runs by the team that took so many times as long as those before them are enough */
#define MEASURED (2 * RNL_TEAMWORK_TRIALS)
#define BETTER 0.98
#define MOST_WAITING 0.1 /* of a run */
#define DOUBTS 4         /* the first runs load kernels, for which all wait */

static int by_time(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double median(const uint64_t took_ns[RNL_TEAMWORK_TRIALS])
{
    uint64_t sorted[RNL_TEAMWORK_TRIALS];
    memcpy(sorted, took_ns, sizeof sorted);
    qsort(sorted, RNL_TEAMWORK_TRIALS, sizeof *sorted, by_time);
    return (double)sorted[RNL_TEAMWORK_TRIALS / 2];
}

static rnl_teamwork_record *find(rnl_teamwork *work, const rnl_plan *plan)
{
    for (size_t i = 0; i < RNL_TEAMWORK_PLANS; i++)
        if (work->records[i].plan == plan)
            return &work->records[i];
    rnl_teamwork_record *made = &work->records[work->next];
    work->next = (work->next + 1) % RNL_TEAMWORK_PLANS;
    const bool is_collected = rnl_steps_are_collected(&plan->steps);
    *made = (rnl_teamwork_record){.plan = plan, .is_collected = is_collected, .is_trusted = is_collected};
    return made;
}

/* Which of the trials the next run is, from 0 on: alone, by the team, and so on; or -1. */
static int trial_of(const rnl_teamwork_record *record)
{
    return record->run >= 1 && record->run <= MEASURED ? (int)record->run - 1 : -1;
}

static bool is_wanted(const rnl_teamwork_record *record)
{
    if (record->is_trusted)
        return true;
    const int trial = trial_of(record);
    return trial >= 0 ? trial % 2 == 1 : record->is_better;
}

void rnl_teamwork_begin(rnl_session *session)
{
    rnl_teamwork *work = &session->teamwork;
    rnl_device *device = session->model->device;
    const rnl_team_wish wish = rnl_team_get_wish();
    work->now = NULL;
    if (wish == RNL_TEAM_OFF || session->is_profiled || session->bound->steps.step_count == 0 ||
        !rnl_device_has_team(device))
        return;
    rnl_teamwork_record *record = find(work, session->bound);
    if (wish != RNL_TEAM_ON) {
        work->now = record;
        work->launches_before = session->stream->team_launches;
        work->start_ns = rnl_clock_ns();
        work->mark = rnl_team_set_mark(device);
    }
    if (wish != RNL_TEAM_ON && !is_wanted(record))
        return;
    rnl_team_begin(session->stream);
    if (record->is_collected)
        rnl_team_help(session->stream);
}

static void decide(rnl_teamwork_record *record, bool is_better)
{
    record->is_better = is_better;
    const uint32_t most = is_better ? PERIOD : LONGEST;
    record->period = record->period == 0 ? SHORTEST : record->period >= most / 2 ? most : 2 * record->period;
}

static void note(rnl_teamwork_record *record, uint32_t trial, uint64_t took_ns)
{
    const bool by_team = trial % 2 == 1;
    record->took_ns[trial % 2][trial / 2] = took_ns;
    record->far_worse += by_team && (double)took_ns > FAR_WORSE * (double)record->took_ns[0][trial / 2];
    if (record->far_worse == 2) {
        decide(record, false);
        record->run = MEASURED; /* no more of them */
    } else if (trial == MEASURED - 1) {
        decide(record, median(record->took_ns[1]) < BETTER * median(record->took_ns[0]));
    }
}

/* Behind a run of one that is trusted. */
static void watch(rnl_teamwork_record *record, double waited)
{
    record->doubts = waited > MOST_WAITING ? record->doubts + 1 : 0;
    record->is_trusted = record->doubts < DOUBTS;
    record->run = record->is_trusted ? 0 : 1; /* the first to be measured */
}

void rnl_teamwork_end(rnl_session *session)
{
    rnl_teamwork *work = &session->teamwork;
    rnl_teamwork_record *record = work->now;
    if (!record)
        return;
    if (record->is_trusted) {
        watch(record, rnl_team_waited(session->model->device, &work->mark));
        return;
    }
    const int trial = trial_of(record);
    /* Others may have had the threads, or steps may be timed one by one: that is no trial. */
    if (trial % 2 == 1 && session->stream->team_launches == work->launches_before)
        return;
    if (trial >= 0)
        note(record, (uint32_t)trial, rnl_clock_ns() - work->start_ns);
    if (++record->run >= (record->period ? record->period : SHORTEST)) {
        record->run = 0;
        record->far_worse = 0;
    }
}
