/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver's callback says that some event somewhere has ended, and every waiter looks at its own: in any order, since
 * a thread that waited for one event after the other would hold up streams that could go on. A look now and then stands
 * in for callbacks that do not come.
 */
#include "device/waiter.h"

#include "base/clock.h"
#include "base/memory.h"
#include <signal.h>
#include <string.h>
#include <time.h>

/* Events looked at in one round. The first that was asked for is among them, and it depends on none of the others. */
#define WINDOW 64
#define FIRST_PAUSE_NS 200000
#define LONGEST_PAUSE_NS 20000000
#define TRIES 3

typedef struct job {
    struct job *next;
    cl_event event;  /* retained; NULL: it has ended */
    rnl_fates fates; /* the event's */
    cl_event target; /* a user event to complete then, or NULL */
    rnl_fate *target_fate;
    rnl_event_fn notify; /* or NULL */
    void *user;
    rnl_stream *stream; /* to destroy then, or NULL */
    int silent;         /* times that the driver did not tell the event's state */
} job;

struct rnl_waiter {
    atomic_uint references; /* the device's and the thread's */
    pthread_t thread;
    job *posted, **posted_end; /* guarded by news.lock, as is `stop` */
    bool stop;
    job *pending; /* the thread's own, in the order of posting */
};

static _Thread_local bool is_waiter;

/* For the whole process, so that a callback which comes late finds it. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t count; /* of ended events and of calls to a waiter */
} news = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void create_news(void)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&news.changed, &clock);
    pthread_condattr_destroy(&clock);
}

static void CL_CALLBACK tell(cl_event event, cl_int state, void *user)
{
    (void)event;
    (void)state;
    (void)user;
    pthread_mutex_lock(&news.lock);
    news.count++;
    pthread_cond_broadcast(&news.changed);
    pthread_mutex_unlock(&news.lock);
}

/* ---- Jobs ---- */

static void let_go(cl_event *event)
{
    if (*event)
        clReleaseEvent(*event);
    *event = NULL;
}

static void free_job(job *it)
{
    let_go(&it->event);
    let_go(&it->target);
    rnl_fates_clear(&it->fates);
    rnl_fate_release(it->target_fate);
    rnl_free(it);
}

static rnl_status create_job(const rnl_event *event, job **out_job)
{
    job *it;
    *out_job = NULL;
    TRY(rnl_alloc(1, sizeof *it, &it));
    rnl_status status = rnl_fates_add_all(&it->fates, &event->fates);
    if (status == RNL_OK)
        status = CL(clRetainEvent(event->event));
    if (status != RNL_OK) {
        free_job(it);
        return status;
    }
    it->event = event->event;
    *out_job = it;
    return RNL_OK;
}

/*
 * It is asked for, never waited for: rusticl's clWaitForEvents (22.3) blocks while another thread is in the clFinish of
 * the event's queue, which may need this thread. A driver that does not answer several times is not asked any more.
 */
static bool has_ended(job *it)
{
    cl_int state = CL_COMPLETE;
    if (!it->event)
        return true;
    cl_int code = clGetEventInfo(it->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL);
    it->silent += code != CL_SUCCESS;
    return code == CL_SUCCESS ? state <= CL_COMPLETE : it->silent >= TRIES;
}

rnl_status rnl_user_event_complete(cl_event target)
{
    cl_int code = clSetUserEventStatus(target, CL_COMPLETE);
    for (int i = 1; code != CL_SUCCESS && i < TRIES; i++)
        code = clSetUserEventStatus(target, CL_COMPLETE);
    if (rnl_cl_fault_pending())
        code = rnl_cl_fault();
    return rnl_cl_status(code, "clSetUserEventStatus");
}

static void end_job(job *it)
{
    rnl_status status = it->event ? rnl_command_check(it->event) : RNL_OK;
    if (it->fates.count > 0)
        rnl_fate_fail(it->fates.items[0], status);
    status = rnl_fates_check(&it->fates);
    let_go(&it->event); /* who goes on, or is notified, may release all else and end the process */
    if (it->target) {
        rnl_fate_fail(it->target_fate, status); /* before the stream that waits goes on */
        rnl_fate_fail(it->target_fate, rnl_user_event_complete(it->target));
        let_go(&it->target);
    }
    if (it->stream)
        rnl_stream_destroy(it->stream, true);
    if (it->notify) {
        rnl_error error = *rnl_last_error();
        it->notify(it->user, status == RNL_OK ? NULL : &error);
    }
    free_job(it);
}

/* ---- The thread ---- */

static void release(rnl_waiter *waiter)
{
    if (atomic_fetch_sub_explicit(&waiter->references, 1, memory_order_acq_rel) == 1)
        rnl_free(waiter);
}

/* Ends what can be ended among the first; false when nothing could. */
static bool look(rnl_waiter *waiter)
{
    bool any = false;
    size_t seen = 0;
    for (job **at = &waiter->pending; *at && seen < WINDOW; seen++) {
        job *it = *at;
        if (!has_ended(it)) {
            at = &it->next;
            continue;
        }
        *at = it->next;
        end_job(it);
        any = true;
    }
    return any;
}

/* Takes over what was posted. Called with the lock held. */
static void take_posted(rnl_waiter *waiter)
{
    job **end = &waiter->pending;
    while (*end)
        end = &(*end)->next;
    *end = waiter->posted;
    waiter->posted = NULL;
    waiter->posted_end = &waiter->posted;
}

/* Called with the lock held. */
static void pause_until_news(uint64_t known, uint64_t ns)
{
    const uint64_t end = rnl_clock_ns() + ns;
    const struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
    while (news.count == known && rnl_clock_ns() < end)
        pthread_cond_timedwait(&news.changed, &news.lock, &until);
}

static void *serve(void *argument)
{
    rnl_waiter *waiter = argument;
    uint64_t pause = FIRST_PAUSE_NS;
    is_waiter = true;
    pthread_setname_np(pthread_self(), RNL_WAITER_NAME);
    pthread_mutex_lock(&news.lock);
    for (;;) {
        take_posted(waiter);
        if (!waiter->pending && waiter->stop)
            break;
        const uint64_t known = news.count;
        if (!waiter->pending) {
            pthread_cond_wait(&news.changed, &news.lock);
            continue;
        }
        pthread_mutex_unlock(&news.lock);
        const bool any = look(waiter);
        pthread_mutex_lock(&news.lock);
        if (!any)
            pause_until_news(known, pause);
        pause = any ? FIRST_PAUSE_NS : pause < LONGEST_PAUSE_NS ? pause * 2 : pause;
    }
    pthread_mutex_unlock(&news.lock);
    release(waiter);
    return NULL;
}

static rnl_status create(rnl_waiter **out_waiter)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    rnl_waiter *waiter;
    sigset_t all, before;
    pthread_once(&once, create_news);
    TRY(rnl_alloc(1, sizeof *waiter, &waiter));
    atomic_init(&waiter->references, 2);
    waiter->posted_end = &waiter->posted;
    sigfillset(&all); /* the program's signals are its own threads' */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&waiter->thread, NULL, serve, waiter);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        rnl_free(waiter);
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no thread to wait for events: %s", strerror(code));
    }
    *out_waiter = waiter;
    return RNL_OK;
}

static rnl_status ensure(rnl_device *device)
{
    rnl_status status = RNL_OK;
    pthread_mutex_lock(&device->lock);
    if (!device->waiter)
        status = create(&device->waiter);
    pthread_mutex_unlock(&device->lock);
    return status;
}

static void post(rnl_device *device, job *it)
{
    if (it->event)
        (void)clSetEventCallback(it->event, CL_COMPLETE, tell, NULL);
    pthread_mutex_lock(&news.lock);
    *device->waiter->posted_end = it;
    device->waiter->posted_end = &it->next;
    news.count++;
    pthread_cond_broadcast(&news.changed);
    pthread_mutex_unlock(&news.lock);
}

void rnl_waiter_end(rnl_waiter *waiter)
{
    if (!waiter)
        return;
    pthread_mutex_lock(&news.lock);
    waiter->stop = true;
    news.count++;
    pthread_cond_broadcast(&news.changed);
    pthread_mutex_unlock(&news.lock);
    if (is_waiter)
        pthread_detach(waiter->thread);
    else
        pthread_join(waiter->thread, NULL);
    release(waiter);
}

/* ---- What is waited for ---- */

/* For a stream whose commands run in the caller's thread, and where it takes no time. */
static rnl_status wait_here(const rnl_event *event)
{
    cl_int code = clWaitForEvents(1, &event->event);
    if (rnl_cl_fault_pending())
        code = rnl_cl_fault();
    rnl_fate_fail(event->fates.items[0], rnl_cl_status(code, "clWaitForEvents"));
    rnl_fate_fail(event->fates.items[0], rnl_command_check(event->event));
    return rnl_fates_check(&event->fates);
}

static bool has_happened(const rnl_event *event)
{
    cl_int state = CL_QUEUED;
    return clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) == CL_SUCCESS &&
           state <= CL_COMPLETE;
}

rnl_status rnl_waiter_wait(rnl_stream *stream, rnl_event *event)
{
    job *it = NULL;
    cl_int code;
    rnl_status status = RNL_OK;
    if (stream->device->runs_in_caller || has_happened(event))
        return wait_here(event);
    GOTO(ensure(stream->device));
    GOTO(create_job(event, &it));
    it->target = CL_NEW(&code, clCreateUserEvent(stream->device->context, &code));
    GOTO(rnl_cl_status(code, "clCreateUserEvent"));
    it->target_fate = rnl_fate_retain(stream->fate);
    GOTO(CL(clEnqueueBarrierWithWaitList(stream->queue, 1, &it->target, NULL)));
    post(stream->device, it);
    return RNL_OK;
done:
    /* NVIDIA's driver hangs in the release of a context where a user event has never been set. */
    if (it && it->target)
        (void)clSetUserEventStatus(it->target, CL_COMPLETE);
    if (it)
        free_job(it);
    return status;
}

rnl_status rnl_waiter_notify(rnl_event *event, rnl_event_fn notify, void *user)
{
    job *it;
    TRY(ensure(event->device));
    TRY(create_job(event, &it));
    it->notify = notify;
    it->user = user;
    if (event->device->runs_in_caller) {
        (void)!wait_here(event); /* so that the thread makes no call: Oclgrind serves one at a time */
        let_go(&it->event);
    }
    post(event->device, it);
    return RNL_OK;
}

bool rnl_waiter_destroy_later(rnl_stream *stream)
{
    job *it;
    if (!is_waiter || ensure(stream->device) != RNL_OK || rnl_alloc(1, sizeof *it, &it) != RNL_OK)
        return false;
    rnl_stream_rejoin(stream);
    if (clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &it->event) != CL_SUCCESS) {
        rnl_free(it);
        return false;
    }
    (void)clFlush(stream->queue);
    it->stream = stream;
    post(stream->device, it);
    return true;
}

bool rnl_waiter_is_here(void)
{
    return is_waiter;
}

rnl_status rnl_waiter_refuse_to_wait(void)
{
    return is_waiter ? FAIL(RNL_FAILED_PRECONDITION, "an event's callback cannot wait for a stream or an event: all "
                                                     "that its device's streams wait for would wait for it")
                     : RNL_OK;
}
