/* SPDX-License-Identifier: Apache-2.0 */
#include "device/buffer.h"

#include "base/memory.h"
#include "device/guard.h"
#include "device/pinned.h"
#include "device/pool.h"
#include "device/trace.h"
#include <runnel/pool.h>
#include <string.h>

/* What lies behind the buffer is not its label's, nor any statistic's but the pool's. */
static rnl_status take_guarded(rnl_buffer *buffer, const rnl_pool_request *request)
{
    rnl_device *device = buffer->device;
    rnl_pool_request with_guard = *request;
    if (!rnl_size_add(request->size_bytes, rnl_guard_bytes(device, request->kind), &with_guard.size_bytes))
        with_guard.size_bytes = SIZE_MAX;
    TRY(rnl_pool_take(device->pool, &with_guard, &buffer->block));
    buffer->memory = buffer->block->memory;
    rnl_status status = rnl_guard_add(buffer, request->label);
    if (status != RNL_OK)
        rnl_pool_give_back(device->pool, buffer->block);
    return status;
}

static rnl_status create(const rnl_pool_request *request, rnl_device *device, rnl_buffer **out_buffer)
{
    *out_buffer = NULL;
    if (request->size_bytes == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "a buffer of 0 bytes was asked for");
    if (request->kind != RNL_MEMORY_DEVICE && request->kind != RNL_MEMORY_PINNED)
        return FAIL(RNL_INVALID_ARGUMENT, "memory of the unknown kind %d was asked for", (int)request->kind);
    rnl_buffer *buffer = rnl_malloc(sizeof *buffer); /* rnl_alloc's zeros take longer */
    if (!buffer)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "out of memory: %zu bytes were asked for", sizeof *buffer);
    memset(buffer, 0, sizeof *buffer);
    buffer->device = device;
    buffer->size_bytes = request->size_bytes;
    buffer->kind = request->kind;
    rnl_status status =
        request->kind == RNL_MEMORY_PINNED ? rnl_pinned_take(buffer, request) : take_guarded(buffer, request);
    if (status != RNL_OK) {
        rnl_free(buffer);
        return status;
    }
    atomic_init(&buffer->references, 1);
    rnl_device_retain(device);
    buffer->memory = buffer->block->memory;
    *out_buffer = buffer;
    return RNL_OK;
}

rnl_status rnl_buffer_create(rnl_device *device, rnl_memory memory, size_t size_bytes, rnl_buffer **out_buffer)
{
    return create(&(rnl_pool_request){.kind = memory, .size_bytes = size_bytes}, device, out_buffer);
}

rnl_status rnl_buffer_create_with(rnl_device *device, rnl_memory memory, size_t size_bytes,
                                  const rnl_buffer_options *options, rnl_buffer **out_buffer)
{
    rnl_buffer_options known = RNL_BUFFER_OPTIONS_INIT;
    *out_buffer = NULL;
    if (options && options->struct_size < sizeof options->struct_size)
        return FAIL(RNL_INVALID_ARGUMENT, "buffer options were not initialised with RNL_BUFFER_OPTIONS_INIT");
    if (options)
        memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
    if (known.stream && known.stream->device != device)
        return FAIL(RNL_INVALID_ARGUMENT, "a buffer of %s was asked for a stream of %s, which is another device",
                    device->info.name, known.stream->device->info.name);
    const rnl_pool_request request = {memory, size_bytes, known.label && *known.label ? known.label : NULL,
                                      known.stream, known.own_memory};
    return create(&request, device, out_buffer);
}

rnl_buffer *rnl_buffer_retain(rnl_buffer *buffer)
{
    if (buffer)
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

static void wait_for(cl_command_queue queue)
{
    cl_event marker = NULL;
    if (clEnqueueMarkerWithWaitList(queue, 0, NULL, &marker) == CL_SUCCESS) {
        clWaitForEvents(1, &marker);
        clReleaseEvent(marker);
    } else {
        clFinish(queue);
    }
}

/* Nobody holds the buffer any more. Only commands of `stream` may still use it; NULL: none. */
static void destroy(rnl_buffer *buffer, rnl_stream *stream)
{
    rnl_buffer_end_map(buffer);
    if (buffer->last_use) {
        clWaitForEvents(1, &buffer->last_use);
        clReleaseEvent(buffer->last_use);
    }
    rnl_guard_remove(buffer, stream);
    if (buffer->give_back) {
        buffer->released_after = stream;
        if (stream && !buffer->gives_back_in_order) /* it may be host memory that goes away */
            wait_for(stream->queue);
        buffer->give_back(buffer);
    } else if (!buffer->block) {
        clReleaseMemObject(buffer->memory);
    } else if (stream) {
        rnl_pool_give_back_after(buffer->device->pool, buffer->block, stream);
    } else {
        rnl_pool_give_back(buffer->device->pool, buffer->block);
    }
    rnl_device_release(buffer->device);
    rnl_free(buffer);
}

void rnl_buffer_release(rnl_buffer *buffer)
{
    if (buffer && atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) == 1)
        destroy(buffer, NULL);
}

/* Leaves a marker behind what may use the buffer, for its last release. */
static void note_use(rnl_buffer *buffer, rnl_stream *stream)
{
    cl_event marker = NULL;
    pthread_mutex_lock(&buffer->device->lock);
    cl_event *earlier = &buffer->last_use;
    cl_int code = rnl_cl_fault_pending() ? rnl_cl_fault()
                                         : clEnqueueMarkerWithWaitList(stream->queue, *earlier ? 1 : 0,
                                                                       *earlier ? earlier : NULL, &marker);
    if (code == CL_SUCCESS) {
        clFlush(stream->queue);
        if (*earlier)
            clReleaseEvent(*earlier);
        *earlier = marker;
    } else {
        clFinish(stream->queue);
    }
    pthread_mutex_unlock(&buffer->device->lock);
}

rnl_status rnl_buffer_release_after(rnl_buffer *buffer, rnl_stream *stream)
{
    if (!buffer)
        return RNL_OK;
    if (!stream)
        return FAIL(RNL_INVALID_ARGUMENT, "a buffer was to be released in a stream's order, and there is no stream");
    if (stream->device != buffer->device)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "a buffer of %s cannot be released in the order of a stream of %s, which is "
                    "another device",
                    buffer->device->info.name, stream->device->info.name);
    rnl_stream_rejoin(stream);
    if (atomic_load_explicit(&buffer->references, memory_order_acquire) == 1) {
        destroy(buffer, stream);
    } else {
        note_use(buffer, stream);
        rnl_buffer_release(buffer);
    }
    return RNL_OK;
}

size_t rnl_buffer_size(const rnl_buffer *buffer)
{
    return buffer ? buffer->size_bytes : 0;
}

void *rnl_buffer_host(const rnl_buffer *buffer)
{
    return buffer ? buffer->host : NULL;
}

/* ---- Filling from the host ---- */

rnl_status rnl_buffer_map(rnl_stream *stream, rnl_buffer *buffer, void **out_host)
{
    cl_int code;
    *out_host = NULL;
    TRY(rnl_stream_check(stream));
    if (!buffer->device->maps_in_place || buffer->device != stream->device)
        return FAIL(RNL_INTERNAL, "a buffer of %s was to be mapped in place", buffer->device->info.name);
    void *host = CL_NEW(&code, clEnqueueMapBuffer(stream->queue, buffer->memory, CL_TRUE,
                                                  CL_MAP_WRITE_INVALIDATE_REGION, 0, buffer->size_bytes, 0, NULL,
                                                  rnl_stream_begin(stream, RNL_TRACE_MAP, buffer->size_bytes), &code));
    TRY(rnl_stream_fail(stream, rnl_stream_end(stream, rnl_cl_status(code, "clEnqueueMapBuffer"))));
    *out_host = host;
    return RNL_OK;
}

rnl_status rnl_buffer_unmap(rnl_stream *stream, rnl_buffer *buffer, void *host)
{
    rnl_stream_rejoin(stream);
    cl_int code = clEnqueueUnmapMemObject(stream->queue, buffer->memory, host, 0, NULL,
                                          rnl_stream_begin(stream, RNL_TRACE_UNMAP, buffer->size_bytes));
    if (rnl_cl_fault_pending())
        code = rnl_cl_fault();
    return rnl_stream_fail(stream, rnl_stream_end(stream, rnl_cl_status(code, "clEnqueueUnmapMemObject")));
}
