/* SPDX-License-Identifier: Apache-2.0 */
#include "device/wrap.h"

#include "base/log.h"
#include "base/memory.h"
#include "device/traffic.h"
#include <runnel/memory.h>
#include <string.h>

#define PROBE_BYTES 256
#define PROBE_OFFSET 16 /* from a multiple of RNL_WRAP_ALIGN_BYTES: what malloc gives and no more */

rnl_status rnl_wrap_memory(rnl_device *device, void *host, size_t size_bytes, cl_mem *out_memory)
{
    cl_int code;
    *out_memory = CL_NEW(
        &code, clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size_bytes, host, &code));
    return rnl_cl_status(code, "clCreateBuffer");
}

void rnl_unwrap_memory(cl_mem memory)
{
    if (memory)
        clReleaseMemObject(memory);
}

/* ---- Trying it out ---- */

/* Commands see what the host wrote, and the host what commands wrote, without mapping. */
static bool is_coherent(rnl_stream *stream, cl_mem memory, unsigned char *host)
{
    const unsigned char mark = 0x5a;
    unsigned char back[PROBE_BYTES] = {0};
    for (int i = 0; i < PROBE_BYTES; i++)
        host[i] = (unsigned char)i;
    if (clEnqueueReadBuffer(stream->queue, memory, CL_TRUE, 0, PROBE_BYTES, back, 0, NULL, NULL) != CL_SUCCESS ||
        memcmp(back, host, PROBE_BYTES) != 0)
        return false;
    return clEnqueueFillBuffer(stream->queue, memory, &mark, 1, 8, 8, 0, NULL, NULL) == CL_SUCCESS &&
           clFinish(stream->queue) == CL_SUCCESS && host[7] == 7 && host[8] == mark && host[15] == mark &&
           host[16] == 16;
}

static bool maps_at_itself(rnl_stream *stream, cl_mem memory, const unsigned char *host)
{
    cl_int code;
    void *mapped =
        clEnqueueMapBuffer(stream->queue, memory, CL_TRUE, CL_MAP_READ, 0, PROBE_BYTES, 0, NULL, NULL, &code);
    if (mapped)
        clEnqueueUnmapMemObject(stream->queue, memory, mapped, 0, NULL, NULL);
    return clFinish(stream->queue) == CL_SUCCESS && mapped == host;
}

/* Calls that fail here say no; a test's faults are for the calls that matter. */
static bool try_it(rnl_device *device)
{
    rnl_stream *stream = NULL;
    _Alignas(RNL_WRAP_ALIGN_BYTES) unsigned char room[PROBE_BYTES + PROBE_OFFSET] = {0};
    unsigned char *host = room + PROBE_OFFSET;
    cl_int code;
    cl_mem memory = clCreateBuffer(device->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, PROBE_BYTES, host, &code);
    bool works = memory && rnl_stream_create(device, &stream) == RNL_OK && maps_at_itself(stream, memory, host) &&
                 (device->info.type != RNL_DEVICE_CPU || is_coherent(stream, memory, host));
    rnl_stream_release(stream);
    rnl_unwrap_memory(memory);
    return works;
}

bool rnl_device_wraps(rnl_device *device)
{
    int known = atomic_load(&device->wraps);
    if (known)
        return known > 0;
    rnl_error error = *rnl_last_error();
    bool shares = device->info.type == RNL_DEVICE_CPU || device->info.unified_memory;
    bool works = shares && try_it(device);
    rnl_error_restore(&error);
    rnl_log(RNL_LOG_INFO, "%s uses the caller's memory in place: %s", device->info.name, works ? "yes" : "no");
    atomic_store(&device->wraps, works ? 1 : -1);
    return works;
}

/* ---- Buffers ---- */

static rnl_status check(rnl_device *device, const void *host, size_t size)
{
    if (!host)
        return FAIL(RNL_INVALID_ARGUMENT, "there is no host memory to wrap");
    if (size == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "a buffer of 0 bytes was asked for");
    if ((uintptr_t)host % RNL_WRAP_ALIGN_BYTES != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "host memory to wrap must lie at a multiple of %d bytes, and is %d past one",
                    RNL_WRAP_ALIGN_BYTES, (int)((uintptr_t)host % RNL_WRAP_ALIGN_BYTES));
    if (size > device->info.max_allocation_bytes || size > UINTPTR_MAX - (uintptr_t)host)
        return FAIL(RNL_RESOURCE_EXHAUSTED,
                    "%zu bytes of host memory are to be wrapped on %s, whose largest allocation is %llu bytes", size,
                    device->info.name, (unsigned long long)device->info.max_allocation_bytes);
    if (!rnl_device_wraps(device))
        return FAIL(RNL_UNIMPLEMENTED, "%s does not use host memory in place: create a buffer and copy to it instead",
                    device->info.name);
    return RNL_OK;
}

rnl_status rnl_buffer_wrap_host(rnl_device *device, void *host, size_t size_bytes, rnl_buffer **out_buffer)
{
    rnl_buffer *buffer;
    *out_buffer = NULL;
    TRY(check(device, host, size_bytes));
    TRY(rnl_alloc(1, sizeof *buffer, &buffer));
    rnl_status status = rnl_wrap_memory(device, host, size_bytes, &buffer->memory);
    if (status != RNL_OK) {
        rnl_free(buffer);
        return status;
    }
    atomic_init(&buffer->references, 1);
    buffer->device = rnl_device_retain(device);
    buffer->host = host;
    buffer->size_bytes = size_bytes;
    buffer->kind = RNL_MEMORY_DEVICE;
    buffer->is_wrapped = true;
    rnl_traffic_in_place(device, size_bytes);
    *out_buffer = buffer;
    return RNL_OK;
}
