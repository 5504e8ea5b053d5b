/* SPDX-License-Identifier: Apache-2.0 */
#include "ooc.h"

#include <runnel/memory.h>
#include <runnel/pool.h>
#include <time.h>

#define ALIGN 4096

double ooc_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/*
 * All arrays may be pinned, whatever part of the host's memory they are. Buffers are exactly as large as is asked: the
 * budget is kept to the byte. Pageable arrays travel through pinned slots, which the pool is to keep.
 */
void ooc_open(const ooc_options *options, size_t data_bytes, ooc_streams *out_streams)
{
    rnl_device_options device = RNL_DEVICE_OPTIONS_INIT;
    if (!options->pageable)
        device.pinned_limit_bytes = data_bytes + ((size_t)256 << 20);
    device.pool_exact = !options->pageable;
    CHECK(rnl_device_open(options->device, &device, &out_streams->device));
    CHECK(rnl_stream_create(out_streams->device, &out_streams->in));
    CHECK(rnl_stream_create(out_streams->device, &out_streams->compute));
    CHECK(rnl_stream_create(out_streams->device, &out_streams->out));
    printf("device: %s\n", rnl_device_get_info(out_streams->device)->name);
}

void ooc_close(ooc_streams *streams)
{
    rnl_stream_release(streams->in);
    rnl_stream_release(streams->compute);
    rnl_stream_release(streams->out);
    rnl_device_release(streams->device);
}

void ooc_synchronize(ooc_streams *streams)
{
    CHECK(rnl_stream_synchronize(streams->in));
    CHECK(rnl_stream_synchronize(streams->compute));
    CHECK(rnl_stream_synchronize(streams->out));
}

/* ---- arrays --------------------------------------------------------------------------------------------------- */

/* A hash of the index (splitmix64's last steps), so that any element can be had again. */
float ooc_value(size_t index, unsigned seed)
{
    uint64_t bits = (uint64_t)index * 0x9E3779B97F4A7C15u + seed;
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EBu;
    return (float)(int32_t)(bits >> 32) * 0x1p-31f;
}

ooc_array ooc_array_create(const ooc_options *options, rnl_device *device, size_t elements, unsigned seed)
{
    ooc_array array = {0};
    const size_t bytes = elements * sizeof *array.data;
    if (options->pageable) {
        array.data = aligned_alloc(ALIGN, (bytes + ALIGN - 1) / ALIGN * ALIGN);
    } else {
        CHECK(rnl_buffer_create(device, RNL_MEMORY_PINNED, bytes, &array.pinned));
        array.data = rnl_buffer_host(array.pinned);
    }
    if (!array.data) {
        fprintf(stderr, "out-of-core: the host has no %zu bytes for an array\n", bytes);
        exit(1);
    }
    for (size_t i = 0; i < elements; i++)
        array.data[i] = ooc_value(i, seed);
    return array;
}

void ooc_array_release(ooc_array *array)
{
    if (!array->pinned)
        free(array->data);
    rnl_buffer_release(array->pinned);
    *array = (ooc_array){0};
}

rnl_buffer *ooc_device_memory(rnl_device *device, size_t elements)
{
    rnl_buffer *buffer;
    CHECK(rnl_buffer_create(device, RNL_MEMORY_DEVICE, elements * sizeof(float), &buffer));
    return buffer;
}

/* ---- events --------------------------------------------------------------------------------------------------- */

void ooc_wait(rnl_stream *stream, rnl_event *event)
{
    if (event)
        CHECK(rnl_stream_wait(stream, event));
}

void ooc_record(rnl_stream *stream, rnl_event **event)
{
    rnl_event_release(*event);
    CHECK(rnl_stream_record(stream, event));
}

void ooc_drop(rnl_event **events, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rnl_event_release(events[i]);
        events[i] = NULL;
    }
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static size_t whole_budget(const ooc_options *options, size_t data_bytes)
{
    return options->budget ? options->budget : data_bytes / 10;
}

/* The pool rounds sizes up by as much as an eighth where it keeps buffers. */
size_t ooc_budget(const ooc_options *options, size_t data_bytes)
{
    const size_t budget = whole_budget(options, data_bytes);
    return options->pageable ? budget / 9 * 8 : budget;
}

void ooc_check_memory(const ooc_options *options, rnl_device *device, size_t data_bytes)
{
    const size_t budget = whole_budget(options, data_bytes);
    rnl_copy_stats copies;
    rnl_pool_stats stats;
    rnl_device_get_copy_stats(device, &copies);
    rnl_device_pool_stats(device, RNL_MEMORY_DEVICE, &stats);
    printf("device memory: %zu bytes in use, the budget is %zu\n", stats.in_use_bytes, budget);
    if (!options->pageable && copies.pinned_refused > 0)
        fprintf(stderr, "out-of-core: the host has no pinned memory for the arrays; try --pageable\n");
    else if (stats.in_use_bytes > budget)
        fprintf(stderr, "out-of-core: the budget was not kept to\n");
    else
        return;
    exit(1);
}
