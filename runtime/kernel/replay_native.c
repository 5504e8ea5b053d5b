/* SPDX-License-Identifier: Apache-2.0 */
/* Replaying a list by the driver's command buffer. */
#include "base/log.h"
#include "device/trace.h"
#include "kernel/command_list.h"

void rnl_command_list_forget_native(rnl_command_list *list)
{
    if (list->native) {
        clFinish(list->native_stream->queue); /* not every driver keeps one that is released while it runs */
        list->functions.release(list->native);
        rnl_stream_release(list->native_stream);
    }
    for (size_t i = 0; i < list->count; i++)
        list->commands[i].native = NULL;
    list->native = NULL;
    list->native_stream = NULL;
    list->native_fails = false;
}

void rnl_command_list_update_native(rnl_command_list *list, const rnl_command *command, uint32_t arg_index,
                                    const rnl_arg *arg)
{
    if (!list->native)
        return;
    if (command->native && arg->kind != RNL_ARG_LOCAL && !command->carries) {
        const rnl_error before = *rnl_last_error();
        const void *value = arg->kind == RNL_ARG_BUFFER ? (const void *)&arg->buffer->memory : arg->value;
        const size_t bytes = arg->kind == RNL_ARG_BUFFER ? sizeof arg->buffer->memory : arg->size_bytes;
        if (rnl_command_buffer_update(&list->functions, list->native, command->native, arg_index, bytes, value) ==
            RNL_OK)
            return;
        rnl_error_restore(&before); /* it is recorded anew instead */
    }
    rnl_command_list_forget_native(list);
}

static bool is_recordable(const rnl_command_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->commands[i].kind != RNL_COMMAND_LAUNCH || list->commands[i].carries)
            return false;
    return list->count > 0;
}

static rnl_status record_all(rnl_command_list *list)
{
    cl_uint sync_point = 0;
    for (size_t i = 0; i < list->count; i++) {
        rnl_command *command = &list->commands[i];
        const rnl_range *range = &command->range;
        TRY(rnl_command_buffer_record(&list->functions, list->native, command->object, range->global, range->local,
                                      range->dimensions, &sync_point, i > 0, &command->native));
    }
    return rnl_cl_status(RNL_CL_RUN(list->functions.finalize(list->native)), "clFinalizeCommandBufferKHR");
}

static rnl_status record(rnl_command_list *list, rnl_stream *stream)
{
    rnl_command_list_forget_native(list);
    TRY(rnl_command_buffer_create(&list->functions, stream->queue, &list->native));
    list->native_stream = rnl_stream_retain(stream);
    const rnl_status status = record_all(list);
    if (status != RNL_OK)
        rnl_command_list_forget_native(list);
    return status;
}

/* False where the commands are to be enqueued instead; the reason is in the log. */
static bool prepare(rnl_command_list *list, rnl_stream *stream)
{
    if (list->native && list->native_stream == stream)
        return true;
    const rnl_error before = *rnl_last_error();
    bool ready = is_recordable(list) &&
                 (list->functions.has_all || rnl_device_get_command_buffers(list->device, &list->functions));
    if (ready && record(list, stream) != RNL_OK) {
        rnl_log(RNL_LOG_INFO, "a command list is enqueued: %s", rnl_last_error()->message);
        ready = false;
    }
    rnl_error_restore(&before);
    list->native_fails = !ready;
    return ready;
}

rnl_status rnl_command_list_replay_native(rnl_stream *stream, rnl_command_list *list)
{
    if (!prepare(list, stream))
        return RNL_UNIMPLEMENTED;
    rnl_stream_enter(stream);
    const cl_int code = RNL_CL_RUN(
        list->functions.enqueue(0, NULL, list->native, 0, NULL, rnl_stream_begin(stream, RNL_TRACE_REPLAY, 0)));
    rnl_stream_end(stream, RNL_OK);
    TRY(rnl_stream_fail(stream, rnl_cl_status(code, "clEnqueueCommandBufferKHR")));
    atomic_fetch_add_explicit(&stream->device->kernels_launched, list->count, memory_order_relaxed);
    list->taken = RNL_REPLAY_NATIVE;
    return RNL_OK;
}
