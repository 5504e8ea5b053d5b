/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include <stdio.h>

rnl_status rnl_cli_device_open(const rnl_device_wish *wish, rnl_device **out_device)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    options.compute_units = (uint32_t)wish->threads;
    options.memory_fraction = wish->memory;
    return wish->has_others ? rnl_device_open(wish->spec, &options, out_device)
                            : rnl_device_open_alone(wish->spec, &options, out_device);
}

const char *rnl_cli_device_name(const rnl_device_info *info, char *out, size_t capacity)
{
    if (info->compute_units < info->whole_units)
        snprintf(out, capacity, "%u:%u, %u of %u compute units", (unsigned)info->platform_index,
                 (unsigned)info->device_index, (unsigned)info->compute_units, (unsigned)info->whole_units);
    else
        snprintf(out, capacity, "%u:%u", (unsigned)info->platform_index, (unsigned)info->device_index);
    return out;
}
