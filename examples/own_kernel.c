// SPDX-License-Identifier: Apache-2.0
// A kernel from a file: own_kernel.cl beside this source, or the file that is given. Says what it takes, runs it, and
// shows what a mistake looks like.
#include <runnel/kernel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 4096

static void check(rnl_status status)
{
    if (status != RNL_OK) {
        fprintf(stderr, "%s\n", rnl_last_error()->message);
        exit(1);
    }
}

static void describe(const rnl_kernel *kernel)
{
    static const char *const spaces[] = {"", "global ", "constant ", "local "};
    rnl_kernel_info info;
    rnl_kernel_arg_info arg;
    check(rnl_kernel_get_info(kernel, &info));
    printf("kernel %s: work-groups of at most %zu, best multiples of %zu; %s\n", info.name, info.max_group_items,
           info.preferred_multiple, info.from_cache ? "from the cache" : "compiled");
    for (uint32_t i = 0; info.has_arg_info && i < info.arg_count; i++) {
        check(rnl_kernel_get_arg(kernel, i, &arg));
        printf("  %s%s %s\n", spaces[arg.space], arg.type, arg.name);
    }
}

// The file's folder, for its includes, is known to the library; the defines are ours.
static void show_a_mistake(rnl_device *device, const char *path)
{
    rnl_kernel *kernel;
    if (rnl_kernel_load(device, path, "polynomial", NULL, &kernel) == RNL_OK)
        rnl_kernel_release(kernel);
    else
        printf("without a define: %s\n", rnl_last_error()->message);
}

int main(int argc, char **argv)
{
    static float x[COUNT];
    const char *defines[] = {"DEGREE=3", "TYPE=float"};
    const float coefficients[] = {1, -2, 0.5F, 0.25F};
    rnl_kernel_options options = RNL_KERNEL_OPTIONS_INIT;
    rnl_device *device;
    rnl_stream *stream;
    rnl_buffer *values, *factors;
    rnl_kernel *kernel;
    char path[4096];
    const char *slash = strrchr(__FILE__, '/');
    snprintf(path, sizeof path, "%.*sown_kernel.cl", slash ? (int)(slash - __FILE__) + 1 : 0, __FILE__);
    if (argc > 1)
        snprintf(path, sizeof path, "%s", argv[1]);
    check(rnl_device_open(NULL, NULL, &device));
    show_a_mistake(device, path);
    options.defines = defines;
    options.define_count = 2;
    check(rnl_kernel_load(device, path, "polynomial", &options, &kernel));
    describe(kernel);

    for (int i = 0; i < COUNT; i++)
        x[i] = (float)i / COUNT;
    check(rnl_stream_create(device, &stream));
    check(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof x, &values));
    check(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof coefficients, &factors));
    check(rnl_stream_write(stream, values, 0, x, sizeof x));
    check(rnl_stream_write(stream, factors, 0, coefficients, sizeof coefficients));
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = values}, {.kind = RNL_ARG_BUFFER, .buffer = factors}};
    const rnl_range range = {.dimensions = 1, .global = {COUNT, 1, 1}, .local = {16, 1, 1}};
    check(rnl_stream_launch(stream, kernel, &range, args, 2));
    check(rnl_stream_read(stream, x, values, 0, sizeof x));
    check(rnl_stream_synchronize(stream));
    printf("p(0.5) = %g\n", (double)x[COUNT / 2]);
    rnl_kernel_release(kernel);
    rnl_buffer_release(values);
    rnl_buffer_release(factors);
    rnl_stream_release(stream);
    rnl_device_release(device);
    return x[COUNT / 2] == 0.15625F ? 0 : 1;
}
