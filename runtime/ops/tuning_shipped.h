/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tuning that comes with the library: what `runnel tune` noted on kinds of CPUs, so that others of a kind have it from
 * the start. A kind is what choices depend on (registers, caches, threads), not a name. A device's own table comes
 * first; where neither has a problem, estimates choose.
 */
#ifndef RUNNEL_OPS_TUNING_SHIPPED_H
#define RUNNEL_OPS_TUNING_SHIPPED_H

#include "base/hash.h"
#include "device/device.h"

typedef struct rnl_shipped_entry {
    rnl_hash problem;
    uint32_t variant;
} rnl_shipped_entry;

/* A kind of CPU, and what was measured there. */
typedef struct rnl_shipped_table {
    uint32_t vector_width, least_threads, most_threads;
    size_t first_cache, second_cache; /* bytes */
    const rnl_shipped_entry *entries; /* sorted by problem: the high half first */
    size_t count;
} rnl_shipped_table;

/* Written by tools/ship-tuning; ends with a vector_width of 0. */
extern const rnl_shipped_table rnl_shipped_tables[];

/* The table for such a device, or NULL. */
const rnl_shipped_table *rnl_tuning_shipped_for(const rnl_device *device);
/* The variant in `table`, which may be NULL, or UINT32_MAX. */
uint32_t rnl_tuning_shipped_get(const rnl_shipped_table *table, rnl_hash problem);

#endif
