/* SPDX-License-Identifier: Apache-2.0 */
#include "device/enumerate.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/driver.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define INSTALL_HINT "install a driver, for example the package pocl-opencl-icd, which runs on any CPU"

static rnl_status find_platforms(cl_platform_id **out_platforms, cl_uint *out_count)
{
    cl_uint count = 0;
    cl_platform_id *platforms;
    *out_platforms = NULL;
    *out_count = 0;
    rnl_driver_prepare();
    cl_int code = RNL_CL_RUN(clGetPlatformIDs(0, NULL, &count));
    rnl_ending_watch();
    if (code == CL_SUCCESS && count == 0)
        code = -1001; /* what the ICD loader answers without a platform */
    if (code == -1001)
        return rnl_error_set(RNL_NOT_FOUND, code, "there is no OpenCL platform on this machine: " INSTALL_HINT);
    TRY(rnl_cl_status(code, "clGetPlatformIDs"));
    TRY(rnl_alloc(count, sizeof *platforms, &platforms));
    rnl_status status = CL(clGetPlatformIDs(count, platforms, NULL));
    if (status != RNL_OK) {
        rnl_free(platforms);
        return status;
    }
    *out_platforms = platforms;
    *out_count = count;
    return RNL_OK;
}

/* Out of memory is ours to report; anything else is one device's or platform's trouble, and others may work. */
static rnl_status leave_out(rnl_status status, const char *what, cl_uint platform, cl_uint device)
{
    if (status == RNL_OK || rnl_last_error()->native_code == 0)
        return status;
    rnl_log(RNL_LOG_WARNING, "%s %u:%u is left out: %s", what, platform, device, rnl_last_error()->message);
    return RNL_OK;
}

static rnl_status add_device(rnl_candidates *candidates, cl_platform_id platform, cl_device_id id, cl_uint platform_at,
                             cl_uint device_at)
{
    TRY(rnl_grow(&candidates->items, &candidates->capacity, candidates->count + 1, sizeof *candidates->items));
    rnl_candidate *item = &candidates->items[candidates->count];
    *item = (rnl_candidate){.platform = platform, .id = id};
    item->info.platform_index = platform_at;
    item->info.device_index = device_at;
    rnl_status status = rnl_candidate_query(item);
    if (status != RNL_OK)
        return leave_out(status, "device", platform_at, device_at);
    candidates->count++;
    return RNL_OK;
}

static rnl_status add_platform(rnl_candidates *candidates, cl_platform_id platform, cl_uint at)
{
    cl_uint count = 0;
    cl_int code = RNL_CL_RUN(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count));
    if (code == CL_DEVICE_NOT_FOUND || (code == CL_SUCCESS && count == 0))
        return RNL_OK;
    if (code != CL_SUCCESS)
        return leave_out(rnl_cl_status(code, "clGetDeviceIDs"), "platform", at, 0);
    cl_device_id *ids;
    TRY(rnl_alloc(count, sizeof *ids, &ids));
    rnl_status status = CL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids, NULL));
    if (status != RNL_OK)
        status = leave_out(status, "platform", at, 0);
    else
        for (cl_uint i = 0; i < count && status == RNL_OK; i++)
            status = add_device(candidates, platform, ids[i], at, i);
    rnl_free(ids);
    return status;
}

/* True when `a` is to be taken before `b`, given that it came first. */
static bool is_better(const rnl_candidate *a, const rnl_candidate *b)
{
    static const int order[] = {
        [RNL_DEVICE_GPU] = 0, [RNL_DEVICE_ACCELERATOR] = 1, [RNL_DEVICE_CPU] = 2, [RNL_DEVICE_OTHER] = 3};
    if (a->info.emulated != b->info.emulated)
        return b->info.emulated;
    if (a->info.type != b->info.type)
        return order[a->info.type] < order[b->info.type];
    if (a->info.unified_memory != b->info.unified_memory)
        return b->info.unified_memory;
    if (a->platform == b->platform && a->info.compute_units != b->info.compute_units)
        return a->info.compute_units > b->info.compute_units;
    return false;
}

rnl_status rnl_candidates_find(rnl_candidates *out_candidates)
{
    cl_platform_id *platforms;
    cl_uint count;
    rnl_candidates found = {0};
    *out_candidates = found;
    TRY(find_platforms(&platforms, &count));
    rnl_status status = RNL_OK;
    for (cl_uint i = 0; i < count && status == RNL_OK; i++)
        status = add_platform(&found, platforms[i], i);
    rnl_free(platforms);
    if (status == RNL_OK && found.count == 0)
        status = FAIL(RNL_NOT_FOUND, "the OpenCL platforms on this machine have no device that works: " INSTALL_HINT);
    if (status != RNL_OK) {
        rnl_free(found.items);
        return status;
    }
    const rnl_candidate *best = rnl_candidates_choose(&found, NULL);
    found.items[best - found.items].info.is_default = true;
    *out_candidates = found;
    return RNL_OK;
}

void rnl_candidates_free(rnl_candidates *candidates)
{
    rnl_free(candidates->items);
    *candidates = (rnl_candidates){0};
}

static bool contains(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

static bool is_pair(const char *spec, unsigned *platform, unsigned *device)
{
    int end = -1;
    return strspn(spec, "0123456789:") == strlen(spec) && sscanf(spec, "%9u:%9u%n", platform, device, &end) == 2 &&
           spec[end] == '\0';
}

static bool matches(const rnl_candidate *item, const char *spec)
{
    const rnl_device_info *info = &item->info;
    unsigned platform, device;
    if (is_pair(spec, &platform, &device))
        return info->platform_index == platform && info->device_index == device;
    if (strcasecmp(spec, "gpu") == 0)
        return info->type == RNL_DEVICE_GPU;
    if (strcasecmp(spec, "cpu") == 0)
        return info->type == RNL_DEVICE_CPU;
    if (strcasecmp(spec, "accelerator") == 0)
        return info->type == RNL_DEVICE_ACCELERATOR;
    if (info->pci_bus_id[0] &&
        (strcasecmp(spec, info->pci_bus_id) == 0 || strcasecmp(spec, strchr(info->pci_bus_id, ':') + 1) == 0))
        return true;
    /* pocl's platform has a name in which nobody looks for "pocl". */
    return contains(info->name, spec) || contains(info->vendor, spec) || contains(info->platform, spec) ||
           (item->is_pocl && contains("pocl", spec));
}

const rnl_candidate *rnl_candidates_choose(const rnl_candidates *candidates, const char *spec)
{
    const rnl_candidate *best = NULL;
    for (size_t i = 0; i < candidates->count; i++) {
        const rnl_candidate *item = &candidates->items[i];
        if ((!spec || matches(item, spec)) && (!best || is_better(item, best)))
            best = item;
    }
    return best;
}
