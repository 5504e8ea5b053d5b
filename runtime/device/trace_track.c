/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of one stream. */
#include "base/clock.h"
#include "base/memory.h"
#include "device/trace_parts.h"
#include <stdio.h>
#include <string.h>

#define ASK_AT 1024        /* commands under way: events take memory */
#define LEAST_TIME_NS 1000 /* see trace_clock.c */

/* ---- Making one ---- */

static rnl_status find_device(rnl_trace *trace, rnl_device *device, rnl_trace_device **out_device)
{
    rnl_trace_device **link = &trace->devices;
    while (*link && (*link)->device != device)
        link = &(*link)->next;
    if (!*link)
        TRY(rnl_trace_device_create(device, ++trace->device_count + 1, link));
    *out_device = *link;
    return RNL_OK;
}

rnl_status rnl_track_create(rnl_trace *trace, rnl_device *device, const char *name, rnl_track **out_track)
{
    rnl_track *track = NULL;
    *out_track = NULL;
    TRY(rnl_alloc(1, sizeof *track, &track));
    pthread_mutex_init(&track->lock, NULL);
    track->trace = trace;
    pthread_mutex_lock(&trace->lock);
    const rnl_status status = find_device(trace, device, &track->device);
    if (status == RNL_OK) {
        track->tid = ++trace->track_count;
        *(trace->last_track ? &trace->last_track->next : &trace->tracks) = track;
        trace->last_track = track;
    }
    pthread_mutex_unlock(&trace->lock);
    if (status != RNL_OK) {
        rnl_track_free(track);
        return status;
    }
    if (name)
        snprintf(track->name, sizeof track->name, "%s", name);
    else
        snprintf(track->name, sizeof track->name, "stream %u", (unsigned)track->tid);
    *out_track = track;
    return RNL_OK;
}

void rnl_track_free(rnl_track *track)
{
    while (track->first) {
        rnl_track_block *next = track->first->next;
        for (size_t i = 0; i < track->first->count; i++)
            if (track->first->commands[i].event)
                clReleaseEvent(track->first->commands[i].event);
        rnl_free(track->first);
        track->first = next;
    }
    pthread_mutex_destroy(&track->lock);
    rnl_free(track);
}

/* ---- Commands ---- */

/* NULL where it is to be left out. The lock is held. */
static rnl_trace_command *new_command(rnl_track *track)
{
    if (!rnl_trace_admit(track->trace))
        return NULL;
    if (!track->last || track->last->count == RNL_TRACK_BLOCK) {
        const rnl_error before = *rnl_last_error();
        rnl_track_block *block = NULL;
        if (rnl_alloc(1, sizeof *block, &block) != RNL_OK) {
            rnl_error_restore(&before);
            atomic_fetch_add_explicit(&track->trace->dropped, 1, memory_order_relaxed);
            return NULL;
        }
        *(track->last ? &track->last->next : &track->first) = block;
        track->last = block;
        if (!track->asked_block)
            track->asked_block = block;
    }
    atomic_fetch_add_explicit(&track->trace->commands, 1, memory_order_relaxed);
    track->count++;
    return &track->last->commands[track->last->count++];
}

cl_event *rnl_track_begin(rnl_track *track, uint32_t what, uint64_t bytes, bool wait)
{
    pthread_mutex_lock(&track->lock);
    rnl_trace_command *command = new_command(track);
    if (command)
        *command = (rnl_trace_command){.what = what, .bytes = bytes, .waits = wait || !track->device->queue};
    track->open = command;
    pthread_mutex_unlock(&track->lock);
    if (!command)
        return NULL;
    command->called = rnl_clock_ns();
    return &command->event;
}

/* The driver has no times for it: it starts when it is enqueued, and nothing else runs until it has ended. */
static void wait_for(rnl_trace_command *command)
{
    const bool waited = clWaitForEvents(1, &command->event) == CL_SUCCESS;
    command->ended = rnl_clock_ns();
    command->queued = command->submitted = command->started = command->called;
    command->state = waited ? RNL_COMMAND_BY_HOST : RNL_COMMAND_LOST;
    clReleaseEvent(command->event);
    command->event = NULL;
}

void rnl_track_end(rnl_track *track, cl_event *also)
{
    rnl_trace_command *command = track->open;
    if (!command)
        return; /* left out, or the call was never made */
    rnl_trace_command ended = *command;
    ended.returned = rnl_clock_ns();
    ended.state = ended.event ? RNL_COMMAND_UNDER_WAY : RNL_COMMAND_LOST;
    if (also && ended.event && clRetainEvent(ended.event) == CL_SUCCESS)
        *also = ended.event;
    if (ended.event && ended.waits)
        wait_for(&ended);
    pthread_mutex_lock(&track->lock);
    *command = ended;
    track->open = NULL;
    track->under_way++;
    if (track->under_way % ASK_AT == 0)
        rnl_track_ask(track);
    pthread_mutex_unlock(&track->lock);
}

void rnl_track_add(rnl_track *track, uint32_t what, uint64_t bytes, uint64_t start_ns, uint64_t end_ns)
{
    pthread_mutex_lock(&track->lock);
    rnl_trace_command *command = new_command(track);
    if (command)
        *command = (rnl_trace_command){.called = start_ns,
                                       .returned = start_ns,
                                       .queued = start_ns,
                                       .submitted = start_ns,
                                       .started = start_ns,
                                       .ended = end_ns,
                                       .bytes = bytes,
                                       .what = what,
                                       .state = RNL_COMMAND_BY_HOST};
    pthread_mutex_unlock(&track->lock);
}

static bool ask_for(cl_event event, cl_profiling_info point, uint64_t *out_ns)
{
    cl_ulong ns = 0;
    const bool ok = RNL_CL_RUN(clGetEventProfilingInfo(event, point, sizeof ns, &ns, NULL)) == CL_SUCCESS;
    *out_ns = ns;
    return ok;
}

/* False: it is still under way. */
static bool ask(rnl_trace_command *command)
{
    cl_int state = CL_COMPLETE;
    if (command->state == RNL_COMMAND_OPEN)
        return false;
    if (!command->event)
        return true;
    const cl_int code =
        RNL_CL_RUN(clGetEventInfo(command->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL));
    if (code == CL_SUCCESS && state > CL_COMPLETE)
        return false;
    const bool ok = code == CL_SUCCESS && state == CL_COMPLETE &&
                    ask_for(command->event, CL_PROFILING_COMMAND_QUEUED, &command->queued) &&
                    ask_for(command->event, CL_PROFILING_COMMAND_SUBMIT, &command->submitted) &&
                    ask_for(command->event, CL_PROFILING_COMMAND_START, &command->started) &&
                    ask_for(command->event, CL_PROFILING_COMMAND_END, &command->ended) &&
                    command->started >= LEAST_TIME_NS && command->ended >= command->started;
    clReleaseEvent(command->event);
    command->event = NULL;
    command->state = ok ? RNL_COMMAND_BY_DEVICE : RNL_COMMAND_LOST;
    return true;
}

void rnl_track_ask(rnl_track *track)
{
    while (track->asked_block) {
        rnl_track_block *block = track->asked_block;
        for (; track->asked_at < block->count; track->asked_at++)
            if (!ask(&block->commands[track->asked_at]))
                return;
        if (!block->next)
            return;
        track->asked_block = block->next;
        track->asked_at = 0;
    }
}

void rnl_track_synchronized(rnl_track *track)
{
    rnl_trace_device_pair(track->device, RNL_PAIR_EVERY_NS);
    pthread_mutex_lock(&track->lock);
    if (track->under_way >= ASK_AT) {
        rnl_track_ask(track);
        track->under_way = 0;
    }
    pthread_mutex_unlock(&track->lock);
}

void rnl_stream_look_at_clocks(rnl_stream *stream)
{
    if (stream->track)
        rnl_trace_device_pair(stream->track->device, RNL_PAIR_EVERY_NS);
}

void rnl_stream_ask_times(rnl_stream *stream)
{
    if (!stream->track)
        return;
    pthread_mutex_lock(&stream->track->lock);
    rnl_track_ask(stream->track);
    stream->track->under_way = 0;
    pthread_mutex_unlock(&stream->track->lock);
}

/* ---- Names ---- */

rnl_trace *rnl_stream_trace(const rnl_stream *stream)
{
    return stream->track ? stream->track->trace : NULL;
}

void rnl_stream_call_next(rnl_stream *stream, uint32_t what)
{
    stream->trace_what = what;
}

void rnl_stream_call_kernel(rnl_stream *stream, const char *name)
{
    if (!stream->track || stream->trace_what != RNL_TRACE_UNKNOWN)
        return;
    const rnl_trace_what what = {.name = name, .category = "kernel", .args = ""};
    stream->trace_what = rnl_trace_describe(stream->track->trace, &what);
}

uint32_t rnl_stream_take_call(rnl_stream *stream)
{
    const uint32_t what = stream->trace_what;
    stream->trace_what = RNL_TRACE_UNKNOWN;
    return what;
}
