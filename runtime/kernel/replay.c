/* SPDX-License-Identifier: Apache-2.0 */
/* Replaying a list by enqueueing its commands. */
#include "device/trace.h"
#include "device/watch.h"
#include "kernel/command_list.h"

static rnl_status carry(rnl_stream *stream, const rnl_command *command,
                        rnl_status (*move)(rnl_stream *, const rnl_buffer *, size_t, size_t))
{
    for (cl_uint i = 0; i < command->kernel->arg_count; i++)
        if (command->args[i].buffer)
            TRY(move(stream, command->args[i].buffer, 0, command->args[i].buffer->size_bytes));
    return RNL_OK;
}

static rnl_status launch(rnl_stream *stream, const rnl_command *command)
{
    const rnl_range *range = &command->range;
    if (command->carries)
        TRY(carry(stream, command, rnl_buffer_push));
    rnl_watch watch;
    rnl_stream_call_kernel(stream, command->kernel->name);
    rnl_watch_begin(&watch, stream);
    const rnl_status status = rnl_stream_fail(
        stream, rnl_stream_end(stream, CL(clEnqueueNDRangeKernel(stream->queue, command->object, range->dimensions,
                                                                 NULL, range->global, range->local, 0, NULL,
                                                                 rnl_stream_begin_launch(stream)))));
    TRY(rnl_stream_fail(stream, rnl_watch_end(&watch, status)), "kernel '%s'", command->kernel->name);
    rnl_watch_tell(&watch, command->kernel->name, rnl_program_name(command->kernel->program), "of a command list");
    return command->carries ? carry(stream, command, rnl_buffer_pull) : RNL_OK;
}

static rnl_status run(rnl_stream *stream, const rnl_command *command)
{
    switch (command->kind) {
    case RNL_COMMAND_LAUNCH:
        return launch(stream, command);
    case RNL_COMMAND_COPY:
        return rnl_stream_copy(stream, command->dst, command->dst_offset, command->src, command->src_offset,
                               command->size_bytes);
    case RNL_COMMAND_FILL:
        return rnl_stream_fill(stream, command->dst, command->dst_offset, command->pattern, command->pattern_bytes,
                               command->size_bytes);
    case RNL_COMMAND_WRITE:
        return rnl_stream_write(stream, command->dst, command->dst_offset, command->from_host, command->size_bytes);
    case RNL_COMMAND_READ:
        return rnl_stream_read(stream, command->to_host, command->src, command->src_offset, command->size_bytes);
    }
    return FAIL(RNL_INTERNAL, "a command list holds a command of the unknown kind %d", (int)command->kind);
}

static rnl_status enqueue_all(rnl_stream *stream, const rnl_command_list *list)
{
    uint64_t launches = 0;
    rnl_status status = RNL_OK;
    rnl_stream_enter(stream);
    for (size_t i = 0; i < list->count; i++) {
        status = run(stream, &list->commands[i]);
        if (status != RNL_OK) {
            rnl_error_add(status, "command %zu of a list", i);
            break;
        }
        launches += list->commands[i].kind == RNL_COMMAND_LAUNCH;
    }
    atomic_fetch_add_explicit(&stream->device->kernels_launched, launches, memory_order_relaxed);
    return status;
}

rnl_status rnl_stream_replay(rnl_stream *stream, rnl_command_list *list)
{
    TRY(rnl_stream_check(stream));
    if (list->device != stream->device)
        return FAIL(RNL_INVALID_ARGUMENT, "a command list of %s was given to a stream of %s, which is another device",
                    list->device->info.name, stream->device->info.name);
    if (list->wanted == RNL_REPLAY_NATIVE && !list->native_fails && !stream->is_watched) {
        const rnl_status status = rnl_command_list_replay_native(stream, list);
        if (status != RNL_UNIMPLEMENTED)
            return status;
    }
    list->taken = RNL_REPLAY_ENQUEUE;
    return enqueue_all(stream, list);
}
