/* SPDX-License-Identifier: Apache-2.0 */
/* All devices of all platforms, and choosing one. */
#ifndef RUNNEL_DEVICE_ENUMERATE_H
#define RUNNEL_DEVICE_ENUMERATE_H

#include "device/cl_status.h"

typedef struct rnl_candidate {
    cl_platform_id platform;
    cl_device_id id;
    rnl_device_info info; /* numa_node is -1: finding it costs a look at the machine's topology */
    bool is_pocl;
    bool runs_in_caller;          /* commands run in the thread that enqueues them */
    bool tells_place;             /* by an extension that hwloc asks */
    bool rounds_divisions;        /* and roots correctly, when asked to */
    uint32_t native_vector_width; /* floats */
} rnl_candidate;

typedef struct rnl_candidates {
    rnl_candidate *items;
    size_t count, capacity;
} rnl_candidates;

/* Fails with RNL_NOT_FOUND when there is none. A platform or device that fails is left out, with a line in the log. */
RNL_NODISCARD rnl_status rnl_candidates_find(rnl_candidates *out_candidates);
void rnl_candidates_free(rnl_candidates *candidates);

/* The best device, or the best that `spec` matches; NULL when it matches none. */
const rnl_candidate *rnl_candidates_choose(const rnl_candidates *candidates, const char *spec);

/* Fills everything about one device; `item->id` and `item->platform` are set. */
RNL_NODISCARD rnl_status rnl_candidate_query(rnl_candidate *item);

/* False also where the driver does not answer. */
bool rnl_device_has_extension(const rnl_device *device, const char *name);
/* NVIDIA's, ten times: 90 for 9.0. 0 elsewhere, and where the driver does not say. */
int rnl_device_compute_capability(const rnl_device *device);

/* hwloc's NUMA node that the device is near to, -1 when that is unknown or not one. */
int32_t rnl_device_numa_node(const rnl_candidate *item);

#endif
