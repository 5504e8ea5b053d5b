/* SPDX-License-Identifier: Apache-2.0 */
/* Launching a caller's kernel with buffers and values. */
#include "device/trace.h"
#include "device/watch.h"
#include "kernel/describe.h"
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

/* A failure says what was launched, and so does each launch that is watched. */
static rnl_status enqueue(rnl_stream *stream, rnl_kernel *kernel, const rnl_range *range, const rnl_arg *args,
                          size_t arg_count)
{
    rnl_watch watch;
    rnl_text text = {0};
    rnl_watch_begin(&watch, stream);
    rnl_status status = rnl_watch_end(&watch, rnl_kernel_enqueue(stream, kernel->kernel, range, 0));
    if (status == RNL_OK && !watch.is_on)
        return RNL_OK;
    const rnl_error error = *rnl_last_error();
    rnl_describe_launch(&text, kernel, range, args, arg_count);
    rnl_watch_tell(&watch, kernel->name, rnl_program_name(kernel->program), text.data);
    if (status != RNL_OK)
        status = rnl_error_add(rnl_error_restore(&error), "kernel '%s': %s", kernel->name, text.data ? text.data : "");
    rnl_text_free(&text);
    return rnl_stream_fail(stream, status);
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
    rnl_stream_call_kernel(stream, kernel->name);
    TRY(enqueue(stream, kernel, range, args, arg_count));
    return pull_buffers(stream, args, arg_count);
}
