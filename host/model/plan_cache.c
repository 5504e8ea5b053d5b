/* SPDX-License-Identifier: Apache-2.0 */
#include "model/plan_cache.h"

#include "base/clock.h"
#include "base/memory.h"
#include "device/trace.h"
#include <string.h>

struct rnl_plan_entry {
    struct rnl_plan_entry *next;
    rnl_plan *plan; /* NULL while its builder works */
    rnl_hash hash;
    size_t key_bytes;
    unsigned char key[];
};

rnl_status rnl_plan_cache_init(rnl_plan_cache *cache, size_t limit_bytes)
{
    *cache = (rnl_plan_cache){.limit_bytes = limit_bytes};
    if (pthread_mutex_init(&cache->lock, NULL) != 0)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no mutex for the plan cache");
    if (pthread_cond_init(&cache->built, NULL) != 0) {
        pthread_mutex_destroy(&cache->lock);
        return FAIL(RNL_RESOURCE_EXHAUSTED, "no condition variable for the plan cache");
    }
    return RNL_OK;
}

void rnl_plan_cache_free(rnl_plan_cache *cache)
{
    while (cache->entries) {
        rnl_plan_entry *entry = cache->entries;
        cache->entries = entry->next;
        rnl_plan_release(entry->plan);
        rnl_free(entry);
    }
    rnl_free(cache->programs);
    pthread_cond_destroy(&cache->built);
    pthread_mutex_destroy(&cache->lock);
}

/* Finds the entry and moves it to the front. */
static rnl_plan_entry *find(rnl_plan_cache *cache, rnl_hash hash, const void *key, size_t key_bytes)
{
    for (rnl_plan_entry **link = &cache->entries; *link; link = &(*link)->next) {
        rnl_plan_entry *entry = *link;
        if (!rnl_hash_equal(entry->hash, hash) || entry->key_bytes != key_bytes ||
            memcmp(entry->key, key, key_bytes) != 0)
            continue;
        *link = entry->next;
        entry->next = cache->entries;
        cache->entries = entry;
        return entry;
    }
    return NULL;
}

static void unlink_entry(rnl_plan_cache *cache, rnl_plan_entry *entry)
{
    for (rnl_plan_entry **link = &cache->entries; *link; link = &(*link)->next)
        if (*link == entry) {
            *link = entry->next;
            return;
        }
}

static void drop(rnl_plan_cache *cache, rnl_plan_entry *entry)
{
    unlink_entry(cache, entry);
    cache->count--;
    cache->plans_evicted++;
    cache->size_bytes -= entry->plan->size_bytes;
    rnl_plan_release(entry->plan);
    rnl_free(entry);
}

static rnl_plan_entry *oldest_built(const rnl_plan_cache *cache)
{
    rnl_plan_entry *oldest = NULL;
    for (rnl_plan_entry *entry = cache->entries; entry; entry = entry->next)
        if (entry->plan)
            oldest = entry;
    return oldest;
}

/* Evicts the oldest built plans past the limit, but never the newest one. */
static void evict(rnl_plan_cache *cache)
{
    while (cache->size_bytes > cache->limit_bytes && cache->count > 1)
        drop(cache, oldest_built(cache));
}

void rnl_plan_cache_forget(rnl_plan_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    while (cache->count > 0)
        drop(cache, oldest_built(cache));
    pthread_mutex_unlock(&cache->lock);
}

static void count_programs(rnl_plan_cache *cache, const rnl_plan *plan)
{
    for (size_t i = 0; i < plan->program_count; i++) {
        bool known = false;
        for (size_t j = 0; j < cache->program_count && !known; j++)
            known = cache->programs[j] == plan->programs[i];
        if (known || rnl_grow(&cache->programs, &cache->program_capacity, cache->program_count + 1,
                              sizeof *cache->programs) != RNL_OK)
            continue;
        cache->programs[cache->program_count++] = plan->programs[i];
    }
}

static rnl_status build_entry(rnl_plan_cache *cache, rnl_plan_entry *entry, rnl_plan_build_fn build, void *user)
{
    rnl_plan *plan = NULL;
    pthread_mutex_unlock(&cache->lock);
    const uint64_t start = rnl_trace_start();
    rnl_status status = build(user, &plan);
    rnl_trace_stop(start, "plan");
    pthread_mutex_lock(&cache->lock);
    pthread_cond_broadcast(&cache->built);
    if (status != RNL_OK) {
        unlink_entry(cache, entry);
        rnl_free(entry);
        return status;
    }
    entry->plan = plan;
    cache->count++;
    cache->plans_built++;
    cache->size_bytes += plan->size_bytes;
    count_programs(cache, plan);
    return RNL_OK;
}

rnl_status rnl_plan_cache_get(rnl_plan_cache *cache, const void *key, size_t key_bytes, rnl_plan_build_fn build,
                              void *user, rnl_plan **out_plan)
{
    *out_plan = NULL;
    rnl_hash hash = rnl_hash_bytes(key, key_bytes);
    rnl_status status = RNL_OK;
    pthread_mutex_lock(&cache->lock);
    rnl_plan_entry *entry = find(cache, hash, key, key_bytes);
    while (entry && !entry->plan) {
        pthread_cond_wait(&cache->built, &cache->lock);
        entry = find(cache, hash, key, key_bytes);
    }
    if (!entry) {
        GOTO(rnl_alloc(1, sizeof *entry + key_bytes, &entry));
        entry->hash = hash;
        entry->key_bytes = key_bytes;
        memcpy(entry->key, key, key_bytes);
        entry->next = cache->entries;
        cache->entries = entry;
        GOTO(build_entry(cache, entry, build, user));
    }
    *out_plan = rnl_plan_retain(entry->plan);
    evict(cache);
done:
    pthread_mutex_unlock(&cache->lock);
    return status;
}
