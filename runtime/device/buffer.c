/* SPDX-License-Identifier: Apache-2.0 */
#include "device/buffer.h"

#include "base/memory.h"
#include "device/pinned.h"
#include "device/pool.h"

rnl_status rnl_buffer_create(rnl_device *device, rnl_memory memory, size_t size_bytes, rnl_buffer **out_buffer)
{
    *out_buffer = NULL;
    if (size_bytes == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "a buffer of 0 bytes was asked for");
    if (memory != RNL_MEMORY_DEVICE && memory != RNL_MEMORY_PINNED)
        return FAIL(RNL_INVALID_ARGUMENT, "memory of the unknown kind %d was asked for", (int)memory);
    rnl_buffer *buffer;
    TRY(rnl_alloc(1, sizeof *buffer, &buffer));
    buffer->device = device;
    buffer->size_bytes = size_bytes;
    buffer->kind = memory;
    rnl_status status = memory == RNL_MEMORY_PINNED
                            ? rnl_pinned_take(buffer)
                            : rnl_pool_take(device->pool, memory, size_bytes, &buffer->block);
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

rnl_buffer *rnl_buffer_retain(rnl_buffer *buffer)
{
    if (buffer)
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    return buffer;
}

void rnl_buffer_release(rnl_buffer *buffer)
{
    if (!buffer || atomic_fetch_sub_explicit(&buffer->references, 1, memory_order_acq_rel) != 1)
        return;
    rnl_buffer_end_map(buffer);
    if (buffer->give_back)
        buffer->give_back(buffer);
    else if (buffer->block)
        rnl_pool_give_back(buffer->device->pool, buffer->block);
    else
        clReleaseMemObject(buffer->memory);
    rnl_device_release(buffer->device);
    rnl_free(buffer);
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
    void *host =
        CL_NEW(&code, clEnqueueMapBuffer(stream->queue, buffer->memory, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 0,
                                         buffer->size_bytes, 0, NULL, NULL, &code));
    TRY(rnl_stream_fail(stream, rnl_cl_status(code, "clEnqueueMapBuffer")));
    *out_host = host;
    return RNL_OK;
}

rnl_status rnl_buffer_unmap(rnl_stream *stream, rnl_buffer *buffer, void *host)
{
    cl_int code = clEnqueueUnmapMemObject(stream->queue, buffer->memory, host, 0, NULL, NULL);
    if (rnl_cl_fault_pending())
        code = rnl_cl_fault();
    return rnl_stream_fail(stream, rnl_cl_status(code, "clEnqueueUnmapMemObject"));
}
