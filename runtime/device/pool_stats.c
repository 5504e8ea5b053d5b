/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pool_parts.h"

#include "base/log.h"
#include <string.h>

void rnl_pool_get_stats(struct rnl_pool *pool, rnl_device_stats *out_stats)
{
    pthread_mutex_lock(&pool->lock);
    out_stats->pool_in_use_bytes = pool->in_use;
    out_stats->pool_reserved_bytes = pool->reserved;
    out_stats->pool_peak_bytes = pool->peak;
    out_stats->pool_budget_bytes = pool->budget;
    pthread_mutex_unlock(&pool->lock);
}

static void measure(const rnl_pool_kind *kind, rnl_pool_stats *stats)
{
    for (const rnl_link *link = kind->chunks.next; link != &kind->chunks; link = link->next)
        rnl_chunk_measure(RNL_ELEMENT(const rnl_chunk, link, (rnl_link *)(uintptr_t)link), &stats->free_bytes,
                          &stats->largest_free_bytes);
    if (stats->free_bytes > 0)
        stats->fragmentation = 1 - (double)stats->largest_free_bytes / (double)stats->free_bytes;
}

void rnl_device_pool_stats(const rnl_device *device, rnl_memory memory, rnl_pool_stats *out_stats)
{
    struct rnl_pool *pool = device->pool;
    const rnl_pool_kind *kind = rnl_pool_kind_of(pool, memory);
    pthread_mutex_lock(&pool->lock);
    *out_stats = (rnl_pool_stats){.buffers = kind->buffers,
                                  .in_use_bytes = kind->in_use,
                                  .asked_bytes = kind->asked,
                                  .peak_bytes = kind->peak,
                                  .pending_bytes = kind->pending,
                                  .idle_bytes = kind->idle,
                                  .reserved_bytes = kind->reserved,
                                  .chunk_bytes = kind->chunk_bytes,
                                  .allocations = kind->allocations,
                                  .hits = kind->hits,
                                  .misses = kind->allocations - kind->hits,
                                  .driver_allocations = kind->driver_allocations};
    measure(kind, out_stats);
    pthread_mutex_unlock(&pool->lock);
}

void rnl_device_pool_trim(rnl_device *device)
{
    rnl_pool_trim(device->pool);
}

/* ---- Labels ---- */

/* What has no label is what all labels together leave. */
static rnl_pool_label_info without_label(const struct rnl_pool *pool)
{
    rnl_pool_label_info rest = {.label = ""};
    for (size_t i = 0; i < RNL_POOL_KINDS; i++) {
        rest.buffers += pool->kinds[i].buffers;
        rest.allocations += pool->kinds[i].allocations;
        rest.bytes += pool->kinds[i].asked;
    }
    for (size_t i = 0; i < RNL_POOL_LABEL_BUCKETS; i++)
        for (const rnl_pool_label *label = pool->labels[i]; label; label = label->next) {
            rest.buffers -= label->buffers;
            rest.allocations -= label->allocations;
            rest.bytes -= label->bytes;
        }
    return rest;
}

/* The label whose text follows `last`; NULL: there is none. */
static const rnl_pool_label *next_label(const struct rnl_pool *pool, const char *last)
{
    const rnl_pool_label *best = NULL;
    for (size_t i = 0; i < RNL_POOL_LABEL_BUCKETS; i++)
        for (const rnl_pool_label *label = pool->labels[i]; label; label = label->next)
            if (strcmp(label->name, last) > 0 && (!best || strcmp(label->name, best->name) < 0))
                best = label;
    return best;
}

static void add(rnl_pool_label_info *labels, size_t capacity, size_t *count, const rnl_pool_label_info *info)
{
    if (*count < capacity)
        labels[*count] = *info;
    ++*count;
}

void rnl_device_pool_labels(const rnl_device *device, rnl_pool_label_info *out_labels, size_t capacity,
                            size_t *out_count)
{
    struct rnl_pool *pool = device->pool;
    *out_count = 0;
    pthread_mutex_lock(&pool->lock);
    rnl_pool_label_info info = without_label(pool);
    if (info.allocations > 0)
        add(out_labels, capacity, out_count, &info);
    for (const rnl_pool_label *label = next_label(pool, ""); label; label = next_label(pool, label->name)) {
        info = (rnl_pool_label_info){.label = label->name,
                                     .buffers = label->buffers,
                                     .allocations = label->allocations,
                                     .bytes = label->bytes,
                                     .peak_bytes = label->peak_bytes};
        add(out_labels, capacity, out_count, &info);
    }
    pthread_mutex_unlock(&pool->lock);
}

static void warn(const rnl_device *device, const rnl_pool_label_info *info)
{
    if (info->buffers > 0)
        rnl_log(RNL_LOG_WARNING, "%s: %llu buffer%s %s%s%s not released: %zu bytes", device->info.name,
                (unsigned long long)info->buffers, info->buffers == 1 ? "" : "s",
                *info->label ? "labelled '" : "without a label", info->label, *info->label ? "'" : "", info->bytes);
}

uint64_t rnl_device_pool_report(const rnl_device *device)
{
    struct rnl_pool *pool = device->pool;
    uint64_t buffers = 0;
    const rnl_pool_label *label = NULL;
    pthread_mutex_lock(&pool->lock);
    rnl_pool_label_info info = without_label(pool);
    pthread_mutex_unlock(&pool->lock);
    do { /* without the lock while a caller's function is called */
        warn(device, &info);
        buffers += info.buffers;
        pthread_mutex_lock(&pool->lock);
        label = next_label(pool, info.label);
        if (label)
            info = (rnl_pool_label_info){.label = label->name, .buffers = label->buffers, .bytes = label->bytes};
        pthread_mutex_unlock(&pool->lock);
    } while (label);
    return buffers;
}
