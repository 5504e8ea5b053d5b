/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/names.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include <string.h>

struct rnl_name_slot {
    uint32_t hash;
    uint32_t used; /* index + 1; 0 = free */
};

static uint32_t hash_of(const char *name, size_t length)
{
    return (uint32_t)rnl_hash_bytes(name, length).low;
}

static void put(rnl_names *names, struct rnl_name_slot slot)
{
    size_t mask = names->capacity - 1;
    size_t at = slot.hash & mask;
    while (names->slots[at].used)
        at = (at + 1) & mask;
    names->slots[at] = slot;
}

rnl_status rnl_names_reserve(rnl_names *names, size_t count)
{
    if (count >= UINT32_MAX / 2)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "%zu names are too many", count);
    size_t capacity = names->capacity ? names->capacity : 16;
    /* Fuller, what is not there is looked for in many slots. */
    while (capacity - capacity * 3 / 8 < count)
        capacity *= 2;
    if (capacity == names->capacity)
        return RNL_OK;
    rnl_names grown = {.capacity = capacity, .count = names->count};
    TRY(rnl_alloc(capacity, sizeof *grown.slots, &grown.slots));
    for (size_t i = 0; i < names->capacity; i++)
        if (names->slots[i].used)
            put(&grown, names->slots[i]);
    rnl_free(names->slots);
    *names = grown;
    return RNL_OK;
}

uint32_t rnl_names_find(const rnl_names *names, const void *elements, size_t element_bytes, const char *name,
                        size_t length)
{
    if (names->capacity == 0)
        return RNL_NAME_UNKNOWN;
    uint32_t hash = hash_of(name, length);
    size_t mask = names->capacity - 1;
    for (size_t at = hash & mask; names->slots[at].used; at = (at + 1) & mask) {
        if (names->slots[at].hash != hash)
            continue;
        uint32_t index = names->slots[at].used - 1;
        const char *key;
        memcpy(&key, (const char *)elements + index * element_bytes, sizeof key);
        if (strnlen(key, length + 1) == length && memcmp(key, name, length) == 0)
            return index;
    }
    return RNL_NAME_UNKNOWN;
}

void rnl_names_expect(const rnl_names *names, const char *name, size_t length)
{
    if (names->capacity)
        __builtin_prefetch(&names->slots[hash_of(name, length) & (names->capacity - 1)]);
}

rnl_status rnl_names_add(rnl_names *names, const char *name, size_t length, uint32_t index)
{
    TRY(rnl_names_reserve(names, names->count + 1));
    put(names, (struct rnl_name_slot){hash_of(name, length), index + 1});
    names->count++;
    return RNL_OK;
}

void rnl_names_free(rnl_names *names)
{
    rnl_free(names->slots);
    *names = (rnl_names){0};
}
