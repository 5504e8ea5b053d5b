/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/implementation.h"
#include "base/status.h"
#include <string.h>

#define FEW_UNITS 4

static bool has_name(const rnl_implementation *implementation, const char *name)
{
    const char *colon = strchr(implementation->name, ':');
    return colon && !strcmp(colon + 1, name);
}

static bool applies(const rnl_implementation *implementation, const rnl_device *device, const void *problem)
{
    return !implementation->applies || implementation->applies(device, problem);
}

const rnl_implementation *rnl_implementation_choose(const rnl_implementation *implementations, size_t count,
                                                    const char *forced, const rnl_device *device, const void *problem)
{
    for (size_t i = 0; forced && i < count; ++i)
        if (has_name(&implementations[i], forced) && applies(&implementations[i], device, problem))
            return &implementations[i];
    for (size_t i = 0; i < count; ++i) {
        const rnl_implementation *it = &implementations[i];
        if (applies(it, device, problem) && (!it->pays || it->pays(device, problem)))
            return it;
    }
    return NULL;
}

rnl_status rnl_implementation_append(const rnl_implementation *implementations, size_t count, const char *forced,
                                     rnl_step_list *list, const void *problem)
{
    const rnl_implementation *it = rnl_implementation_choose(implementations, count, forced, list->device, problem);
    if (!it)
        return FAIL(RNL_UNIMPLEMENTED, "no implementation of %s and its like applies", implementations[0].name);
    return it->append(list, it->name, problem);
}

int64_t rnl_device_units(const rnl_device *device)
{
    return device->info.compute_units > 0 ? (int64_t)device->info.compute_units : 1;
}

int64_t rnl_device_items(const rnl_device *device, int64_t each)
{
    const int64_t units = rnl_device_units(device);
    return (units <= FEW_UNITS ? each / 4 : each) * units;
}

bool rnl_device_is_cpu(const rnl_device *device)
{
    return device->info.type == RNL_DEVICE_CPU && !device->info.emulated;
}

void rnl_group_of_64(const size_t items[3], size_t out_local[3])
{
    size_t left = 64;
    for (size_t i = 0; i < 3; ++i)
        for (out_local[i] = 1; left > 1 && out_local[i] < items[i]; left /= 2)
            out_local[i] *= 2;
}

void rnl_tile_group(const rnl_device *device, const size_t items[3], size_t out_local[3])
{
    if (rnl_device_is_cpu(device))
        out_local[0] = out_local[1] = out_local[2] = 1;
    else
        rnl_group_of_64(items, out_local);
}
