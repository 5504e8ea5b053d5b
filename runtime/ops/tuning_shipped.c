/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/tuning_shipped.h"
#include "ops/implementation.h"
#include <stdlib.h>
#include <unistd.h>

/* 0: unknown, which is no kind. */
static size_t cache_bytes(int name)
{
    const long bytes = sysconf(name);
    return bytes > 0 ? (size_t)bytes : 0;
}

const rnl_shipped_table *rnl_tuning_shipped_for(const rnl_device *device)
{
    const size_t first = cache_bytes(_SC_LEVEL1_DCACHE_SIZE), second = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
    const uint32_t threads = device->info.compute_units;
    if (!rnl_device_is_cpu(device))
        return NULL;
    for (const rnl_shipped_table *it = rnl_shipped_tables; it->vector_width; it++)
        if (it->vector_width == device->vector_width && it->first_cache == first && it->second_cache == second &&
            it->least_threads <= threads && threads <= it->most_threads)
            return it;
    return NULL;
}

static int compare(const void *left, const void *right)
{
    const rnl_hash *a = left, *b = &((const rnl_shipped_entry *)right)->problem;
    if (a->high != b->high)
        return a->high < b->high ? -1 : 1;
    return (a->low > b->low) - (a->low < b->low);
}

uint32_t rnl_tuning_shipped_get(const rnl_shipped_table *table, rnl_hash problem)
{
    const rnl_shipped_entry *found =
        table && table->count ? bsearch(&problem, table->entries, table->count, sizeof *table->entries, compare) : NULL;
    return found ? found->variant : UINT32_MAX;
}
