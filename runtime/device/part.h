/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of devices: sub-devices. */
#ifndef RUNNEL_DEVICE_PART_H
#define RUNNEL_DEVICE_PART_H

#include "device/cl_status.h"
#include "device/share.h"

/* The process's; opened devices share one where they ask for the same units. */
typedef struct rnl_part {
    struct rnl_part *next;
    cl_device_id parent, id;
    rnl_share_kind kind;
    uint32_t first, units; /* of RNL_SHARE_NUMA: the node's place in the driver's list, and its units */
    uint32_t users;
    bool is_kept;            /* for good */
    struct rnl_bound *bound; /* its threads, while it is in use; NULL: the system says where they run */
    struct rnl_claim *claim; /* on the processors that they are, or will be, bound to, while it is in use */
} rnl_part;

/* How a device can be divided, as its driver says. */
typedef struct rnl_part_kinds {
    bool by_counts;
    uint32_t numa_nodes; /* 0: not by them, or not asked */
} rnl_part_kinds;
RNL_NODISCARD rnl_status rnl_part_ask(cl_device_id parent, bool numa, rnl_part_kinds *out_kinds);

/* What to divide; `name` is for messages. */
typedef struct rnl_part_parent {
    cl_device_id id;
    uint32_t units;
    const char *name;
    bool binds; /* a part's threads are its own, and can be bound */
} rnl_part_parent;

/* Makes two parts and gives them back: some drivers list what they refuse. */
bool rnl_part_try(const rnl_part_parent *parent);

/* So many units, those that the fewest other parts in use have. */
RNL_NODISCARD rnl_status rnl_part_take_units(const rnl_part_parent *parent, uint32_t units, rnl_part **out_part);
/*
 * A share; with RNL_SHARE_ANY one of which no part in use has a unit, and where the device binds one to whose
 * processors no share of another process is bound, if there is such a one. `spec` is for messages.
 */
RNL_NODISCARD rnl_status rnl_part_take_share(const rnl_part_parent *parent, const rnl_share *share, const char *spec,
                                             rnl_part **out_part);
/* Once it is in a context: where that does not hold the part, the process does, from now on. */
RNL_NODISCARD rnl_status rnl_part_keep(rnl_part *part);
/*
 * Its threads run on its own processors of the `whole` ones, from now until it is given back, where that can be had: if
 * it was asked for by number or no other share has those processors. Other processes are told.
 */
void rnl_part_hold(rnl_part *part, cl_context context, uint32_t whole, bool by_number);
/* NULL is legal. */
void rnl_part_give_back(rnl_part *part);

#endif
