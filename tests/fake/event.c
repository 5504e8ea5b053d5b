/* SPDX-License-Identifier: Apache-2.0 */
#include "fake/fake.h"
#include <stdlib.h>
#include <time.h>

cl_ulong fake_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (cl_ulong)now.tv_sec * 1000000000u + (cl_ulong)now.tv_nsec;
}

void fake_destroy_event(void *object)
{
    cl_event event = object;
    while (event->callbacks) {
        fake_callback *next = event->callbacks->next;
        free(event->callbacks);
        event->callbacks = next;
    }
    fake_drop(event->queue);
    fake_drop(event->context);
}

void fake_event_end(cl_event event, cl_int state)
{
    event->ended = fake_now();
    if (event->ended <= event->started)
        event->ended = event->started + 1;
    event->state = state;
    pthread_cond_broadcast(&fake_changed);
    fake_hold(event);
    while (event->callbacks) {
        fake_callback *callback = event->callbacks;
        event->callbacks = callback->next;
        pthread_mutex_unlock(&fake_lock);
        callback->function(event, state, callback->user);
        free(callback);
        pthread_mutex_lock(&fake_lock);
    }
    fake_drop(event);
}

cl_int fake_event_wait(cl_event event)
{
    fake_hold(event);
    while (event->state > CL_COMPLETE)
        pthread_cond_wait(&fake_changed, &fake_lock);
    cl_int state = event->state;
    fake_drop(event);
    return state;
}

cl_int clWaitForEvents(cl_uint count, const cl_event *events)
{
    cl_int fault = fake_enter("clWaitForEvents"), code = CL_SUCCESS;
    REQUIRE(count > 0 && events, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < count; i++)
        ATTEMPT(fake_check(events[i], FAKE_EVENT));
    for (cl_uint i = 0; i < count; i++)
        if (events[i]->queue)
            fake_flush(events[i]->queue);
    for (cl_uint i = 0; i < count; i++)
        if (fake_event_wait(events[i]) < 0)
            code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return fake_leave(fault != CL_SUCCESS ? fault : code);
}

cl_int clGetEventInfo(cl_event event, cl_event_info what, size_t size, void *out, size_t *out_bytes)
{
    ENTER("clGetEventInfo");
    ATTEMPT(fake_check(event, FAKE_EVENT));
    switch (what) {
    case CL_EVENT_COMMAND_EXECUTION_STATUS:
        return fake_leave(ANSWER(cl_int, event->state));
    case CL_EVENT_COMMAND_TYPE:
        return fake_leave(ANSWER(cl_command_type, event->type));
    case CL_EVENT_COMMAND_QUEUE:
        return fake_leave(ANSWER(cl_command_queue, event->queue));
    case CL_EVENT_CONTEXT:
        return fake_leave(ANSWER(cl_context, event->context));
    case CL_EVENT_REFERENCE_COUNT:
        return fake_leave(ANSWER(cl_uint, event->object.references));
    default:
        return fake_leave(CL_INVALID_VALUE);
    }
}

cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, size_t size, void *out, size_t *out_bytes)
{
    ENTER("clGetEventProfilingInfo");
    ATTEMPT(fake_check(event, FAKE_EVENT));
    REQUIRE(event->queue && (event->queue->properties & CL_QUEUE_PROFILING_ENABLE) && event->state == CL_COMPLETE,
            CL_PROFILING_INFO_NOT_AVAILABLE);
    switch (what) {
    case CL_PROFILING_COMMAND_QUEUED:
        return fake_leave(ANSWER(cl_ulong, event->queued));
    case CL_PROFILING_COMMAND_SUBMIT:
        return fake_leave(ANSWER(cl_ulong, event->submitted));
    case CL_PROFILING_COMMAND_START:
        return fake_leave(ANSWER(cl_ulong, event->started));
    case CL_PROFILING_COMMAND_END:
        return fake_leave(ANSWER(cl_ulong, event->ended));
    default:
        return fake_leave(CL_INVALID_VALUE);
    }
}

cl_int clSetEventCallback(cl_event event, cl_int state,
                          void(CL_CALLBACK *function)(cl_event event, cl_int state, void *user), void *user)
{
    ENTER("clSetEventCallback");
    ATTEMPT(fake_check(event, FAKE_EVENT));
    REQUIRE(function && state >= CL_COMPLETE && state <= CL_SUBMITTED, CL_INVALID_VALUE);
    if (event->state <= CL_COMPLETE) {
        cl_int ended = event->state;
        pthread_mutex_unlock(&fake_lock);
        function(event, ended, user); /* in the caller, as pocl does */
        return CL_SUCCESS;
    }
    fake_callback *callback = malloc(sizeof *callback);
    REQUIRE(callback, CL_OUT_OF_HOST_MEMORY);
    *callback = (fake_callback){.next = event->callbacks, .function = function, .user = user};
    event->callbacks = callback;
    return fake_leave(CL_SUCCESS);
}

cl_event clCreateUserEvent(cl_context context, cl_int *out_code)
{
    ATTEMPT_NEW(fake_enter("clCreateUserEvent"), out_code);
    ATTEMPT_NEW(fake_check(context, FAKE_CONTEXT), out_code);
    cl_event event = fake_create(FAKE_EVENT, sizeof *event);
    REQUIRE_NEW(event, CL_OUT_OF_HOST_MEMORY, out_code);
    event->context = fake_hold(context);
    event->type = CL_COMMAND_USER;
    event->state = CL_SUBMITTED;
    return fake_made(event, CL_SUCCESS, out_code);
}

cl_int clSetUserEventStatus(cl_event event, cl_int state)
{
    cl_int fault = fake_enter("clSetUserEventStatus");
    ATTEMPT(fake_check(event, FAKE_EVENT));
    /* A driver that never sets it would hold its queue up for ever. */
    if (fault != CL_SUCCESS && fake_fails_for_good() && event->state > CL_COMPLETE)
        fake_event_end(event, state);
    REQUIRE(fault == CL_SUCCESS, fault);
    REQUIRE(event->type == CL_COMMAND_USER, CL_INVALID_EVENT);
    REQUIRE(state <= CL_COMPLETE, CL_INVALID_VALUE);
    REQUIRE(event->state > CL_COMPLETE, CL_INVALID_OPERATION);
    fake_event_end(event, state);
    return fake_leave(CL_SUCCESS);
}

cl_int clRetainEvent(cl_event event)
{
    ENTER("clRetainEvent");
    return fake_leave(fake_retain(event, FAKE_EVENT));
}

cl_int clReleaseEvent(cl_event event)
{
    cl_int fault = fake_enter("clReleaseEvent"), code = fake_release(event, FAKE_EVENT);
    return fake_leave(fault != CL_SUCCESS ? fault : code);
}
