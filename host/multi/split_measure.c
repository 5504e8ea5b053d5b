/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A new shape: how long each device takes alone, which of them together are faster than the fastest, and whether a
 * split's results are those of the whole. Every device first runs a single row, and no more where that alone takes
 * longer than the whole elsewhere.
 */
#include "base/log.h"
#include "base/memory.h"
#include "graph/graph.h"
#include "multi/split.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TIMED_RUNS 3
#define ENOUGH_NS 3e8   /* timed runs of one kind together */
#define SMALL_BATCH 16  /* run as a whole where a larger one is run in part first */
#define SMALL_PART 8    /* that part of it */
#define GAIN 0.97       /* of the time without a device: what it must bring */
#define HOPELESS 4.0    /* times the fastest one's whole batch for a single row: not measured again */
#define ALIKE 1.25      /* devices are added together whose times are that near */
#define MOST_ERROR 1e-3 /* squared differences over squared values */

typedef struct survey {
    rnl_batch *batch;
    rnl_split *split;
    double one_ns[RNL_MULTI_MAX_DEVICES];
    bool is_tried[RNL_MULTI_MAX_DEVICES];
    double best_ns; /* with split->share */
    rnl_tensor *whole;
    bool is_compared;
    rnl_error out; /* why the last device that is out could not do it */
} survey;

/* The least of some runs, behind one that plans. A device that cannot do it is out. */
static rnl_status time_part(survey *s, size_t member, size_t rows, double *out_ns)
{
    double total = 0, least = 0, ns = 0;
    rnl_status status = rnl_batch_time(s->batch, member, rows, &ns);
    for (int i = 0; i < TIMED_RUNS && total < ENOUGH_NS && status == RNL_OK; i++) {
        status = rnl_batch_time(s->batch, member, rows, &ns);
        least = i == 0 || ns < least ? ns : least;
        total += ns;
    }
    *out_ns = least;
    if (rnl_status_is_devices(status)) {
        s->out = *rnl_last_error();
        s->split->lines[member].is_out = true;
        return RNL_OK;
    }
    return status;
}

/* ---- Alone ---------------------------------------------------------------------------------------------------- */

static void take_alone(survey *s, size_t member, double ns)
{
    memset(s->split->share, 0, s->batch->multi->member_count * sizeof *s->split->share);
    s->split->share[member] = s->batch->rows;
    s->split->best = member;
    s->best_ns = ns;
}

/* A device that might be the fastest is measured with the whole batch. */
static rnl_status survey_member(survey *s, size_t member)
{
    const size_t rows = s->batch->rows, part = rows <= SMALL_BATCH ? rows : rows / SMALL_PART;
    rnl_line *line = &s->split->lines[member];
    double part_ns = 0, all_ns = 0;
    TRY(time_part(s, member, part, &part_ns));
    if (line->is_out)
        return RNL_OK;
    *line = rnl_line_through(1, s->one_ns[member], part, part_ns);
    all_ns = part_ns;
    if (part < rows && s->best_ns > 0 && rnl_line_at(line, rows) >= s->best_ns)
        return RNL_OK;
    if (part < rows) {
        TRY(time_part(s, member, rows, &all_ns));
        if (line->is_out)
            return RNL_OK;
        *line = rnl_line_through(part, part_ns, rows, all_ns);
    }
    if (s->best_ns == 0 || all_ns < s->best_ns)
        take_alone(s, member, all_ns);
    return RNL_OK;
}

static rnl_status survey_one_row(survey *s)
{
    rnl_multi *multi = s->batch->multi;
    for (size_t i = 0; i < multi->member_count; i++) {
        pthread_mutex_lock(&multi->lock);
        s->split->lines[i].is_out = multi->members[i].is_lost || (s->split->is_hopeless[i] && multi->member_count > 1);
        pthread_mutex_unlock(&multi->lock);
        if (!s->split->lines[i].is_out)
            TRY(time_part(s, i, 1, &s->one_ns[i]));
    }
    return RNL_OK;
}

static rnl_status survey_members(survey *s)
{
    const size_t count = s->batch->multi->member_count;
    memset(s->is_tried, 0, sizeof s->is_tried);
    TRY(survey_one_row(s));
    for (;;) {
        size_t next = RNL_NOBODY;
        for (size_t i = 0; i < count; i++)
            if (!s->is_tried[i] && !s->split->lines[i].is_out && (next == RNL_NOBODY || s->one_ns[i] < s->one_ns[next]))
                next = i;
        if (next == RNL_NOBODY)
            break;
        s->is_tried[next] = true;
        if (s->best_ns > 0 && s->one_ns[next] >= s->best_ns)
            s->split->lines[next].is_out = true;
        else
            TRY(survey_member(s, next));
    }
    for (size_t i = 0; i < count; i++)
        s->split->is_hopeless[i] =
            s->split->lines[i].is_out && (s->one_ns[i] == 0 || s->one_ns[i] > HOPELESS * s->best_ns);
    return RNL_OK;
}

static rnl_status survey_alone(survey *s)
{
    TRY(survey_members(s));
    if (s->best_ns == 0) { /* then whoever there is */
        memset(s->split->is_hopeless, 0, s->batch->multi->member_count * sizeof *s->split->is_hopeless);
        TRY(survey_members(s));
    }
    if (s->best_ns > 0)
        return RNL_OK;
    if (!rnl_multi_count_present(s->batch->multi) || s->out.status == RNL_OK)
        return rnl_multi_fail_nobody();
    return rnl_error_add(rnl_error_restore(&s->out), "no device can run a batch of %zu rows", s->batch->rows);
}

/* Lines that lead to the shares that the caller gave. */
static rnl_status choose_fixed(survey *s)
{
    rnl_multi *multi = s->batch->multi;
    size_t best = RNL_NOBODY;
    pthread_mutex_lock(&multi->lock);
    for (size_t i = 0; i < multi->member_count; i++) {
        const double share = multi->fixed_shares[i];
        s->split->lines[i] =
            (rnl_line){.row_ns = share > 0 ? 1 / share : 0, .is_out = multi->members[i].is_lost || share == 0};
        if (!s->split->lines[i].is_out && (best == RNL_NOBODY || share > multi->fixed_shares[best]))
            best = i;
    }
    pthread_mutex_unlock(&multi->lock);
    if (best == RNL_NOBODY)
        return rnl_multi_fail_nobody();
    take_alone(s, best, 1);
    return RNL_OK;
}

/* ---- The whole ------------------------------------------------------------------------------------------------ */

static rnl_status refuse(rnl_multi *multi, const char *name, const char *reason)
{
    pthread_mutex_lock(&multi->lock);
    snprintf(multi->no_split, sizeof multi->no_split, "a batch cannot be split: output '%.80s' %s", name, reason);
    pthread_mutex_unlock(&multi->lock);
    return rnl_multi_check_split(multi);
}

static rnl_status run_whole(survey *s)
{
    rnl_multi *multi = s->batch->multi;
    TRY(rnl_batch_run_whole(s->batch, s->split->best, s->whole));
    for (size_t i = 0; i < multi->graph->output_count; i++) {
        const rnl_tensor *output = &s->whole[i];
        rnl_batch_output *of = &s->split->outputs[i];
        if (output->rank == 0 || output->shape[0] != (int64_t)s->batch->rows)
            return refuse(multi, output->name, "has another number of rows than the inputs");
        of->dtype = output->dtype;
        of->rank = output->rank;
        memcpy(of->shape, output->shape, sizeof of->shape);
        of->row_bytes = rnl_row_bytes(output->dtype, output->shape, output->rank);
    }
    return RNL_OK;
}

/* ---- Comparing ------------------------------------------------------------------------------------------------ */

static double as_float(const void *at, rnl_dtype dtype)
{
    double wide;
    float narrow;
    uint16_t half;
    if (dtype == RNL_F64) {
        memcpy(&wide, at, sizeof wide);
        return wide;
    }
    if (dtype == RNL_F32) {
        memcpy(&narrow, at, sizeof narrow);
        return (double)narrow;
    }
    memcpy(&half, at, sizeof half);
    if (dtype == RNL_F16) {
        const int exponent = half >> 10 & 31, fraction = half & 1023;
        const double size = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                            : exponent == 0 ? ldexp(fraction, -24)
                                            : ldexp(fraction + 1024, exponent - 25);
        return half >> 15 ? -size : size;
    }
    const uint32_t bits = (uint32_t)half << 16;
    memcpy(&narrow, &bits, sizeof narrow);
    return (double)narrow;
}

static bool is_float(rnl_dtype dtype)
{
    return dtype == RNL_F32 || dtype == RNL_F64 || dtype == RNL_F16 || dtype == RNL_BF16;
}

/* Numbers of other types are equal but for a tenth: where two are nearly the same, either may be the largest. */
static bool are_alike(const char *a, const char *b, size_t bytes, rnl_dtype dtype)
{
    const size_t step = rnl_dtype_bytes(dtype), count = bytes / step;
    double error = 0, size = 0;
    size_t different = 0;
    for (size_t i = 0; i < count; i++, a += step, b += step) {
        different += memcmp(a, b, step) != 0;
        if (!is_float(dtype))
            continue;
        const double x = as_float(a, dtype), y = as_float(b, dtype);
        if (!isfinite(x) || !isfinite(y))
            continue; /* how these come about differs between devices */
        error += (x - y) * (x - y);
        size += y * y;
    }
    return is_float(dtype) ? error <= MOST_ERROR * size : different <= count / 10;
}

static rnl_status compare(survey *s, const rnl_batch_target *targets)
{
    rnl_multi *multi = s->batch->multi;
    for (size_t i = 0; i < multi->graph->output_count && !s->is_compared; i++)
        if (!are_alike(targets[i].data, s->whole[i].data, targets[i].of.row_bytes * s->batch->rows,
                       targets[i].of.dtype))
            return refuse(multi, s->whole[i].name,
                          "is another one when the batch is split: its rows depend on each other");
    s->is_compared = true;
    return RNL_OK;
}

/* ---- Together ------------------------------------------------------------------------------------------------- */

/* The least time of some runs by these shares; the lines follow what the parts took. */
static rnl_status time_shares(survey *s, const size_t *share, const rnl_batch_target *targets, double *out_ns)
{
    rnl_batch *batch = s->batch;
    const size_t count = batch->multi->member_count, outputs = batch->multi->graph->output_count;
    double total = 0, ns = 0;
    *out_ns = 0;
    TRY(rnl_batch_run(batch, share, targets, outputs, &ns));
    TRY(compare(s, targets));
    for (int i = 0; i < TIMED_RUNS && total < ENOUGH_NS; i++) {
        TRY(rnl_batch_run(batch, share, targets, outputs, &ns));
        total += ns;
        if (*out_ns > 0 && ns >= *out_ns)
            continue;
        *out_ns = ns;
        for (size_t j = 0; j < count; j++) {
            rnl_line *line = &s->split->lines[j];
            const double factor = share[j] ? (double)batch->jobs[j].elapsed_ns / rnl_line_at(line, share[j]) : 1;
            line->fixed_ns *= factor;
            line->row_ns *= factor;
        }
    }
    return RNL_OK;
}

/* The same, where a device's failure is no gain, and not more than that: the whole has been computed. */
static rnl_status try_shares(survey *s, const size_t *share, const rnl_batch_target *targets, double *out_ns)
{
    const rnl_status status = time_shares(s, share, targets, out_ns);
    if (!rnl_status_is_devices(status))
        return status;
    *out_ns = HUGE_VAL;
    return RNL_OK;
}

/* Twice: by the times that were measured alone, and by those that came of it. */
static rnl_status try_lines(survey *s, const rnl_line *lines, const rnl_batch_target *targets, bool *out_better)
{
    size_t share[RNL_MULTI_MAX_DEVICES] = {0}, again[RNL_MULTI_MAX_DEVICES] = {0};
    rnl_multi *multi = s->batch->multi;
    const size_t rows = s->batch->rows, bytes = multi->member_count * sizeof *share;
    rnl_line seen[RNL_MULTI_MAX_DEVICES];
    double ns = rnl_shares_find(lines, multi->member_count, rows, share), again_ns = 0;
    *out_better = false;
    if (ns >= GAIN * s->best_ns || memcmp(share, s->split->share, bytes) == 0)
        return RNL_OK;
    TRY(try_shares(s, share, targets, &ns));
    for (size_t i = 0; i < multi->member_count; i++) {
        seen[i] = s->split->lines[i];
        seen[i].is_out = lines[i].is_out;
    }
    if (rnl_shares_find(seen, multi->member_count, rows, again) < GAIN * ns && memcmp(share, again, bytes) != 0) {
        TRY(try_shares(s, again, targets, &again_ns));
        if (again_ns < ns) {
            ns = again_ns;
            memcpy(share, again, bytes);
        }
    }
    if (ns >= GAIN * s->best_ns)
        return RNL_OK;
    memcpy(s->split->share, share, bytes);
    s->best_ns = ns;
    *out_better = true;
    return RNL_OK;
}

/* The fastest of those that are not in yet, and those like it: into `out_group`. False when there is none. */
static bool next_group(const survey *s, const bool *is_in, bool *out_group)
{
    const size_t count = s->batch->multi->member_count, rows = s->batch->rows;
    const rnl_line *lines = s->split->lines;
    size_t first = RNL_NOBODY;
    for (size_t i = 0; i < count; i++)
        if (!is_in[i] && !lines[i].is_out &&
            (first == RNL_NOBODY || rnl_line_at(&lines[i], rows) < rnl_line_at(&lines[first], rows)))
            first = i;
    for (size_t i = 0; i < count && first != RNL_NOBODY; i++)
        out_group[i] =
            !is_in[i] && !lines[i].is_out && rnl_line_at(&lines[i], rows) <= ALIKE * rnl_line_at(&lines[first], rows);
    return first != RNL_NOBODY;
}

static rnl_status survey_together(survey *s, const rnl_batch_target *targets)
{
    const size_t count = s->batch->multi->member_count;
    bool is_in[RNL_MULTI_MAX_DEVICES] = {false}, group[RNL_MULTI_MAX_DEVICES] = {false}, better = false;
    rnl_line lines[RNL_MULTI_MAX_DEVICES], before[RNL_MULTI_MAX_DEVICES];
    is_in[s->split->best] = true;
    while (next_group(s, is_in, group)) {
        memcpy(before, s->split->lines, count * sizeof *before);
        memcpy(lines, s->split->lines, count * sizeof *lines);
        for (size_t i = 0; i < count; i++)
            lines[i].is_out = !is_in[i] && !group[i];
        TRY(try_lines(s, lines, targets, &better));
        if (!better)
            memcpy(s->split->lines, before, count * sizeof *before);
        for (size_t i = 0; i < count; i++) {
            is_in[i] = is_in[i] || (better && group[i]);
            s->split->lines[i].is_out = s->split->lines[i].is_out || (!better && group[i]);
        }
    }
    return RNL_OK;
}

/* Memory for the batch's outputs once more, and splitting it. */
static rnl_status survey_splits(survey *s)
{
    const rnl_graph *graph = s->batch->multi->graph;
    rnl_batch_target *targets = NULL;
    rnl_status status = RNL_OK;
    GOTO(rnl_alloc(graph->output_count, sizeof *targets, &targets));
    for (size_t i = 0; i < graph->output_count; i++) {
        targets[i] = (rnl_batch_target){.index = i, .of = s->split->outputs[i]};
        GOTO(rnl_alloc(s->batch->rows, targets[i].of.row_bytes ? targets[i].of.row_bytes : 1, &targets[i].data));
    }
    GOTO(survey_together(s, targets));
done:
    for (size_t i = 0; targets && i < graph->output_count; i++)
        rnl_free(targets[i].data);
    rnl_free(targets);
    return status;
}

static void report(const survey *s)
{
    rnl_multi *multi = s->batch->multi;
    pthread_mutex_lock(&multi->lock);
    for (size_t i = 0; i < multi->member_count; i++) {
        multi->members[i].share = s->split->share[i];
        if (s->split->share[i])
            multi->members[i].row_ns =
                rnl_line_at(&s->split->lines[i], s->split->share[i]) / (double)s->split->share[i];
        rnl_log(RNL_LOG_INFO, "of %zu rows %zu go to %s", s->batch->rows, s->split->share[i], multi->members[i].name);
    }
    pthread_mutex_unlock(&multi->lock);
}

rnl_status rnl_split_measure(rnl_batch *batch, rnl_split *split, rnl_tensor *outputs)
{
    survey s = {.batch = batch, .split = split, .whole = outputs};
    batch->measures = true;
    TRY(batch->multi->fixed_shares ? choose_fixed(&s) : survey_alone(&s));
    split->solo_ns = s.best_ns;
    TRY(run_whole(&s));
    if (batch->multi->fixed_shares)
        (void)rnl_shares_find(split->lines, batch->multi->member_count, batch->rows, split->share);
    else if (batch->multi->member_count > 1)
        TRY(survey_splits(&s));
    report(&s);
    return RNL_OK;
}
