/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a device is opened. */
#include "base/status.h"
#include "device/device.h"
#include "device/host_limits.h"
#include "device/open.h"
#include "device/part.h"

/* A part of the device. It gets a context of its own like any device: not every driver takes it in its parent's. */
static void use_part(rnl_device *device, rnl_part *part)
{
    device->part = part;
    device->parent_id = device->id;
    device->id = part->id;
    device->info.first_unit = part->kind == RNL_SHARE_UNITS ? part->first : 0;
    device->info.compute_units = part->units;
}

static rnl_status choose_part(rnl_device *device, uint32_t wanted)
{
    const uint32_t most = device->info.compute_units;
    const rnl_part_parent parent = {device->id, most, device->info.name, false};
    rnl_part_kinds kinds;
    rnl_part *part;
    if (wanted > most)
        return FAIL(RNL_INVALID_ARGUMENT, "%u compute units were asked for on %s, which has %u", (unsigned)wanted,
                    device->info.name, (unsigned)most);
    const uint32_t units = wanted ? wanted : rnl_usable_units(&device->info);
    if (units == most)
        return RNL_OK;
    TRY(rnl_part_ask(device->id, false, &kinds));
    if (!kinds.by_counts && wanted == 0)
        return RNL_OK;
    if (!kinds.by_counts)
        return FAIL(RNL_UNIMPLEMENTED, "%u compute units were asked for on %s, which cannot be divided",
                    (unsigned)wanted, device->info.name);
    TRY(rnl_part_take_units(&parent, units, &part));
    use_part(device, part);
    return RNL_OK;
}

static rnl_status check_share(const rnl_device *device, const rnl_share_wish *wanted, const rnl_part_kinds *kinds)
{
    const rnl_share *share = &wanted->share;
    const char *name = device->info.name;
    const uint32_t units = rnl_usable_units(&device->info);
    if (share->kind == RNL_SHARE_UNITS && share->count > 1 && !kinds->by_counts)
        return FAIL(RNL_UNIMPLEMENTED,
                    "'%s': the compute units of %s cannot be divided; its memory can (memory_fraction, --memory)",
                    wanted->spec, name);
    if (share->kind == RNL_SHARE_UNITS && share->count > units)
        return FAIL(RNL_INVALID_ARGUMENT, "'%s': %s has %u compute unit%s, too few for so many shares", wanted->spec,
                    name, (unsigned)units, units == 1 ? "" : "s");
    if (share->kind == RNL_SHARE_NUMA && kinds->numa_nodes == 0)
        return FAIL(RNL_UNIMPLEMENTED, "'%s': %s has no such part, since its driver does not divide by NUMA nodes",
                    wanted->spec, name);
    if (share->kind == RNL_SHARE_NUMA && share->at != RNL_SHARE_ANY && share->at >= kinds->numa_nodes)
        return FAIL(RNL_INVALID_ARGUMENT, "'%s': the NUMA nodes of %s are counted from 0 to %u", wanted->spec, name,
                    (unsigned)kinds->numa_nodes - 1);
    return RNL_OK;
}

/* Its part of the memory, where nothing else was said of that, is as large as its part of the units. */
static rnl_status choose_share(rnl_device *device, const rnl_share_wish *wanted, rnl_device_options *options)
{
    const rnl_part_parent parent = {device->id, rnl_usable_units(&device->info), device->info.name, wanted->binds};
    const char *spec = wanted->spec;
    rnl_share share = wanted->share;
    rnl_part_kinds kinds;
    rnl_part *part;
    if (options->compute_units > 0)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "'%s' names a share, and %u compute units were asked for too: give one of them", spec,
                    (unsigned)options->compute_units);
    TRY(rnl_part_ask(device->id, share.kind == RNL_SHARE_NUMA, &kinds));
    TRY(check_share(device, wanted, &kinds));
    if (share.kind == RNL_SHARE_NUMA)
        share.count = kinds.numa_nodes;
    else if (share.count == 1)
        return choose_part(device, 0);
    TRY(rnl_part_take_share(&parent, &share, spec, &part), "taking '%s' of %s", spec, device->info.name);
    if (options->memory_fraction == 0 && options->memory_limit_bytes == 0)
        options->memory_fraction = (double)part->units / device->info.compute_units;
    use_part(device, part);
    return RNL_OK;
}

rnl_status rnl_device_choose_part(rnl_device *device, const rnl_share_wish *wanted, rnl_device_options *options)
{
    return wanted->share.kind == RNL_SHARE_NONE ? choose_part(device, options->compute_units)
                                                : choose_share(device, wanted, options);
}
