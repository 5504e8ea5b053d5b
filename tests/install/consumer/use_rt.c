// SPDX-License-Identifier: Apache-2.0
// One kernel on the runtime alone. Compiled as C11 and as C++17.
#include <runnel/rt.h>
#include <stdio.h>

#define COUNT 100

static const char source[] = "kernel void add(global float *x, float value)\n"
                             "{\n"
                             "    x[get_global_id(0)] += value;\n"
                             "}\n";

static bool is_ok(rnl_status status)
{
    if (status != RNL_OK)
        fprintf(stderr, "%s\n", rnl_last_error()->message);
    return status == RNL_OK;
}

static rnl_arg value_arg(const float *value)
{
    rnl_arg arg;
    arg.kind = RNL_ARG_VALUE;
    arg.size_bytes = sizeof *value;
    arg.value = value;
    arg.buffer = NULL;
    return arg;
}

static rnl_arg buffer_arg(rnl_buffer *buffer)
{
    rnl_arg arg;
    arg.kind = RNL_ARG_BUFFER;
    arg.size_bytes = 0;
    arg.value = NULL;
    arg.buffer = buffer;
    return arg;
}

static bool add(rnl_device *device, rnl_stream *stream, rnl_buffer *buffer, float *x)
{
    const float value = 2;
    const rnl_range range = {1, {COUNT, 1, 1}, {1, 1, 1}};
    const rnl_arg args[] = {buffer_arg(buffer), value_arg(&value)};
    rnl_kernel *kernel;
    if (!is_ok(rnl_kernel_create(device, source, NULL, "add", &kernel)))
        return false;
    const bool done = is_ok(rnl_stream_write(stream, buffer, 0, x, COUNT * sizeof *x)) &&
                      is_ok(rnl_stream_launch(stream, kernel, &range, args, 2)) &&
                      is_ok(rnl_stream_read(stream, x, buffer, 0, COUNT * sizeof *x)) &&
                      is_ok(rnl_stream_synchronize(stream));
    rnl_kernel_release(kernel);
    return done;
}

int main(void)
{
    float x[COUNT];
    rnl_device *device;
    rnl_stream *stream = NULL;
    rnl_buffer *buffer = NULL;
    int wrong = 0;
    if (!is_ok(rnl_device_open(NULL, NULL, &device)))
        return 1;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i;
    bool done = is_ok(rnl_stream_create(device, &stream)) &&
                is_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof x, &buffer)) &&
                add(device, stream, buffer, x);
    for (int i = 0; i < COUNT; i++)
        wrong += x[i] != (float)i + 2;
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    rnl_device_release(device);
    printf("%d wrong\n", wrong);
    return !done || wrong;
}
