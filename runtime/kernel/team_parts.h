/* SPDX-License-Identifier: Apache-2.0 */
/* A team's insides, for the files that make one and that launch. */
#ifndef RUNNEL_KERNEL_TEAM_PARTS_H
#define RUNNEL_KERNEL_TEAM_PARTS_H

#include "kernel/team.h"
#include "kernel/team_cut.h"
#include "kernel/team_inbox.h"
#include "kernel/team_words.h"

#define RNL_TEAM_WORDS (64 + RNL_TEAM_MOST_THREADS * RNL_TEAM_SUMS)
/* Global offsets begin here: for one of 0 pocl compiles a kernel anew. Also after dividing it by a group's size, a
 * power of two, the low 32 bits are those of what was added. */
#define RNL_TEAM_FIRST_ID ((size_t)1 << 48)

#define RNL_TEAM_TRIAL_TURNS 20000000u /* that a thread of the trial looks for the others */

typedef struct rnl_team rnl_team;
struct rnl_team {
    struct rnl_team *next;   /* of the process's, under a lock of the process, as are … */
    uint32_t first, threads; /* which of the driver's */
    uint32_t users;          /* … streams that are inside */
    cl_event last;           /* … and the end of what the one that left last had enqueued, or NULL */
    pthread_mutex_t lock;    /* held while a launch is enqueued: all queues have one order */
    cl_command_queue queues[RNL_TEAM_MOST_THREADS];
    cl_command_queue asking; /* of the first thread, for what does not wait for launches */
    cl_kernel await, arrive; /* around kernels that cannot wait themselves */
    cl_mem memory;
    uint32_t wanted;                                 /* of the counter, when all that is enqueued has been done */
    uint32_t launched;                               /* since it was looked at last … */
    uint64_t looked_ns, looked_cycles, slept_cycles; /* … then, and what threads had slept */
    atomic_uint rests; /* so many more calls of rnl_team_follow are in vain; atomic: read without the lock */
    uint32_t rest;     /* how long the last rest was */
    bool was_sleepy;   /* when it was looked at last */
    uint32_t losses;   /* how often collected launches could not be enqueued */
    bool calls;        /* launches may be collected (kernel/team_calls.h) */
    uint32_t enough;   /* of them, to be enqueued */
    struct rnl_team_batch *batch, *free_batches; /* those that are being collected; NULL: none */
    bool gives;                   /* batches go to threads that are there already: one stream is inside */
    bool helps;                   /* and its thread, which launches now, does the first thread's part of them */
    struct rnl_team_batch *kept;  /* of which it has yet to do that; others have theirs; NULL: none */
    atomic_int helpers_processor; /* where it was when it gave the others something last */
    bool is_frequent;             /* runs follow each other, so that the others look for more at the end of one */
    uint64_t left_ns, left_after; /* when the last stream left, and what the device had launched by then */
    rnl_team_inbox inboxes[RNL_TEAM_MOST_THREADS]; /* but the first thread's, while there is help */
    pthread_mutex_t batches_lock;                  /* of the free ones */
    void **libraries;                              /* of functions, kept from being unloaded; with the lock */
    size_t library_count, library_capacity;
    _Alignas(64) uint32_t words[RNL_TEAM_WORDS]; /* clkernels/team.clh */
};

/* Where a part of a launch begins, and its work-items, in each dimension. */
void rnl_team_place(const rnl_range *range, const rnl_team_cut *cut, const rnl_team_piece *piece, size_t out_offset[3],
                    size_t out_global[3]);
/* Whether the team that nobody has asked for yet may collect launches. */
bool rnl_team_is_likely_to_call(const rnl_device *device);
/* NULL where it has none. */
rnl_team *rnl_team_of(rnl_device *device);
/* Waits for all that its queues hold, and for what was kept; with its lock, since nothing else comes then. */
void rnl_team_finish(rnl_team *team);
/* Until it has come, for some 0.2 ms: in the end others get the processor in between. False: it has not. */
bool rnl_team_look_for(bool (*has_come)(void *context), void *context);
/* More than one stream is inside. */
bool rnl_team_is_shared(const rnl_team *team);
/*
 * For a stream that goes inside; false while another team works with some of the same threads, as two devices of one
 * pocl have: both would wait for each other for ever.
 */
bool rnl_team_claim(rnl_team *team);
/* When the stream has left. Takes the event of the end of what it enqueued, which may be NULL: all has ended. */
void rnl_team_give_up(rnl_team *team, cl_event last);
/* With the lock, behind a launch: whether threads keep falling asleep, … */
void rnl_team_look(rnl_team *team);
/* … for which short launches stay out for a while. Without the lock. */
bool rnl_team_takes_a_rest(rnl_team *team);

#endif
