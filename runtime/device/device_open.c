/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/device.h"
#include "device/driver.h"
#include "device/enumerate.h"
#include "device/gate.h"
#include "device/guard.h"
#include "device/host_limits.h"
#include "device/open.h"
#include "device/part.h"
#include "device/pool.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

rnl_status rnl_device_copy_options(const rnl_device_options *given, rnl_device_options *out_options)
{
    *out_options = (rnl_device_options)RNL_DEVICE_OPTIONS_INIT;
    if (!given)
        return RNL_OK;
    if (given->struct_size < sizeof given->struct_size)
        return FAIL(RNL_INVALID_ARGUMENT, "device options were not initialised with RNL_DEVICE_OPTIONS_INIT");
    memcpy(out_options, given, given->struct_size < sizeof *out_options ? given->struct_size : sizeof *out_options);
    if (!(out_options->memory_fraction >= 0 && out_options->memory_fraction <= 1))
        return FAIL(RNL_INVALID_ARGUMENT, "memory_fraction is a number from 0 to 1, not %g",
                    out_options->memory_fraction);
    return RNL_OK;
}

static rnl_status fail_no_match(const rnl_candidates *found, const char *spec)
{
    rnl_text text = {0};
    for (size_t i = 0; i < found->count; i++) {
        const rnl_device_info *info = &found->items[i].info;
        rnl_text_add(&text, "%s%u:%u %s (%s)", i ? ", " : "", (unsigned)info->platform_index,
                     (unsigned)info->device_index, info->name, info->platform);
    }
    rnl_status status = text.status;
    if (status == RNL_OK)
        status = FAIL(RNL_NOT_FOUND, "no OpenCL device matches '%s'; there are: %s", spec, text.data);
    rnl_text_free(&text);
    return status;
}

/* The device's place in a caller's context, or in one of its own. */
static rnl_status join_context(rnl_device *device, cl_context context, uint32_t compute_units)
{
    if (compute_units > 0 && compute_units != device->info.compute_units)
        return FAIL(RNL_INVALID_ARGUMENT, "%u compute units were asked for on %s, which is wrapped with all of its %u",
                    (unsigned)compute_units, device->info.name, (unsigned)device->info.compute_units);
    TRY(CL(clRetainContext(context)));
    device->context = context;
    return RNL_OK;
}

static rnl_status create_context(rnl_device *device)
{
    const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, (cl_context_properties)device->platform, 0};
    cl_int code;
    device->context = CL_NEW(&code, clCreateContext(properties, 1, &device->id, NULL, NULL, &code));
    return rnl_cl_status(code, "clCreateContext");
}

static uint32_t vector_width(const rnl_candidate *chosen)
{
    uint32_t width = 4;
    if (chosen->info.type != RNL_DEVICE_CPU || chosen->info.emulated)
        return width;
#if defined(__x86_64__) || defined(__i386__)
    if (__builtin_cpu_supports("avx512f"))
        width = 16;
    else if (__builtin_cpu_supports("avx"))
        width = 8;
    if (chosen->native_vector_width >= 4 && chosen->native_vector_width < width)
        width = chosen->native_vector_width >= 8 ? 8 : 4;
#else
    if (chosen->native_vector_width >= 8)
        width = chosen->native_vector_width >= 16 ? 16 : 8;
#endif
    return width;
}

static uint64_t memory_budget(const rnl_device_info *info, const rnl_device_options *options)
{
    uint64_t budget = info->global_memory_bytes;
    if (options->memory_fraction > 0)
        budget = (uint64_t)((double)budget * options->memory_fraction);
    if (options->memory_limit_bytes && options->memory_limit_bytes < budget)
        budget = options->memory_limit_bytes;
    if (info->type == RNL_DEVICE_CPU) {
        uint64_t limit = rnl_cgroup_memory_limit("/proc/self/cgroup", "/sys/fs/cgroup");
        if (limit < budget)
            budget = limit;
    }
    return budget;
}

/*
 * Oclgrind and pocl's basic device run commands in the thread that waits for them; rusticl's queues (22.3) take up to a
 * second to see that the host has completed an event.
 */
static bool copies_in_caller(const rnl_candidate *chosen)
{
    return strcmp(chosen->info.platform, "Oclgrind") == 0 || strcmp(chosen->info.platform, "rusticl") == 0 ||
           (chosen->is_pocl && strncmp(chosen->info.name, "basic", 5) == 0);
}

/* In the caller's context, or in one of its own where that is NULL. */
static rnl_status open_chosen(cl_context context, const rnl_candidate *chosen, const rnl_share_wish *wanted,
                              rnl_device_options options, rnl_device **out_device)
{
    rnl_device *device;
    rnl_status status = RNL_OK;
    if (chosen->is_pocl)
        TRY(rnl_driver_check_linker());
    TRY(rnl_alloc(1, sizeof *device, &device));
    atomic_init(&device->references, 1);
    pthread_mutex_init(&device->lock, NULL);
    device->info = chosen->info;
    device->info.numa_node = rnl_device_numa_node(chosen);
    device->platform = chosen->platform;
    device->id = chosen->id;
    device->maps_in_place = chosen->info.type == RNL_DEVICE_CPU;
    device->binaries_compile = chosen->is_pocl;
    device->copies_in_caller = copies_in_caller(chosen);
    atomic_init(&device->pinned_limit_bytes, options.pinned_limit_bytes);
    device->runs_in_caller = chosen->runs_in_caller;
    device->asks_for_rounding = chosen->rounds_divisions && chosen->info.type == RNL_DEVICE_GPU;
    device->vector_width = vector_width(chosen);
    if (device->binaries_compile)
        GOTO(rnl_gate_create(&device->gate));
    if (context) {
        GOTO(join_context(device, context, options.compute_units));
    } else {
        GOTO(rnl_device_choose_part(device, wanted, &options));
        GOTO(create_context(device), "opening %s%s", device->info.name,
             chosen->is_pocl ? " (pocl also fails so when it cannot write to POCL_CACHE_DIR)" : "");
        if (device->part)
            GOTO(rnl_part_keep(device->part));
        if (device->part && wanted->binds && wanted->share.kind == RNL_SHARE_UNITS)
            rnl_part_hold(device->part, device->context, rnl_usable_units(&chosen->info),
                          wanted->share.at != RNL_SHARE_ANY);
    }
    GOTO(rnl_pool_create(device, memory_budget(&device->info, &options), options.pool_exact, &device->pool));
    GOTO(rnl_guards_create(device, &device->guards));
    rnl_log(RNL_LOG_INFO, "opened %u:%u %s (%s), %u compute units", (unsigned)device->info.platform_index,
            (unsigned)device->info.device_index, device->info.name, device->info.platform,
            (unsigned)device->info.compute_units);
    *out_device = device;
    device = NULL;
done:
    rnl_device_release(device);
    return status;
}

rnl_status rnl_device_open_in(cl_context context, const rnl_candidate *chosen, const rnl_device_options *options,
                              rnl_device **out_device)
{
    rnl_device_options known;
    *out_device = NULL;
    TRY(rnl_device_copy_options(options, &known));
    return open_chosen(context, chosen, NULL, known, out_device);
}

/* The device that `spec` names, and what share of it. A name with a '/' in it is a name first. */
static rnl_status choose(const rnl_candidates *found, const char *spec, const rnl_candidate **out_chosen,
                         rnl_share *out_share)
{
    char head[RNL_SPEC_BYTES];
    size_t length = 0;
    *out_share = (rnl_share){0};
    *out_chosen = rnl_candidates_choose(found, spec);
    if (*out_chosen)
        return RNL_OK;
    TRY(rnl_share_parse(spec, &length, out_share));
    if (out_share->kind != RNL_SHARE_NONE && length < sizeof head) {
        memcpy(head, spec, length);
        head[length] = '\0';
        *out_chosen = rnl_candidates_choose(found, length ? head : NULL);
    }
    return *out_chosen ? RNL_OK : fail_no_match(found, spec);
}

rnl_status rnl_device_open(const char *spec, const rnl_device_options *options, rnl_device **out_device)
{
    *out_device = NULL;
    rnl_device_options known;
    rnl_candidates found;
    const rnl_candidate *chosen;
    rnl_share share;
    rnl_status status = RNL_OK;
    TRY(rnl_device_copy_options(options, &known));
    if (!spec || !*spec)
        spec = getenv("RUNNEL_DEVICE");
    if (spec && !*spec)
        spec = NULL;
    TRY(rnl_candidates_find(&found));
    GOTO(choose(&found, spec, &chosen, &share));
    GOTO(open_chosen(NULL, chosen, &(rnl_share_wish){share, spec, chosen->is_pocl}, known, out_device));
done:
    rnl_candidates_free(&found);
    return status;
}
