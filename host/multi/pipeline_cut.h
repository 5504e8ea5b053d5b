/* SPDX-License-Identifier: Apache-2.0 */
/* Where to cut a graph so that its slowest stage is as fast as can be. Numbers alone: no graph, no device. */
#ifndef RUNNEL_MULTI_PIPELINE_CUT_H
#define RUNNEL_MULTI_PIPELINE_CUT_H

#include <runnel/rt.h>

typedef struct rnl_cut_problem {
    /* Where a cut may be, from the graph's start (0) to its end (count - 1), and for each place: */
    size_t count;
    const size_t *crossing_bytes; /* what would travel */
    const size_t *weight_bytes;   /* [first * count + end]: of the nodes between two places … */
    const size_t *arena_bytes;    /* … and for what they compute */
    /* Devices in their order, and for each: */
    size_t device_count;
    const double *const *time_ns; /* [device][place]: of all nodes before */
    const double *ns_per_byte;    /* of what comes and goes; 0 where it is used in place */
    const size_t *budget_bytes;
    const double *memory_scale; /* what was found to be needed, over what was foreseen */
    size_t arenas;              /* runs at a time of a stage */
} rnl_cut_problem;

/* Of the nodes between two places on a device. */
double rnl_cut_time(const rnl_cut_problem *problem, size_t device, size_t first, size_t end);
size_t rnl_cut_memory(const rnl_cut_problem *problem, size_t device, size_t first, size_t end);

/*
 * out_cuts[device] is the place where its stage begins, out_cuts[device_count] the end; a stage may be empty. The
 * slowest stage is within a twentieth of the best there is; within that, as few bytes as possible travel. The same
 * problem has the same answer. RNL_RESOURCE_EXHAUSTED when memory allows no cut; names nothing.
 */
RNL_NODISCARD rnl_status rnl_cut_solve(const rnl_cut_problem *problem, size_t *out_cuts);

#endif
