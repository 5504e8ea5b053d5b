/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: whole ones from callers, and what parts of batches share with them. */
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/session.h"
#include "model/trace.h"
#include "multi/multi.h"

#include <stdio.h>
#include <string.h>

/* ---- Checking and keeping ------------------------------------------------------------------------------------- */

static bool is_same_output(const rnl_graph *graph, const rnl_tensor *a, const rnl_tensor *b)
{
    return graph->output_count == 1 || (a->name && b->name && strcmp(a->name, b->name) == 0);
}

static rnl_status check_tensors(const rnl_tensor *tensors, size_t count, const char *kind)
{
    if (count && !tensors)
        return FAIL(RNL_INVALID_ARGUMENT, "%ss is NULL", kind);
    for (size_t i = 0; i < count; i++)
        if (tensors[i].buffer)
            return FAIL(RNL_INVALID_ARGUMENT,
                        "%s '%s' lies in device memory; several devices take and give host memory", kind,
                        tensors[i].name ? tensors[i].name : "");
    return RNL_OK;
}

rnl_status rnl_job_prepare(rnl_multi *multi, const rnl_tensor *inputs, size_t input_count, rnl_tensor *outputs,
                           size_t output_count, rnl_job *out_job)
{
    memset(out_job, 0, sizeof *out_job);
    if (!multi)
        return FAIL(RNL_INVALID_ARGUMENT, "multi is NULL");
    TRY(check_tensors(inputs, input_count, "input"));
    TRY(check_tensors(outputs, output_count, "output"));
    for (size_t i = 0; i < output_count; i++)
        for (size_t j = 0; j < i; j++)
            if (!outputs[i].data && !outputs[j].data && is_same_output(multi->graph, &outputs[i], &outputs[j]))
                return FAIL(RNL_INVALID_ARGUMENT, "output '%s' is asked for twice",
                            outputs[i].name ? outputs[i].name : "");
    *out_job = (rnl_job){
        .inputs = inputs, .input_count = input_count, .outputs = outputs, .output_count = output_count, .work = 1};
    for (size_t i = 0; i < input_count; i++)
        out_job->work += (double)inputs[i].size_bytes;
    return RNL_OK;
}

void rnl_job_begin(rnl_multi *multi, rnl_job *job, rnl_trace *trace)
{
    job->trace = rnl_trace_retain(trace);
    job->id = ++multi->last_id;
    job->older = multi->jobs;
    if (job->older)
        job->older->newer = job;
    multi->jobs = job;
    multi->members[job->member].pending_work += job->work;
}

void rnl_job_end(rnl_multi *multi, rnl_job *job)
{
    if (job->newer)
        job->newer->older = job->older;
    else
        multi->jobs = job->older;
    if (job->older)
        job->older->newer = job->newer;
    rnl_trace_release(job->trace);
    job->trace = NULL;
}

void rnl_multi_cancel(rnl_multi *multi, uint64_t id)
{
    if (!multi)
        return;
    pthread_mutex_lock(&multi->lock);
    for (rnl_job *job = multi->jobs; job; job = job->older)
        if (id == 0 || job->id == id)
            atomic_store(&job->stop, true);
    pthread_mutex_unlock(&multi->lock);
}

/* ---- Running -------------------------------------------------------------------------------------------------- */

/* The caller's tensors change on success alone. */
static rnl_status run_session(rnl_session *session, rnl_job *job)
{
    rnl_tensor *outputs = NULL;
    TRY(rnl_alloc(job->output_count, sizeof *outputs, &outputs));
    if (job->output_count)
        memcpy(outputs, job->outputs, job->output_count * sizeof *outputs);
    session->stop = &job->stop;
    const rnl_status status = rnl_session_run(session, job->inputs, job->input_count, outputs, job->output_count);
    session->stop = NULL;
    for (size_t i = 0; status == RNL_OK && !job->keeps_nothing && i < job->output_count; i++) {
        if (!job->outputs[i].data)
            (void)!rnl_session_take_output(session, &outputs[i]);
        job->outputs[i] = outputs[i];
    }
    rnl_free(outputs);
    return status;
}

static rnl_status run_recorded(const rnl_member *member, rnl_session *session, rnl_job *job)
{
    char name[RNL_DEVICE_SPEC_BYTES + 40];
    const uint64_t start = rnl_trace_now();
    rnl_session_record(session, job->trace);
    const rnl_status status = run_session(session, job);
    snprintf(name, sizeof name, "request %llu on %s", (unsigned long long)job->id, member->spec);
    rnl_trace_span(job->trace, name, start);
    return status;
}

static rnl_status run_unrecorded(rnl_session *session, rnl_job *job)
{
    rnl_session_record(session, NULL);
    return run_session(session, job);
}

/* With a session of the member's, which the lock is given up for. */
static rnl_status run_on(rnl_member *member, rnl_job *job)
{
    rnl_multi *multi = member->multi;
    rnl_session *session = NULL;
    if (member->is_lost)
        return FAIL(RNL_UNAVAILABLE, "%s was lost", member->name);
    TRY(rnl_member_take_session(member, &session), "on %s", member->name);
    rnl_member_start_job(member, job);
    pthread_mutex_unlock(&multi->lock);
    const uint64_t plans = rnl_model_plans_built(member->model), start = rnl_clock_ns();
    const rnl_status status = job->trace ? run_recorded(member, session, job) : run_unrecorded(session, job);
    const uint64_t elapsed = rnl_clock_ns() - start;
    const bool has_planned = rnl_model_plans_built(member->model) != plans;
    pthread_mutex_lock(&multi->lock);
    rnl_member_give_session(member, session);
    if (multi->trace && status == RNL_OK && !has_planned)
        rnl_trace_cost_add(&member->trace_cost, job->trace, (uint64_t)job->work, elapsed);
    rnl_member_end_job(member, job, status, has_planned, elapsed);
    return status;
}

static rnl_status attempt(rnl_multi *multi, rnl_job *job, size_t member)
{
    rnl_status status = RNL_OK;
    pthread_mutex_lock(&multi->lock);
    if (atomic_load(&job->stop))
        status = FAIL(RNL_CANCELLED, "the request was cancelled before it began");
    else
        status = run_on(&multi->members[member], job);
    multi->members[member].pending_work -= job->work;
    pthread_mutex_unlock(&multi->lock);
    if (rnl_status_is_devices(status))
        rnl_multi_suspect(multi, member);
    return status;
}

/* What the first member failed to do. */
static rnl_status try_elsewhere(rnl_multi *multi, rnl_job *job)
{
    const rnl_error error = *rnl_last_error();
    const size_t first = job->member;
    pthread_mutex_lock(&multi->lock);
    const size_t second = rnl_multi_choose(multi, job->work, first);
    if (second != RNL_NOBODY)
        multi->members[second].pending_work += job->work;
    pthread_mutex_unlock(&multi->lock);
    if (second == RNL_NOBODY)
        return rnl_error_add(rnl_error_restore(&error), "on %s, and there is no other device",
                             multi->members[first].name);
    rnl_log(RNL_LOG_WARNING, "a request failed on %s and goes to %s", multi->members[first].name,
            multi->members[second].name);
    job->member = second;
    rnl_status status = attempt(multi, job, second);
    if (status == RNL_OK)
        rnl_multi_blame(multi, first);
    else if (rnl_status_is_devices(status))
        status = rnl_error_add(status, "on %s, after failing on %s", multi->members[second].name,
                               multi->members[first].name);
    return status;
}

rnl_status rnl_job_run(rnl_multi *multi, rnl_job *job)
{
    rnl_status status = attempt(multi, job, job->member);
    if (rnl_status_is_devices(status) && !job->is_bound)
        status = try_elsewhere(multi, job);
    if (status != RNL_OK)
        job->error = *rnl_last_error();
    return status;
}

rnl_status rnl_job_hand_over(rnl_multi *multi, rnl_job *job, bool *out_here)
{
    rnl_member *member = &multi->members[job->member];
    *out_here = false;
    if (pthread_cond_init(&job->ended, NULL) != 0)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no condition variable for a request");
    const rnl_status status = rnl_member_queue(member, job);
    if (status != RNL_OK) {
        pthread_cond_destroy(&job->ended);
        *out_here = true; /* the caller's thread will do */
    }
    return RNL_OK;
}

void rnl_job_wait(rnl_multi *multi, rnl_job *job)
{
    while (!job->has_ended)
        pthread_cond_wait(&job->ended, &multi->lock);
    pthread_cond_destroy(&job->ended);
}

rnl_status rnl_job_do(rnl_multi *multi, rnl_job *job)
{
    rnl_status status = RNL_OK;
    pthread_mutex_lock(&multi->lock);
    rnl_job_begin(multi, job, rnl_multi_next_trace(multi, job->is_bound));
    bool here = rnl_member_is_free(&multi->members[job->member]);
    if (!here)
        status = rnl_job_hand_over(multi, job, &here);
    if (status == RNL_OK && !here)
        rnl_job_wait(multi, job);
    else if (status != RNL_OK)
        multi->members[job->member].pending_work -= job->work;
    pthread_mutex_unlock(&multi->lock);
    if (here)
        status = rnl_job_run(multi, job);
    else if (status == RNL_OK && job->error.status != RNL_OK)
        status = rnl_error_restore(&job->error);
    pthread_mutex_lock(&multi->lock);
    rnl_job_end(multi, job);
    pthread_mutex_unlock(&multi->lock);
    return status;
}

/* ---- Whole requests ------------------------------------------------------------------------------------------- */

static rnl_status choose_member(rnl_multi *multi, rnl_job *job)
{
    pthread_mutex_lock(&multi->lock);
    job->member = rnl_multi_choose(multi, job->work, RNL_NOBODY);
    pthread_mutex_unlock(&multi->lock);
    return job->member == RNL_NOBODY ? rnl_multi_fail_nobody() : RNL_OK;
}

rnl_status rnl_multi_run(rnl_multi *multi, const rnl_tensor *inputs, size_t input_count, rnl_tensor *outputs,
                         size_t output_count)
{
    rnl_job job;
    TRY(rnl_job_prepare(multi, inputs, input_count, outputs, output_count, &job));
    TRY(rnl_multi_measure(multi, &job));
    TRY(choose_member(multi, &job));
    return rnl_job_do(multi, &job);
}

/* The job belongs to the member's threads then. */
static rnl_status submit(rnl_multi *multi, rnl_job *job, uint64_t *out_id)
{
    rnl_status status = choose_member(multi, job);
    if (status != RNL_OK)
        return status;
    pthread_mutex_lock(&multi->lock);
    if (multi->stops) {
        status = FAIL(RNL_UNAVAILABLE, "the devices are being released");
    } else {
        rnl_job_begin(multi, job, rnl_multi_next_trace(multi, false));
        if (out_id)
            *out_id = job->id;
        status = rnl_member_queue(&multi->members[job->member], job);
        if (status != RNL_OK) {
            multi->members[job->member].pending_work -= job->work;
            rnl_job_end(multi, job);
        }
    }
    pthread_mutex_unlock(&multi->lock);
    return status;
}

rnl_status rnl_multi_submit(rnl_multi *multi, const rnl_tensor *inputs, size_t input_count, rnl_tensor *outputs,
                            size_t output_count, rnl_complete_fn complete, void *user, uint64_t *out_id)
{
    rnl_job *job = NULL;
    rnl_status status = RNL_OK;
    if (out_id)
        *out_id = 0;
    if (!complete)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_multi_submit: complete is NULL");
    TRY(rnl_alloc(1, sizeof *job, &job));
    GOTO(rnl_job_prepare(multi, inputs, input_count, outputs, output_count, job));
    GOTO(rnl_multi_measure(multi, job));
    job->complete = complete;
    job->user = user;
    GOTO(submit(multi, job, out_id));
    return RNL_OK;
done:
    if (out_id)
        *out_id = 0;
    rnl_free(job);
    return status;
}
