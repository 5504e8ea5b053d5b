/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/team_inbox.h"

#include "kernel/team_parts.h"

/*
 * AWAY -> THERE by who gives, who then enqueues a kernel, or by the kernel that finds something when it has left.
 * THERE -> CLOSED by who closes, and to AWAY by the kernel alone. While it is CLOSED nothing is given, so a kernel that
 * has left finds only what was given before other commands came behind it.
 */
enum { AWAY, THERE, CLOSED };

static bool is_empty(rnl_team_inbox *inbox)
{
    return atomic_load(&inbox->given) == atomic_load(&inbox->taken);
}

static bool change(rnl_team_inbox *inbox, unsigned from, unsigned to)
{
    return atomic_compare_exchange_strong(&inbox->state, &from, to);
}

unsigned rnl_team_inbox_count(const rnl_team_inbox *inbox)
{
    return atomic_load(&inbox->given) - atomic_load(&inbox->taken);
}

bool rnl_team_inbox_give(rnl_team_inbox *inbox, struct rnl_team_batch *batch, bool *out_calls)
{
    const unsigned given = atomic_load(&inbox->given);
    *out_calls = false;
    if (rnl_team_inbox_count(inbox) >= RNL_TEAM_INBOX_PLACES)
        return false;
    /* Before it is given: or else a kernel that leaves, behind which there are other commands, could take it. */
    *out_calls = change(inbox, AWAY, THERE);
    if (!*out_calls && atomic_load(&inbox->state) == CLOSED)
        return false;
    inbox->places[given % RNL_TEAM_INBOX_PLACES] = batch;
    atomic_store(&inbox->given, given + 1);
    if (!*out_calls) /* the kernel may have left in between */
        *out_calls = change(inbox, AWAY, THERE);
    return true;
}

void rnl_team_inbox_take_back(rnl_team_inbox *inbox)
{
    atomic_fetch_sub(&inbox->given, 1);
    atomic_store(&inbox->state, AWAY);
}

void rnl_team_inbox_close(rnl_team_inbox *inbox)
{
    if (atomic_load(&inbox->state) == THERE)
        (void)change(inbox, THERE, CLOSED);
}

static bool has_news(void *context)
{
    rnl_team_inbox *inbox = context;
    return atomic_load(&inbox->state) == CLOSED || !is_empty(inbox);
}

static struct rnl_team_batch *take_first(rnl_team_inbox *inbox)
{
    struct rnl_team_batch *batch = inbox->places[atomic_load(&inbox->taken) % RNL_TEAM_INBOX_PLACES];
    atomic_fetch_add(&inbox->taken, 1);
    return batch;
}

/* Whether the kernel ends. */
static bool leave(rnl_team_inbox *inbox, bool is_closed)
{
    if (is_closed) {
        atomic_store(&inbox->state, AWAY);
        return true;
    }
    return change(inbox, THERE, AWAY) && (is_empty(inbox) || !change(inbox, AWAY, THERE));
}

struct rnl_team_batch *rnl_team_inbox_take(rnl_team_inbox *inbox)
{
    for (;;) {
        const bool is_closed = atomic_load(&inbox->state) == CLOSED; /* looked at first: what is there came before it */
        if (!is_empty(inbox))
            return take_first(inbox);
        if (!is_closed && rnl_team_look_for(has_news, inbox))
            continue;
        if (leave(inbox, is_closed))
            return NULL;
    }
}
