/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pool_parts.h"

#include "base/memory.h"
#include <string.h>

/* FNV-1a. */
static size_t bucket_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash % RNL_POOL_LABEL_BUCKETS;
}

rnl_status rnl_pool_find_label(struct rnl_pool *pool, const char *text, rnl_pool_label **out_label)
{
    rnl_pool_label **bucket = &pool->labels[bucket_of(text)];
    for (*out_label = *bucket; *out_label; *out_label = (*out_label)->next)
        if (strcmp((*out_label)->name, text) == 0)
            return RNL_OK;
    rnl_pool_label *label;
    size_t bytes = strlen(text) + 1;
    TRY(rnl_alloc(sizeof *label + bytes, 1, &label));
    memcpy(label->name, text, bytes);
    label->next = *bucket;
    *bucket = label;
    *out_label = label;
    return RNL_OK;
}

void rnl_pool_free_labels(struct rnl_pool *pool)
{
    for (size_t i = 0; i < RNL_POOL_LABEL_BUCKETS; i++)
        while (pool->labels[i]) {
            rnl_pool_label *label = pool->labels[i];
            pool->labels[i] = label->next;
            rnl_free(label);
        }
}
