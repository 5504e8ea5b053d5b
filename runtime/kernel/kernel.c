/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the caller's own source, and launching them with buffers and values. */
#include "base/memory.h"
#include "device/buffer.h"
#include "kernel/launch.h"
#include "kernel/program.h"
#include <string.h>

struct rnl_kernel {
    atomic_uint references;
    rnl_device *device; /* retained: it holds the program */
    cl_kernel kernel;
    cl_uint arg_count;
    char *name;
    /* The last range and local memory that were checked: most launches repeat them. */
    rnl_range checked;
    size_t checked_local_bytes;
    size_t static_local_bytes;
};

static rnl_status fill_kernel(rnl_kernel *kernel, const char *source, const char *options, const char *name)
{
    rnl_program *program;
    TRY(rnl_strdup(name, &kernel->name));
    TRY(rnl_program_get_source(kernel->device, source, options, &program));
    TRY(rnl_program_create_kernel(program, name, &kernel->kernel));
    TRY(rnl_kernel_static_local(kernel->device, kernel->kernel, &kernel->static_local_bytes));
    return CL(clGetKernelInfo(kernel->kernel, CL_KERNEL_NUM_ARGS, sizeof kernel->arg_count, &kernel->arg_count, NULL));
}

rnl_status rnl_kernel_create(rnl_device *device, const char *source, const char *options, const char *name,
                             rnl_kernel **out_kernel)
{
    rnl_kernel *kernel;
    *out_kernel = NULL;
    if (!source || !name)
        return FAIL(RNL_INVALID_ARGUMENT, "a kernel needs a source and a name");
    TRY(rnl_alloc(1, sizeof *kernel, &kernel));
    atomic_init(&kernel->references, 1);
    kernel->device = rnl_device_retain(device);
    rnl_status status = fill_kernel(kernel, source, options, name);
    if (status != RNL_OK) {
        rnl_kernel_release(kernel);
        return status;
    }
    *out_kernel = kernel;
    return RNL_OK;
}

rnl_kernel *rnl_kernel_retain(rnl_kernel *kernel)
{
    if (kernel)
        atomic_fetch_add_explicit(&kernel->references, 1, memory_order_relaxed);
    return kernel;
}

void rnl_kernel_release(rnl_kernel *kernel)
{
    if (!kernel || atomic_fetch_sub_explicit(&kernel->references, 1, memory_order_acq_rel) != 1)
        return;
    if (kernel->kernel)
        clReleaseKernel(kernel->kernel);
    rnl_device_release(kernel->device);
    rnl_free(kernel->name);
    rnl_free(kernel);
}

static rnl_status set_buffer(rnl_kernel *kernel, cl_uint at, const rnl_buffer *buffer)
{
    if (!buffer)
        return FAIL(RNL_INVALID_ARGUMENT, "argument %u has no buffer", (unsigned)at);
    if (buffer->device != kernel->device)
        return FAIL(RNL_INVALID_ARGUMENT, "argument %u is a buffer of %s, which is another device", (unsigned)at,
                    buffer->device->info.name);
    return CL(clSetKernelArg(kernel->kernel, at, sizeof buffer->memory, &buffer->memory));
}

static rnl_status set_arg(rnl_kernel *kernel, cl_uint at, const rnl_arg *arg)
{
    switch (arg->kind) {
    case RNL_ARG_BUFFER:
        return set_buffer(kernel, at, arg->buffer);
    case RNL_ARG_VALUE:
        if (!arg->value || arg->size_bytes == 0)
            return FAIL(RNL_INVALID_ARGUMENT, "argument %u has no value", (unsigned)at);
        return CL(clSetKernelArg(kernel->kernel, at, arg->size_bytes, arg->value));
    case RNL_ARG_LOCAL:
        if (arg->size_bytes == 0)
            return FAIL(RNL_INVALID_ARGUMENT, "argument %u asks for 0 bytes of local memory", (unsigned)at);
        return CL(clSetKernelArg(kernel->kernel, at, arg->size_bytes, NULL));
    }
    return FAIL(RNL_INVALID_ARGUMENT, "argument %u is of the unknown kind %d", (unsigned)at, (int)arg->kind);
}

static rnl_status check(rnl_kernel *kernel, const rnl_range *range, size_t bytes)
{
    const rnl_range *seen = &kernel->checked;
    if (seen->dimensions == range->dimensions && kernel->checked_local_bytes == bytes &&
        memcmp(seen->global, range->global, sizeof seen->global) == 0 &&
        memcmp(seen->local, range->local, sizeof seen->local) == 0)
        return RNL_OK;
    TRY(rnl_kernel_check(kernel->device, kernel->kernel, range, kernel->static_local_bytes, bytes));
    kernel->checked = *range;
    kernel->checked_local_bytes = bytes;
    return RNL_OK;
}

/* A kernel may read and write any of its buffers: what a pinned one holds is carried over and back. */
static rnl_status push_buffers(rnl_stream *stream, const rnl_arg *args, size_t arg_count)
{
    for (size_t i = 0; i < arg_count; i++)
        if (args[i].kind == RNL_ARG_BUFFER)
            TRY(rnl_buffer_push(stream, args[i].buffer, 0, args[i].buffer->size_bytes));
    return RNL_OK;
}

static rnl_status pull_buffers(rnl_stream *stream, const rnl_arg *args, size_t arg_count)
{
    for (size_t i = 0; i < arg_count; i++)
        if (args[i].kind == RNL_ARG_BUFFER)
            TRY(rnl_buffer_pull(stream, args[i].buffer, 0, args[i].buffer->size_bytes));
    return RNL_OK;
}

rnl_status rnl_stream_launch(rnl_stream *stream, rnl_kernel *kernel, const rnl_range *range, const rnl_arg *args,
                             size_t arg_count)
{
    size_t bytes = 0;
    TRY(rnl_stream_check(stream));
    if (kernel->device != stream->device)
        return FAIL(RNL_INVALID_ARGUMENT, "kernel '%s' of %s was given to a stream of %s, which is another device",
                    kernel->name, kernel->device->info.name, stream->device->info.name);
    if (arg_count != kernel->arg_count)
        return FAIL(RNL_INVALID_ARGUMENT, "kernel '%s' takes %u arguments, and %zu were given", kernel->name,
                    (unsigned)kernel->arg_count, arg_count);
    for (size_t i = 0; i < arg_count; i++)
        if (args[i].kind == RNL_ARG_LOCAL && !rnl_size_add(bytes, args[i].size_bytes, &bytes))
            return FAIL(RNL_RESOURCE_EXHAUSTED, "kernel '%s' asks for too much local memory", kernel->name);
    TRY(check(kernel, range, bytes), "kernel '%s'", kernel->name);
    for (size_t i = 0; i < arg_count; i++)
        TRY(set_arg(kernel, (cl_uint)i, &args[i]), "kernel '%s'", kernel->name);
    TRY(push_buffers(stream, args, arg_count));
    TRY(rnl_kernel_enqueue(stream, kernel->kernel, range), "kernel '%s'", kernel->name);
    return pull_buffers(stream, args, arg_count);
}
