/* SPDX-License-Identifier: Apache-2.0 */
/* Plans by key, least recently used first out, limited in bytes; one builder for a key while others wait. */
#ifndef RUNNEL_MODEL_PLAN_CACHE_H
#define RUNNEL_MODEL_PLAN_CACHE_H

#include "base/hash.h"
#include "model/plan.h"
#include <pthread.h>

typedef struct rnl_plan_entry rnl_plan_entry;

typedef struct rnl_plan_cache {
    pthread_mutex_t lock;
    pthread_cond_t built;
    rnl_plan_entry *entries; /* most recently used first */
    size_t count, size_bytes, limit_bytes;
    uint64_t plans_built, plans_evicted, last_plan_ns;
    size_t program_count; /* distinct, over all plans built */
    rnl_program **programs;
    size_t program_capacity;
} rnl_plan_cache;

typedef rnl_status (*rnl_plan_build_fn)(void *user, rnl_plan **out_plan);

RNL_NODISCARD rnl_status rnl_plan_cache_init(rnl_plan_cache *cache, size_t limit_bytes);
void rnl_plan_cache_free(rnl_plan_cache *cache);
/* Finds or builds. The plan is released by the caller. A failed build leaves nothing behind: the next caller tries
 * again. */
RNL_NODISCARD rnl_status rnl_plan_cache_get(rnl_plan_cache *cache, const void *key, size_t key_bytes,
                                            rnl_plan_build_fn build, void *user, rnl_plan **out_plan);
/* Evicts every plan that is built. */
void rnl_plan_cache_forget(rnl_plan_cache *cache);

#endif
