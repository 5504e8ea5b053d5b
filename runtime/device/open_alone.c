/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that opens one device. pocl wakes all its threads for each launch, also those that a sub-device does not
 * have, and where they run is the system's choice. So such a process gets its share of a CPU by being held to it before
 * the driver starts.
 */
#include "base/log.h"
#include "base/status.h"
#include "device/claim.h"
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
    rnl_claim *claim;    /* where it is bound, and others can be told */
    cpu_set_t before;
} hold;

static void let_go(hold *held)
{
    if (held->bound && sched_setaffinity(0, sizeof held->before, &held->before) != 0)
        rnl_log(RNL_LOG_WARNING, "the process stays on the processors of a share that the device does not give");
    held->bound = false;
    rnl_claim_give_back(held->claim);
    held->claim = NULL;
}

/* False where a control group gives less time than processors: any of them will do then. */
static bool find_processors(const hold *held, cpu_set_t *out)
{
    cpu_set_t all;
    return rnl_host_processors(held->first, held->units, held->cpus, &all, out);
}

/* To the share by that number; without one to the first that no process has, or to none. */
static void bind_processors(const rnl_share *share, hold *held)
{
    cpu_set_t wanted;
    if (share->at != RNL_SHARE_ANY) {
        held->bound = find_processors(held, &wanted) && sched_setaffinity(0, sizeof wanted, &wanted) == 0;
        held->claim = held->bound ? rnl_claim_beside(&wanted) : NULL;
        return;
    }
    const hold before = *held;
    rnl_claim *choice = rnl_claim_begin();
    bool taken = false;
    for (uint32_t at = 0; at < share->count && choice && !taken; at++) {
        rnl_share_range(held->cpus, share->count, at, &held->first, &held->units);
        taken = find_processors(held, &wanted) && rnl_claim_take(choice, &wanted);
    }
    choice = rnl_claim_end(choice);
    if (!choice || sched_setaffinity(0, sizeof wanted, &wanted) != 0) {
        rnl_claim_give_back(choice);
        *held = before;
        return;
    }
    held->bound = true;
    held->claim = choice;
}

#define MOST_NODES 64

/* To the node where it runs or the next one that no process has; false, and to none, where there is none. */
static bool bind_free_node(hold *held)
{
    cpu_set_t own;
    rnl_claim *choice = rnl_claim_begin();
    bool taken = false;
    for (int32_t node = -1; node < MOST_NODES && choice && !taken; node++) {
        held->bound = rnl_place_bind_process(node);
        taken = held->bound && sched_getaffinity(0, sizeof own, &own) == 0 && rnl_claim_take(choice, &own);
        if (!taken)
            let_go(held);
    }
    held->claim = rnl_claim_end(choice);
    return held->claim;
}

static void hold_to_node(const rnl_share *share, hold *held)
{
    const bool any = share->at == RNL_SHARE_ANY;
    cpu_set_t own;
    if (!any || !bind_free_node(held)) {
        held->bound = rnl_place_bind_process(any ? -1 : (int32_t)share->at);
        if (held->bound && sched_getaffinity(0, sizeof own, &own) == 0)
            held->claim = rnl_claim_beside(&own);
    }
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
    if (share->kind == RNL_SHARE_UNITS)
        bind_processors(share, held);
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

static rnl_status open_held(const char *spec, hold *held, rnl_device_options options, rnl_device **out_device)
{
    if (options.compute_units == 0 && options.memory_fraction == 0 && options.memory_limit_bytes == 0)
        options.memory_fraction = (double)held->units / held->cpus;
    options.compute_units = 0;
    const rnl_status status = rnl_device_open(spec, &options, out_device);
    if (status != RNL_OK) {
        rnl_claim_give_back(held->claim);
        return status;
    }
    (*out_device)->claim = held->claim;
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
    hold held = hold_process(&share, known.compute_units);
    if (follows(head, &held))
        return open_held(head, &held, known, out_device);
    let_go(&held);
    return rnl_device_open(spec, options, out_device);
}
