/* SPDX-License-Identifier: Apache-2.0 */
/* Circular lists whose links lie inside their elements: an element leaves its list without knowing it. */
#ifndef RUNNEL_DEVICE_POOL_LIST_H
#define RUNNEL_DEVICE_POOL_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rnl_link {
    struct rnl_link *next, *previous;
} rnl_link;

/* The element of `type` whose `member` is at `link`. */
#define RNL_ELEMENT(type, member, link) ((type *)(void *)((char *)(link)-offsetof(type, member)))

static inline void rnl_list_init(rnl_link *list)
{
    list->next = list->previous = list;
}

static inline bool rnl_list_is_empty(const rnl_link *list)
{
    return list->next == list;
}

static inline void rnl_list_add_first(rnl_link *list, rnl_link *link)
{
    link->previous = list;
    link->next = list->next;
    list->next->previous = link;
    list->next = link;
}

static inline void rnl_list_add_last(rnl_link *list, rnl_link *link)
{
    rnl_list_add_first(list->previous, link);
}

static inline void rnl_list_remove(rnl_link *link)
{
    link->next->previous = link->previous;
    link->previous->next = link->next;
}

/* Appends all elements of `from`, which is empty then. */
static inline void rnl_list_move_all(rnl_link *from, rnl_link *to)
{
    if (rnl_list_is_empty(from))
        return;
    from->next->previous = to->previous;
    to->previous->next = from->next;
    from->previous->next = to;
    to->previous = from->previous;
    rnl_list_init(from);
}

#endif
