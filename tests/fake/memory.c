/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers. Where host and device do not share memory, what the host maps is another piece of memory than what commands
 * use: the two are made equal when a range is mapped and unmapped, and not before.
 */
#include "fake/fake.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static size_t used[FAKE_DEVICES]; /* bytes */

size_t fake_memory_bytes(void)
{
    size_t bytes = 0;
    for (size_t i = 0; i < FAKE_DEVICES; i++)
        bytes += used[i];
    return bytes;
}

/* A context's buffers count as its first device's. */
static size_t *used_of(cl_context context)
{
    return &used[fake_whole(context->devices[0])->index];
}

static cl_mem whole_of(cl_mem memory)
{
    return memory->whole ? memory->whole : memory;
}

static size_t alignment(cl_context context)
{
    size_t most = 64;
    for (cl_uint i = 0; i < context->device_count; i++)
        if (context->devices[i]->align_bits / 8 > most)
            most = context->devices[i]->align_bits / 8;
    return most;
}

static char *get_memory(cl_context context, size_t bytes)
{
    void *memory = NULL;
    return posix_memalign(&memory, alignment(context), bytes) == 0 ? memory : NULL;
}

char *fake_host_side(cl_mem memory)
{
    cl_mem whole = whole_of(memory);
    if (!whole->host) {
        whole->host = get_memory(whole->context, whole->bytes);
        whole->owns_host = whole->host != NULL;
    }
    return whole->host ? whole->host + memory->origin : NULL;
}

static cl_int check_size(cl_context context, size_t bytes)
{
    const cl_device_id device = context->devices[0];
    const size_t room = fake_memory_limit() > 0 ? fake_memory_limit() : device->memory;
    if (bytes == 0 || bytes > device->largest)
        return CL_INVALID_BUFFER_SIZE;
    if (bytes > room || *used_of(context) > room - bytes)
        return fake_failed("clCreateBuffer", CL_MEM_OBJECT_ALLOCATION_FAILURE);
    return CL_SUCCESS;
}

static cl_int check_flags(cl_mem_flags flags, const void *host)
{
    const cl_mem_flags access = flags & (CL_MEM_READ_WRITE | CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
    const cl_mem_flags takes_host = flags & (CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR);
    if ((access & (access - 1)) != 0)
        return CL_INVALID_VALUE;
    if ((flags & CL_MEM_USE_HOST_PTR) && (flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR)))
        return CL_INVALID_VALUE;
    return (takes_host != 0) == (host != NULL) ? CL_SUCCESS : CL_INVALID_HOST_PTR;
}

static bool fill_buffer(cl_mem buffer, void *host)
{
    const bool shared = buffer->context->devices[0]->unified;
    const bool uses = (buffer->flags & CL_MEM_USE_HOST_PTR) != 0;
    buffer->host = uses ? host : NULL;
    buffer->owns_data = !(uses && shared);
    buffer->data = buffer->owns_data ? get_memory(buffer->context, buffer->bytes) : host;
    if (buffer->data && host && buffer->owns_data)
        memcpy(buffer->data, host, buffer->bytes);
    if (shared)
        buffer->host = buffer->data;
    return buffer->data != NULL;
}

cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t bytes, void *host, cl_int *out_code)
{
    ATTEMPT_NEW(fake_enter("clCreateBuffer"), out_code);
    ATTEMPT_NEW(fake_check(context, FAKE_CONTEXT), out_code);
    ATTEMPT_NEW(check_size(context, bytes), out_code);
    ATTEMPT_NEW(check_flags(flags, host), out_code);
    cl_mem buffer = fake_create(FAKE_MEMORY, sizeof *buffer);
    REQUIRE_NEW(buffer, CL_OUT_OF_HOST_MEMORY, out_code);
    buffer->context = fake_hold(context);
    buffer->flags = flags;
    buffer->bytes = bytes;
    buffer->lies = fake_is_lie();
    *used_of(context) += bytes;
    bool filled = fill_buffer(buffer, host);
    if (!filled)
        fake_release(buffer, FAKE_MEMORY);
    return fake_made(buffer, filled ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE, out_code);
}

/* ---- Sub-buffers ---- */

/* The living sub-buffers of all buffers, to see which overlap. */
static struct part {
    struct part *next;
    cl_mem memory;
} * parts;

static void note_part(cl_mem part)
{
    for (struct part *other = parts; other; other = other->next)
        if (other->memory->whole == part->whole && other->memory->origin < part->origin + part->bytes &&
            part->origin < other->memory->origin + other->memory->bytes)
            fake_count_overlap();
    struct part *note = malloc(sizeof *note);
    if (!note)
        abort();
    *note = (struct part){.next = parts, .memory = part};
    parts = note;
}

static void forget_part(cl_mem part)
{
    for (struct part **at = &parts; *at; at = &(*at)->next)
        if ((*at)->memory == part) {
            struct part *gone = *at;
            *at = gone->next;
            free(gone);
            return;
        }
}

cl_mem clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type, const void *info,
                         cl_int *out_code)
{
    const cl_buffer_region *region = info;
    ATTEMPT_NEW(fake_enter("clCreateSubBuffer"), out_code);
    ATTEMPT_NEW(fake_check(buffer, FAKE_MEMORY), out_code);
    REQUIRE_NEW(!buffer->whole, CL_INVALID_MEM_OBJECT, out_code);
    REQUIRE_NEW(type == CL_BUFFER_CREATE_TYPE_REGION && region, CL_INVALID_VALUE, out_code);
    REQUIRE_NEW(region->size > 0, CL_INVALID_BUFFER_SIZE, out_code);
    REQUIRE_NEW(region->origin <= buffer->bytes && region->size <= buffer->bytes - region->origin, CL_INVALID_VALUE,
                out_code);
    REQUIRE_NEW(region->origin % alignment(buffer->context) == 0, CL_MISALIGNED_SUB_BUFFER_OFFSET, out_code);
    cl_mem part = fake_create(FAKE_MEMORY, sizeof *part);
    REQUIRE_NEW(part, CL_OUT_OF_HOST_MEMORY, out_code);
    part->context = fake_hold(buffer->context);
    part->whole = fake_hold(buffer);
    part->flags = flags ? flags : buffer->flags;
    part->origin = region->origin;
    part->bytes = region->size;
    part->data = buffer->data + region->origin;
    note_part(part);
    return fake_made(part, CL_SUCCESS, out_code);
}

/* ---- For all ---- */

void fake_destroy_memory(void *object)
{
    cl_mem memory = object;
    if (memory->destructor)
        memory->destructor(memory, memory->destructor_data);
    while (memory->mappings) {
        fake_mapping *next = memory->mappings->next;
        free(memory->mappings);
        memory->mappings = next;
    }
    if (memory->whole)
        forget_part(memory);
    else
        *used_of(memory->context) -= memory->bytes;
    if (memory->owns_data)
        free(memory->data);
    if (memory->owns_host)
        free(memory->host);
    fake_drop(memory->whole);
    fake_drop(memory->context);
}

cl_int clRetainMemObject(cl_mem memory)
{
    ENTER("clRetainMemObject");
    return fake_leave(fake_retain(memory, FAKE_MEMORY));
}

cl_int clReleaseMemObject(cl_mem memory)
{
    cl_int fault = fake_enter("clReleaseMemObject"), code = fake_release(memory, FAKE_MEMORY);
    return fake_leave(fault != CL_SUCCESS ? fault : code);
}

cl_int clSetMemObjectDestructorCallback(cl_mem memory, void(CL_CALLBACK *destructor)(cl_mem memory, void *data),
                                        void *data)
{
    ENTER("clSetMemObjectDestructorCallback");
    ATTEMPT(fake_check(memory, FAKE_MEMORY));
    REQUIRE(destructor, CL_INVALID_VALUE);
    REQUIRE(!memory->destructor, CL_OUT_OF_HOST_MEMORY);
    memory->destructor = destructor;
    memory->destructor_data = data;
    return fake_leave(CL_SUCCESS);
}

cl_int clGetMemObjectInfo(cl_mem memory, cl_mem_info what, size_t size, void *out, size_t *out_bytes)
{
    ENTER("clGetMemObjectInfo");
    ATTEMPT(fake_check(memory, FAKE_MEMORY));
    switch (what) {
    case CL_MEM_TYPE:
        return fake_leave(ANSWER(cl_mem_object_type, CL_MEM_OBJECT_BUFFER));
    case CL_MEM_FLAGS:
        return fake_leave(ANSWER(cl_mem_flags, memory->flags));
    case CL_MEM_SIZE:
        return fake_leave(ANSWER(size_t, memory->bytes));
    case CL_MEM_OFFSET:
        return fake_leave(ANSWER(size_t, memory->origin));
    case CL_MEM_HOST_PTR:
        return fake_leave(ANSWER(void *, whole_of(memory)->flags &CL_MEM_USE_HOST_PTR ? fake_host_side(memory) : NULL));
    case CL_MEM_MAP_COUNT:
        return fake_leave(ANSWER(cl_uint, memory->map_count));
    case CL_MEM_REFERENCE_COUNT:
        return fake_leave(ANSWER(cl_uint, memory->object.references));
    case CL_MEM_CONTEXT:
        return fake_leave(ANSWER(cl_context, memory->context));
    case CL_MEM_ASSOCIATED_MEMOBJECT:
        return fake_leave(ANSWER(cl_mem, memory->whole));
    default:
        return fake_leave(CL_INVALID_VALUE);
    }
}

cl_int fake_use_memory(const char *call, cl_command_queue queue, cl_mem memory, size_t offset, size_t bytes)
{
    cl_int code = fake_check(memory, FAKE_MEMORY);
    if (code != CL_SUCCESS)
        return code;
    if (memory->context != queue->context)
        return CL_INVALID_CONTEXT;
    if (offset > memory->bytes || bytes > memory->bytes - offset)
        return CL_INVALID_VALUE;
    return whole_of(memory)->lies ? fake_failed(call, CL_MEM_OBJECT_ALLOCATION_FAILURE) : CL_SUCCESS;
}
