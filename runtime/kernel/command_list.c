/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/command_list.h"

#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

/* ---- Lists ---- */

static rnl_replay_way choose_way(rnl_device *device, rnl_replay_way wanted)
{
    const char *said = getenv("RUNNEL_REPLAY");
    if (wanted != RNL_REPLAY_CHOSEN)
        return wanted;
    if (said && strcmp(said, "native") == 0)
        return RNL_REPLAY_NATIVE;
    if (said && strcmp(said, "own") == 0)
        return RNL_REPLAY_ENQUEUE;
    return rnl_device_get_replay(device);
}

rnl_status rnl_command_list_create(rnl_device *device, const rnl_command_list_options *options,
                                   rnl_command_list **out_list)
{
    rnl_command_list *list;
    *out_list = NULL;
    const bool has_way = options && options->struct_size >= sizeof *options;
    if (options && options->struct_size < sizeof options->struct_size)
        return FAIL(RNL_INVALID_ARGUMENT, "list options were not initialised with RNL_COMMAND_LIST_OPTIONS_INIT");
    if (has_way && options->way > RNL_REPLAY_NATIVE)
        return FAIL(RNL_INVALID_ARGUMENT, "a list was to be replayed in the unknown way %d", (int)options->way);
    TRY(rnl_alloc(1, sizeof *list, &list));
    atomic_init(&list->references, 1);
    list->device = rnl_device_retain(device);
    list->wanted = choose_way(device, has_way ? options->way : RNL_REPLAY_CHOSEN);
    *out_list = list;
    return RNL_OK;
}

rnl_command_list *rnl_command_list_retain(rnl_command_list *list)
{
    if (list)
        atomic_fetch_add_explicit(&list->references, 1, memory_order_relaxed);
    return list;
}

static void free_command(rnl_command *command)
{
    for (cl_uint i = 0; command->args && i < command->kernel->arg_count; i++)
        rnl_buffer_release(command->args[i].buffer);
    rnl_free(command->args);
    if (command->object)
        clReleaseKernel(command->object);
    rnl_kernel_release(command->kernel);
    rnl_buffer_release(command->dst);
    rnl_buffer_release(command->src);
}

void rnl_command_list_release(rnl_command_list *list)
{
    if (!list || atomic_fetch_sub_explicit(&list->references, 1, memory_order_acq_rel) != 1)
        return;
    rnl_command_list_forget_native(list);
    for (size_t i = 0; i < list->count; i++)
        free_command(&list->commands[i]);
    rnl_free(list->commands);
    rnl_device_release(list->device);
    rnl_free(list);
}

size_t rnl_command_list_count(const rnl_command_list *list)
{
    return list ? list->count : 0;
}

rnl_replay_way rnl_command_list_get_way(const rnl_command_list *list)
{
    return list->taken;
}

/* Takes the command, which is freed when it finds no room. */
static rnl_status append(rnl_command_list *list, rnl_command *command, size_t *out_index)
{
    rnl_status status = rnl_grow(&list->commands, &list->capacity, list->count + 1, sizeof *list->commands);
    if (status != RNL_OK) {
        free_command(command);
        return status;
    }
    rnl_command_list_forget_native(list);
    if (out_index)
        *out_index = list->count;
    list->commands[list->count++] = *command;
    return RNL_OK;
}

/* ---- Launches ---- */

static void keep_arg(rnl_command *command, uint32_t at, const rnl_arg *arg)
{
    command->args[at].buffer = arg->kind == RNL_ARG_BUFFER ? rnl_buffer_retain(arg->buffer) : NULL;
    command->args[at].local_bytes = arg->kind == RNL_ARG_LOCAL ? arg->size_bytes : 0;
    command->carries =
        command->carries || (arg->kind == RNL_ARG_BUFFER && arg->buffer->host && !arg->buffer->is_wrapped);
}

/* What is left on failure is freed by the caller. */
static rnl_status fill_launch(rnl_command *command, const rnl_arg *args)
{
    const rnl_kernel *kernel = command->kernel;
    size_t local_bytes;
    TRY(rnl_alloc(kernel->arg_count, sizeof *command->args, &command->args));
    TRY(rnl_program_create_kernel(kernel->program, kernel->name, &command->object));
    TRY(rnl_kernel_local_bytes(kernel, args, kernel->arg_count, &local_bytes));
    TRY(rnl_kernel_check_range(kernel, command->object, &command->range, local_bytes));
    for (uint32_t i = 0; i < kernel->arg_count; i++) {
        TRY(rnl_kernel_check_arg(kernel, i, &args[i]));
        TRY(rnl_kernel_set_arg(kernel, command->object, i, &args[i]));
        keep_arg(command, i, &args[i]);
    }
    return RNL_OK;
}

rnl_status rnl_command_list_launch(rnl_command_list *list, rnl_kernel *kernel, const rnl_range *range,
                                   const rnl_arg *args, size_t arg_count, size_t *out_index)
{
    if (out_index)
        *out_index = 0;
    if (!kernel || !range)
        return FAIL(RNL_INVALID_ARGUMENT, "a launch needs a kernel and a range");
    if (kernel->device != list->device)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "kernel '%s' of %s was given to a command list of %s, which is another device", kernel->name,
                    kernel->device->info.name, list->device->info.name);
    if (arg_count != kernel->arg_count)
        return FAIL(RNL_INVALID_ARGUMENT, "kernel '%s' takes %u arguments, and %zu were given", kernel->name,
                    (unsigned)kernel->arg_count, arg_count);
    rnl_command command = {.kind = RNL_COMMAND_LAUNCH, .range = *range};
    command.kernel = rnl_kernel_retain(kernel);
    rnl_status status = fill_launch(&command, args);
    if (status != RNL_OK) {
        free_command(&command);
        return rnl_error_add(status, "kernel '%s'", kernel->name);
    }
    return append(list, &command, out_index);
}

static rnl_status find_launch(const rnl_command_list *list, size_t index, rnl_command **out_command)
{
    *out_command = NULL;
    if (index >= list->count)
        return FAIL(RNL_INVALID_ARGUMENT, "command %zu of a list of %zu was to be changed", index, list->count);
    if (list->commands[index].kind != RNL_COMMAND_LAUNCH)
        return FAIL(RNL_INVALID_ARGUMENT, "command %zu of the list is not a launch", index);
    *out_command = &list->commands[index];
    return RNL_OK;
}

/* Local memory with one argument's share replaced. */
static rnl_status sum_local(const rnl_command *command, uint32_t arg_index, size_t arg_bytes, size_t *out_bytes)
{
    *out_bytes = arg_bytes;
    for (uint32_t i = 0; i < command->kernel->arg_count; i++)
        if (i != arg_index && !rnl_size_add(*out_bytes, command->args[i].local_bytes, out_bytes))
            return FAIL(RNL_RESOURCE_EXHAUSTED, "kernel '%s' asks for too much local memory", command->kernel->name);
    return RNL_OK;
}

static rnl_status change_arg(rnl_command *command, uint32_t arg_index, const rnl_arg *arg)
{
    const rnl_kernel *kernel = command->kernel;
    size_t local_bytes;
    TRY(rnl_kernel_check_arg(kernel, arg_index, arg));
    if (arg->kind == RNL_ARG_LOCAL) {
        TRY(sum_local(command, arg_index, arg->size_bytes, &local_bytes));
        TRY(rnl_kernel_check_range(kernel, command->object, &command->range, local_bytes));
    }
    TRY(rnl_kernel_set_arg(kernel, command->object, arg_index, arg));
    rnl_buffer *before = command->args[arg_index].buffer;
    keep_arg(command, arg_index, arg);
    rnl_buffer_release(before);
    return RNL_OK;
}

rnl_status rnl_command_list_set_arg(rnl_command_list *list, size_t index, uint32_t arg_index, const rnl_arg *arg)
{
    rnl_command *command;
    TRY(find_launch(list, index, &command));
    if (arg_index >= command->kernel->arg_count)
        return FAIL(RNL_INVALID_ARGUMENT, "kernel '%s' has %u arguments, and number %u was to be changed",
                    command->kernel->name, (unsigned)command->kernel->arg_count, (unsigned)arg_index);
    TRY(change_arg(command, arg_index, arg), "kernel '%s', command %zu", command->kernel->name, index);
    rnl_command_list_update_native(list, command, arg_index, arg);
    return RNL_OK;
}

rnl_status rnl_command_list_set_range(rnl_command_list *list, size_t index, const rnl_range *range)
{
    rnl_command *command;
    size_t local_bytes;
    TRY(find_launch(list, index, &command));
    if (!range)
        return FAIL(RNL_INVALID_ARGUMENT, "a launch needs a kernel and a range");
    TRY(sum_local(command, UINT32_MAX, 0, &local_bytes));
    TRY(rnl_kernel_check_range(command->kernel, command->object, range, local_bytes), "kernel '%s', command %zu",
        command->kernel->name, index);
    command->range = *range;
    rnl_command_list_forget_native(list);
    return RNL_OK;
}

/* ---- Copies and fills ---- */

static rnl_status check_part(const rnl_command_list *list, const rnl_buffer *buffer, size_t offset, size_t size)
{
    if (!buffer)
        return FAIL(RNL_INVALID_ARGUMENT, "a copy needs a buffer, and there is none");
    if (buffer->device != list->device)
        return FAIL(RNL_INVALID_ARGUMENT, "a buffer of %s was given to a command list of %s, which is another device",
                    buffer->device->info.name, list->device->info.name);
    if (offset > buffer->size_bytes || size > buffer->size_bytes - offset)
        return FAIL(RNL_INVALID_ARGUMENT, "%zu bytes from %zu do not lie in a buffer of %zu bytes", size, offset,
                    buffer->size_bytes);
    return RNL_OK;
}

rnl_status rnl_command_list_copy(rnl_command_list *list, rnl_buffer *dst, size_t dst_offset, rnl_buffer *src,
                                 size_t src_offset, size_t size_bytes, size_t *out_index)
{
    const size_t distance = dst_offset > src_offset ? dst_offset - src_offset : src_offset - dst_offset;
    if (out_index)
        *out_index = 0;
    TRY(check_part(list, dst, dst_offset, size_bytes));
    TRY(check_part(list, src, src_offset, size_bytes));
    if (dst->memory == src->memory && distance < size_bytes)
        return FAIL(RNL_INVALID_ARGUMENT, "a copy of %zu bytes from %zu to %zu of one buffer overlaps itself",
                    size_bytes, src_offset, dst_offset);
    rnl_command command = {.kind = RNL_COMMAND_COPY,
                           .dst = rnl_buffer_retain(dst),
                           .src = rnl_buffer_retain(src),
                           .dst_offset = dst_offset,
                           .src_offset = src_offset,
                           .size_bytes = size_bytes};
    return append(list, &command, out_index);
}

rnl_status rnl_command_list_fill(rnl_command_list *list, rnl_buffer *dst, size_t dst_offset, const void *pattern,
                                 size_t pattern_bytes, size_t size_bytes, size_t *out_index)
{
    if (out_index)
        *out_index = 0;
    TRY(check_part(list, dst, dst_offset, size_bytes));
    if (!pattern || pattern_bytes == 0 || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)) != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "a pattern to fill with has 1, 2, 4, 8 or 16 bytes, not %zu", pattern_bytes);
    if (dst_offset % pattern_bytes != 0 || size_bytes % pattern_bytes != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "%zu bytes from %zu cannot be filled with a pattern of %zu bytes", size_bytes,
                    dst_offset, pattern_bytes);
    rnl_command command = {.kind = RNL_COMMAND_FILL,
                           .dst = rnl_buffer_retain(dst),
                           .dst_offset = dst_offset,
                           .pattern_bytes = pattern_bytes,
                           .size_bytes = size_bytes};
    memcpy(command.pattern, pattern, pattern_bytes);
    return append(list, &command, out_index);
}

static rnl_status check_host(const void *host, size_t size_bytes)
{
    if (!host && size_bytes > 0)
        return FAIL(RNL_INVALID_ARGUMENT, "a copy of %zu bytes needs host memory, and there is none", size_bytes);
    return RNL_OK;
}

rnl_status rnl_command_list_write(rnl_command_list *list, rnl_buffer *dst, size_t dst_offset, const void *src,
                                  size_t size_bytes, size_t *out_index)
{
    if (out_index)
        *out_index = 0;
    TRY(check_part(list, dst, dst_offset, size_bytes));
    TRY(check_host(src, size_bytes));
    rnl_command command = {.kind = RNL_COMMAND_WRITE,
                           .dst = rnl_buffer_retain(dst),
                           .dst_offset = dst_offset,
                           .from_host = src,
                           .size_bytes = size_bytes};
    return append(list, &command, out_index);
}

rnl_status rnl_command_list_read(rnl_command_list *list, void *dst, rnl_buffer *src, size_t src_offset,
                                 size_t size_bytes, size_t *out_index)
{
    if (out_index)
        *out_index = 0;
    TRY(check_part(list, src, src_offset, size_bytes));
    TRY(check_host(dst, size_bytes));
    rnl_command command = {.kind = RNL_COMMAND_READ,
                           .src = rnl_buffer_retain(src),
                           .src_offset = src_offset,
                           .to_host = dst,
                           .size_bytes = size_bytes};
    return append(list, &command, out_index);
}
