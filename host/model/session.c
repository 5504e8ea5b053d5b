/* SPDX-License-Identifier: Apache-2.0 */
#include "model/session.h"

#include "base/memory.h"
#include "device/ending.h"
#include "model/edge.h"
#include "model/profile.h"
#include "model/trace.h"
#include <runnel/trace.h>
#include <string.h>
#include <sys/random.h>

static void stop_worker(rnl_worker *worker)
{
    if (!worker->created)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->stop = true;
    pthread_cond_broadcast(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->wake);
    pthread_mutex_destroy(&worker->lock);
}

void rnl_session_release(rnl_session *session)
{
    if (!session || rnl_ending())
        return;
    rnl_session_cancel(session);
    stop_worker(&session->worker);
    if (session->stream)
        (void)!rnl_stream_synchronize(session->stream);
    rnl_session_unbind(session);
    rnl_ring_free(&session->ring);
    rnl_kernel_set_release(session->kernels);
    rnl_stream_release(session->stream);
    rnl_stream_release(session->parked);
    rnl_edges_free(session);
    rnl_profile_free(session->profile);
    rnl_free(session->nan_values);
    rnl_trace_release(session->trace);
    rnl_free(session->names);
    rnl_free(session->order);
    rnl_free(session->descs);
    rnl_free(session->blocks);
    rnl_free(session->slots);
    rnl_model_release(session->model);
    rnl_free(session);
}

static rnl_status random_key(uint64_t *out_key)
{
    if (getrandom(out_key, sizeof *out_key, 0) == (ssize_t)sizeof *out_key)
        return RNL_OK;
    return FAIL(RNL_UNAVAILABLE, "the system gives no random bytes for the session's seed");
}

rnl_status rnl_session_create(rnl_model *model, rnl_session **out_session)
{
    if (!model || !out_session)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_session_create: %s is NULL", model ? "out_session" : "model");
    rnl_session *session = NULL;
    rnl_status status = RNL_OK;
    *out_session = NULL;
    TRY(rnl_alloc(1, sizeof *session, &session));
    session->model = rnl_model_retain(model);
    if (!model->is_deterministic)
        GOTO(random_key(&session->random_key));
    GOTO(rnl_session_make_stream(session, &session->stream));
    GOTO(rnl_kernel_set_create(model->device, &session->kernels));
    GOTO(rnl_edges_create(session));
    GOTO(rnl_alloc(model->graph->input_count, sizeof *session->order, &session->order));
    GOTO(rnl_alloc(model->graph->input_count, sizeof *session->descs, &session->descs));
    *out_session = session;
    return RNL_OK;
done:
    rnl_session_release(session);
    return status;
}

/* ---- running: one at a time ----------------------------------------------------------------------------------- */

static rnl_status begin(rnl_session *session)
{
    bool idle = false;
    if (!atomic_compare_exchange_strong(&session->running, &idle, true))
        return FAIL(RNL_UNAVAILABLE, "the session is still running; use one session for each caller");
    atomic_store(&session->cancelled, false);
    return RNL_OK;
}

static rnl_status check_arguments(const rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                                  const rnl_tensor *outputs, size_t output_count)
{
    if (!session)
        return FAIL(RNL_INVALID_ARGUMENT, "session is NULL");
    if ((input_count && !inputs) || (output_count && !outputs))
        return FAIL(RNL_INVALID_ARGUMENT, "%s is NULL", input_count && !inputs ? "inputs" : "outputs");
    return RNL_OK;
}

rnl_status rnl_session_run(rnl_session *session, const rnl_tensor *inputs, size_t input_count, rnl_tensor *outputs,
                           size_t output_count)
{
    TRY(check_arguments(session, inputs, input_count, outputs, output_count));
    TRY(begin(session));
    rnl_status status = rnl_session_execute(session, inputs, input_count, outputs, output_count);
    atomic_store(&session->running, false);
    return status;
}

rnl_status rnl_session_profile(rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                               const rnl_step_profile **out_steps, size_t *out_count)
{
    if (!out_steps || !out_count)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_session_profile: %s is NULL", out_steps ? "out_count" : "out_steps");
    *out_steps = NULL;
    *out_count = 0;
    TRY(check_arguments(session, inputs, input_count, NULL, 0));
    TRY(begin(session));
    rnl_status status = rnl_profile_run(session, inputs, input_count, out_steps, out_count);
    atomic_store(&session->running, false);
    return status;
}

void rnl_session_cancel(rnl_session *session)
{
    if (session && atomic_load(&session->running))
        atomic_store(&session->cancelled, true);
}

/* ---- submitting ----------------------------------------------------------------------------------------------- */

static void serve_one(rnl_session *session, rnl_worker *worker)
{
    rnl_complete_fn complete = worker->complete;
    void *user = worker->user;
    rnl_status status =
        rnl_session_execute(session, worker->inputs, worker->input_count, worker->outputs, worker->output_count);
    rnl_error error = {0};
    if (status != RNL_OK)
        error = *rnl_last_error();
    atomic_store(&session->running, false); /* before the callback, which may submit again */
    complete(user, status == RNL_OK ? NULL : &error);
}

static void *work(void *argument)
{
    rnl_session *session = argument;
    rnl_worker *worker = &session->worker;
    pthread_mutex_lock(&worker->lock);
    while (!worker->stop || worker->busy) {
        if (!worker->busy) {
            pthread_cond_wait(&worker->wake, &worker->lock);
            continue;
        }
        worker->busy = false;
        pthread_mutex_unlock(&worker->lock);
        serve_one(session, worker);
        pthread_mutex_lock(&worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

static rnl_status start_worker(rnl_session *session)
{
    rnl_worker *worker = &session->worker;
    if (worker->created)
        return RNL_OK;
    if (pthread_mutex_init(&worker->lock, NULL) != 0)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no mutex for the session's thread");
    if (pthread_cond_init(&worker->wake, NULL) != 0) {
        pthread_mutex_destroy(&worker->lock);
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no condition variable for the session's thread");
    }
    if (pthread_create(&worker->thread, NULL, work, session) != 0) {
        pthread_cond_destroy(&worker->wake);
        pthread_mutex_destroy(&worker->lock);
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no thread for the session");
    }
    worker->created = true;
    return RNL_OK;
}

rnl_status rnl_session_submit(rnl_session *session, const rnl_tensor *inputs, size_t input_count, rnl_tensor *outputs,
                              size_t output_count, rnl_complete_fn complete, void *user)
{
    if (!complete)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_session_submit: complete is NULL");
    TRY(check_arguments(session, inputs, input_count, outputs, output_count));
    TRY(begin(session));
    rnl_status status = start_worker(session);
    if (status != RNL_OK) {
        atomic_store(&session->running, false);
        return status;
    }
    rnl_worker *worker = &session->worker;
    pthread_mutex_lock(&worker->lock);
    worker->inputs = inputs;
    worker->input_count = input_count;
    worker->outputs = outputs;
    worker->output_count = output_count;
    worker->complete = complete;
    worker->user = user;
    worker->busy = true;
    pthread_cond_signal(&worker->wake);
    pthread_mutex_unlock(&worker->lock);
    return RNL_OK;
}

void rnl_session_get_stats(const rnl_session *session, rnl_session_stats *out_stats)
{
    *out_stats =
        (rnl_session_stats){session->arena_bytes, session->arena_peak_bytes, session->step_count, session->ring.bytes};
}
