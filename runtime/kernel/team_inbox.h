/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread of a team does next, given to it in memory while it works or looks for more: what it is given by the
 * driver it has to be woken for, which takes 20 to 50 us on a virtual machine. One thread gives, under the team's lock,
 * and one takes, in a native kernel on its queue; behind that kernel the queue may hold nothing that has to come before
 * what is given here later, so before anything else is put there the inbox is closed.
 */
#ifndef RUNNEL_KERNEL_TEAM_INBOX_H
#define RUNNEL_KERNEL_TEAM_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>

#define RNL_TEAM_INBOX_PLACES 256u /* a power of two; whoever helps is one batch ahead of the others at most */

struct rnl_team_batch;

typedef struct rnl_team_inbox {
    _Alignas(64) atomic_uint state; /* team_inbox.c */
    atomic_uint given;              /* batches so far; wraps */
    struct rnl_team_batch *places[RNL_TEAM_INBOX_PLACES];
    _Alignas(64) atomic_uint taken;
} rnl_team_inbox;

/*
 * *out_calls: nobody looks there, so the caller enqueues the kernel that takes. False, and nothing is given, where the
 * inbox is closed and its kernel has not ended, or where it is full.
 */
bool rnl_team_inbox_give(rnl_team_inbox *inbox, struct rnl_team_batch *batch, bool *out_calls);
/* What was given and not taken. */
unsigned rnl_team_inbox_count(const rnl_team_inbox *inbox);
/* That kernel could not be enqueued: what was given last is the caller's again. */
void rnl_team_inbox_take_back(rnl_team_inbox *inbox);
/* The kernel does what was given and ends; until then nothing more can be given. */
void rnl_team_inbox_close(rnl_team_inbox *inbox);
/* For the kernel: waits for some 0.2 ms while it is open. NULL: it ends. */
struct rnl_team_batch *rnl_team_inbox_take(rnl_team_inbox *inbox);

#endif
