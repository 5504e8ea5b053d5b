/* SPDX-License-Identifier: Apache-2.0 */
/* Where on the machine memory is allocated. */
#ifndef RUNNEL_DEVICE_PLACE_H
#define RUNNEL_DEVICE_PLACE_H

#include <runnel/rt.h>

typedef struct rnl_place rnl_place;

/*
 * What the calling thread allocates comes from this NUMA node (hwloc's index) from now on, until it leaves. NULL, and
 * no change, where the node is -1, the machine has one only, or it does not let us.
 */
rnl_place *rnl_place_enter(int32_t numa_node);
void rnl_place_leave(rnl_place *place);

/*
 * The process's threads run on the processors of this NUMA node that it may use, and its memory comes from there; -1:
 * of the node where it runs. False, and no change, where that cannot be had.
 */
bool rnl_place_bind_process(int32_t numa_node);

#endif
