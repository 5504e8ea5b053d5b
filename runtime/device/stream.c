/* SPDX-License-Identifier: Apache-2.0 */
#include "device/stream.h"

#include "base/memory.h"
#include "device/gate.h"
#include "device/guard.h"
#include "device/mover.h"
#include "device/pool.h"
#include "device/trace.h"
#include "device/waiter.h"
#include "device/watch.h"
#include <string.h>

rnl_status rnl_stream_take_queue(rnl_device *device, cl_command_queue queue, rnl_stream **out_stream)
{
    *out_stream = NULL;
    rnl_stream *stream;
    rnl_fate *fate = NULL;
    rnl_status status = rnl_fate_create(&fate);
    if (status == RNL_OK)
        status = rnl_alloc(1, sizeof *stream, &stream);
    if (status != RNL_OK) {
        rnl_fate_release(fate);
        clReleaseCommandQueue(queue);
        return status;
    }
    stream->fate = fate;
    stream->queue = queue;
    stream->is_watched = rnl_watch_is_wanted();
    atomic_init(&stream->references, 1);
    stream->device = rnl_device_retain(device);
    *out_stream = stream;
    return RNL_OK;
}

static rnl_status start_tracing(rnl_stream **stream, const rnl_stream_options *options)
{
    rnl_status status = rnl_track_create(options->trace, (*stream)->device, options->name, &(*stream)->track);
    if (status == RNL_OK) {
        (*stream)->trace = rnl_trace_retain(options->trace);
        return RNL_OK;
    }
    rnl_stream_release(*stream);
    *stream = NULL;
    return status;
}

rnl_status rnl_stream_create(rnl_device *device, rnl_stream **out_stream)
{
    return rnl_stream_create_with(device, NULL, out_stream);
}

rnl_status rnl_stream_create_with(rnl_device *device, const rnl_stream_options *options, rnl_stream **out_stream)
{
    rnl_stream_options known = RNL_STREAM_OPTIONS_INIT;
    cl_int code;
    *out_stream = NULL;
    if (options && options->struct_size < sizeof options->struct_size)
        return FAIL(RNL_INVALID_ARGUMENT, "stream options were not initialised with RNL_STREAM_OPTIONS_INIT");
    if (options)
        memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
    cl_command_queue_properties properties = known.timed || known.trace ? CL_QUEUE_PROFILING_ENABLE : 0;
    cl_command_queue queue = CL_NEW(&code, clCreateCommandQueue(device->context, device->id, properties, &code));
    TRY(rnl_cl_status(code, "clCreateCommandQueue"));
    TRY(rnl_stream_take_queue(device, queue, out_stream));
    return known.trace ? start_tracing(out_stream, &known) : RNL_OK;
}

rnl_stream *rnl_stream_retain(rnl_stream *stream)
{
    if (stream)
        atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
    return stream;
}

void rnl_stream_enter(rnl_stream *stream)
{
    if (!stream->is_inside)
        rnl_gate_enter(stream->device->gate);
    stream->is_inside = true;
}

/* Nothing of the stream's runs any more. */
static void leave(rnl_stream *stream)
{
    if (stream->is_inside)
        rnl_gate_leave(stream->device->gate);
    stream->is_inside = false;
}

void rnl_stream_destroy(rnl_stream *stream, bool has_ended)
{
    rnl_stream_rejoin(stream);
    if (stream->free_gemms)
        stream->free_gemms(stream);
    if (stream->is_inside && stream->device->gate && !has_ended)
        clFinish(stream->queue);
    leave(stream);
    rnl_pool_order_end(stream);
    clReleaseCommandQueue(stream->queue);
    rnl_mover_free(stream->mover);
    rnl_fates_clear(&stream->waits_for);
    rnl_fate_release(stream->fate);
    rnl_trace_release(stream->trace);
    rnl_device_release(stream->device);
    rnl_free(stream);
}

bool rnl_stream_let_go(rnl_stream *stream)
{
    unsigned references = atomic_load_explicit(&stream->references, memory_order_relaxed);
    while (references > 1)
        if (atomic_compare_exchange_weak_explicit(&stream->references, &references, references - 1,
                                                  memory_order_acq_rel, memory_order_relaxed))
            return true;
    return false;
}

void rnl_stream_release(rnl_stream *stream)
{
    if (stream && !rnl_ending() && atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel) == 1 &&
        !rnl_waiter_destroy_later(stream))
        rnl_stream_destroy(stream, false);
}

rnl_status rnl_stream_check_only(rnl_stream *stream)
{
    rnl_ending_sleep();
    TRY(rnl_fate_check(stream->fate));
    return rnl_stream_fail(stream, rnl_fates_check(&stream->waits_for));
}

void rnl_stream_rejoin(rnl_stream *stream)
{
    stream->products = 0;
    stream->is_idle = false;
    if (stream->leave_team)
        (void)!stream->leave_team(stream);
}

rnl_status rnl_stream_check(rnl_stream *stream)
{
    TRY(rnl_stream_check_only(stream));
    stream->products = 0;
    stream->is_idle = false;
    return stream->leave_team ? stream->leave_team(stream) : RNL_OK;
}

rnl_status rnl_stream_fail(rnl_stream *stream, rnl_status status)
{
    return rnl_fate_fail(stream->fate, status);
}

rnl_status rnl_stream_flush(rnl_stream *stream)
{
    TRY(rnl_stream_check(stream));
    return rnl_stream_fail(stream, CL(clFlush(stream->queue)));
}

rnl_status rnl_command_check(cl_event event)
{
    cl_int state = CL_COMPLETE;
    TRY(CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL)));
    return state < 0 ? rnl_cl_status(state, "a command of the stream") : RNL_OK;
}

/* Nothing is on its queue, and nothing that it waits for elsewhere. */
static bool has_nothing(const rnl_stream *stream)
{
    return stream->is_idle && !stream->leave_team && !stream->is_handed_out && !stream->has_turns &&
           stream->waits_for.count == 0;
}

/* Behind all that is on the queue; NULL where it cannot be enqueued. */
static cl_event mark_end(rnl_stream *stream, rnl_status *out_status)
{
    cl_event marker = NULL;
    *out_status = CL(clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker));
    rnl_stream_fail(stream, *out_status);
    if (!marker && clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker) != CL_SUCCESS)
        return NULL;
    return marker;
}

/*
 * The queue is drained whatever fails on the way: memory that its commands use may be released after this. rusticl's
 * clFinish (22.3) does not wait for commands that wait for the host, and waiting for the last of them does. Where there
 * is nothing, a marker would wake a thread of the driver.
 */
static rnl_status finish(rnl_stream *stream)
{
    const bool is_marked = !has_nothing(stream);
    rnl_status status = RNL_OK;
    rnl_stream_rejoin(stream);
    cl_event marker = is_marked ? mark_end(stream, &status) : NULL;
    cl_int code = clFinish(stream->queue);
    if (marker && (stream->has_turns || stream->waits_for.count > 0))
        clWaitForEvents(1, &marker);
    leave(stream);
    if (rnl_cl_fault_pending())
        code = rnl_cl_fault();
    if (status == RNL_OK)
        status = rnl_cl_status(code, "clFinish");
    if (status == RNL_OK && is_marked)
        status = rnl_command_check(marker);
    if (marker)
        clReleaseEvent(marker);
    return rnl_stream_fail(stream, status);
}

rnl_status rnl_stream_synchronize(rnl_stream *stream)
{
    rnl_ending_sleep();
    TRY(rnl_waiter_refuse_to_wait());
    const uint64_t released = rnl_pool_order_mark(stream), start = rnl_trace_start();
    rnl_status status = finish(stream);
    rnl_mover_wait(stream);
    rnl_pool_order_done(stream, released);
    stream->has_turns = stream->waits_outside = false;
    rnl_trace_stop(start, "wait");
    if (stream->track)
        rnl_track_synchronized(stream->track);
    if (status == RNL_OK)
        status = rnl_stream_check(stream);
    if (status == RNL_OK)
        status = rnl_stream_fail(stream, rnl_guards_check(stream->device));
    if (status == RNL_OK)
        rnl_fates_clear(&stream->waits_for); /* all of that has ended */
    stream->is_idle = status == RNL_OK;
    return status;
}
