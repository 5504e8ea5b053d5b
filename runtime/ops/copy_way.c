/* SPDX-License-Identifier: Apache-2.0 */
/* The tuning table's part about copies of pageable memory, and measuring it. */
#include "base/clock.h"
#include "base/memory.h"
#include "device/way.h"
#include "ops/tuning.h"
#include <stdio.h>
#include <string.h>

#define MEASUREMENTS 5
#define GAIN 0.95 /* another way than the driver's own has to be worth it */

static rnl_hash problem_of(rnl_copy_direction direction, size_t index)
{
    char text[64];
    int length =
        snprintf(text, sizeof text, "copy of pageable memory %d %zu", (int)direction, rnl_copy_class_bytes(index));
    return rnl_hash_bytes(text, (size_t)length);
}

void rnl_copy_ways_load(rnl_device *device)
{
    for (int direction = 0; direction < 2; direction++)
        for (size_t i = 0; i < RNL_COPY_CLASSES; i++) {
            uint32_t way = rnl_tuning_get(device, problem_of((rnl_copy_direction)direction, i), RNL_COPY_WAYS);
            unsigned char known = way == RNL_TUNING_NONE ? 0 : (unsigned char)(way + 1);
            atomic_store(&device->copy_ways[direction][i], known);
        }
    atomic_store(&device->copies_known, true);
}

/* ---- Measuring ---- */

typedef struct bench {
    rnl_device *device;
    rnl_stream *stream;
    rnl_buffer *buffer;
    void *host; /* pageable */
} bench;

static rnl_status copy(const bench *b, rnl_copy_direction direction, rnl_copy_way way, size_t size)
{
    rnl_status status = RNL_OK;
    if (way == RNL_COPY_DIRECT) {
        cl_mem memory = b->buffer->memory;
        status = direction == RNL_COPY_TO_DEVICE
                     ? CL(clEnqueueWriteBuffer(b->stream->queue, memory, CL_FALSE, 0, size, b->host, 0, NULL, NULL))
                     : CL(clEnqueueReadBuffer(b->stream->queue, memory, CL_FALSE, 0, size, b->host, 0, NULL, NULL));
    } else {
        status = direction == RNL_COPY_TO_DEVICE ? rnl_stage_write(b->stream, b->buffer, 0, b->host, size, way)
                                                 : rnl_stage_read(b->stream, b->host, b->buffer, 0, size, way);
    }
    rnl_status ended = rnl_stream_synchronize(b->stream);
    return status == RNL_OK ? ended : status;
}

/* The least of several, behind one that is thrown away. */
static rnl_status measure_way(const bench *b, rnl_copy_measured *measured, rnl_copy_way way)
{
    double least = 0;
    for (int i = 0; i <= MEASUREMENTS; i++) {
        uint64_t start = rnl_clock_ns();
        TRY(copy(b, measured->direction, way, measured->size_bytes));
        double ns = (double)(rnl_clock_ns() - start);
        if (i == 1 || ns < least)
            least = ns;
    }
    measured->ns[way] = least;
    return RNL_OK;
}

static rnl_status measure_size(const bench *b, rnl_copy_measured *measured)
{
    measured->best = RNL_COPY_DIRECT;
    double least = 0;
    for (int way = RNL_COPY_DIRECT; way < RNL_COPY_WAYS; way++) {
        TRY(measure_way(b, measured, (rnl_copy_way)way));
        double ns = way == RNL_COPY_DIRECT ? measured->ns[way] * GAIN : measured->ns[way];
        if (way != RNL_COPY_DIRECT && (ns >= least || !rnl_copy_ways_differ(b->device)))
            continue;
        least = ns;
        measured->best = (rnl_copy_way)way;
    }
    return RNL_OK;
}

static rnl_status measure_all(const bench *b, size_t classes, rnl_copy_measured_fn tell, void *user)
{
    for (size_t i = 0; i < 2 * classes; i++) {
        rnl_copy_measured measured = {.direction = i < classes ? RNL_COPY_TO_DEVICE : RNL_COPY_TO_HOST,
                                      .size_bytes = rnl_copy_class_bytes(i % classes)};
        TRY(measure_size(b, &measured), "measuring a copy of %zu bytes", measured.size_bytes);
        TRY(rnl_tuning_set(b->device, problem_of(measured.direction, i % classes), measured.best));
        if (tell)
            tell(user, &measured, i, 2 * classes);
    }
    return RNL_OK;
}

/* Classes that fit in a sixteenth of the device's memory. An emulated device is not worth the time. */
static size_t count_classes(const rnl_device_info *info)
{
    size_t count = 1;
    while (count < RNL_COPY_CLASSES && !info->emulated &&
           rnl_copy_class_bytes(count) <= info->max_allocation_bytes / 4 &&
           rnl_copy_class_bytes(count) <= info->global_memory_bytes / 16)
        count++;
    return count;
}

rnl_status rnl_device_tune_copies(rnl_device *device, rnl_copy_measured_fn measured, void *user)
{
    bench b = {.device = device};
    rnl_status status = RNL_OK;
    if (device->copies_in_caller)
        return FAIL(RNL_UNIMPLEMENTED, "%s copies in one way only: there is nothing to tune", device->info.name);
    const size_t classes = count_classes(&device->info), bytes = rnl_copy_class_bytes(classes - 1);
    GOTO(rnl_stream_create(device, &b.stream));
    GOTO(rnl_buffer_create(device, RNL_MEMORY_DEVICE, bytes, &b.buffer));
    GOTO(rnl_alloc(bytes, 1, &b.host));
    memset(b.host, 1, bytes); /* its pages are there */
    GOTO(measure_all(&b, classes, measured, user));
    rnl_copy_ways_load(device);
    rnl_tuning_save(device);
done:
    rnl_stream_release(b.stream);
    rnl_buffer_release(b.buffer);
    rnl_free(b.host);
    return status;
}
