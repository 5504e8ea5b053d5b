/* SPDX-License-Identifier: Apache-2.0 */
/* Giving memory back: to its neighbours, and to the driver. */
#include "device/pool_parts.h"

void rnl_pool_join(struct rnl_pool *pool, rnl_pool_block *block)
{
    rnl_pool_unrest(pool, block);
    rnl_pool_close_piece(block);
    rnl_chunk_join(block->chunk, block, &pool->spares);
}

void rnl_pool_join_ready(struct rnl_pool *pool, rnl_pool_kind *kind, size_t keep)
{
    while (!rnl_list_is_empty(&kind->ready_order) && kind->ready_bytes > keep)
        rnl_pool_join(pool, RNL_ELEMENT(rnl_pool_block, in_order, kind->ready_order.previous));
}

void rnl_pool_release_idle(struct rnl_pool *pool, size_t keep)
{
    while (!rnl_list_is_empty(&pool->idle) && pool->idle_bytes > keep) {
        rnl_pool_block *block = RNL_ELEMENT(rnl_pool_block, in_order, pool->idle.previous);
        rnl_pool_unrest(pool, block);
        rnl_pool_drop_own(pool, block);
    }
}

static void release_chunks(struct rnl_pool *pool, rnl_pool_kind *kind)
{
    for (rnl_link *link = kind->chunks.next, *next; link != &kind->chunks; link = next) {
        rnl_chunk *chunk = RNL_ELEMENT(rnl_chunk, link, link);
        next = link->next;
        if (chunk->busy == 0)
            rnl_pool_drop_chunk(pool, kind, chunk);
    }
}

void rnl_pool_release_all(struct rnl_pool *pool)
{
    rnl_pool_release_idle(pool, 0);
    for (size_t i = 0; i < RNL_POOL_KINDS; i++) {
        release_chunks(pool, &pool->kinds[i]);
        rnl_pool_join_ready(pool, &pool->kinds[i], 0);
    }
    rnl_spares_free(&pool->spares);
}

size_t rnl_pool_room(const struct rnl_pool *pool)
{
    return pool->budget > pool->reserved ? pool->budget - pool->reserved : 0;
}

void rnl_pool_trim(struct rnl_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    rnl_pool_collect(pool);
    rnl_pool_release_all(pool);
    pthread_mutex_unlock(&pool->lock);
}
