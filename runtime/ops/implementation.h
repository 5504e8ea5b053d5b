/* SPDX-License-Identifier: Apache-2.0 */
/* An operator family's implementations: an ordered list, best first, the last one portable. */
#ifndef RUNNEL_OPS_IMPLEMENTATION_H
#define RUNNEL_OPS_IMPLEMENTATION_H

#include "ops/op.h"

/* `problem` is the family's own description of one call, its arguments checked. */
typedef struct rnl_implementation {
    const char *name; /* "gemm:clblast" */
    /* It gives the right result; NULL: always. */
    bool (*applies)(const rnl_device *device, const void *problem);
    /* It is worth it compared with what follows in the list; NULL: always. Not asked when the user forces the name. */
    bool (*pays)(const rnl_device *device, const void *problem);
    rnl_status (*append)(rnl_step_list *list, const char *name, const void *problem);
} rnl_implementation;

/* The first implementation that applies and pays, or the forced one; see below. NULL when there is none. */
RNL_API const rnl_implementation *rnl_implementation_choose(const rnl_implementation *implementations, size_t count,
                                                            const char *forced, const rnl_device *device,
                                                            const void *problem);
/*
 * Appends the steps of the first implementation that applies and pays. `forced` (may be NULL) is the part of a name
 * behind the colon: that implementation goes first where it applies.
 */
RNL_API RNL_NODISCARD rnl_status rnl_implementation_append(const rnl_implementation *implementations, size_t count,
                                                           const char *forced, rnl_step_list *list,
                                                           const void *problem);

/* A work-group of at most 64 work-items, not longer than the grid, as much as possible in the first dimension. */
RNL_API void rnl_group_of_64(const size_t items[3], size_t out_local[3]);
/* The same for work-items that each compute a tile with explicit vectors: single ones on a CPU's own driver. */
RNL_API void rnl_tile_group(const rnl_device *device, const size_t items[3], size_t out_local[3]);
/* A CPU's own driver: work-items run one after the other, and caches matter more than neighbouring accesses. */
RNL_API bool rnl_device_is_cpu(const rnl_device *device);
/* Its compute units; 1 where the driver does not say. */
int64_t rnl_device_units(const rnl_device *device);
/*
 * Work-items of a launch: `each` for each unit, so that all end together; for few units a quarter, since a team of
 * threads cuts a launch once, and each work-item counts in a number that all of them write.
 */
int64_t rnl_device_items(const rnl_device *device, int64_t each);

#endif
