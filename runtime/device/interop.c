/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's OpenCL objects as runnel's, and runnel's as OpenCL objects. */
#include "base/memory.h"
#include "device/buffer.h"
#include "device/enumerate.h"
#include "device/gate.h"
#include "device/open.h"
#include <runnel/interop.h>

/* ---- Devices ---- */

/*
 * Kernels may now run of which this library does not know. A driver whose binaries may not be asked for meanwhile is
 * not asked again: the gate is entered for good, behind the program in hand.
 */
static void share(rnl_device *device)
{
    if (device->binaries_compile && !atomic_exchange(&device->is_shared, true))
        rnl_gate_enter(device->gate);
}

/* Of a part, some drivers' contexts list the whole device. */
static rnl_status find_in_context(cl_context context, cl_device_id id, bool *out_found)
{
    size_t bytes = 0;
    cl_device_id *ids;
    *out_found = false;
    TRY(CL(clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, NULL, &bytes)));
    TRY(rnl_alloc(bytes, 1, &ids));
    rnl_status status = CL(clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, ids, NULL));
    while (status == RNL_OK && id && !*out_found) {
        for (size_t i = 0; i < bytes / sizeof *ids; i++)
            *out_found = *out_found || ids[i] == id;
        status = CL(clGetDeviceInfo(id, CL_DEVICE_PARENT_DEVICE, sizeof id, &id, NULL));
    }
    rnl_free(ids);
    return status;
}

static rnl_status check_context(cl_context context, cl_device_id id)
{
    bool found;
    TRY(find_in_context(context, id, &found));
    return found ? RNL_OK : FAIL(RNL_INVALID_ARGUMENT, "the context to wrap does not hold the device");
}

static const rnl_candidate *find(const rnl_candidates *all, cl_device_id id)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].id == id)
            return &all->items[i];
    return NULL;
}

/* A device of the list, or the part of one, which has its parent's place there. */
static rnl_status describe(const rnl_candidates *all, cl_device_id id, rnl_candidate *out_item)
{
    const rnl_candidate *known = find(all, id);
    cl_device_id parent = id;
    if (known) {
        *out_item = *known;
        return RNL_OK;
    }
    while (!known && parent) {
        TRY(CL(clGetDeviceInfo(parent, CL_DEVICE_PARENT_DEVICE, sizeof parent, &parent, NULL)));
        known = parent ? find(all, parent) : NULL;
    }
    if (!known)
        return FAIL(RNL_NOT_FOUND, "the device to wrap is on no OpenCL platform that is found here");
    *out_item = (rnl_candidate){.platform = known->platform, .id = id};
    out_item->info.platform_index = known->info.platform_index;
    out_item->info.device_index = known->info.device_index;
    return rnl_candidate_query(out_item);
}

rnl_status rnl_device_wrap(cl_context context, cl_device_id id, const rnl_device_options *options,
                           rnl_device **out_device)
{
    rnl_candidates all;
    rnl_candidate item;
    *out_device = NULL;
    if (!context || !id)
        return FAIL(RNL_INVALID_ARGUMENT, "a device is wrapped by its context and its id, and one of them is NULL");
    TRY(check_context(context, id), "wrapping a device");
    TRY(rnl_candidates_find(&all));
    rnl_status status = describe(&all, id, &item);
    if (status == RNL_OK)
        status = rnl_device_open_in(context, &item, options, out_device);
    if (status == RNL_OK && !find(&all, id) && clRetainDevice(id) == CL_SUCCESS)
        (*out_device)->parent_id = id; /* a part of a device: released with the device */
    rnl_candidates_free(&all);
    TRY(status, "wrapping a device");
    share(*out_device);
    return RNL_OK;
}

cl_context rnl_device_get_cl_context(rnl_device *device)
{
    share(device);
    return device->context;
}

cl_device_id rnl_device_get_cl_device(const rnl_device *device)
{
    return device->id;
}

/* ---- Streams ---- */

static rnl_status check_queue(const rnl_device *device, cl_command_queue queue)
{
    cl_context context = NULL;
    cl_device_id id = NULL;
    cl_command_queue_properties properties = 0;
    TRY(CL(clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL)));
    TRY(CL(clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof id, &id, NULL)));
    TRY(CL(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL)));
    if (context != device->context)
        return FAIL(RNL_INVALID_ARGUMENT, "the queue to wrap is of another context than %s has here",
                    device->info.name);
    if (id != device->id)
        return FAIL(RNL_INVALID_ARGUMENT, "the queue to wrap is of another device than %s", device->info.name);
    if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
        return FAIL(RNL_INVALID_ARGUMENT, "the queue to wrap runs out of order; a stream needs one that runs in order");
    return RNL_OK;
}

rnl_status rnl_stream_wrap(rnl_device *device, cl_command_queue queue, rnl_stream **out_stream)
{
    *out_stream = NULL;
    if (!queue)
        return FAIL(RNL_INVALID_ARGUMENT, "there is no queue to wrap");
    TRY(check_queue(device, queue), "wrapping a queue");
    TRY(CL(clRetainCommandQueue(queue)));
    share(device);
    TRY(rnl_stream_take_queue(device, queue, out_stream));
    (*out_stream)->is_handed_out = true;
    return RNL_OK;
}

cl_command_queue rnl_stream_get_cl_queue(rnl_stream *stream)
{
    share(stream->device);
    rnl_stream_rejoin(stream);
    stream->team = NULL;
    stream->is_handed_out = true;
    return stream->queue;
}

/* ---- Events ---- */

rnl_status rnl_stream_wait_cl_event(rnl_stream *stream, cl_event event)
{
    cl_context context = NULL;
    TRY(rnl_stream_check(stream));
    if (!event)
        return FAIL(RNL_INVALID_ARGUMENT, "there is no event to wait for");
    TRY(CL(clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof context, &context, NULL)));
    if (context != stream->device->context)
        return FAIL(RNL_INVALID_ARGUMENT, "the event to wait for is of another context than the stream's of %s",
                    stream->device->info.name);
    stream->waits_outside = true;
    return rnl_stream_fail(stream, CL(clEnqueueBarrierWithWaitList(stream->queue, 1, &event, NULL)));
}

cl_event rnl_event_get_cl_event(const rnl_event *event)
{
    return event->event;
}

/* ---- Buffers ---- */

static rnl_status check_memory(const rnl_device *device, cl_mem memory, size_t *out_size)
{
    cl_mem_object_type type = 0;
    cl_context context = NULL;
    TRY(CL(clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof type, &type, NULL)));
    TRY(CL(clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, NULL)));
    TRY(CL(clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof *out_size, out_size, NULL)));
    if (type != CL_MEM_OBJECT_BUFFER)
        return FAIL(RNL_INVALID_ARGUMENT, "the memory object to wrap is an image or a pipe, not a buffer");
    if (context != device->context)
        return FAIL(RNL_INVALID_ARGUMENT, "the memory object to wrap is of another context than %s has here",
                    device->info.name);
    return RNL_OK;
}

rnl_status rnl_buffer_wrap(rnl_device *device, cl_mem memory, rnl_buffer **out_buffer)
{
    rnl_buffer *buffer;
    size_t size = 0;
    *out_buffer = NULL;
    if (!memory)
        return FAIL(RNL_INVALID_ARGUMENT, "there is no memory object to wrap");
    TRY(check_memory(device, memory, &size), "wrapping a buffer");
    TRY(rnl_alloc(1, sizeof *buffer, &buffer));
    const rnl_status status = CL(clRetainMemObject(memory));
    if (status != RNL_OK) {
        rnl_free(buffer);
        return status;
    }
    atomic_init(&buffer->references, 1);
    buffer->device = rnl_device_retain(device);
    buffer->memory = memory;
    buffer->size_bytes = size;
    buffer->kind = RNL_MEMORY_DEVICE;
    *out_buffer = buffer;
    return RNL_OK;
}

cl_mem rnl_buffer_get_cl_mem(const rnl_buffer *buffer)
{
    return buffer->memory;
}
