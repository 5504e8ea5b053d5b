/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that opens one device. pocl wakes all its threads for each launch, also those that a sub-device does not
 * have, and where they run is the system's choice. So such a process gets its share of a CPU by being held to it before
 * the driver starts.
 */
#include "base/log.h"
#include "base/status.h"
#include "device/device.h"
#include "device/driver.h"
#include "device/enumerate.h"
#include "device/host_limits.h"
#include "device/open.h"
#include "device/place.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What this process is held to: so many processors of those that it had, or so many of pocl's threads. */
typedef struct hold {
    uint32_t cpus, first, units;
    bool bound, counted; /* neither: to nothing */
    cpu_set_t before;
} hold;

/* To the processors from the `first`-th allowed one on. */
static void bind_processors(hold *held)
{
    cpu_set_t wanted;
    uint32_t at = 0;
    if (held->cpus != (uint32_t)CPU_COUNT(&held->before))
        return; /* a control group gives less time than processors: any of them will do */
    CPU_ZERO(&wanted);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &held->before)) {
            if (at >= held->first && at - held->first < held->units)
                CPU_SET(cpu, &wanted);
            at++;
        }
    held->bound = sched_setaffinity(0, sizeof wanted, &wanted) == 0;
}

static void hold_to_node(const rnl_share *share, hold *held)
{
    held->bound = rnl_place_bind_process(share->at == RNL_SHARE_ANY ? -1 : (int32_t)share->at);
    held->units = rnl_host_cpus();
}

static void hold_to_units(const rnl_share *share, uint32_t compute_units, hold *held)
{
    char count[16];
    const bool any = share->kind == RNL_SHARE_NONE || share->at == RNL_SHARE_ANY;
    held->units = compute_units;
    if (share->kind == RNL_SHARE_UNITS && share->count <= held->cpus)
        rnl_share_range(held->cpus, share->count, any ? 0 : share->at, &held->first, &held->units);
    if (held->units == 0 || held->units >= held->cpus)
        return;
    if (!any)
        bind_processors(held);
    snprintf(count, sizeof count, "%u", (unsigned)held->units);
    held->counted = !held->bound && setenv(RNL_POCL_THREADS, count, 1) == 0;
}

static hold hold_process(const rnl_share *share, uint32_t compute_units)
{
    hold held = {.cpus = rnl_host_cpus()};
    if (sched_getaffinity(0, sizeof held.before, &held.before) != 0)
        return held;
    if (share->kind == RNL_SHARE_NUMA)
        hold_to_node(share, &held);
    else if (share->kind == RNL_SHARE_UNITS || compute_units > 0)
        hold_to_units(share, compute_units, &held);
    return held;
}

static void let_go(const hold *held)
{
    if (held->bound && sched_setaffinity(0, sizeof held->before, &held->before) != 0)
        rnl_log(RNL_LOG_WARNING, "the process stays on the processors of a share that the device does not give");
}

/* True when the device that `spec` names has become what is wanted. */
static bool follows(const char *spec, const hold *held)
{
    rnl_candidates found;
    if (!(held->bound || held->counted) || rnl_candidates_find(&found) != RNL_OK)
        return false;
    const rnl_candidate *chosen = rnl_candidates_choose(&found, *spec ? spec : NULL);
    const bool same = chosen && chosen->info.type == RNL_DEVICE_CPU && !chosen->runs_in_caller &&
                      (held->bound || chosen->is_pocl) && chosen->info.compute_units == held->units;
    rnl_candidates_free(&found);
    return same;
}

static rnl_status open_held(const char *spec, const hold *held, rnl_device_options options, rnl_device **out_device)
{
    if (options.compute_units == 0 && options.memory_fraction == 0 && options.memory_limit_bytes == 0)
        options.memory_fraction = (double)held->units / held->cpus;
    options.compute_units = 0;
    TRY(rnl_device_open(spec, &options, out_device));
    (*out_device)->info.whole_units = held->cpus;
    (*out_device)->info.first_unit = held->first;
    return RNL_OK;
}

rnl_status rnl_device_open_alone(const char *spec, const rnl_device_options *options, rnl_device **out_device)
{
    char head[RNL_SPEC_BYTES];
    size_t length = 0;
    rnl_share share = {0};
    rnl_device_options known;
    *out_device = NULL;
    TRY(rnl_device_copy_options(options, &known));
    if (!spec || !*spec)
        spec = getenv("RUNNEL_DEVICE");
    spec = spec ? spec : "";
    /* What is wrong with either is said where the devices' names are known, of which some have a '/'. */
    if (rnl_share_parse(spec, &length, &share) != RNL_OK || length >= sizeof head || rnl_driver_is_prepared() ||
        getenv(RNL_POCL_THREADS) || (share.kind != RNL_SHARE_NONE && known.compute_units > 0))
        return rnl_device_open(spec, options, out_device);
    snprintf(head, sizeof head, "%.*s", (int)length, spec);
    const hold held = hold_process(&share, known.compute_units);
    if (follows(head, &held))
        return open_held(head, &held, known, out_device);
    let_go(&held);
    return rnl_device_open(spec, options, out_device);
}
