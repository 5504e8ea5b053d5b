/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of a team that the driver sees several at a time. An enqueued launch takes pocl's threads some 5 us each,
 * beside the kernel, and the thread that enqueues 2: a seventh of a small model's run. So launches that wait for each
 * other by themselves (clkernels/team.clh) are collected, and each thread runs its parts of some tens of them in one
 * native kernel (clEnqueueNativeKernel), which calls what pocl has compiled, as pocl does: a function that takes an
 * array of pointers to the arguments, the range, and a group's coordinates (pocl_workgroup_func.h and pocl_context.h,
 * the same from pocl 1.2 to 7). Kernels tell where it is. A trial shows that it works.
 */
#ifndef RUNNEL_KERNEL_TEAM_CALLS_H
#define RUNNEL_KERNEL_TEAM_CALLS_H

#include "kernel/team_cut.h"
#include "kernel/team_parts.h"

/* A range of pocl's, of one part of a launch; what is behind the sizes is for printf. */
typedef struct rnl_call_context {
    uint64_t groups[3], offset[3], local[3], others[8];
} rnl_call_context;

/* Where a launch of this kernel told to be, in team->words: its function, or NULL. With `program` it is kept. */
rnl_call_function rnl_team_find_function(rnl_team *team, rnl_program *program, const char *kernel);
/* With the team alone with its threads, the trial kernel having told where it is: sets team->calls. */
void rnl_team_try_calls(rnl_team *team);

/* These with the team's lock. Enqueues what was added, if it is enough or leaves no room for a call with these. */
RNL_NODISCARD rnl_status rnl_team_make_room(rnl_team *team, const rnl_team_arg *args, uint32_t count);
/*
 * Adds a launch whose groups wait for those before it, and are waited for by what comes next. False, and nothing is
 * added, where there is no memory for it.
 */
bool rnl_team_add_call(rnl_team *team, rnl_call_function function, const rnl_range *range, const rnl_team_arg *args,
                       uint32_t count);
/*
 * Enqueues what was added. After a failure all counts as done, and team->losses says to each stream that is inside that
 * some of it was not. With team->helps the calling thread does the first thread's part of the batch before this one,
 * and waits for the others as they do for each other; this one's is kept, so that the others have work meanwhile.
 */
RNL_NODISCARD rnl_status rnl_team_flush(rnl_team *team);
/* Likewise, before anything else is on the team's queues: all is on them then. */
RNL_NODISCARD rnl_status rnl_team_settle(rnl_team *team);
/* The driver's thread does what was kept, as nobody helps any more; also after a failure, as above. */
RNL_NODISCARD rnl_status rnl_team_hand_over(rnl_team *team);
/* For who helps: does what was kept, and waits for all launches so far, without the driver. */
void rnl_team_await(rnl_team *team);
/* What is enqueued next follows nothing. */
void rnl_team_start_small(rnl_team *team);
/* The queues are empty. */
void rnl_team_free_calls(rnl_team *team);
void rnl_team_free_libraries(rnl_team *team);

#endif
