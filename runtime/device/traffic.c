/* SPDX-License-Identifier: Apache-2.0 */
#include "device/traffic.h"

#include "device/pinned.h"
#include <runnel/memory.h>

void rnl_traffic_in_place(rnl_device *device, size_t size_bytes)
{
    rnl_traffic_add(&device->traffic.in_place, size_bytes);
}

void rnl_device_get_copy_stats(rnl_device *device, rnl_copy_stats *out_stats)
{
    const rnl_traffic *traffic = &device->traffic;
    *out_stats = (rnl_copy_stats){.to_device_bytes = atomic_load(&traffic->to_device),
                                  .to_host_bytes = atomic_load(&traffic->to_host),
                                  .on_device_bytes = atomic_load(&traffic->on_device),
                                  .in_place_bytes = atomic_load(&traffic->in_place),
                                  .staged_bytes = atomic_load(&traffic->staged),
                                  .pinned_bytes = atomic_load(&traffic->pinned),
                                  .pinned_peak_bytes = atomic_load(&traffic->pinned_peak),
                                  .pinned_limit_bytes = rnl_pinned_limit(device),
                                  .pinned_refused = atomic_load(&traffic->pinned_refused)};
}
