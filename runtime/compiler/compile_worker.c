/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles programs for the process that started it (kernel/compilers.h), until its standard input ends. pocl compiles
 * a kernel when it is first launched, one at a time in a process, and keeps it on disk: so this launches one work-group
 * of each, on memory of zeros, and whoever started it finds the kernel compiled.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#define CL_TARGET_OPENCL_VERSION 120
#include "kernel/compile_message.h"
#include "kernel/team_words.h"
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define MOST_PLATFORMS 32
#define MOST_DEVICES 64
#define NAME_BYTES 512
#define BUFFERS (1 + RNL_COMPILE_COUNTER - RNL_COMPILE_READ)
#define SLACK_BYTES ((uint64_t)1 << 20) /* behind the largest buffer, and for what is smaller */

/* ---- the message ---- */

typedef struct reader {
    const unsigned char *at;
    uint64_t left;
    bool is_broken;
} reader;

static const unsigned char *take(reader *in, uint64_t size)
{
    const unsigned char *taken = in->at;
    if (in->is_broken || size > in->left) {
        in->is_broken = true;
        return NULL;
    }
    in->at += size;
    in->left -= size;
    return taken;
}

static uint64_t take_number(reader *in)
{
    uint64_t number = 0;
    const unsigned char *bytes = take(in, sizeof number);
    if (bytes)
        memcpy(&number, bytes, sizeof number);
    return number;
}

/* With a NUL in the message; "" for what is broken. */
static const char *take_text(reader *in, uint64_t *out_size)
{
    const uint64_t size = take_number(in);
    const unsigned char *bytes = take(in, size);
    if (!bytes || size == 0 || bytes[size - 1] != '\0') {
        in->is_broken = true;
        return "";
    }
    *out_size = size - 1;
    return (const char *)bytes;
}

static bool read_all(void *to, uint64_t size)
{
    unsigned char *at = to;
    while (size > 0) {
        const ssize_t got = read(STDIN_FILENO, at, size);
        if (got <= 0)
            return false;
        at += got;
        size -= (uint64_t)got;
    }
    return true;
}

/* ---- the device ---- */

typedef struct place {
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    cl_mem buffers[BUFFERS]; /* from RNL_COMPILE_READ on */
    uint32_t *counter;
    uint64_t buffer_bytes;
} place;

static bool find_device(const char *platform, const char *device, cl_device_id *out_device)
{
    cl_platform_id platforms[MOST_PLATFORMS];
    cl_uint platform_count = 0;
    char name[NAME_BYTES];
    if (clGetPlatformIDs(MOST_PLATFORMS, platforms, &platform_count) != CL_SUCCESS)
        return false;
    for (cl_uint p = 0; p < platform_count && p < MOST_PLATFORMS; p++) {
        cl_device_id devices[MOST_DEVICES];
        cl_uint device_count = 0;
        if (clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof name, name, NULL) != CL_SUCCESS ||
            strcmp(name, platform) != 0 ||
            clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, MOST_DEVICES, devices, &device_count) != CL_SUCCESS)
            continue;
        for (cl_uint d = 0; d < device_count && d < MOST_DEVICES; d++)
            if (clGetDeviceInfo(devices[d], CL_DEVICE_NAME, sizeof name, name, NULL) == CL_SUCCESS &&
                strcmp(name, device) == 0) {
                *out_device = devices[d];
                return true;
            }
    }
    return false;
}

static bool open_place(place *to, const char *platform, const char *device)
{
    cl_int code;
    if (to->queue)
        return true;
    if (!find_device(platform, device, &to->device))
        return false;
    to->context = clCreateContext(NULL, 1, &to->device, NULL, NULL, &code);
    if (code == CL_SUCCESS)
        to->queue = clCreateCommandQueue(to->context, to->device, 0, &code);
    return code == CL_SUCCESS;
}

/* Pages that nobody touches take no memory. */
static bool make_buffers(place *at, uint64_t bytes)
{
    if (at->buffer_bytes > 0 && at->buffer_bytes - SLACK_BYTES >= bytes)
        return true;
    if (bytes > SIZE_MAX - SLACK_BYTES)
        return false;
    for (int i = 0; i < BUFFERS; i++) {
        const size_t mapped = i == RNL_COMPILE_COUNTER - RNL_COMPILE_READ ? SLACK_BYTES : bytes + SLACK_BYTES;
        cl_int code;
        void *pages = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED)
            return false;
        if (at->buffers[i])
            clReleaseMemObject(at->buffers[i]);
        at->buffers[i] = clCreateBuffer(at->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, mapped, pages, &code);
        if (code != CL_SUCCESS)
            return false;
        at->counter = pages; /* the last one */
    }
    at->buffer_bytes = bytes + SLACK_BYTES;
    return true;
}

/* ---- one program ---- */

static bool set_argument(reader *in, const place *at, cl_kernel kernel, cl_uint index)
{
    const cl_mem none = NULL;
    const cl_mem *buffer = &none;
    uint64_t size = 0;
    const uint64_t kind = take_number(in);
    switch (kind) {
    case RNL_COMPILE_VALUE: {
        const char *bytes = take_text(in, &size);
        return !in->is_broken && clSetKernelArg(kernel, index, size, bytes) == CL_SUCCESS;
    }
    case RNL_COMPILE_NOTHING:
        break;
    case RNL_COMPILE_READ:
    case RNL_COMPILE_WRITTEN:
    case RNL_COMPILE_WRITTEN_2:
    case RNL_COMPILE_WRITTEN_3:
    case RNL_COMPILE_COUNTER:
        buffer = &at->buffers[kind - RNL_COMPILE_READ];
        break;
    default:
        return false;
    }
    return !in->is_broken && clSetKernelArg(kernel, index, sizeof *buffer, buffer) == CL_SUCCESS;
}

static bool launch(reader *in, const place *at, cl_kernel kernel)
{
    const cl_uint dimensions = (cl_uint)take_number(in);
    size_t offset[3] = {take_number(in), 0, 0}, local[3], global[3];
    for (int i = 0; i < 3; i++)
        local[i] = take_number(in);
    for (int i = 0; i < 3; i++)
        global[i] = local[i] * take_number(in);
    const uint64_t arguments = take_number(in);
    bool is_set = arguments <= RNL_COMPILE_ARGS_MOST && dimensions >= 1 && dimensions <= 3;
    for (cl_uint i = 0; i < arguments && is_set; i++)
        is_set = set_argument(in, at, kernel, i);
    return is_set &&
           clEnqueueNDRangeKernel(at->queue, kernel, dimensions, offset, global, local, 0, NULL, NULL) == CL_SUCCESS;
}

/* What kernels told. */
typedef struct told {
    uint64_t size;
    char bytes[RNL_COMPILE_TOLD_MOST];
} told;

/* Those with memory of a work-group are called in another way. */
static bool may_tell(const place *at, cl_kernel kernel)
{
    cl_ulong bytes = 1;
    return clGetKernelWorkGroupInfo(kernel, at->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof bytes, &bytes, NULL) ==
               CL_SUCCESS &&
           bytes == 0;
}

static void note_place(const place *at, const char *kernel, told *out)
{
    uint64_t where;
    Dl_info info;
    memcpy(&where, &at->counter[RNL_TEAM_WHERE], sizeof where);
    if (where == 0 || !dladdr((const void *)(uintptr_t)where, &info) || !info.dli_fname)
        return;
    const size_t name = strlen(kernel) + 1, path = strlen(info.dli_fname) + 1;
    if (name > sizeof out->bytes - out->size || path > sizeof out->bytes - out->size - name)
        return;
    memcpy(out->bytes + out->size, kernel, name);
    memcpy(out->bytes + out->size + name, info.dli_fname, path);
    out->size += name + path;
}

static bool launch_kernels(reader *in, const place *at, cl_program program, told *out)
{
    bool is_done = true;
    uint64_t size;
    for (uint64_t left = take_number(in); left > 0 && is_done && !in->is_broken; left--) {
        cl_int code;
        const char *name = take_text(in, &size);
        cl_kernel kernel = clCreateKernel(program, name, &code);
        memset(at->counter, 0, (RNL_TEAM_WHERE + 2) * sizeof *at->counter);
        at->counter[RNL_TEAM_TELL] = code == CL_SUCCESS && may_tell(at, kernel);
        is_done = code == CL_SUCCESS && launch(in, at, kernel);
        is_done = clFinish(at->queue) == CL_SUCCESS && is_done;
        if (is_done)
            note_place(at, name, out);
        if (kernel)
            clReleaseKernel(kernel);
    }
    return is_done && !in->is_broken;
}

static bool compile(reader *in, place *at, told *out)
{
    uint64_t size;
    cl_int code;
    const char *platform = take_text(in, &size), *device = take_text(in, &size);
    const uint64_t buffer_bytes = take_number(in);
    const char *source = take_text(in, &size), *options = take_text(in, &size);
    if (in->is_broken || !open_place(at, platform, device) || !make_buffers(at, buffer_bytes))
        return false;
    cl_program program = clCreateProgramWithSource(at->context, 1, &source, NULL, &code);
    if (code != CL_SUCCESS)
        return false;
    const bool is_done = clBuildProgram(program, 1, &at->device, options, NULL, NULL) == CL_SUCCESS &&
                         launch_kernels(in, at, program, out);
    clReleaseProgram(program);
    return is_done;
}

static bool write_all(const void *from, uint64_t size)
{
    const unsigned char *at = from;
    while (size > 0) {
        const ssize_t put = write(STDIN_FILENO, at, size); /* a socket */
        if (put <= 0)
            return false;
        at += put;
        size -= (uint64_t)put;
    }
    return true;
}

static bool serve(place *at)
{
    static told all;
    uint64_t size;
    if (!read_all(&size, sizeof size) || size > RNL_COMPILE_MESSAGE_MOST)
        return false;
    unsigned char *message = malloc(size > 0 ? size : 1);
    bool goes_on = message && read_all(message, size);
    if (goes_on) {
        reader in = {.at = message, .left = size};
        all.size = 0;
        const char answer = compile(&in, at, &all) ? RNL_COMPILE_DONE : RNL_COMPILE_FAILED;
        goes_on = write_all(&answer, 1);
        if (answer == RNL_COMPILE_DONE)
            goes_on = goes_on && write_all(&all.size, sizeof all.size) && write_all(all.bytes, all.size);
    }
    free(message);
    return goes_on;
}

int main(void)
{
    const struct rlimit none = {0, 0};
    place at = {0};
    (void)setrlimit(RLIMIT_CORE, &none);
    while (serve(&at))
        ;
    _exit(0); /* nothing that drivers do at an orderly end is worth waiting for */
}
