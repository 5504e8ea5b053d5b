/* SPDX-License-Identifier: Apache-2.0 */
/* A driver's threads on the processors of the part that they work for. */
#ifndef RUNNEL_DEVICE_PART_BIND_H
#define RUNNEL_DEVICE_PART_BIND_H

#include "device/cl_status.h"
#include <sched.h>
#include <sys/types.h>

typedef struct rnl_bound {
    cpu_set_t before, now;
    uint32_t count;
    pid_t threads[];
} rnl_bound;

/*
 * Finds the threads that run what is enqueued on `part`, of which there are `units`, and binds them to as many
 * processors of this process, from the `first`-th on. NULL, and no change, where the process does not have `whole`
 * processors or the threads are not the part's own. For drivers whose threads belong to a part for good.
 */
rnl_bound *rnl_part_bind(cl_context context, cl_device_id part, uint32_t first, uint32_t units, uint32_t whole);
/* They may run where they might before; NULL is legal. */
void rnl_part_unbind(rnl_bound *bound);

#endif
