/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table from names to the indices of an array's elements, whose first member is the name (const char *). */
#ifndef RUNNEL_GRAPH_NAMES_H
#define RUNNEL_GRAPH_NAMES_H

#include <runnel/rt.h>

#define RNL_NAME_UNKNOWN UINT32_MAX

typedef struct rnl_names {
    struct rnl_name_slot *slots;
    size_t capacity, count; /* capacity: 0 or a power of two */
} rnl_names;

/* Room for this many names in all, so that adding them cannot fail. */
RNL_NODISCARD rnl_status rnl_names_reserve(rnl_names *names, size_t count);
/* The index of a name without NUL bytes in `elements`, or RNL_NAME_UNKNOWN. */
uint32_t rnl_names_find(const rnl_names *names, const void *elements, size_t element_bytes, const char *name,
                        size_t length);
/* That a name will be looked for soon: large tables are beyond a processor's caches. */
void rnl_names_expect(const rnl_names *names, const char *name, size_t length);
/* The name must not be there yet. */
RNL_NODISCARD rnl_status rnl_names_add(rnl_names *names, const char *name, size_t length, uint32_t index);
void rnl_names_free(rnl_names *names);

#endif
