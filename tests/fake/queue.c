/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts, and queues whose commands run in order in a thread of the queue's own. As drivers do, a queue starts
 * nothing that has not been flushed, ends all that stands behind a failed command with its code, and clFinish says
 * nothing of it.
 */
#include "fake/fake.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- Contexts ---- */

cl_context clCreateContext(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
                           void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
                           cl_int *out_code)
{
    (void)notify;
    (void)user;
    ATTEMPT_NEW(fake_enter("clCreateContext"), out_code);
    REQUIRE_NEW(count > 0 && count <= FAKE_DEVICES && devices, CL_INVALID_VALUE, out_code);
    for (cl_uint i = 0; i < count; i++) {
        ATTEMPT_NEW(fake_check(devices[i], FAKE_DEVICE), out_code);
        REQUIRE_NEW(devices[i]->platform == devices[0]->platform, CL_INVALID_DEVICE, out_code);
    }
    for (const cl_context_properties *at = properties; at && *at; at += 2)
        REQUIRE_NEW(at[0] == CL_CONTEXT_PLATFORM && at[1] == (cl_context_properties)devices[0]->platform,
                    CL_INVALID_PROPERTY, out_code);
    cl_context context = fake_create(FAKE_CONTEXT, sizeof *context);
    REQUIRE_NEW(context, CL_OUT_OF_HOST_MEMORY, out_code);
    context->device_count = count;
    for (cl_uint i = 0; i < count; i++)
        context->devices[i] = fake_hold(devices[i]);
    return fake_made(context, CL_SUCCESS, out_code);
}

void fake_destroy_context(void *object)
{
    cl_context context = object;
    for (cl_uint i = 0; i < context->device_count; i++)
        fake_drop(context->devices[i]);
}

bool fake_has_device(cl_context context, cl_device_id device)
{
    for (cl_uint i = 0; i < context->device_count; i++)
        if (context->devices[i] == device)
            return true;
    return false;
}

cl_int clRetainContext(cl_context context)
{
    ENTER("clRetainContext");
    return fake_leave(fake_retain(context, FAKE_CONTEXT));
}

cl_int clReleaseContext(cl_context context)
{
    cl_int fault = fake_enter("clReleaseContext"), code = fake_release(context, FAKE_CONTEXT);
    return fake_leave(fault != CL_SUCCESS ? fault : code);
}

cl_int clGetContextInfo(cl_context context, cl_context_info what, size_t size, void *out, size_t *out_bytes)
{
    ENTER("clGetContextInfo");
    ATTEMPT(fake_check(context, FAKE_CONTEXT));
    switch (what) {
    case CL_CONTEXT_NUM_DEVICES:
        return fake_leave(ANSWER(cl_uint, context->device_count));
    case CL_CONTEXT_REFERENCE_COUNT:
        return fake_leave(ANSWER(cl_uint, context->object.references));
    case CL_CONTEXT_DEVICES:
        return fake_leave(
            fake_answer(context->devices, context->device_count * sizeof *context->devices, size, out, out_bytes));
    default:
        return fake_leave(CL_INVALID_VALUE);
    }
}

/* ---- A queue's thread ---- */

static cl_int wait_for_list(const fake_command *command)
{
    cl_int code = CL_SUCCESS;
    for (cl_uint i = 0; i < command->wait_count; i++)
        if (fake_event_wait(command->waits[i]) < 0)
            code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return code;
}

static void pause_us(unsigned microseconds)
{
    const struct timespec time = {microseconds / 1000000, (long)(microseconds % 1000000) * 1000};
    if (microseconds > 0)
        nanosleep(&time, NULL);
}

/* Called with the lock, which is given up while the command runs. */
static void run_command(cl_command_queue queue, fake_command *command)
{
    cl_event event = command->event;
    event->state = CL_SUBMITTED;
    event->submitted = fake_now();
    cl_int code = wait_for_list(command);
    if (queue->failure != CL_SUCCESS)
        code = queue->failure;
    else if (fake_whole(queue->device)->lost != CL_SUCCESS)
        code = fake_whole(queue->device)->lost;
    if (code == CL_SUCCESS)
        code = fake_command_fault();
    event->state = CL_RUNNING;
    event->started = fake_now();
    unsigned late = fake_delay_us();
    pthread_mutex_unlock(&fake_lock);
    pause_us(late);
    if (code == CL_SUCCESS && command->run)
        command->run(command);
    pthread_mutex_lock(&fake_lock);
    queue->failure = code;
    fake_event_end(event, code);
}

static void free_command(fake_command *command)
{
    for (cl_uint i = 0; i < command->wait_count; i++)
        fake_drop(command->waits[i]);
    for (size_t i = 0; i < command->held_count; i++)
        fake_drop(command->held[i]);
    fake_drop(command->event);
    free(command->waits);
    free(command->held);
    free(command);
}

static void *run_queue(void *argument)
{
    cl_command_queue queue = argument;
    pthread_mutex_lock(&fake_lock);
    for (;;) {
        while (queue->ended == queue->flushed && !queue->closing)
            pthread_cond_wait(&fake_changed, &fake_lock);
        if (queue->ended == queue->enqueued && queue->closing)
            break;
        fake_command *command = queue->first;
        run_command(queue, command);
        queue->first = command->next;
        if (!queue->first)
            queue->last = &queue->first;
        queue->ended++;
        pthread_cond_broadcast(&fake_changed);
        free_command(command);
    }
    fake_drop(queue);
    pthread_mutex_unlock(&fake_lock);
    return NULL;
}

static bool start_thread(cl_command_queue queue)
{
    pthread_t thread;
    pthread_attr_t detached;
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    fake_hold(queue);
    bool started = pthread_create(&thread, &detached, run_queue, queue) == 0;
    if (!started)
        fake_drop(queue);
    pthread_attr_destroy(&detached);
    return started;
}

/* ---- Queues ---- */

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                      cl_int *out_code)
{
    ATTEMPT_NEW(fake_enter("clCreateCommandQueue"), out_code);
    ATTEMPT_NEW(fake_check(context, FAKE_CONTEXT), out_code);
    ATTEMPT_NEW(fake_check(device, FAKE_DEVICE), out_code);
    REQUIRE_NEW(fake_has_device(context, device), CL_INVALID_DEVICE, out_code);
    REQUIRE_NEW((properties & ~(cl_command_queue_properties)CL_QUEUE_PROFILING_ENABLE) == 0,
                CL_INVALID_QUEUE_PROPERTIES, out_code);
    cl_command_queue queue = fake_create(FAKE_QUEUE, sizeof *queue);
    REQUIRE_NEW(queue, CL_OUT_OF_HOST_MEMORY, out_code);
    queue->context = fake_hold(context);
    queue->device = fake_hold(device);
    queue->properties = properties;
    queue->last = &queue->first;
    bool started = start_thread(queue);
    if (!started)
        fake_release(queue, FAKE_QUEUE);
    return fake_made(queue, started ? CL_SUCCESS : CL_OUT_OF_HOST_MEMORY, out_code);
}

void fake_destroy_queue(void *object)
{
    cl_command_queue queue = object;
    fake_drop(queue->device);
    fake_drop(queue->context);
}

void fake_flush(cl_command_queue queue)
{
    queue->flushed = queue->enqueued;
    pthread_cond_broadcast(&fake_changed);
}

cl_int clRetainCommandQueue(cl_command_queue queue)
{
    ENTER("clRetainCommandQueue");
    return fake_leave(fake_retain(queue, FAKE_QUEUE));
}

cl_int clReleaseCommandQueue(cl_command_queue queue)
{
    cl_int fault = fake_enter("clReleaseCommandQueue"), code = fake_check(queue, FAKE_QUEUE);
    if (code == CL_SUCCESS && queue->object.references == 1) {
        fake_flush(queue);
        queue->closing = true;
    }
    code = fake_release(queue, FAKE_QUEUE);
    return fake_leave(fault != CL_SUCCESS ? fault : code);
}

cl_int clGetCommandQueueInfo(cl_command_queue queue, cl_command_queue_info what, size_t size, void *out,
                             size_t *out_bytes)
{
    ENTER("clGetCommandQueueInfo");
    ATTEMPT(fake_check(queue, FAKE_QUEUE));
    switch (what) {
    case CL_QUEUE_CONTEXT:
        return fake_leave(ANSWER(cl_context, queue->context));
    case CL_QUEUE_DEVICE:
        return fake_leave(ANSWER(cl_device_id, queue->device));
    case CL_QUEUE_PROPERTIES:
        return fake_leave(ANSWER(cl_command_queue_properties, queue->properties));
    case CL_QUEUE_REFERENCE_COUNT:
        return fake_leave(ANSWER(cl_uint, queue->object.references));
    default:
        return fake_leave(CL_INVALID_VALUE);
    }
}

static cl_int use_queue(const char *call, cl_command_queue queue)
{
    cl_int code = fake_check(queue, FAKE_QUEUE);
    cl_int lost = code == CL_SUCCESS ? fake_use_device(queue->device) : code;
    return code == CL_SUCCESS && lost != CL_SUCCESS ? fake_failed(call, lost) : code;
}

cl_int clFlush(cl_command_queue queue)
{
    ENTER("clFlush");
    ATTEMPT(use_queue("clFlush", queue));
    fake_flush(queue);
    return fake_leave(CL_SUCCESS);
}

cl_int clFinish(cl_command_queue queue)
{
    cl_int fault = fake_enter("clFinish");
    ATTEMPT(fake_check(queue, FAKE_QUEUE));
    cl_int lost = use_queue("clFinish", queue);
    size_t wanted = queue->enqueued;
    fake_flush(queue);
    fake_hold(queue);
    while (queue->ended < wanted)
        pthread_cond_wait(&fake_changed, &fake_lock);
    fake_drop(queue);
    return fake_leave(fault != CL_SUCCESS ? fault : lost);
}

/* ---- Enqueuing ---- */

cl_int fake_command_check(const char *call, cl_command_queue queue, cl_uint wait_count, const cl_event *waits)
{
    cl_int code = use_queue(call, queue);
    if (code == CL_SUCCESS && (wait_count > 0) != (waits != NULL))
        code = CL_INVALID_EVENT_WAIT_LIST;
    for (cl_uint i = 0; i < wait_count && code == CL_SUCCESS; i++)
        if (fake_check(waits[i], FAKE_EVENT) != CL_SUCCESS)
            code = CL_INVALID_EVENT_WAIT_LIST;
        else if (waits[i]->context != queue->context)
            code = CL_INVALID_CONTEXT;
    return code;
}

static cl_event create_event(cl_command_queue queue, cl_command_type type)
{
    cl_event event = fake_create(FAKE_EVENT, sizeof *event);
    if (!event)
        abort(); /* out of memory in earnest: nothing is to be learnt from that here */
    event->queue = fake_hold(queue);
    event->context = fake_hold(queue->context);
    event->type = type;
    event->state = CL_QUEUED;
    event->queued = fake_now();
    return event;
}

static fake_command *copy_command(const fake_command *from, cl_uint wait_count, const cl_event *waits)
{
    static const fake_command marker;
    fake_command *command = malloc(sizeof *command);
    if (!command)
        abort();
    *command = from ? *from : marker;
    command->wait_count = wait_count;
    command->waits = calloc(wait_count + 1, sizeof *command->waits);
    fake_object **held = calloc(command->held_count + 1, sizeof *held);
    if (!command->waits || !held)
        abort();
    for (cl_uint i = 0; i < wait_count; i++)
        command->waits[i] = fake_hold(waits[i]);
    for (size_t i = 0; i < command->held_count; i++)
        held[i] = fake_hold(command->held[i]);
    command->held = held;
    return command;
}

cl_int fake_command_enqueue(cl_command_queue queue, const fake_command *from, cl_command_type type, cl_uint wait_count,
                            const cl_event *waits, cl_bool blocking, cl_event *out_event)
{
    fake_command *command = copy_command(from, wait_count, waits);
    cl_event event = create_event(queue, type);
    command->event = fake_hold(event);
    *queue->last = command;
    queue->last = &command->next;
    queue->enqueued++;
    cl_int code = CL_SUCCESS;
    if (blocking) {
        fake_flush(queue);
        cl_int state = fake_event_wait(event);
        code = state < 0 ? state : CL_SUCCESS;
    }
    if (out_event && code == CL_SUCCESS)
        *out_event = event;
    else
        fake_release(event, FAKE_EVENT);
    return code;
}
