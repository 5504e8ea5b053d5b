/* SPDX-License-Identifier: Apache-2.0 */
/* Programs from source and from binaries; a binary is the source with its options and a sum of both. */
#include "fake/fake.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x31454b4146u

typedef struct binary_head {
    uint64_t magic, sum, source_bytes, options_bytes; /* with their NULs */
} binary_head;

static uint64_t sum_of(const unsigned char *bytes, size_t count)
{
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < count; i++)
        sum = (sum ^ bytes[i]) * 1099511628211u;
    return sum;
}

static cl_program create_program(cl_context context)
{
    cl_program program = fake_create(FAKE_PROGRAM, sizeof *program);
    if (program)
        program->context = fake_hold(context);
    return program;
}

void fake_destroy_program(void *object)
{
    cl_program program = object;
    free(program->source);
    free(program->options);
    fake_drop(program->context);
}

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **texts, const size_t *lengths,
                                     cl_int *out_code)
{
    size_t bytes = 1, at = 0;
    ATTEMPT_NEW(fake_enter("clCreateProgramWithSource"), out_code);
    ATTEMPT_NEW(fake_check(context, FAKE_CONTEXT), out_code);
    REQUIRE_NEW(count > 0 && texts, CL_INVALID_VALUE, out_code);
    for (cl_uint i = 0; i < count; i++) {
        REQUIRE_NEW(texts[i], CL_INVALID_VALUE, out_code);
        bytes += lengths && lengths[i] ? lengths[i] : strlen(texts[i]);
    }
    cl_program program = create_program(context);
    REQUIRE_NEW(program, CL_OUT_OF_HOST_MEMORY, out_code);
    program->source = calloc(1, bytes);
    for (cl_uint i = 0; i < count && program->source; i++) {
        size_t length = lengths && lengths[i] ? lengths[i] : strlen(texts[i]);
        memcpy(program->source + at, texts[i], length);
        at += length;
    }
    return fake_made(program, CL_SUCCESS, out_code);
}

/* Takes a binary apart; false for what is none of ours. */
static bool read_binary(cl_program program, const unsigned char *bytes, size_t size)
{
    binary_head head;
    if (size < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    const unsigned char *text = bytes + sizeof head;
    size -= sizeof head;
    if (head.magic != MAGIC || head.source_bytes > size || head.options_bytes != size - head.source_bytes ||
        head.source_bytes == 0 || head.options_bytes == 0 || head.sum != sum_of(text, size))
        return false;
    program->source = strdup((const char *)text);
    program->options = strdup((const char *)text + head.source_bytes);
    program->from_binary = true;
    return program->source && program->options;
}

cl_program clCreateProgramWithBinary(cl_context context, cl_uint count, const cl_device_id *devices,
                                     const size_t *sizes, const unsigned char **binaries, cl_int *codes,
                                     cl_int *out_code)
{
    ATTEMPT_NEW(fake_enter("clCreateProgramWithBinary"), out_code);
    ATTEMPT_NEW(fake_check(context, FAKE_CONTEXT), out_code);
    REQUIRE_NEW(count == 1 && devices && sizes && binaries && binaries[0] && sizes[0], CL_INVALID_VALUE, out_code);
    REQUIRE_NEW(fake_has_device(context, devices[0]), CL_INVALID_DEVICE, out_code);
    cl_program program = create_program(context);
    REQUIRE_NEW(program, CL_OUT_OF_HOST_MEMORY, out_code);
    bool good = read_binary(program, binaries[0], sizes[0]);
    if (codes)
        codes[0] = good ? CL_SUCCESS : CL_INVALID_BINARY;
    if (!good)
        fake_release(program, FAKE_PROGRAM);
    return fake_made(program, good ? CL_SUCCESS : CL_INVALID_BINARY, out_code);
}

cl_int clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                      void(CL_CALLBACK *notify)(cl_program program, void *user), void *user)
{
    ENTER("clBuildProgram");
    ATTEMPT(fake_check(program, FAKE_PROGRAM));
    REQUIRE((count > 0) == (devices != NULL), CL_INVALID_VALUE);
    for (cl_uint i = 0; i < count; i++)
        REQUIRE(fake_has_device(program->context, devices[i]), CL_INVALID_DEVICE);
    if (!program->from_binary) {
        free(program->options);
        program->options = strdup(options ? options : "");
    }
    REQUIRE(program->source && program->options, CL_OUT_OF_HOST_MEMORY);
    program->unit = fake_compile(program->source, program->options);
    cl_int code = program->unit->code;
    pthread_mutex_unlock(&fake_lock);
    if (notify)
        notify(program, user);
    return code;
}

static cl_int answer_text(const char *text, size_t size, void *out, size_t *out_bytes)
{
    text = text ? text : "";
    return fake_answer(text, strlen(text) + 1, size, out, out_bytes);
}

cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info what, size_t size,
                             void *out, size_t *out_bytes)
{
    ENTER("clGetProgramBuildInfo");
    ATTEMPT(fake_check(program, FAKE_PROGRAM));
    REQUIRE(fake_has_device(program->context, device), CL_INVALID_DEVICE);
    const fake_unit *unit = program->unit;
    cl_build_status failed = unit && unit->code != CL_SUCCESS ? CL_BUILD_ERROR : CL_BUILD_SUCCESS;
    switch (what) {
    case CL_PROGRAM_BUILD_STATUS:
        return fake_leave(ANSWER(cl_build_status, unit ? failed : CL_BUILD_NONE));
    case CL_PROGRAM_BUILD_OPTIONS:
        return fake_leave(answer_text(program->options, size, out, out_bytes));
    case CL_PROGRAM_BUILD_LOG:
        return fake_leave(answer_text(unit ? unit->log : NULL, size, out, out_bytes));
    case CL_PROGRAM_BINARY_TYPE:
        return fake_leave(ANSWER(cl_program_binary_type,
                                 unit && !failed ? CL_PROGRAM_BINARY_TYPE_EXECUTABLE : CL_PROGRAM_BINARY_TYPE_NONE));
    default:
        return fake_leave(CL_INVALID_VALUE);
    }
}

static size_t binary_bytes(cl_program program)
{
    if (!program->unit || program->unit->code != CL_SUCCESS)
        return 0;
    return sizeof(binary_head) + strlen(program->source) + strlen(program->options) + 2;
}

static void write_binary(cl_program program, unsigned char *to)
{
    binary_head head = {
        .magic = MAGIC, .source_bytes = strlen(program->source) + 1, .options_bytes = strlen(program->options) + 1};
    unsigned char *text = to + sizeof head;
    memcpy(text, program->source, head.source_bytes);
    memcpy(text + head.source_bytes, program->options, head.options_bytes);
    head.sum = sum_of(text, head.source_bytes + head.options_bytes);
    memcpy(to, &head, sizeof head);
}

/* Names in the order of the source, with semicolons between them; returns their number. */
static size_t list_names(cl_program program, char *out, size_t capacity)
{
    size_t count = 0;
    out[0] = '\0';
    for (const fake_function *at = program->unit ? program->unit->functions : NULL; at; at = at->next, count++) {
        if (strlen(out) + strlen(at->name) + 2 < capacity)
            strcat(strcat(out, count ? ";" : ""), at->name);
    }
    return count;
}

cl_int clGetProgramInfo(cl_program program, cl_program_info what, size_t size, void *out, size_t *out_bytes)
{
    char names[4096];
    ENTER("clGetProgramInfo");
    ATTEMPT(fake_check(program, FAKE_PROGRAM));
    switch (what) {
    case CL_PROGRAM_REFERENCE_COUNT:
        return fake_leave(ANSWER(cl_uint, program->object.references));
    case CL_PROGRAM_CONTEXT:
        return fake_leave(ANSWER(cl_context, program->context));
    case CL_PROGRAM_NUM_DEVICES:
        return fake_leave(ANSWER(cl_uint, 1));
    case CL_PROGRAM_DEVICES:
        return fake_leave(ANSWER(cl_device_id, program->context->devices[0]));
    case CL_PROGRAM_SOURCE:
        return fake_leave(answer_text(program->from_binary ? NULL : program->source, size, out, out_bytes));
    case CL_PROGRAM_NUM_KERNELS:
        return fake_leave(ANSWER(size_t, list_names(program, names, sizeof names)));
    case CL_PROGRAM_KERNEL_NAMES:
        list_names(program, names, sizeof names);
        return fake_leave(answer_text(names, size, out, out_bytes));
    case CL_PROGRAM_BINARY_SIZES:
        return fake_leave(ANSWER(size_t, binary_bytes(program)));
    case CL_PROGRAM_BINARIES:
        REQUIRE(!out || size >= sizeof(unsigned char *), CL_INVALID_VALUE);
        if (out && *(unsigned char **)out && binary_bytes(program) > 0)
            write_binary(program, *(unsigned char **)out);
        if (out_bytes)
            *out_bytes = sizeof(unsigned char *);
        return fake_leave(CL_SUCCESS);
    default:
        return fake_leave(CL_INVALID_VALUE);
    }
}

cl_int clRetainProgram(cl_program program)
{
    ENTER("clRetainProgram");
    return fake_leave(fake_retain(program, FAKE_PROGRAM));
}

cl_int clReleaseProgram(cl_program program)
{
    cl_int fault = fake_enter("clReleaseProgram"), code = fake_release(program, FAKE_PROGRAM);
    return fake_leave(fault != CL_SUCCESS ? fault : code);
}
