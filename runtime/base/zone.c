/* SPDX-License-Identifier: Apache-2.0 */
#include "base/zone.h"

#include "base/memory.h"
#include "base/status.h"
#include <string.h>

#define ALIGNMENT 16
#define MIN_CHUNK_BYTES 1024
#define MAX_CHUNK_BYTES 65536

struct rnl_zone_chunk {
    struct rnl_zone_chunk *next;
    size_t used, capacity; /* of what follows this header */
    _Alignas(ALIGNMENT) unsigned char data[];
};

/* Chunks grow with the zone, so that a small one stays small and a large one needs few. */
static size_t wanted_chunk_bytes(const rnl_zone *zone, size_t needed)
{
    size_t bytes = zone->used_bytes;
    if (bytes < MIN_CHUNK_BYTES)
        bytes = MIN_CHUNK_BYTES;
    if (bytes > MAX_CHUNK_BYTES)
        bytes = MAX_CHUNK_BYTES;
    if (bytes < needed)
        bytes = needed;
    if (zone->limit_bytes && bytes > zone->limit_bytes - zone->used_bytes)
        bytes = needed;
    return bytes;
}

static rnl_status add_chunk(rnl_zone *zone, size_t data_bytes)
{
    size_t needed;
    if (!rnl_size_add(data_bytes, sizeof(struct rnl_zone_chunk), &needed))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "out of memory: %zu bytes were asked for", data_bytes);
    if (zone->limit_bytes && (zone->used_bytes > zone->limit_bytes || needed > zone->limit_bytes - zone->used_bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "more than the %zu bytes of memory allowed here are needed",
                    zone->limit_bytes);
    size_t bytes = wanted_chunk_bytes(zone, needed);
    struct rnl_zone_chunk *chunk;
    TRY(rnl_alloc(bytes, 1, &chunk));
    chunk->capacity = bytes - sizeof *chunk;
    zone->used_bytes += bytes;
    /* A chunk made for one large object leaves the current one in use, which may have more room left. */
    struct rnl_zone_chunk *head = zone->chunks;
    if (head && head->capacity - head->used > chunk->capacity - data_bytes) {
        chunk->next = head->next;
        head->next = chunk;
    } else {
        chunk->next = head;
        zone->chunks = chunk;
    }
    return RNL_OK;
}

static void *take(struct rnl_zone_chunk *chunk, size_t bytes)
{
    if (!chunk || chunk->capacity - chunk->used < bytes)
        return NULL;
    void *memory = chunk->data + chunk->used;
    chunk->used += bytes;
    return memory;
}

rnl_status rnl_zone_alloc(rnl_zone *zone, size_t count, size_t element_bytes, void *out_pointer)
{
    void *memory = NULL;
    memcpy(out_pointer, &memory, sizeof memory);
    size_t bytes;
    if (!rnl_size_mul(count, element_bytes, &bytes) || bytes > PTRDIFF_MAX - ALIGNMENT)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "out of memory: %zu elements of %zu bytes were asked for", count,
                    element_bytes);
    bytes = rnl_align_up(bytes ? bytes : 1, ALIGNMENT);
    memory = take(zone->chunks, bytes);
    if (!memory) {
        TRY(add_chunk(zone, bytes));
        memory = take(zone->chunks, bytes);
        if (!memory)
            memory = take(zone->chunks->next, bytes);
    }
    memcpy(out_pointer, &memory, sizeof memory);
    return RNL_OK;
}

rnl_status rnl_zone_text(rnl_zone *zone, const char *text, size_t length, const char **out_copy)
{
    *out_copy = NULL;
    if (length == SIZE_MAX)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "out of memory: a text of %zu bytes", length);
    char *copy;
    TRY(rnl_zone_alloc(zone, length + 1, 1, &copy));
    if (length)
        memcpy(copy, text, length);
    *out_copy = copy;
    return RNL_OK;
}

void rnl_zone_free(rnl_zone *zone)
{
    if (!zone)
        return;
    while (zone->chunks) {
        struct rnl_zone_chunk *next = zone->chunks->next;
        rnl_free(zone->chunks);
        zone->chunks = next;
    }
    zone->used_bytes = 0;
}
