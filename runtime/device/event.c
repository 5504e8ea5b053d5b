/* SPDX-License-Identifier: Apache-2.0 */
/* Points in streams: waiting for them, asking about them. */
#include "base/memory.h"
#include "device/waiter.h"

rnl_event *rnl_event_retain(rnl_event *event)
{
    if (event)
        atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
    return event;
}

static void destroy(rnl_event *event)
{
    if (event->event)
        clReleaseEvent(event->event);
    rnl_fates_clear(&event->fates);
    rnl_device_release(event->device);
    rnl_free(event);
}

void rnl_event_release(rnl_event *event)
{
    if (event && atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) == 1)
        destroy(event);
}

static rnl_status mark(rnl_stream *stream, rnl_event *event)
{
    TRY(CL(clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &event->event)));
    return CL(clFlush(stream->queue));
}

rnl_status rnl_stream_record(rnl_stream *stream, rnl_event **out_event)
{
    *out_event = NULL;
    TRY(rnl_stream_check(stream));
    rnl_event *event;
    TRY(rnl_alloc(1, sizeof *event, &event));
    atomic_init(&event->references, 1);
    event->device = rnl_device_retain(stream->device);
    rnl_status status = rnl_fates_add(&event->fates, stream->fate);
    if (status == RNL_OK)
        status = rnl_fates_add_all(&event->fates, &stream->waits_for);
    if (status == RNL_OK)
        status = rnl_stream_fail(stream, mark(stream, event));
    if (status != RNL_OK) {
        destroy(event);
        return status;
    }
    *out_event = event;
    return RNL_OK;
}

/* The event has ended: its own failure is its stream's. */
static rnl_status check(rnl_event *event)
{
    rnl_fate_fail(event->fates.items[0], rnl_command_check(event->event));
    return rnl_fates_check(&event->fates);
}

/* A check of the caller's arguments: FAILs for an event that is NULL. */
static rnl_status need(const rnl_event *event, const char *call)
{
    return event ? RNL_OK : FAIL(RNL_INVALID_ARGUMENT, "%s: event is NULL", call);
}

rnl_status rnl_stream_wait(rnl_stream *stream, rnl_event *event)
{
    TRY(need(event, __func__));
    TRY(rnl_stream_check(stream));
    if (event->fates.items[0] == stream->fate)
        return RNL_OK;
    stream->waits_outside = true;
    /* Drivers run what waits on a failed event: failures are handed on here, and whenever the stream is looked at. */
    TRY(rnl_fates_add_all(&stream->waits_for, &event->fates));
    TRY(rnl_stream_check(stream));
    if (event->device->context != stream->device->context)
        return rnl_stream_fail(stream, rnl_waiter_wait(stream, event));
    return rnl_stream_fail(stream, CL(clEnqueueBarrierWithWaitList(stream->queue, 1, &event->event, NULL)));
}

rnl_status rnl_event_synchronize(rnl_event *event)
{
    TRY(need(event, __func__));
    TRY(rnl_waiter_refuse_to_wait());
    rnl_ending_sleep();
    cl_int code = clWaitForEvents(1, &event->event); /* even where a test makes this call fail */
    if (rnl_cl_fault_pending())
        code = rnl_cl_fault();
    rnl_status status = rnl_cl_status(code, "clWaitForEvents");
    /* That one failed, which the event's own state says better. */
    if (code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) {
        rnl_status own = rnl_command_check(event->event);
        status = own == RNL_OK ? status : own;
    }
    rnl_fate_fail(event->fates.items[0], status);
    return check(event);
}

rnl_status rnl_event_query(rnl_event *event, bool *out_done)
{
    cl_int state = CL_COMPLETE;
    *out_done = false;
    TRY(need(event, __func__));
    TRY(CL(clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL)));
    if (state > CL_COMPLETE)
        return RNL_OK;
    *out_done = true;
    return check(event);
}

rnl_status rnl_event_notify(rnl_event *event, rnl_event_fn notify, void *user)
{
    TRY(need(event, __func__));
    if (!notify)
        return FAIL(RNL_INVALID_ARGUMENT, "rnl_event_notify: notify is NULL");
    return rnl_waiter_notify(event, notify, user);
}

/* ---- Times ---- */

/* rusticl (22.3) answers 0, 1, 2 and 3 for the four points of a command's life. */
#define LEAST_TIME_NS 1000

/* When the event happened, by its device's clock. */
static rnl_status get_time(const rnl_event *event, uint64_t *out_ns)
{
    cl_int state = CL_COMPLETE, code = CL_SUCCESS;
    cl_ulong start = 0, end = 0;
    TRY(CL(clGetEventInfo(event->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL)));
    if (state > CL_COMPLETE)
        return FAIL(RNL_FAILED_PRECONDITION, "an event has no time before it has happened");
    code = RNL_CL_RUN(clGetEventProfilingInfo(event->event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL));
    if (code == CL_PROFILING_INFO_NOT_AVAILABLE)
        return FAIL(RNL_FAILED_PRECONDITION,
                    "an event has no time where its stream was not made with the option timed");
    TRY(rnl_cl_status(code, "clGetEventProfilingInfo"));
    TRY(CL(clGetEventProfilingInfo(event->event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL)));
    if (end < start || start < LEAST_TIME_NS)
        return FAIL(RNL_UNIMPLEMENTED, "the driver of %s does not tell when commands ran", event->device->info.name);
    *out_ns = end;
    return RNL_OK;
}

rnl_status rnl_event_elapsed(rnl_event *from, rnl_event *to, uint64_t *out_ns)
{
    uint64_t start, end;
    *out_ns = 0;
    TRY(need(from, __func__));
    TRY(need(to, __func__));
    if (from->device->context != to->device->context)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "an event of %s and one of %s, which is another device, have no clock in common",
                    from->device->info.name, to->device->info.name);
    TRY(get_time(from, &start));
    TRY(get_time(to, &end));
    if (end < start)
        return FAIL(RNL_INVALID_ARGUMENT, "the second event happened before the first");
    *out_ns = end - start;
    return RNL_OK;
}
