/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device.h"
#include "base/memory.h"

#include "device/claim.h"
#include "device/gate.h"
#include "device/guard.h"
#include "device/part.h"
#include "device/pool.h"
#include "device/side_queue.h"
#include "device/waiter.h"

rnl_device *rnl_device_retain(rnl_device *device)
{
    if (device)
        atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
    return device;
}

void rnl_device_release(rnl_device *device)
{
    if (!device || rnl_ending() || atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) != 1)
        return;
    rnl_waiter_end(device->waiter);
    if (device->before_release)
        device->before_release(device);
    if (device->programs)
        device->free_programs(device->programs);
    if (device->team)
        device->free_team(device->team);
    if (device->tuning)
        device->free_tuning(device->tuning);
    if (device->replay)
        device->free_replay(device->replay);
    rnl_guards_free(device->guards);
    rnl_side_queues_destroy(device);
    rnl_pool_destroy(device->pool);
    if (device->context)
        clReleaseContext(device->context);
    if (device->part)
        rnl_part_give_back(device->part);
    else if (device->parent_id)
        clReleaseDevice(device->id);
    rnl_claim_give_back(device->claim);
    rnl_gate_destroy(device->gate);
    pthread_mutex_destroy(&device->lock);
    rnl_free(device);
}

const rnl_device_info *rnl_device_get_info(const rnl_device *device)
{
    return &device->info;
}

void rnl_device_get_stats(const rnl_device *device, rnl_device_stats *out_stats)
{
    *out_stats = (rnl_device_stats){0};
    rnl_pool_get_stats(device->pool, out_stats);
    out_stats->programs_compiled = atomic_load(&device->programs_compiled);
    out_stats->programs_loaded = atomic_load(&device->programs_loaded);
    out_stats->kernels_launched = atomic_load(&device->kernels_launched);
}
