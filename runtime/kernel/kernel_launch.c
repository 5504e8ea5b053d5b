/* SPDX-License-Identifier: Apache-2.0 */
/* Launching a caller's kernel with buffers and values. */
#include "kernel/kernel.h"
#include <string.h>

static rnl_status check_range(rnl_kernel *kernel, const rnl_range *range, size_t bytes)
{
    const rnl_range *seen = &kernel->checked;
    if (seen->dimensions == range->dimensions && kernel->checked_local_bytes == bytes &&
        memcmp(seen->global, range->global, sizeof seen->global) == 0 &&
        memcmp(seen->local, range->local, sizeof seen->local) == 0)
        return RNL_OK;
    TRY(rnl_kernel_check_range(kernel, kernel->kernel, range, bytes));
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
    size_t bytes;
    TRY(rnl_stream_check(stream));
    if (kernel->device != stream->device)
        return FAIL(RNL_INVALID_ARGUMENT, "kernel '%s' of %s was given to a stream of %s, which is another device",
                    kernel->name, kernel->device->info.name, stream->device->info.name);
    if (arg_count != kernel->arg_count)
        return FAIL(RNL_INVALID_ARGUMENT, "kernel '%s' takes %u arguments, and %zu were given", kernel->name,
                    (unsigned)kernel->arg_count, arg_count);
    TRY(rnl_kernel_local_bytes(kernel, args, arg_count, &bytes));
    TRY(check_range(kernel, range, bytes), "kernel '%s'", kernel->name);
    for (size_t i = 0; i < arg_count; i++) {
        TRY(rnl_kernel_check_arg(kernel, (uint32_t)i, &args[i]), "kernel '%s'", kernel->name);
        TRY(rnl_kernel_set_arg(kernel, kernel->kernel, (uint32_t)i, &args[i]), "kernel '%s'", kernel->name);
    }
    TRY(push_buffers(stream, args, arg_count));
    TRY(rnl_kernel_enqueue(stream, kernel->kernel, range), "kernel '%s'", kernel->name);
    return pull_buffers(stream, args, arg_count);
}
