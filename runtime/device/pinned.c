/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pinned.h"

#include "base/log.h"
#include "base/memory.h"
#include "device/host_limits.h"
#include "device/place.h"
#include "device/pool.h"
#include "device/side_queue.h"
#include <runnel/pool.h>

#define HOST_ALIGN 4096

/* Of all devices: a pointer does not say whose it is, and a driver knows what another device's context pinned. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static rnl_buffer *pinned_list;

static void link_buffer(rnl_buffer *buffer)
{
    pthread_mutex_lock(&list_lock);
    buffer->next_pinned = pinned_list;
    if (pinned_list)
        pinned_list->previous_pinned = buffer;
    pinned_list = buffer;
    pthread_mutex_unlock(&list_lock);
}

static void unlink_buffer(rnl_buffer *buffer)
{
    pthread_mutex_lock(&list_lock);
    *(buffer->previous_pinned ? &buffer->previous_pinned->next_pinned : &pinned_list) = buffer->next_pinned;
    if (buffer->next_pinned)
        buffer->next_pinned->previous_pinned = buffer->previous_pinned;
    pthread_mutex_unlock(&list_lock);
}

bool rnl_pinned_has(const void *memory, size_t size_bytes)
{
    bool found = false;
    uintptr_t at = (uintptr_t)memory;
    pthread_mutex_lock(&list_lock);
    for (const rnl_buffer *buffer = pinned_list; buffer && !found; buffer = buffer->next_pinned) {
        uintptr_t start = (uintptr_t)buffer->host;
        found = at >= start && at - start <= buffer->size_bytes && size_bytes <= buffer->size_bytes - (at - start);
    }
    pthread_mutex_unlock(&list_lock);
    return found;
}

/* ---- The limit ---- */

uint64_t rnl_pinned_limit(rnl_device *device)
{
    uint64_t limit = atomic_load(&device->pinned_limit_bytes);
    if (limit)
        return limit;
    uint64_t host = rnl_host_memory_bytes();
    uint64_t group = rnl_cgroup_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup");
    limit = (group < host ? group : host) / 8;
    atomic_store(&device->pinned_limit_bytes, limit);
    return limit;
}

static bool reserve(rnl_device *device, size_t size)
{
    rnl_traffic *traffic = &device->traffic;
    const uint64_t limit = rnl_pinned_limit(device);
    unsigned long long now = atomic_load(&traffic->pinned), peak;
    do {
        if (size > limit || now > limit - size)
            return false;
    } while (!atomic_compare_exchange_weak(&traffic->pinned, &now, now + size));
    peak = atomic_load(&traffic->pinned_peak);
    while (peak < now + size && !atomic_compare_exchange_weak(&traffic->pinned_peak, &peak, now + size))
        ;
    return true;
}

static void unreserve(rnl_device *device, size_t size)
{
    atomic_fetch_sub(&device->traffic.pinned, size);
}

/* What the pool keeps of released buffers is pinned as well. */
static void make_room(rnl_device *device, size_t size)
{
    const uint64_t limit = rnl_pinned_limit(device);
    rnl_device_stats all;
    rnl_pool_stats pinned;
    rnl_pool_get_stats(device->pool, &all);
    if (all.pool_reserved_bytes + size <= limit)
        return;
    rnl_device_pool_stats(device, RNL_MEMORY_PINNED, &pinned);
    if (pinned.idle_bytes > 0 && pinned.reserved_bytes + size > limit)
        rnl_pool_trim(device->pool);
}

/* ---- Pinned ---- */

static void give_back_pinned(rnl_buffer *buffer)
{
    unlink_buffer(buffer);
    if (buffer->released_after)
        rnl_pool_give_back_after(buffer->device->pool, buffer->block, buffer->released_after);
    else
        rnl_pool_give_back(buffer->device->pool, buffer->block);
    unreserve(buffer->device, buffer->size_bytes);
}

/* The pages are the thread's that first touches them, or has them touched by the driver. */
static rnl_status take_near(rnl_buffer *buffer, const rnl_pool_request *request)
{
    rnl_device *device = buffer->device;
    rnl_place *place = rnl_place_enter(device->info.numa_node);
    rnl_status status = rnl_pool_take(device->pool, request, &buffer->block);
    rnl_place_leave(place);
    return status;
}

/* ---- Pageable, where pinned memory is not to be had ---- */

static void warn_once(rnl_device *device, const char *reason)
{
    if (atomic_fetch_add(&device->traffic.pinned_refused, 1) == 0)
        rnl_log(RNL_LOG_WARNING, "%s: pinned memory is replaced by pageable memory, which copies slower: %s",
                device->info.name, reason);
}

static void free_host(rnl_buffer *buffer)
{
    if (buffer->map_queue) {
        if (buffer->host)
            clEnqueueUnmapMemObject(buffer->map_queue->queue, buffer->block->memory, buffer->host, 0, NULL, NULL);
        clFinish(buffer->map_queue->queue);
        if (buffer->host)
            rnl_side_queue_give_back(buffer->device, buffer->map_queue);
        else
            rnl_side_queue_drop(buffer->map_queue); /* it did not map */
    }
    rnl_free(buffer->pageable);
}

static void give_back_pageable(rnl_buffer *buffer)
{
    free_host(buffer);
    rnl_pool_give_back(buffer->device->pool, buffer->block);
}

/* One side: the device's memory is the host's, and stays mapped. */
static rnl_status map_for_life(rnl_buffer *buffer)
{
    cl_int code;
    TRY(rnl_side_queue_take(buffer->device, &buffer->map_queue));
    buffer->host =
        CL_NEW(&code, clEnqueueMapBuffer(buffer->map_queue->queue, buffer->block->memory, CL_TRUE,
                                         CL_MAP_READ | CL_MAP_WRITE, 0, buffer->size_bytes, 0, NULL, NULL, &code));
    return rnl_cl_status(code, "clEnqueueMapBuffer");
}

/* Two sides: any host memory can be the host's. */
static rnl_status allocate_host(rnl_buffer *buffer)
{
    size_t bytes;
    if (!rnl_size_add(buffer->size_bytes, HOST_ALIGN, &bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%zu bytes of memory are too many", buffer->size_bytes);
    TRY(rnl_alloc(bytes, 1, &buffer->pageable));
    uintptr_t at = (uintptr_t)buffer->pageable;
    buffer->host = (char *)buffer->pageable + (HOST_ALIGN - at % HOST_ALIGN) % HOST_ALIGN;
    return RNL_OK;
}

static rnl_status take_pageable(rnl_buffer *buffer, const rnl_pool_request *request)
{
    rnl_pool_request device_memory = *request;
    device_memory.kind = RNL_MEMORY_DEVICE;
    TRY(rnl_pool_take(buffer->device->pool, &device_memory, &buffer->block));
    rnl_status status = buffer->device->maps_in_place ? map_for_life(buffer) : allocate_host(buffer);
    buffer->give_back = give_back_pageable;
    if (status != RNL_OK)
        give_back_pageable(buffer);
    return status;
}

rnl_status rnl_pinned_take(rnl_buffer *buffer, const rnl_pool_request *request)
{
    rnl_device *device = buffer->device;
    if (!reserve(device, buffer->size_bytes)) {
        warn_once(device, "the limit of pinned memory is reached");
        return take_pageable(buffer, request);
    }
    make_room(device, buffer->size_bytes);
    rnl_status status = take_near(buffer, request);
    if (status == RNL_OK) {
        buffer->host = buffer->block->host;
        buffer->give_back = give_back_pinned;
        buffer->gives_back_in_order = true;
        link_buffer(buffer);
        return RNL_OK;
    }
    unreserve(device, buffer->size_bytes);
    /* Without a driver's code it was ours who refused: there is no memory of another kind either. */
    if (rnl_last_error()->native_code == 0)
        return status;
    warn_once(device, rnl_last_error()->message);
    return take_pageable(buffer, request);
}
