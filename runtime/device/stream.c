/* SPDX-License-Identifier: Apache-2.0 */
#include "device/stream.h"

#include "base/memory.h"
#include "device/gate.h"
#include "device/mover.h"

rnl_status rnl_stream_take_queue(rnl_device *device, cl_command_queue queue, rnl_stream **out_stream)
{
    *out_stream = NULL;
    rnl_stream *stream;
    rnl_status status = rnl_alloc(1, sizeof *stream, &stream);
    if (status != RNL_OK) {
        clReleaseCommandQueue(queue);
        return status;
    }
    stream->queue = queue;
    atomic_init(&stream->references, 1);
    pthread_mutex_init(&stream->lock, NULL);
    stream->device = rnl_device_retain(device);
    *out_stream = stream;
    return RNL_OK;
}

static rnl_status create(rnl_device *device, cl_command_queue_properties properties, rnl_stream **out_stream)
{
    cl_int code;
    *out_stream = NULL;
    cl_command_queue queue = CL_NEW(&code, clCreateCommandQueue(device->context, device->id, properties, &code));
    TRY(rnl_cl_status(code, "clCreateCommandQueue"));
    return rnl_stream_take_queue(device, queue, out_stream);
}

rnl_status rnl_stream_create(rnl_device *device, rnl_stream **out_stream)
{
    return create(device, 0, out_stream);
}

rnl_status rnl_stream_create_timed(rnl_device *device, rnl_stream **out_stream)
{
    return create(device, CL_QUEUE_PROFILING_ENABLE, out_stream);
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

void rnl_stream_release(rnl_stream *stream)
{
    if (!stream || atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel) != 1)
        return;
    if (stream->free_gemms)
        stream->free_gemms(stream);
    if (stream->is_inside && stream->device->gate)
        clFinish(stream->queue);
    leave(stream);
    clReleaseCommandQueue(stream->queue);
    rnl_mover_free(stream->mover);
    pthread_mutex_destroy(&stream->lock);
    rnl_device_release(stream->device);
    rnl_free(stream);
}

rnl_status rnl_stream_check(rnl_stream *stream)
{
    rnl_status status = RNL_OK;
    pthread_mutex_lock(&stream->lock);
    if (stream->failure.status != RNL_OK)
        status = rnl_error_restore(&stream->failure);
    pthread_mutex_unlock(&stream->lock);
    return status;
}

rnl_status rnl_stream_fail(rnl_stream *stream, rnl_status status)
{
    if (status == RNL_OK)
        return status;
    pthread_mutex_lock(&stream->lock);
    if (stream->failure.status == RNL_OK) {
        stream->failure = *rnl_last_error();
        stream->failure.status = status;
    }
    pthread_mutex_unlock(&stream->lock);
    return status;
}

rnl_status rnl_stream_flush(rnl_stream *stream)
{
    TRY(rnl_stream_check(stream));
    return rnl_stream_fail(stream, CL(clFlush(stream->queue)));
}

/* A negative state of a command that has ended is its error; clFinish does not tell. */
static rnl_status check_event(cl_event event)
{
    cl_int state = CL_COMPLETE;
    TRY(CL(clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL)));
    return state < 0 ? rnl_cl_status(state, "a command of the stream") : RNL_OK;
}

/* The queue is drained whatever fails on the way: memory that its commands use may be released after this. */
static rnl_status finish(rnl_stream *stream)
{
    cl_event marker = NULL;
    rnl_status status = CL(clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &marker));
    rnl_stream_fail(stream, status);
    cl_int code = clFinish(stream->queue);
    if (marker && stream->has_turns)
        clWaitForEvents(1, &marker);
    leave(stream);
    if (rnl_cl_fault_pending())
        code = rnl_cl_fault();
    if (status == RNL_OK)
        status = rnl_cl_status(code, "clFinish");
    if (status == RNL_OK)
        status = check_event(marker);
    if (marker)
        clReleaseEvent(marker);
    return rnl_stream_fail(stream, status);
}

rnl_status rnl_stream_synchronize(rnl_stream *stream)
{
    rnl_status status = finish(stream);
    rnl_mover_wait(stream);
    stream->has_turns = false;
    return status == RNL_OK ? rnl_stream_check(stream) : status;
}

/* ---- Events ---- */

rnl_status rnl_stream_record(rnl_stream *stream, rnl_event **out_event)
{
    *out_event = NULL;
    TRY(rnl_stream_check(stream));
    rnl_event *event;
    TRY(rnl_alloc(1, sizeof *event, &event));
    rnl_status status = CL(clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, &event->event));
    if (status == RNL_OK)
        status = CL(clFlush(stream->queue));
    if (status != RNL_OK) {
        if (event->event)
            clReleaseEvent(event->event);
        rnl_free(event);
        return rnl_stream_fail(stream, status);
    }
    atomic_init(&event->references, 1);
    event->stream = rnl_stream_retain(stream);
    *out_event = event;
    return RNL_OK;
}

rnl_status rnl_stream_wait(rnl_stream *stream, rnl_event *event)
{
    TRY(rnl_stream_check(stream));
    if (event->stream->device != stream->device)
        return FAIL(RNL_INVALID_ARGUMENT, "a stream of %s cannot wait for an event of %s, which is another device",
                    stream->device->info.name, event->stream->device->info.name);
    if (event->stream == stream)
        return RNL_OK;
    /* Drivers run what waits on a failed event: the failure is handed on here. */
    rnl_status status = rnl_stream_check(event->stream);
    if (status == RNL_OK)
        status = CL(clEnqueueBarrierWithWaitList(stream->queue, 1, &event->event, NULL));
    return rnl_stream_fail(stream, status);
}

rnl_event *rnl_event_retain(rnl_event *event)
{
    if (event)
        atomic_fetch_add_explicit(&event->references, 1, memory_order_relaxed);
    return event;
}

void rnl_event_release(rnl_event *event)
{
    if (!event || atomic_fetch_sub_explicit(&event->references, 1, memory_order_acq_rel) != 1)
        return;
    clReleaseEvent(event->event);
    rnl_stream_release(event->stream);
    rnl_free(event);
}

rnl_status rnl_event_synchronize(rnl_event *event)
{
    cl_int code = clWaitForEvents(1, &event->event); /* even where a test makes this call fail */
    if (rnl_cl_fault_pending())
        code = rnl_cl_fault();
    rnl_status status = rnl_cl_status(code, "clWaitForEvents");
    if (status == RNL_OK)
        status = check_event(event->event);
    rnl_stream_fail(event->stream, status);
    return status == RNL_OK ? rnl_stream_check(event->stream) : status;
}
