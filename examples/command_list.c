// SPDX-License-Identifier: Apache-2.0
// A damped wave on a string: its two launches are recorded once, and replayed for each step with another argument.
#include <runnel/command_list.h>
#include <stdio.h>
#include <stdlib.h>

#define POINTS 1024
#define STEPS 500

static const char source[] =
    "__kernel void accelerate(__global const float *y, __global float *v, float damping)\n"
    "{\n"
    "    int i = get_global_id(0), n = get_global_size(0);\n"
    "    float left = i > 0 ? y[i - 1] : 0, right = i < n - 1 ? y[i + 1] : 0;\n"
    "    v[i] = damping * (v[i] + 0.25f * (left - 2 * y[i] + right));\n"
    "}\n"
    "__kernel void move(__global float *y, __global const float *v) { y[get_global_id(0)] += v[get_global_id(0)]; }\n";

static void check(rnl_status status)
{
    if (status != RNL_OK) {
        fprintf(stderr, "%s\n", rnl_last_error()->message);
        exit(1);
    }
}

static rnl_arg buffer_arg(rnl_buffer *buffer)
{
    return (rnl_arg){.kind = RNL_ARG_BUFFER, .buffer = buffer};
}

static rnl_arg float_arg(const float *value)
{
    return (rnl_arg){.kind = RNL_ARG_VALUE, .size_bytes = sizeof *value, .value = value};
}

int main(void)
{
    static float y[POINTS];
    const rnl_range range = {.dimensions = 1, .global = {POINTS, 1, 1}, .local = {16, 1, 1}};
    float damping = 1, zero = 0;
    size_t accelerate_index;
    rnl_device *device;
    rnl_stream *stream;
    rnl_buffer *height, *speed;
    rnl_kernel *accelerate, *move;
    rnl_command_list *list;
    check(rnl_device_open(NULL, NULL, &device));
    check(rnl_stream_create(device, &stream));
    check(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof y, &height));
    check(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof y, &speed));
    check(rnl_kernel_create(device, source, NULL, "accelerate", &accelerate));
    check(rnl_kernel_create(device, source, NULL, "move", &move));
    y[POINTS / 2] = 100;
    check(rnl_stream_write(stream, height, 0, y, sizeof y));
    check(rnl_stream_fill(stream, speed, 0, &zero, sizeof zero, sizeof y));

    // Recording checks and prepares everything; nothing runs yet. The list keeps the buffers and kernels.
    const rnl_arg first[] = {buffer_arg(height), buffer_arg(speed), float_arg(&damping)};
    const rnl_arg second[] = {buffer_arg(height), buffer_arg(speed)};
    check(rnl_command_list_create(device, NULL, &list));
    check(rnl_command_list_launch(list, accelerate, &range, first, 3, &accelerate_index));
    check(rnl_command_list_launch(list, move, &range, second, 2, NULL));

    // Changing an argument does not disturb the steps that are still under way.
    for (int step = 0; step < STEPS; step++) {
        damping = 1.0F - 1e-5F * (float)step;
        const rnl_arg arg = float_arg(&damping);
        check(rnl_command_list_set_arg(list, accelerate_index, 2, &arg));
        check(rnl_stream_replay(stream, list));
    }
    check(rnl_stream_read(stream, y, height, 0, sizeof y));
    check(rnl_stream_synchronize(stream));

    int far = POINTS - 1;
    while (far > 0 && y[far] < 0.1F && y[far] > -0.1F)
        far--;
    printf("after %d replays the wave has come %d points far\n", STEPS, far - POINTS / 2);
    rnl_command_list_release(list);
    rnl_kernel_release(accelerate);
    rnl_kernel_release(move);
    rnl_buffer_release(height);
    rnl_buffer_release(speed);
    rnl_stream_release(stream);
    rnl_device_release(device);
    return far > POINTS / 2 ? 0 : 1;
}
