// SPDX-License-Identifier: Apache-2.0
// An OpenCL program of its own that lets runnel work on its context, queue and buffer.
#include <runnel/interop.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 1024

static const char source[] =
    "__kernel void square(__global float *x) { x[get_global_id(0)] *= x[get_global_id(0)]; }\n";

static void check(rnl_status status)
{
    if (status != RNL_OK) {
        fprintf(stderr, "%s\n", rnl_last_error()->message);
        exit(1);
    }
}

static void cl_check(cl_int code)
{
    if (code != CL_SUCCESS) {
        fprintf(stderr, "OpenCL answers %d\n", (int)code);
        exit(1);
    }
}

// runnel's part: one launch on the caller's queue.
static void square(cl_context context, cl_device_id id, cl_command_queue queue, cl_mem memory)
{
    rnl_device *device;
    rnl_stream *stream;
    rnl_buffer *buffer;
    rnl_kernel *kernel;
    check(rnl_device_wrap(context, id, NULL, &device));
    check(rnl_stream_wrap(device, queue, &stream));
    check(rnl_buffer_wrap(device, memory, &buffer));
    check(rnl_kernel_create(device, source, NULL, "square", &kernel));
    const rnl_arg arg = {.kind = RNL_ARG_BUFFER, .buffer = buffer};
    const rnl_range range = {.dimensions = 1, .global = {COUNT, 1, 1}, .local = {16, 1, 1}};
    check(rnl_stream_launch(stream, kernel, &range, &arg, 1));
    // Released while it may still run: the queue and the memory are the caller's, who waits.
    rnl_kernel_release(kernel);
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    rnl_device_release(device);
}

int main(void)
{
    static float x[COUNT];
    rnl_device *found;
    cl_int code;
    // The same choice of a device as everywhere; any cl_device_id will do.
    check(rnl_device_open(NULL, NULL, &found));
    cl_device_id id = rnl_device_get_cl_device(found);
    cl_context context = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
    cl_check(code);
    cl_command_queue queue = clCreateCommandQueue(context, id, 0, &code);
    cl_check(code);
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    cl_mem memory = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof x, x, &code);
    cl_check(code);
    square(context, id, queue, memory);
    square(context, id, queue, memory);
    cl_check(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, sizeof x, x, 0, NULL, NULL));
    printf("3 squared twice is %g\n", (double)x[3]);
    clReleaseMemObject(memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    rnl_device_release(found);
    return x[3] == 81 ? 0 : 1;
}
