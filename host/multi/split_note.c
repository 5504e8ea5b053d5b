/* SPDX-License-Identifier: Apache-2.0 */
/* What is noted for batches of a shape, and how shares follow the times that are measured while running. */
#include "base/log.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "multi/split.h"

#include <string.h>

#define MOST_SPLITS 64
#define NEWEST 0.25      /* weight of the newest measurement */
#define FIRST_PERIOD 16  /* runs until shares are looked at again */
#define LAST_PERIOD 4096 /* after changes that were no good */
#define WORTHWHILE 0.95  /* of the present time: other shares mean planning */
#define GONE_ASTRAY 1.5  /* of the first time: all is measured again, if it stays so */
#define FIRST_PATIENCE 4

/* ---- The list ------------------------------------------------------------------------------------------------- */

static size_t key_bytes(const rnl_multi *multi)
{
    return multi->graph->input_count * (1 + RNL_MAX_RANK) * sizeof(int64_t);
}

void rnl_split_free(rnl_split *split)
{
    if (!split)
        return;
    rnl_free(split->key);
    rnl_free(split->outputs);
    rnl_free(split->lines);
    rnl_free(split->share);
    rnl_free(split->former_share);
    rnl_free(split->is_hopeless);
    rnl_free(split);
}

void rnl_splits_free(rnl_multi *multi)
{
    while (multi->splits) {
        rnl_split *split = multi->splits;
        multi->splits = split->next;
        rnl_split_free(split);
    }
}

rnl_status rnl_split_create(rnl_multi *multi, const int64_t *key, rnl_split **out_split)
{
    rnl_split *split = NULL;
    rnl_status status = RNL_OK;
    *out_split = NULL;
    TRY(rnl_alloc(1, sizeof *split, &split));
    split->period = FIRST_PERIOD;
    split->patience = FIRST_PATIENCE;
    GOTO(rnl_alloc(1, key_bytes(multi), &split->key));
    GOTO(rnl_alloc(multi->graph->output_count, sizeof *split->outputs, &split->outputs));
    GOTO(rnl_alloc(multi->member_count, sizeof *split->lines, &split->lines));
    GOTO(rnl_alloc(multi->member_count, sizeof *split->share, &split->share));
    GOTO(rnl_alloc(multi->member_count, sizeof *split->former_share, &split->former_share));
    GOTO(rnl_alloc(multi->member_count, sizeof *split->is_hopeless, &split->is_hopeless));
    memcpy(split->key, key, key_bytes(multi));
    *out_split = split;
    return RNL_OK;
done:
    rnl_split_free(split);
    return status;
}

static rnl_split *take_out(rnl_multi *multi, const int64_t *key)
{
    for (rnl_split **at = &multi->splits; *at; at = &(*at)->next) {
        rnl_split *split = *at;
        if (memcmp(split->key, key, key_bytes(multi)) != 0)
            continue;
        *at = split->next;
        multi->split_count--;
        return split;
    }
    return NULL;
}

static void put_in_front(rnl_multi *multi, rnl_split *split)
{
    split->next = multi->splits;
    multi->splits = split;
    multi->split_count++;
}

rnl_split *rnl_split_find(rnl_multi *multi, const int64_t *key)
{
    rnl_split *split = take_out(multi, key);
    if (split)
        put_in_front(multi, split);
    return split;
}

void rnl_split_inherit(rnl_multi *multi, rnl_split *split)
{
    const rnl_split *former = rnl_split_find(multi, split->key);
    if (!former)
        return;
    split->patience = 2 * former->patience; /* noise is no reason to measure for ever */
    memcpy(split->is_hopeless, former->is_hopeless, multi->member_count * sizeof *split->is_hopeless);
}

void rnl_split_note(rnl_multi *multi, rnl_split *split)
{
    rnl_split **at = &multi->splits;
    rnl_split_free(take_out(multi, split->key));
    put_in_front(multi, split);
    while ((*at)->next)
        at = &(*at)->next;
    if (multi->split_count <= MOST_SPLITS)
        return;
    rnl_split_free(*at);
    *at = NULL;
    multi->split_count--;
}

/* ---- Learning ------------------------------------------------------------------------------------------------- */

static double blend(double old, double newest)
{
    return old > 0 ? old + NEWEST * (newest - old) : newest;
}

static bool is_alone(const rnl_split *split, size_t rows)
{
    return split->share[split->best] == rows;
}

/* Other shares, on trial. */
static void change(rnl_multi *multi, rnl_split *split, const size_t *share)
{
    const size_t bytes = multi->member_count * sizeof *share;
    memcpy(split->former_share, split->share, bytes);
    memcpy(split->share, share, bytes);
    split->former_ns = split->now_ns;
    split->now_ns = split->first_ns = 0;
    split->is_trial = true;
}

static void judge(rnl_multi *multi, rnl_split *split)
{
    split->is_trial = false;
    if (split->now_ns <= split->former_ns)
        return;
    memcpy(split->share, split->former_share, multi->member_count * sizeof *split->share);
    split->now_ns = split->former_ns;
    split->period = split->period < LAST_PERIOD ? 2 * split->period : LAST_PERIOD;
}

static void look_for_better(rnl_multi *multi, rnl_split *split, size_t rows)
{
    size_t share[RNL_MULTI_MAX_DEVICES] = {0};
    if (is_alone(split, rows))
        return;
    if (split->now_ns > split->solo_ns) {
        share[split->best] = rows;
        change(multi, split, share);
        return;
    }
    const double ns = rnl_shares_find(split->lines, multi->member_count, rows, share);
    if (ns > 0 && ns < WORTHWHILE * split->now_ns &&
        memcmp(share, split->share, multi->member_count * sizeof *share) != 0)
        change(multi, split, share);
}

/* A line that leads to what was measured. */
static void follow(rnl_line *line, size_t rows, double ns)
{
    const double factor = 1 + NEWEST * (ns / rnl_line_at(line, rows) - 1);
    line->fixed_ns *= factor;
    line->row_ns *= factor;
}

static bool are_times_good(const rnl_multi *multi, const rnl_batch *batch, const size_t *share)
{
    for (size_t i = 0; i < multi->member_count; i++)
        if (share[i] > 0 && (!batch->jobs[i].is_clean || batch->jobs[i].member != i))
            return false;
    return true;
}

void rnl_split_learn(rnl_multi *multi, const rnl_batch *batch, const size_t *share, double ns)
{
    rnl_split *split = rnl_split_find(multi, batch->key);
    for (size_t i = 0; i < multi->member_count; i++) {
        multi->members[i].share = share[i];
        if (share[i] > 0 && batch->jobs[i].member == i)
            multi->members[i].row_ns = (double)batch->jobs[i].elapsed_ns / (double)share[i];
    }
    if (!split || multi->fixed_shares || !are_times_good(multi, batch, share) ||
        memcmp(share, split->share, multi->member_count * sizeof *share) != 0)
        return;
    split->now_ns = blend(split->now_ns, ns);
    for (size_t i = 0; i < multi->member_count; i++)
        if (share[i] > 0 && !is_alone(split, batch->rows))
            follow(&split->lines[i], share[i], (double)batch->jobs[i].elapsed_ns);
    if (++split->runs < split->period)
        return;
    split->runs = 0;
    if (split->first_ns == 0)
        split->first_ns = split->now_ns;
    split->astray = split->now_ns > GONE_ASTRAY * split->first_ns ? split->astray + 1 : 0;
    if (split->astray >= split->patience)
        split->is_stale = true;
    else if (split->is_trial)
        judge(multi, split);
    else
        look_for_better(multi, split, batch->rows);
}

void rnl_split_refresh(const rnl_multi *multi, rnl_split *split, size_t rows)
{
    bool has_lost = false;
    for (size_t i = 0; i < multi->member_count; i++) {
        split->lines[i].is_out = split->lines[i].is_out || multi->members[i].is_lost;
        has_lost = has_lost || (multi->members[i].is_lost && split->share[i] > 0);
    }
    if (!has_lost)
        return;
    split->is_trial = false;
    split->runs = 0;
    split->now_ns = split->solo_ns = split->first_ns = 0;
    if (rnl_shares_find(split->lines, multi->member_count, rows, split->share) > 0)
        return;
    memset(split->share, 0, multi->member_count * sizeof *split->share);
    for (size_t i = 0; i < multi->member_count; i++)
        if (!multi->members[i].is_lost) {
            split->share[split->best = i] = rows;
            return;
        }
    split->share[split->best] = rows; /* which fails, and says why */
}
