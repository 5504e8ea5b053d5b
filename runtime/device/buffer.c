/* SPDX-License-Identifier: Apache-2.0 */
#include "device/buffer.h"

#include "base/memory.h"
#include "device/pool.h"
#include <stdlib.h>

rnl_status rnl_buffer_create(rnl_device *device, rnl_memory memory, size_t size_bytes, rnl_buffer **out_buffer)
{
    *out_buffer = NULL;
    if (size_bytes == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "a buffer of 0 bytes was asked for");
    if (memory != RNL_MEMORY_DEVICE && memory != RNL_MEMORY_PINNED)
        return FAIL(RNL_INVALID_ARGUMENT, "memory of the unknown kind %d was asked for", (int)memory);
    rnl_buffer *buffer;
    TRY(rnl_alloc(1, sizeof *buffer, &buffer));
    rnl_status status = rnl_pool_take(device->pool, memory, size_bytes, &buffer->block);
    if (status != RNL_OK) {
        free(buffer);
        return status;
    }
    atomic_init(&buffer->references, 1);
    buffer->device = rnl_device_retain(device);
    buffer->memory = buffer->block->memory;
    buffer->host = buffer->block->host;
    buffer->size_bytes = size_bytes;
    buffer->kind = memory;
    *out_buffer = buffer;
    return RNL_OK;
}

static rnl_status check_part(const rnl_buffer *parent, size_t offset, size_t size)
{
    if (parent->parent)
        return FAIL(RNL_INVALID_ARGUMENT, "a part of a buffer cannot be divided further");
    if (size == 0 || offset > parent->size_bytes || size > parent->size_bytes - offset)
        return FAIL(RNL_INVALID_ARGUMENT, "%zu bytes from %zu do not lie in a buffer of %zu bytes", size, offset,
                    parent->size_bytes);
    if (offset % parent->device->info.base_align_bytes != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "the offset %zu of a part of a buffer is not a multiple of %u", offset,
                    (unsigned)parent->device->info.base_align_bytes);
    return RNL_OK;
}

rnl_status rnl_buffer_create_sub(rnl_buffer *parent, size_t offset_bytes, size_t size_bytes, rnl_buffer **out_buffer)
{
    *out_buffer = NULL;
    TRY(check_part(parent, offset_bytes, size_bytes));
    rnl_buffer *buffer;
    cl_int code;
    cl_buffer_region region = {.origin = offset_bytes, .size = size_bytes};
    TRY(rnl_alloc(1, sizeof *buffer, &buffer));
    buffer->memory = CL_NEW(
        &code, clCreateSubBuffer(parent->memory, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    rnl_status status = rnl_cl_status(code, "clCreateSubBuffer");
    if (status != RNL_OK) {
        free(buffer);
        return status;
    }
    atomic_init(&buffer->references, 1);
    buffer->device = rnl_device_retain(parent->device);
    buffer->parent = rnl_buffer_retain(parent);
    buffer->host = parent->host ? (char *)parent->host + offset_bytes : NULL;
    buffer->size_bytes = size_bytes;
    buffer->kind = parent->kind;
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
    if (buffer->block)
        rnl_pool_give_back(buffer->device->pool, buffer->block);
    else
        clReleaseMemObject(buffer->memory);
    rnl_buffer_release(buffer->parent);
    rnl_device_release(buffer->device);
    free(buffer);
}

size_t rnl_buffer_size(const rnl_buffer *buffer)
{
    return buffer ? buffer->size_bytes : 0;
}

void *rnl_buffer_host(const rnl_buffer *buffer)
{
    return buffer ? buffer->host : NULL;
}
