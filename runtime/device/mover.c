/* SPDX-License-Identifier: Apache-2.0 */
#include "device/mover.h"

#include "base/memory.h"
#include "device/waiter.h"

struct rnl_mover {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    rnl_job *first, *last;
    bool is_running;
};

static rnl_status get_mover(rnl_stream *stream, struct rnl_mover **out_mover)
{
    struct rnl_mover *mover = stream->mover;
    if (!mover) {
        TRY(rnl_alloc(1, sizeof *mover, &mover));
        pthread_mutex_init(&mover->lock, NULL);
        pthread_cond_init(&mover->ended, NULL);
        stream->mover = mover;
    }
    *out_mover = mover;
    return RNL_OK;
}

static void wait_for_thread(struct rnl_mover *mover)
{
    pthread_mutex_lock(&mover->lock);
    while (mover->is_running)
        pthread_cond_wait(&mover->ended, &mover->lock);
    pthread_mutex_unlock(&mover->lock);
}

void rnl_mover_free(struct rnl_mover *mover)
{
    if (!mover)
        return;
    wait_for_thread(mover);
    pthread_cond_destroy(&mover->ended);
    pthread_mutex_destroy(&mover->lock);
    rnl_free(mover);
}

/* NULL, with the lock held, when there is none. */
static rnl_job *next_job(struct rnl_mover *mover)
{
    pthread_mutex_lock(&mover->lock);
    rnl_job *job = mover->first;
    if (job) {
        mover->first = job->next;
        pthread_mutex_unlock(&mover->lock);
    }
    return job;
}

/* Whoever waits for the thread has the stream to himself afterwards: the thread gives its part up before it says so. */
static void *work(void *argument)
{
    rnl_stream *stream = argument;
    struct rnl_mover *mover = stream->mover;
    rnl_job *job;
    while ((job = next_job(mover)))
        job->run(job);
    const bool is_last = !rnl_stream_let_go(stream);
    mover->is_running = false;
    pthread_cond_broadcast(&mover->ended);
    pthread_mutex_unlock(&mover->lock);
    if (is_last)
        rnl_stream_release(stream);
    return NULL;
}

static int start_thread(rnl_stream *stream)
{
    pthread_t thread;
    int code = pthread_create(&thread, NULL, work, rnl_stream_retain(stream));
    if (code == 0)
        pthread_detach(thread);
    else
        rnl_stream_release(stream);
    return code;
}

rnl_status rnl_mover_submit(rnl_stream *stream, rnl_job *job)
{
    struct rnl_mover *mover;
    int code = 0;
    TRY(get_mover(stream, &mover));
    job->next = NULL;
    pthread_mutex_lock(&mover->lock);
    if (mover->first)
        mover->last->next = job;
    else
        mover->first = job;
    mover->last = job;
    if (!mover->is_running) {
        code = start_thread(stream);
        mover->is_running = code == 0;
        if (code != 0)
            mover->first = NULL; /* it was the only one */
    }
    pthread_mutex_unlock(&mover->lock);
    return code == 0 ? RNL_OK : FAIL(RNL_RESOURCE_EXHAUSTED, "no thread for a copy (error %d)", code);
}

void rnl_mover_wait(rnl_stream *stream)
{
    struct rnl_mover *mover = stream->mover;
    if (mover)
        wait_for_thread(mover);
}

/* ---- Turns ---- */

rnl_status rnl_turn_begin(rnl_stream *stream, rnl_turn *turn)
{
    cl_int code;
    TRY(rnl_stream_record(stream, &turn->before));
    turn->stream = rnl_stream_retain(stream);
    stream->has_turns = true;
    turn->after = CL_NEW(&code, clCreateUserEvent(stream->device->context, &code));
    rnl_status status = rnl_cl_status(code, "clCreateUserEvent");
    if (status == RNL_OK)
        status = CL(clEnqueueBarrierWithWaitList(stream->queue, 1, &turn->after, NULL));
    if (status == RNL_OK)
        status = CL(clFlush(stream->queue));
    rnl_stream_fail(stream, status);
    if (status != RNL_OK)
        rnl_turn_end(turn, status);
    return status;
}

rnl_status rnl_turn_wait(rnl_turn *turn)
{
    return turn->stream ? rnl_event_synchronize(turn->before) : RNL_OK;
}

/* A user event that fails does not stop what waits for it on every driver: it always succeeds. */
void rnl_turn_end(rnl_turn *turn, rnl_status status)
{
    if (!turn->stream)
        return;
    rnl_stream_fail(turn->stream, status);
    if (turn->after) {
        rnl_stream_fail(turn->stream, rnl_user_event_complete(turn->after));
        clReleaseEvent(turn->after);
    }
    rnl_event_release(turn->before);
    rnl_stream_release(turn->stream);
    *turn = (rnl_turn){0};
}
