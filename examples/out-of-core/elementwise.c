/* SPDX-License-Identifier: Apache-2.0 */
/*
 * y = a x + y on vectors that the device does not hold, and a chain of three kernels that a tile goes through while it
 * is there. A tile is copied in while the one before it is computed and the one before that is copied out, so all of it
 * takes as long as the longer direction's copies.
 */
#include "ooc.h"

#include <math.h>
#include <string.h>

#define SLOTS 3
#define FACTOR 0.75f

static const char source[] = "kernel void axpy(global const float *x, global float *y, float a, ulong count)\n"
                             "{\n"
                             "    size_t i = get_global_id(0);\n"
                             "    if (i < count)\n"
                             "        y[i] = a * x[i] + y[i];\n"
                             "}\n"
                             "kernel void squash(global const float *x, global float *y, float a, ulong count)\n"
                             "{\n"
                             "    size_t i = get_global_id(0);\n"
                             "    if (i < count)\n"
                             "        y[i] = y[i] / (1.0f + fabs(y[i]));\n"
                             "}\n"
                             "kernel void blend(global const float *x, global float *y, float a, ulong count)\n"
                             "{\n"
                             "    size_t i = get_global_id(0);\n"
                             "    if (i < count)\n"
                             "        y[i] = x[i] + y[i] * (a - x[i]);\n"
                             "}\n";

static const char *const names[] = {"axpy", "squash", "blend"};

typedef struct vectors {
    const ooc_options *options;
    ooc_streams streams;
    rnl_kernel *kernels[3];
    size_t kernel_count, tile; /* elements */
    ooc_array x, y;
    rnl_buffer *tiles_x[SLOTS], *tiles_y[SLOTS];
} vectors;

static void launch(const vectors *v, rnl_buffer *x, rnl_buffer *y, size_t count)
{
    const uint64_t elements = count;
    const float factor = FACTOR;
    const size_t most = rnl_device_get_info(v->streams.device)->max_work_group_size, local = most < 32 ? most : 32;
    const rnl_range range = {1, {(count + local - 1) / local * local, 1, 1}, {local, 1, 1}};
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = x},
                            {.kind = RNL_ARG_BUFFER, .buffer = y},
                            {.kind = RNL_ARG_VALUE, .value = &factor, .size_bytes = sizeof factor},
                            {.kind = RNL_ARG_VALUE, .value = &elements, .size_bytes = sizeof elements}};
    for (size_t i = 0; i < v->kernel_count; i++)
        CHECK(rnl_stream_launch(v->streams.compute, v->kernels[i], &range, args, 4));
}

/* Without `computes` the tiles travel as they do otherwise, and come back as they went. */
static double stream_tiles(vectors *v, bool computes)
{
    const ooc_streams *s = &v->streams;
    rnl_event *arrived[SLOTS] = {0}, *computed[SLOTS] = {0}, *left[SLOTS] = {0};
    const size_t count = v->options->elements;
    const double start = ooc_seconds();
    for (size_t at = 0, slot = 0; at < count; at += v->tile, slot = (slot + 1) % SLOTS) {
        const size_t elements = count - at < v->tile ? count - at : v->tile, bytes = elements * sizeof(float);
        if (left[slot])
            CHECK(rnl_event_synchronize(left[slot])); /* the host is no more than SLOTS tiles ahead */
        CHECK(rnl_stream_write(s->in, v->tiles_x[slot], 0, v->x.data + at, bytes));
        CHECK(rnl_stream_write(s->in, v->tiles_y[slot], 0, v->y.data + at, bytes));
        ooc_record(s->in, &arrived[slot]);
        ooc_wait(s->compute, arrived[slot]);
        if (computes)
            launch(v, v->tiles_x[slot], v->tiles_y[slot], elements);
        ooc_record(s->compute, &computed[slot]);
        ooc_wait(s->out, computed[slot]);
        CHECK(rnl_stream_read(s->out, v->y.data + at, v->tiles_y[slot], 0, bytes));
        ooc_record(s->out, &left[slot]);
    }
    ooc_synchronize(&v->streams);
    const double seconds = ooc_seconds() - start;
    ooc_drop(arrived, SLOTS);
    ooc_drop(computed, SLOTS);
    ooc_drop(left, SLOTS);
    return seconds;
}

/* Both vectors on the device; 0 where it has no room for them. The results stay there. */
static double in_core(vectors *v)
{
    const size_t count = v->options->elements;
    rnl_buffer *x = NULL, *y = NULL;
    double seconds = 0;
    if (rnl_buffer_create(v->streams.device, RNL_MEMORY_DEVICE, count * sizeof(float), &x) == RNL_OK &&
        rnl_buffer_create(v->streams.device, RNL_MEMORY_DEVICE, count * sizeof(float), &y) == RNL_OK) {
        CHECK(rnl_stream_write(v->streams.compute, x, 0, v->x.data, count * sizeof(float)));
        CHECK(rnl_stream_write(v->streams.compute, y, 0, v->y.data, count * sizeof(float)));
        CHECK(rnl_stream_synchronize(v->streams.compute));
        const double start = ooc_seconds();
        launch(v, x, y, count);
        CHECK(rnl_stream_synchronize(v->streams.compute));
        seconds = ooc_seconds() - start;
    }
    rnl_buffer_release(x);
    rnl_buffer_release(y);
    return seconds;
}

/* ---- the check ------------------------------------------------------------------------------------------------ */

static double expected(const vectors *v, size_t index, double *out_size)
{
    const double a = (double)FACTOR, x = (double)ooc_value(index, 1), y = (double)ooc_value(index, 2);
    const double sum = a * x + y;
    *out_size = fabs(a * x) + fabs(y);
    if (v->kernel_count == 1)
        return sum;
    *out_size += fabs(x) + a;
    return x + sum / (1 + fabs(sum)) * (a - x);
}

/* A few roundings of the largest term, in units of float32's. */
static size_t count_wrong(const vectors *v)
{
    const size_t count = v->options->elements;
    const size_t samples = v->options->samples, step = samples && count > samples ? count / samples : 1;
    size_t wrong = 0;
    for (size_t i = 0; samples && i < count; i += step) {
        double size;
        const double error = fabs((double)v->y.data[i] - expected(v, i, &size));
        wrong += !(error <= 8 * 0x1p-24 * size);
    }
    return wrong;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

static void choose_tile(vectors *v, size_t budget)
{
    const size_t align = 64, each = budget / (2 * SLOTS) / sizeof(float) / align * align;
    if (each == 0) {
        fprintf(stderr, "out-of-core: a budget of %zu bytes is too small: tiles of vectors take at least %zu\n", budget,
                2 * SLOTS * align * sizeof(float));
        exit(1);
    }
    v->tile = each < v->options->elements ? each : v->options->elements;
}

static void prepare(vectors *v, size_t budget)
{
    const size_t count = v->options->elements;
    choose_tile(v, budget);
    ooc_open(v->options, 2 * count * sizeof(float), &v->streams);
    for (size_t i = 0; i < v->kernel_count; i++)
        CHECK(rnl_kernel_create(v->streams.device, source, NULL, names[i], &v->kernels[i]));
    v->x = ooc_array_create(v->options, v->streams.device, count, 1);
    v->y = ooc_array_create(v->options, v->streams.device, count, 2);
    for (size_t i = 0; i < SLOTS; i++) {
        v->tiles_x[i] = ooc_device_memory(v->streams.device, v->tile);
        v->tiles_y[i] = ooc_device_memory(v->streams.device, v->tile);
    }
    launch(v, v->tiles_x[0], v->tiles_y[0], v->tile); /* compiles what a driver compiles late */
    ooc_synchronize(&v->streams);
}

static void finish(vectors *v)
{
    for (size_t i = 0; i < SLOTS; i++) {
        rnl_buffer_release(v->tiles_x[i]);
        rnl_buffer_release(v->tiles_y[i]);
    }
    for (size_t i = 0; i < v->kernel_count; i++)
        rnl_kernel_release(v->kernels[i]);
    ooc_array_release(&v->x);
    ooc_array_release(&v->y);
    ooc_close(&v->streams);
}

bool ooc_vectors(const ooc_options *options)
{
    vectors v = {.options = options, .kernel_count = strcmp(options->what, "axpy") == 0 ? 1 : 3};
    const size_t data = 2 * options->elements * sizeof(float), budget = ooc_budget(options, data);
    const double gigabytes = 1.5 * (double)data * 1e-9; /* x and y in, y out */
    prepare(&v, budget);
    printf("%s of %zu elements, %zu bytes: tiles of %zu elements, %d of each\n", options->what, options->elements, data,
           v.tile, SLOTS);
    (void)stream_tiles(&v, false); /* pages and pinned slots are there from now on */
    const double copies = stream_tiles(&v, false), streamed = stream_tiles(&v, true), ratio = copies / streamed;
    const size_t wrong = count_wrong(&v);
    ooc_check_memory(options, v.streams.device, data);
    const double resident = options->in_core ? in_core(&v) : 0;
    if (resident > 0)
        printf("in core:     %10.3f ms  %8.2f GB/s\n", resident * 1e3, gigabytes / resident);
    printf("copies only: %10.3f ms  %8.2f GB/s\n", copies * 1e3, gigabytes / copies);
    printf("out of core: %10.3f ms  %8.2f GB/s, %.3f of the copies' speed\n", streamed * 1e3, gigabytes / streamed,
           ratio);
    printf("compared with float64: %zu wrong\n", wrong);
    finish(&v);
    return wrong == 0 && ratio >= options->require;
}
