/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that move memory, and markers. */
#include "fake/fake.h"
#include <stdlib.h>
#include <string.h>

static void run_copy(fake_command *command)
{
    memmove(command->to, command->from, command->bytes);
}

static void run_fill(fake_command *command)
{
    if (command->bytes == 0)
        return;
    memcpy(command->to, command->pattern, command->pattern_bytes);
    /* What is there goes behind itself: sanitizers look at each call. */
    for (size_t done = command->pattern_bytes, more = 0; done < command->bytes; done += more) {
        more = command->bytes - done < done ? command->bytes - done : done;
        memcpy(command->to + done, command->to, more);
    }
}

/* A copy with the buffers that it uses, of which the second may be NULL. */
static fake_command make_copy(char *to, const char *from, size_t bytes, fake_object **held)
{
    return (fake_command){
        .run = run_copy, .to = to, .from = from, .bytes = bytes, .held = held, .held_count = held[1] ? 2 : 1};
}

cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
                           void *host, cl_uint wait_count, const cl_event *waits, cl_event *out_event)
{
    ENTER("clEnqueueReadBuffer");
    ATTEMPT(fake_command_check("clEnqueueReadBuffer", queue, wait_count, waits));
    REQUIRE(host && bytes > 0, CL_INVALID_VALUE);
    ATTEMPT(fake_use_memory("clEnqueueReadBuffer", queue, buffer, offset, bytes));
    fake_object *held[2] = {&buffer->object};
    fake_command copy = make_copy(host, buffer->data + offset, bytes, held);
    return fake_leave(
        fake_command_enqueue(queue, &copy, CL_COMMAND_READ_BUFFER, wait_count, waits, blocking, out_event));
}

cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset, size_t bytes,
                            const void *host, cl_uint wait_count, const cl_event *waits, cl_event *out_event)
{
    ENTER("clEnqueueWriteBuffer");
    ATTEMPT(fake_command_check("clEnqueueWriteBuffer", queue, wait_count, waits));
    REQUIRE(host && bytes > 0, CL_INVALID_VALUE);
    ATTEMPT(fake_use_memory("clEnqueueWriteBuffer", queue, buffer, offset, bytes));
    fake_object *held[2] = {&buffer->object};
    fake_command copy = make_copy(buffer->data + offset, host, bytes, held);
    return fake_leave(
        fake_command_enqueue(queue, &copy, CL_COMMAND_WRITE_BUFFER, wait_count, waits, blocking, out_event));
}

cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,
                           size_t bytes, cl_uint wait_count, const cl_event *waits, cl_event *out_event)
{
    ENTER("clEnqueueCopyBuffer");
    ATTEMPT(fake_command_check("clEnqueueCopyBuffer", queue, wait_count, waits));
    REQUIRE(bytes > 0, CL_INVALID_VALUE);
    ATTEMPT(fake_use_memory("clEnqueueCopyBuffer", queue, from, from_offset, bytes));
    ATTEMPT(fake_use_memory("clEnqueueCopyBuffer", queue, to, to_offset, bytes));
    const char *source = from->data + from_offset;
    char *target = to->data + to_offset;
    REQUIRE(source + bytes <= target || target + bytes <= source, CL_MEM_COPY_OVERLAP);
    fake_object *held[2] = {&from->object, &to->object};
    fake_command copy = make_copy(target, source, bytes, held);
    return fake_leave(
        fake_command_enqueue(queue, &copy, CL_COMMAND_COPY_BUFFER, wait_count, waits, CL_FALSE, out_event));
}

cl_int clEnqueueFillBuffer(cl_command_queue queue, cl_mem buffer, const void *pattern, size_t pattern_bytes,
                           size_t offset, size_t bytes, cl_uint wait_count, const cl_event *waits, cl_event *out_event)
{
    ENTER("clEnqueueFillBuffer");
    ATTEMPT(fake_command_check("clEnqueueFillBuffer", queue, wait_count, waits));
    REQUIRE(pattern && pattern_bytes > 0 && pattern_bytes <= 128 && (pattern_bytes & (pattern_bytes - 1)) == 0,
            CL_INVALID_VALUE);
    REQUIRE(offset % pattern_bytes == 0 && bytes % pattern_bytes == 0, CL_INVALID_VALUE);
    ATTEMPT(fake_use_memory("clEnqueueFillBuffer", queue, buffer, offset, bytes));
    fake_object *held[1] = {&buffer->object};
    fake_command fill = {.run = run_fill,
                         .to = buffer->data + offset,
                         .bytes = bytes,
                         .pattern_bytes = pattern_bytes,
                         .held = held,
                         .held_count = 1};
    memcpy(fill.pattern, pattern, pattern_bytes);
    return fake_leave(
        fake_command_enqueue(queue, &fill, CL_COMMAND_FILL_BUFFER, wait_count, waits, CL_FALSE, out_event));
}

/* ---- Mapping ---- */

static fake_mapping *add_mapping(cl_mem buffer, char *at, size_t offset, size_t bytes, cl_map_flags flags)
{
    fake_mapping *mapping = malloc(sizeof *mapping);
    if (!mapping)
        return NULL;
    *mapping = (fake_mapping){.next = buffer->mappings, .at = at, .offset = offset, .bytes = bytes, .flags = flags};
    buffer->mappings = mapping;
    buffer->map_count++;
    return mapping;
}

static void remove_mapping(cl_mem buffer, fake_mapping *mapping)
{
    fake_mapping **at = &buffer->mappings;
    while (*at != mapping)
        at = &(*at)->next;
    *at = mapping->next;
    buffer->map_count--;
    free(mapping);
}

void *clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, cl_map_flags flags, size_t offset,
                         size_t bytes, cl_uint wait_count, const cl_event *waits, cl_event *out_event, cl_int *out_code)
{
    ATTEMPT_NEW(fake_enter("clEnqueueMapBuffer"), out_code);
    ATTEMPT_NEW(fake_command_check("clEnqueueMapBuffer", queue, wait_count, waits), out_code);
    REQUIRE_NEW(bytes > 0, CL_INVALID_VALUE, out_code);
    ATTEMPT_NEW(fake_use_memory("clEnqueueMapBuffer", queue, buffer, offset, bytes), out_code);
    char *host = fake_host_side(buffer);
    REQUIRE_NEW(host, CL_MAP_FAILURE, out_code);
    fake_mapping *mapping = add_mapping(buffer, host + offset, offset, bytes, flags);
    REQUIRE_NEW(mapping, CL_OUT_OF_HOST_MEMORY, out_code);
    fake_object *held[2] = {&buffer->object};
    fake_command copy = make_copy(host + offset, buffer->data + offset, bytes, held);
    if (host == buffer->data || flags == CL_MAP_WRITE_INVALIDATE_REGION)
        copy.run = NULL;
    cl_int code = fake_command_enqueue(queue, &copy, CL_COMMAND_MAP_BUFFER, wait_count, waits, blocking, out_event);
    if (code != CL_SUCCESS)
        remove_mapping(buffer, mapping);
    return fake_made(host + offset, code, out_code);
}

cl_int clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem buffer, void *host, cl_uint wait_count,
                               const cl_event *waits, cl_event *out_event)
{
    ENTER("clEnqueueUnmapMemObject");
    ATTEMPT(fake_command_check("clEnqueueUnmapMemObject", queue, wait_count, waits));
    ATTEMPT(fake_use_memory("clEnqueueUnmapMemObject", queue, buffer, 0, 0));
    fake_mapping *mapping = buffer->mappings;
    while (mapping && mapping->at != host)
        mapping = mapping->next;
    REQUIRE(mapping, CL_INVALID_VALUE);
    fake_object *held[2] = {&buffer->object};
    fake_command copy = make_copy(buffer->data + mapping->offset, mapping->at, mapping->bytes, held);
    if (copy.to == mapping->at || !(mapping->flags & (CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION)))
        copy.run = NULL;
    cl_int code =
        fake_command_enqueue(queue, &copy, CL_COMMAND_UNMAP_MEM_OBJECT, wait_count, waits, CL_FALSE, out_event);
    remove_mapping(buffer, mapping);
    return fake_leave(code);
}

/* ---- Markers ---- */

static cl_int enqueue_marker(const char *call, cl_command_queue queue, cl_command_type type, cl_uint wait_count,
                             const cl_event *waits, cl_event *out_event)
{
    ENTER(call);
    ATTEMPT(fake_command_check(call, queue, wait_count, waits));
    return fake_leave(fake_command_enqueue(queue, NULL, type, wait_count, waits, CL_FALSE, out_event));
}

cl_int clEnqueueMarkerWithWaitList(cl_command_queue queue, cl_uint wait_count, const cl_event *waits,
                                   cl_event *out_event)
{
    return enqueue_marker("clEnqueueMarkerWithWaitList", queue, CL_COMMAND_MARKER, wait_count, waits, out_event);
}

cl_int clEnqueueBarrierWithWaitList(cl_command_queue queue, cl_uint wait_count, const cl_event *waits,
                                    cl_event *out_event)
{
    return enqueue_marker("clEnqueueBarrierWithWaitList", queue, CL_COMMAND_BARRIER, wait_count, waits, out_event);
}

cl_int clEnqueueMigrateMemObjects(cl_command_queue queue, cl_uint count, const cl_mem *buffers,
                                  cl_mem_migration_flags flags, cl_uint wait_count, const cl_event *waits,
                                  cl_event *out_event)
{
    (void)flags;
    ENTER("clEnqueueMigrateMemObjects");
    ATTEMPT(fake_command_check("clEnqueueMigrateMemObjects", queue, wait_count, waits));
    REQUIRE(count > 0 && buffers, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < count; i++)
        ATTEMPT(fake_use_memory("clEnqueueMigrateMemObjects", queue, buffers[i], 0, 0));
    return fake_leave(
        fake_command_enqueue(queue, NULL, CL_COMMAND_MIGRATE_MEM_OBJECTS, wait_count, waits, CL_FALSE, out_event));
}
