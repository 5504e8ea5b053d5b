/* SPDX-License-Identifier: Apache-2.0 */
/* Giving the host a buffer's memory for a while. */
#include "device/buffer.h"
#include "device/trace.h"
#include <runnel/memory.h>

/* The memory at buffer->host is what commands use, or what they are given: nothing has to be mapped. */
static bool is_at_hand(const rnl_buffer *buffer)
{
    return buffer->host && (buffer->device->maps_in_place || !buffer->is_wrapped);
}

static rnl_status map_flags(rnl_map_access access, cl_map_flags *out_flags)
{
    switch (access) {
    case RNL_MAP_READ:
        *out_flags = CL_MAP_READ;
        return RNL_OK;
    case RNL_MAP_WRITE:
    case RNL_MAP_READ_WRITE: /* what is not written stays: it has to be read */
        *out_flags = CL_MAP_READ | CL_MAP_WRITE;
        return RNL_OK;
    case RNL_MAP_OVERWRITE:
        *out_flags = CL_MAP_WRITE_INVALIDATE_REGION;
        return RNL_OK;
    }
    return FAIL(RNL_INVALID_ARGUMENT, "a buffer cannot be mapped for the unknown access %d", (int)access);
}

static rnl_status map_now(rnl_stream *stream, rnl_buffer *buffer, size_t offset, size_t size, cl_map_flags flags,
                          void **out_host)
{
    cl_int code;
    TRY(rnl_stream_synchronize(stream));
    if (is_at_hand(buffer)) {
        *out_host = (char *)buffer->host + offset;
        return RNL_OK;
    }
    void *host = CL_NEW(&code, clEnqueueMapBuffer(stream->queue, buffer->memory, CL_TRUE, flags, offset, size, 0, NULL,
                                                  rnl_stream_begin(stream, RNL_TRACE_MAP, size), &code));
    TRY(rnl_stream_fail(stream, rnl_stream_end(stream, rnl_cl_status(code, "clEnqueueMapBuffer"))));
    buffer->mapped = host;
    *out_host = host;
    return RNL_OK;
}

rnl_status rnl_stream_map(rnl_stream *stream, rnl_buffer *buffer, size_t offset, size_t size_bytes,
                          rnl_map_access access, void **out_host)
{
    bool idle = false;
    cl_map_flags flags = 0;
    *out_host = NULL;
    TRY(rnl_buffer_check_part(stream, buffer, offset, size_bytes));
    TRY(map_flags(access, &flags));
    if (size_bytes == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "0 bytes of a buffer cannot be mapped");
    if (!atomic_compare_exchange_strong(&buffer->is_mapped, &idle, true))
        return FAIL(RNL_FAILED_PRECONDITION, "the buffer of %zu bytes is mapped already", buffer->size_bytes);
    rnl_status status = map_now(stream, buffer, offset, size_bytes, flags, out_host);
    if (status != RNL_OK)
        atomic_store(&buffer->is_mapped, false);
    return status;
}

rnl_status rnl_stream_unmap(rnl_stream *stream, rnl_buffer *buffer)
{
    TRY(rnl_buffer_check_part(stream, buffer, 0, 0));
    if (!atomic_load(&buffer->is_mapped))
        return FAIL(RNL_FAILED_PRECONDITION, "the buffer of %zu bytes is not mapped", buffer->size_bytes);
    rnl_status status = buffer->mapped ? rnl_buffer_unmap(stream, buffer, buffer->mapped) : RNL_OK;
    buffer->mapped = NULL;
    atomic_store(&buffer->is_mapped, false);
    return status;
}

/* Not on the stream that mapped it: that may be waiting for something. */
void rnl_buffer_end_map(rnl_buffer *buffer)
{
    cl_int code;
    if (!buffer->mapped)
        return;
    cl_command_queue queue =
        RNL_CL_GUARD_NEW(clCreateCommandQueue(buffer->device->context, buffer->device->id, 0, &code));
    if (queue) {
        if (clEnqueueUnmapMemObject(queue, buffer->memory, buffer->mapped, 0, NULL, NULL) == CL_SUCCESS)
            clFinish(queue);
        clReleaseCommandQueue(queue);
    }
    buffer->mapped = NULL;
}
