/* SPDX-License-Identifier: Apache-2.0 */
/* A device's sessions, and the threads that run what is queued for it. */
#include "base/memory.h"
#include "model/trace.h"
#include "multi/multi.h"

#include <stdio.h>

/* Copies of one request hide behind the steps of another; where memory is shared there are none. */
#define IN_FLIGHT_WITH_COPIES 3

rnl_status rnl_member_open(rnl_multi *multi, rnl_device *device, const rnl_multi_options *options, rnl_member *member)
{
    const rnl_device_info *info = rnl_device_get_info(device);
    member->multi = multi;
    member->device = rnl_device_retain(device);
    member->last = &member->first;
    rnl_device_spec(device, member->spec);
    snprintf(member->name, sizeof member->name, "%s (%s)", info->name, member->spec);
    member->in_flight = info->unified_memory ? 1 : IN_FLIGHT_WITH_COPIES;
    if (options->in_flight)
        member->in_flight = options->in_flight;
    TRY(rnl_alloc(member->in_flight, sizeof *member->idle, &member->idle));
    TRY(rnl_alloc(member->in_flight, sizeof *member->threads, &member->threads));
    if (pthread_cond_init(&member->freed, NULL) != 0)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no condition variable for %s", member->name);
    if (pthread_cond_init(&member->queued, NULL) != 0) {
        pthread_cond_destroy(&member->freed);
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no condition variable for %s", member->name);
    }
    member->has_conditions = true;
    TRY(rnl_model_open(multi->graph, device, options->model, &member->model), "opening on %s", member->name);
    return RNL_OK;
}

void rnl_member_close(rnl_member *member)
{
    for (size_t i = 0; i < member->idle_count; i++)
        rnl_session_release(member->idle[i]);
    rnl_free(member->idle);
    rnl_free(member->threads);
    if (member->has_conditions) {
        pthread_cond_destroy(&member->freed);
        pthread_cond_destroy(&member->queued);
    }
    rnl_model_release(member->model);
    rnl_device_release(member->device);
}

/* ---- Sessions ------------------------------------------------------------------------------------------------- */

bool rnl_member_is_free(const rnl_member *member)
{
    return !member->first && (member->idle_count > 0 || member->session_count < member->in_flight);
}

rnl_status rnl_member_take_session(rnl_member *member, rnl_session **out_session)
{
    rnl_multi *multi = member->multi;
    while (member->idle_count == 0 && member->session_count == member->in_flight)
        pthread_cond_wait(&member->freed, &multi->lock);
    if (member->idle_count > 0) {
        *out_session = member->idle[--member->idle_count];
        return RNL_OK;
    }
    const size_t number = ++member->session_count;
    pthread_mutex_unlock(&multi->lock);
    const rnl_status status = rnl_session_create(member->model, out_session);
    if (status == RNL_OK)
        rnl_session_name_track(*out_session, "%s session %zu", member->spec, number);
    pthread_mutex_lock(&multi->lock);
    if (status != RNL_OK) {
        member->session_count--;
        pthread_cond_signal(&member->freed);
    }
    return status;
}

void rnl_member_give_session(rnl_member *member, rnl_session *session)
{
    member->idle[member->idle_count++] = session;
    pthread_cond_signal(&member->freed);
}

/* ---- Threads -------------------------------------------------------------------------------------------------- */

static void serve(rnl_member *member, rnl_job *job)
{
    rnl_multi *multi = member->multi;
    const rnl_status status = rnl_job_run(multi, job);
    if (job->complete) {
        job->complete(job->user, status == RNL_OK ? NULL : &job->error);
        pthread_mutex_lock(&multi->lock);
        rnl_job_end(multi, job);
        pthread_mutex_unlock(&multi->lock);
        rnl_free(job);
        return;
    }
    pthread_mutex_lock(&multi->lock);
    job->has_ended = true;
    pthread_cond_signal(&job->ended);
    pthread_mutex_unlock(&multi->lock);
}

static rnl_job *next_job(rnl_member *member)
{
    rnl_job *job = member->first;
    member->first = job->next;
    if (!member->first)
        member->last = &member->first;
    job->next = NULL;
    member->queue_length--;
    return job;
}

static void *work(void *argument)
{
    rnl_member *member = argument;
    rnl_multi *multi = member->multi;
    pthread_mutex_lock(&multi->lock);
    for (;;) {
        while (!member->first && !multi->stops) {
            member->waiting_threads++;
            pthread_cond_wait(&member->queued, &multi->lock);
            member->waiting_threads--;
        }
        if (!member->first)
            break;
        rnl_job *job = next_job(member);
        pthread_mutex_unlock(&multi->lock);
        serve(member, job);
        pthread_mutex_lock(&multi->lock);
    }
    pthread_mutex_unlock(&multi->lock);
    return NULL;
}

rnl_status rnl_member_queue(rnl_member *member, rnl_job *job)
{
    if (member->queue_length >= member->waiting_threads && member->thread_count < member->in_flight) {
        if (pthread_create(&member->threads[member->thread_count], NULL, work, member) == 0)
            member->thread_count++;
        else if (member->thread_count == 0)
            return FAIL(RNL_RESOURCE_EXHAUSTED, "no thread for %s", member->name);
    }
    job->next = NULL;
    *member->last = job;
    member->last = &job->next;
    member->queue_length++;
    pthread_cond_signal(&member->queued);
    return RNL_OK;
}

void rnl_member_stop(rnl_member *member)
{
    pthread_mutex_lock(&member->multi->lock);
    member->multi->stops = true;
    if (member->has_conditions)
        pthread_cond_broadcast(&member->queued);
    pthread_mutex_unlock(&member->multi->lock);
    for (size_t i = 0; i < member->thread_count; i++)
        pthread_join(member->threads[i], NULL);
    member->thread_count = 0;
}
