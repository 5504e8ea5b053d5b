/* SPDX-License-Identifier: Apache-2.0 */
/* What a device that is open would be asked for by. */
#include "device/device.h"
#include "device/host_limits.h"
#include "device/part.h"
#include <stdio.h>

/* The fewest equal shares of the usable units of which these are one. */
static bool find_share(const rnl_device_info *info, uint32_t usable, uint32_t *out_count, uint32_t *out_at)
{
    for (uint32_t count = 2; count <= usable; count++)
        for (uint32_t at = 0; at < count; at++) {
            uint32_t first, units;
            rnl_share_range(usable, count, at, &first, &units);
            *out_count = count;
            *out_at = at;
            if (first == info->first_unit && units == info->compute_units)
                return true;
        }
    return false;
}

/* Those that shares are of. A process that opened a share alone sees no others any more. */
static uint32_t shared_units(const rnl_device *device)
{
    rnl_device_info info = device->info;
    info.compute_units = info.whole_units;
    return device->part ? rnl_usable_units(&info) : info.whole_units;
}

const char *rnl_device_spec(const rnl_device *device, char out[RNL_DEVICE_SPEC_BYTES])
{
    const rnl_device_info *info = &device->info;
    const uint32_t usable = shared_units(device);
    uint32_t count, at;
    const int length =
        snprintf(out, RNL_DEVICE_SPEC_BYTES, "%u:%u", (unsigned)info->platform_index, (unsigned)info->device_index);
    char *end = out + length;
    const size_t left = RNL_DEVICE_SPEC_BYTES - (size_t)length;
    if (device->part && device->part->kind == RNL_SHARE_NUMA)
        snprintf(end, left, "/numa%u", (unsigned)device->part->first);
    else if (info->compute_units < usable && find_share(info, usable, &count, &at))
        snprintf(end, left, "/%u.%u", (unsigned)count, (unsigned)at);
    else if (info->compute_units < usable)
        snprintf(end, left, ", %u of %u units", (unsigned)info->compute_units, (unsigned)info->whole_units);
    return out;
}
