/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a batch: where they lie, running them side by side, and what came of them. */
#include "base/clock.h"
#include "base/memory.h"
#include "multi/split.h"

#include "graph/graph.h"
#include <stdio.h>
#include <string.h>

size_t rnl_row_bytes(rnl_dtype dtype, const int64_t *shape, size_t rank)
{
    size_t bytes = rnl_dtype_bytes(dtype);
    for (size_t i = 1; i < rank; i++)
        if (!rnl_size_mul(bytes, (size_t)shape[i], &bytes))
            return 0;
    return bytes;
}

static rnl_tensor *part_of(const rnl_batch *batch, size_t member)
{
    return batch->parts + member * (batch->input_count + batch->multi->graph->output_count);
}

/* A job for some rows, with inputs and without outputs. */
static rnl_job *make_job(rnl_batch *batch, size_t member, size_t first, size_t rows)
{
    rnl_tensor *inputs = part_of(batch, member);
    rnl_job *job = &batch->jobs[member];
    memset(job, 0, sizeof *job);
    job->inputs = inputs;
    job->input_count = batch->input_count;
    job->outputs = inputs + batch->input_count;
    job->member = member;
    job->work = batch->work * (double)rows / (double)batch->rows;
    for (size_t i = 0; i < batch->input_count; i++) {
        const rnl_tensor *whole = &batch->inputs[i];
        const size_t bytes = rnl_row_bytes(whole->dtype, whole->shape, whole->rank);
        inputs[i] = *whole;
        inputs[i].data = (char *)whole->data + first * bytes;
        inputs[i].shape[0] = (int64_t)rows;
        inputs[i].size_bytes = rows * bytes;
    }
    return job;
}

/* ---- All parts ------------------------------------------------------------------------------------------------ */

static void add_targets(const rnl_batch *batch, rnl_job *job, size_t first, size_t rows,
                        const rnl_batch_target *targets, size_t count)
{
    job->output_count = count;
    for (size_t i = 0; i < count; i++)
        job->outputs[i] = (rnl_tensor){.name = batch->multi->graph->outputs[targets[i].index].name,
                                       .data = targets[i].data + first * targets[i].of.row_bytes,
                                       .size_bytes = rows * targets[i].of.row_bytes};
}

static rnl_status check_output(const rnl_tensor *got, const rnl_batch_output *of, size_t rows)
{
    bool same = got->dtype == of->dtype && got->rank == of->rank && got->rank > 0 && got->shape[0] == (int64_t)rows;
    for (size_t i = 1; same && i < got->rank; i++)
        same = got->shape[i] == of->shape[i];
    return same ? RNL_OK
                : FAIL(RNL_FAILED_PRECONDITION,
                       "output '%s' of a part of %zu rows has another shape than %zu of its rows", got->name, rows,
                       rows);
}

/* Starts them all: the first whose device is free is left to this thread, and what no thread can be had for. */
static rnl_status start_parts(rnl_batch *batch, const size_t *share, rnl_trace *trace, bool *out_here)
{
    rnl_multi *multi = batch->multi;
    rnl_status status = RNL_OK;
    bool has_own = false;
    for (size_t i = 0; i < multi->member_count; i++) {
        out_here[i] = false;
        if (share[i] == 0)
            continue;
        rnl_job_begin(multi, &batch->jobs[i], trace);
        out_here[i] = !has_own && rnl_member_is_free(&multi->members[i]);
        has_own = has_own || out_here[i];
        if (!out_here[i] && rnl_job_hand_over(multi, &batch->jobs[i], &out_here[i]) != RNL_OK)
            out_here[i] = true;
    }
    return status;
}

static rnl_status run_parts(rnl_batch *batch, const size_t *share)
{
    bool here[RNL_MULTI_MAX_DEVICES];
    rnl_multi *multi = batch->multi;
    rnl_status status = RNL_OK;
    char name[48];
    const uint64_t start = rnl_trace_now();
    pthread_mutex_lock(&multi->lock);
    rnl_trace *trace = rnl_trace_retain(rnl_multi_next_trace(multi, batch->measures));
    status = start_parts(batch, share, trace, here);
    pthread_mutex_unlock(&multi->lock);
    for (size_t i = 0; i < multi->member_count; i++)
        if (here[i])
            (void)!rnl_job_run(multi, &batch->jobs[i]);
    pthread_mutex_lock(&multi->lock);
    for (size_t i = 0; i < multi->member_count; i++) {
        if (share[i] == 0)
            continue;
        if (!here[i])
            rnl_job_wait(multi, &batch->jobs[i]);
        rnl_job_end(multi, &batch->jobs[i]);
    }
    pthread_mutex_unlock(&multi->lock);
    snprintf(name, sizeof name, "batch of %zu rows", batch->rows);
    rnl_trace_span(trace, name, start);
    rnl_trace_release(trace);
    return status;
}

static rnl_status check_parts(rnl_batch *batch, const size_t *share, const rnl_batch_target *targets, size_t count)
{
    size_t first = 0;
    for (size_t i = 0; i < batch->multi->member_count; i++) {
        const rnl_job *job = &batch->jobs[i];
        if (share[i] == 0)
            continue;
        if (job->error.status != RNL_OK)
            return rnl_error_add(rnl_error_restore(&job->error), "rows %zu to %zu of a batch of %zu", first,
                                 first + share[i] - 1, batch->rows);
        for (size_t j = 0; j < count; j++)
            TRY(check_output(&job->outputs[j], &targets[j].of, share[i]));
        first += share[i];
    }
    return RNL_OK;
}

rnl_status rnl_batch_run(rnl_batch *batch, const size_t *share, const rnl_batch_target *targets, size_t target_count,
                         double *out_ns)
{
    const uint64_t start = rnl_clock_ns();
    size_t first = 0;
    *out_ns = 0;
    for (size_t i = 0; i < batch->multi->member_count; i++) {
        if (share[i] == 0)
            continue;
        add_targets(batch, make_job(batch, i, first, share[i]), first, share[i], targets, target_count);
        first += share[i];
    }
    TRY(run_parts(batch, share));
    *out_ns = (double)(rnl_clock_ns() - start);
    return check_parts(batch, share, targets, target_count);
}

/* ---- One part ------------------------------------------------------------------------------------------------- */

rnl_status rnl_batch_time(rnl_batch *batch, size_t member, size_t rows, double *out_ns)
{
    const rnl_graph *graph = batch->multi->graph;
    rnl_job *job = make_job(batch, member, 0, rows);
    job->is_bound = job->keeps_nothing = true;
    job->output_count = graph->output_count;
    for (size_t i = 0; i < graph->output_count; i++)
        job->outputs[i] = (rnl_tensor){.name = graph->outputs[i].name};
    *out_ns = 0;
    TRY(rnl_job_do(batch->multi, job));
    *out_ns = (double)job->elapsed_ns;
    return RNL_OK;
}

rnl_status rnl_batch_run_whole(rnl_batch *batch, size_t member, rnl_tensor *outputs)
{
    const rnl_graph *graph = batch->multi->graph;
    rnl_job *job = make_job(batch, member, 0, batch->rows);
    job->outputs = outputs;
    job->output_count = graph->output_count;
    for (size_t i = 0; i < graph->output_count; i++)
        outputs[i] = (rnl_tensor){.name = graph->outputs[i].name};
    return rnl_job_do(batch->multi, job);
}
