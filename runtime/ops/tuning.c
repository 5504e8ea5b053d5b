/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/tuning.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "kernel/cache.h"
#include "kernel/program.h"
#include "ops/deterministic.h"
#include "ops/tuning_shipped.h"
#include <stdlib.h>
#include <string.h>

#define TABLE_VERSION "tuning table 1"
#define MAX_ENTRIES ((size_t)1 << 20)

/* As it stands in the file. */
typedef struct tuning_entry {
    rnl_hash problem;
    uint64_t variant;
} tuning_entry;

struct rnl_tuning {
    tuning_entry *entries; /* sorted by problem */
    size_t count, capacity;
    const rnl_shipped_table *shipped; /* or NULL */
    uint32_t forced;
};

/* A problem with an entry's. */
static int compare(const void *left, const void *right)
{
    const rnl_hash *a = left, *b = &((const tuning_entry *)right)->problem;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    return (a->low > b->low) - (a->low < b->low);
}

static void free_table(struct rnl_tuning *table)
{
    if (table)
        rnl_free(table->entries);
    rnl_free(table);
}

static bool is_sorted(const tuning_entry *entries, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (compare(&entries[i - 1].problem, &entries[i]) >= 0)
            return false;
    return true;
}

static void warn(const rnl_device *device)
{
    rnl_log(RNL_LOG_WARNING, "the tuning table of %s is damaged: tune again, until then estimates choose",
            device->info.name);
}

/* What cannot be read is an empty table. */
static void read_table(rnl_device *device, struct rnl_tuning *table)
{
    rnl_hash key;
    void *data = NULL;
    size_t bytes = 0;
    if (rnl_program_cache_key(device, TABLE_VERSION, "", &key) != RNL_OK || !rnl_cache_has_file(key))
        return;
    if (!rnl_cache_read(key, &data, &bytes)) {
        warn(device);
        return;
    }
    const size_t count = bytes / sizeof *table->entries;
    if (bytes % sizeof *table->entries == 0 && count <= MAX_ENTRIES && is_sorted(data, count)) {
        table->entries = data;
        table->count = table->capacity = count;
        return;
    }
    rnl_free(data);
    warn(device);
}

/* With the device's lock held. */
static struct rnl_tuning *get_table(rnl_device *device)
{
    if (device->tuning)
        return device->tuning;
    struct rnl_tuning *table = NULL;
    if (rnl_alloc(1, sizeof *table, &table) != RNL_OK)
        return NULL;
    table->forced = RNL_TUNING_NONE;
    table->shipped = rnl_tuning_shipped_for(device);
    rnl_error error = *rnl_last_error();
    read_table(device, table);
    rnl_error_restore(&error);
    device->tuning = table;
    device->free_tuning = free_table;
    return table;
}

static const tuning_entry *find(const struct rnl_tuning *table, rnl_hash problem)
{
    return table && table->count ? bsearch(&problem, table->entries, table->count, sizeof *table->entries, compare)
                                 : NULL;
}

/* What is forced, where that counts, else what is noted, else what comes with the library. */
static uint32_t get(rnl_device *device, rnl_hash problem, uint32_t variants, bool or_forced)
{
    uint32_t variant = RNL_TUNING_NONE;
    pthread_mutex_lock(&device->lock);
    const struct rnl_tuning *table = get_table(device);
    const tuning_entry *found = find(table, problem);
    const uint32_t shipped = table ? rnl_tuning_shipped_get(table->shipped, problem) : RNL_TUNING_NONE;
    if (or_forced && table && table->forced < variants)
        variant = table->forced;
    else if (found && found->variant < variants)
        variant = (uint32_t)found->variant;
    else if (!found && shipped < variants)
        variant = shipped;
    pthread_mutex_unlock(&device->lock);
    return variant;
}

uint32_t rnl_tuning_get(rnl_device *device, rnl_hash problem, uint32_t variants)
{
    if (rnl_is_deterministic())
        return RNL_TUNING_NONE;
    return get(device, problem, variants, true);
}

uint32_t rnl_tuning_get_noted(rnl_device *device, rnl_hash problem, uint32_t variants)
{
    if (rnl_is_deterministic())
        return RNL_TUNING_NONE;
    return get(device, problem, variants, false);
}

rnl_status rnl_tuning_force(rnl_device *device, uint32_t variant)
{
    pthread_mutex_lock(&device->lock);
    struct rnl_tuning *table = get_table(device);
    if (table)
        table->forced = variant;
    pthread_mutex_unlock(&device->lock);
    return table ? RNL_OK : rnl_last_error()->status;
}

static rnl_status set(struct rnl_tuning *table, rnl_hash problem, uint32_t variant)
{
    size_t at = 0;
    while (at < table->count && compare(&problem, &table->entries[at]) > 0)
        at++;
    if (at == table->count || compare(&problem, &table->entries[at]) != 0) {
        if (table->count == MAX_ENTRIES)
            return FAIL(RNL_RESOURCE_EXHAUSTED, "the tuning table is full");
        TRY(rnl_grow(&table->entries, &table->capacity, table->count + 1, sizeof *table->entries));
        memmove(&table->entries[at + 1], &table->entries[at], (table->count - at) * sizeof *table->entries);
        table->count++;
    }
    table->entries[at] = (tuning_entry){problem, variant};
    return RNL_OK;
}

rnl_status rnl_tuning_set(rnl_device *device, rnl_hash problem, uint32_t variant)
{
    pthread_mutex_lock(&device->lock);
    struct rnl_tuning *table = get_table(device);
    const rnl_status status = table ? set(table, problem, variant) : rnl_last_error()->status;
    pthread_mutex_unlock(&device->lock);
    return status;
}

void rnl_tuning_save(rnl_device *device)
{
    rnl_hash key;
    rnl_error error = *rnl_last_error();
    pthread_mutex_lock(&device->lock);
    const struct rnl_tuning *table = get_table(device);
    if (table && rnl_cache_is_on() && rnl_program_cache_key(device, TABLE_VERSION, "", &key) == RNL_OK)
        rnl_cache_write(key, table->entries, table->count * sizeof *table->entries);
    pthread_mutex_unlock(&device->lock);
    rnl_error_restore(&error);
}
