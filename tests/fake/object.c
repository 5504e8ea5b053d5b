/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: counted, checked, and listed while somebody has them. */
#include "fake/fake.h"
#include <stdio.h>
#include <stdlib.h>

/* As many dead objects are kept, so that their handles are known for what they are. */
#define GRAVES 65536

static const struct {
    const char *name;
    cl_int invalid;
    void (*destroy)(void *object); /* what it owns, not itself */
} kinds[FAKE_KINDS] = {
    [FAKE_NOTHING] = {"nothing", CL_INVALID_VALUE, NULL},
    [FAKE_PLATFORM] = {"platform", CL_INVALID_PLATFORM, NULL},
    [FAKE_DEVICE] = {"device", CL_INVALID_DEVICE, fake_destroy_device},
    [FAKE_CONTEXT] = {"context", CL_INVALID_CONTEXT, fake_destroy_context},
    [FAKE_QUEUE] = {"command queue", CL_INVALID_COMMAND_QUEUE, fake_destroy_queue},
    [FAKE_MEMORY] = {"buffer", CL_INVALID_MEM_OBJECT, fake_destroy_memory},
    [FAKE_PROGRAM] = {"program", CL_INVALID_PROGRAM, fake_destroy_program},
    [FAKE_KERNEL] = {"kernel", CL_INVALID_KERNEL, fake_destroy_kernel},
    [FAKE_EVENT] = {"event", CL_INVALID_EVENT, fake_destroy_event},
};

static fake_object *living;
static fake_object *graves[GRAVES];
static size_t grave_at;

void *fake_create(fake_kind kind, size_t bytes)
{
    fake_object *object = calloc(1, bytes);
    if (!object)
        return NULL;
    *object = (fake_object){.dispatch = &fake_dispatch, .kind = kind, .references = 1, .next = living};
    if (living)
        living->previous = object;
    living = object;
    return object;
}

static bool is_fixed(const fake_object *object)
{
    const void *at = object;
    return object->kind == FAKE_PLATFORM ||
           (at >= (const void *)fake_devices && at < (const void *)(fake_devices + FAKE_DEVICES));
}

cl_int fake_check(const void *handle, fake_kind kind)
{
    const fake_object *object = handle;
    bool good = object && object->dispatch == &fake_dispatch && object->kind == kind && object->references > 0;
    return good ? CL_SUCCESS : kinds[kind].invalid;
}

cl_int fake_retain(void *handle, fake_kind kind)
{
    fake_object *object = handle;
    cl_int code = fake_check(handle, kind);
    if (code == CL_SUCCESS && !is_fixed(object))
        object->references++;
    return code;
}

static void bury(fake_object *object)
{
    if (object->next)
        object->next->previous = object->previous;
    *(object->previous ? &object->previous->next : &living) = object->next;
    kinds[object->kind].destroy(object);
    free(graves[grave_at]);
    graves[grave_at] = object;
    grave_at = (grave_at + 1) % GRAVES;
}

cl_int fake_release(void *handle, fake_kind kind)
{
    fake_object *object = handle;
    if (object && object->dispatch == &fake_dispatch && object->kind == kind && object->references == 0) {
        fprintf(stderr, "fake OpenCL: a %s is released that has been released already\n", kinds[kind].name);
        abort();
    }
    cl_int code = fake_check(handle, kind);
    if (code == CL_SUCCESS && !is_fixed(object) && --object->references == 0 && object->holds == 0)
        bury(object);
    return code;
}

void *fake_hold(void *object)
{
    ((fake_object *)object)->holds++;
    return object;
}

void fake_drop(void *handle)
{
    fake_object *object = handle;
    if (object && --object->holds == 0 && object->references == 0 && !is_fixed(object))
        bury(object);
}

size_t fake_busy_queues(void)
{
    size_t count = 0;
    for (const fake_object *object = living; object; object = object->next)
        if (object->kind == FAKE_QUEUE) {
            const struct _cl_command_queue *queue = (const void *)object;
            count += object->references == 0 || queue->ended < queue->flushed;
        }
    return count;
}

size_t fake_alive(bool list)
{
    size_t count = 0;
    for (const fake_object *object = living; object; object = object->next)
        if (object->references > 0) {
            count++;
            if (list)
                fprintf(stderr, "fake OpenCL: a %s at %p has %u references\n", kinds[object->kind].name,
                        (const void *)object, object->references);
        }
    return count;
}
