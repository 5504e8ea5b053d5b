/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator: many small objects with one lifetime, freed together, limited in bytes. One thread at a time. */
#ifndef RUNNEL_BASE_ZONE_H
#define RUNNEL_BASE_ZONE_H

#include <runnel/rt.h>

typedef struct rnl_zone {
    struct rnl_zone_chunk *chunks;
    size_t used_bytes;  /* of all chunks, as allocated from the heap */
    size_t limit_bytes; /* 0 = none */
} rnl_zone;

/* Zeroed, aligned to 16 bytes; *(void **)out_pointer. RNL_RESOURCE_EXHAUSTED on overflow, past the limit, or out of
 * memory. */
RNL_API RNL_NODISCARD rnl_status rnl_zone_alloc(rnl_zone *zone, size_t count, size_t element_bytes, void *out_pointer);
/* A NUL-terminated copy of `length` bytes. */
RNL_API RNL_NODISCARD rnl_status rnl_zone_text(rnl_zone *zone, const char *text, size_t length, const char **out_copy);
RNL_API void rnl_zone_free(rnl_zone *zone);

#endif
