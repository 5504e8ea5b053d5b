/* SPDX-License-Identifier: Apache-2.0 */
#include "device/way.h"

#include "device/host_limits.h"
#include "device/pinned.h"

#define LEAST_BYTES ((size_t)1 << 18) /* below, a thread takes longer to wake than the copy does */
#define DEFAULT_BYTES ((size_t)8 << 20)

size_t rnl_copy_class_bytes(size_t index)
{
    return LEAST_BYTES << 2 * (index + 1 < RNL_COPY_CLASSES ? index : RNL_COPY_CLASSES - 1);
}

static size_t class_of(size_t size)
{
    size_t index = 0;
    while (index + 1 < RNL_COPY_CLASSES && size > rnl_copy_class_bytes(index))
        index++;
    return index;
}

bool rnl_copy_ways_differ(const rnl_device *device)
{
    return !device->maps_in_place && !device->info.unified_memory;
}

/* One thread copies about a quarter of what a fast bus carries. */
static rnl_copy_way default_way(const rnl_device *device, size_t size)
{
    if (!rnl_copy_ways_differ(device) || size < DEFAULT_BYTES)
        return RNL_COPY_DIRECT;
    uint32_t cpus = rnl_host_cpus(); /* takes longer than a small copy, which none of these is */
    return cpus >= 8 ? RNL_COPY_STAGED_4 : cpus >= 4 ? RNL_COPY_STAGED_2 : RNL_COPY_STAGED_1;
}

rnl_copy_way rnl_device_copy_way(rnl_device *device, rnl_copy_direction direction, size_t size_bytes)
{
    if (size_bytes < LEAST_BYTES || device->copies_in_caller)
        return RNL_COPY_DIRECT;
    if (!atomic_load(&device->copies_known))
        rnl_copy_ways_load(device);
    int measured = atomic_load(&device->copy_ways[direction][class_of(size_bytes)]);
    return measured ? (rnl_copy_way)(measured - 1) : default_way(device, size_bytes);
}

rnl_copy_way rnl_copy_way_for(rnl_device *device, rnl_copy_direction direction, const void *host, size_t size_bytes)
{
    rnl_copy_way way = rnl_device_copy_way(device, direction, size_bytes);
    return way != RNL_COPY_DIRECT && rnl_pinned_has(host, size_bytes) ? RNL_COPY_DIRECT : way;
}
