/* SPDX-License-Identifier: Apache-2.0 */
/* Where a block comes from that is not at hand, and what is tried before a request is refused. */
#include "device/pool_parts.h"

#include "base/memory.h"

/* ---- What is refused ---- */

static size_t greatest(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

typedef struct free_memory {
    size_t total, largest;
} free_memory;

/* What could be given to a request now. */
static free_memory measure(const struct rnl_pool *pool, const rnl_pool_want *want)
{
    size_t room = rnl_pool_room(pool) + pool->idle_bytes;
    free_memory found = {0, 0};
    for (rnl_link *link = want->kind->chunks.next; link != &want->kind->chunks; link = link->next)
        rnl_chunk_measure(RNL_ELEMENT(rnl_chunk, link, link), &found.total, &found.largest);
    found.total += room;
    room = least(room, (size_t)pool->device->info.max_allocation_bytes);
    if (want->request->own_memory || room > found.largest)
        found.largest = room;
    return found;
}

#define REFUSAL                                                                                                        \
    "%zu bytes of memory were asked for on %s, where %zu of the %zu bytes allowed are in use; %zu are free, in one "   \
    "piece at most %zu"

/* `status`: the driver's answer, whose error record is the thread's, or RNL_OK when it was not asked. */
static rnl_status refuse(const struct rnl_pool *pool, const rnl_pool_want *want, rnl_status status)
{
    const free_memory found = measure(pool, want);
    const char *name = pool->device->info.name;
    size_t asked = want->request->size_bytes;
    if (status != RNL_OK)
        return rnl_error_add(status, REFUSAL, asked, name, pool->in_use, pool->budget, found.total, found.largest);
    return FAIL(RNL_RESOURCE_EXHAUSTED, REFUSAL, asked, name, pool->in_use, pool->budget, found.total, found.largest);
}

/* ---- Pieces of chunks ---- */

/* *out_block is NULL where no chunk has room. */
static rnl_status cut(struct rnl_pool *pool, const rnl_pool_want *want, rnl_pool_block **out_block)
{
    rnl_pool_kind *kind = want->kind;
    rnl_pool_block *block = NULL;
    for (rnl_link *link = kind->chunks.next; link != &kind->chunks && !block; link = link->next)
        TRY(rnl_chunk_cut(RNL_ELEMENT(rnl_chunk, link, link), want->bytes, &pool->spares, &block));
    if (!block)
        return RNL_OK;
    rnl_status status = rnl_pool_open_piece(block);
    if (status != RNL_OK) {
        block->chunk->busy--;
        rnl_chunk_join(block->chunk, block, &pool->spares);
        return status;
    }
    kind->chunk_busy_bytes += block->capacity_bytes;
    *out_block = block;
    return RNL_OK;
}

static rnl_status cut_or_join(struct rnl_pool *pool, const rnl_pool_want *want, rnl_pool_block **out_block)
{
    TRY(cut(pool, want, out_block));
    if (*out_block || want->kind->ready_bytes == 0)
        return RNL_OK;
    rnl_pool_join_ready(pool, want->kind, 0);
    return cut(pool, want, out_block);
}

/* Random releases leave holes of about a quarter of what is in use: a new chunk has four times as much, so that most of
 * what is free is in one piece. */
static size_t chunk_bytes(const struct rnl_pool *pool, const rnl_pool_want *want)
{
    size_t bytes = greatest(want->kind->first_chunk_bytes, 4 * (want->kind->chunk_busy_bytes + want->bytes));
    bytes = least(bytes, greatest(pool->budget / 4, want->kind->first_chunk_bytes));
    bytes = least(bytes, (size_t)pool->device->info.max_allocation_bytes);
    return least(bytes, rnl_pool_room(pool)) & ~(pool->align - 1);
}

/* *out_block is NULL where the request has to have a cl_mem of its own. */
static rnl_status place_in_chunk(struct rnl_pool *pool, const rnl_pool_want *want, rnl_pool_block **out_block)
{
    rnl_chunk *chunk;
    TRY(cut_or_join(pool, want, out_block));
    if (*out_block)
        return RNL_OK;
    size_t bytes = chunk_bytes(pool, want);
    if (bytes < 2 * want->bytes)
        return RNL_OK;
    rnl_status status = rnl_pool_make_chunk(pool, want->request->kind, bytes, &chunk);
    if (status == RNL_RESOURCE_EXHAUSTED) /* there may be less */
        return RNL_OK;
    TRY(status);
    return cut(pool, want, out_block);
}

/* ---- Blocks of their own ---- */

/* The latest released block of just that capacity. */
static rnl_pool_block *take_equal(struct rnl_pool *pool, const rnl_pool_want *want)
{
    const rnl_link *list = &want->kind->ready[want->index];
    for (rnl_link *link = list->next; link != list; link = link->next) {
        rnl_pool_block *block = RNL_ELEMENT(rnl_pool_block, in_class, link);
        if (block->capacity_bytes != want->bytes)
            continue;
        rnl_pool_unrest(pool, block);
        return block;
    }
    return NULL;
}

/* Near the budget a block is exactly as large as was asked, and so below its class. */
static rnl_pool_block *take_unrounded(struct rnl_pool *pool, const rnl_pool_want *want)
{
    rnl_pool_kind *kind = want->kind;
    if (pool->exact)
        return take_equal(pool, want);
    if (want->index == 0 || rnl_list_is_empty(&kind->ready[want->index - 1]))
        return NULL;
    rnl_pool_block *block = RNL_ELEMENT(rnl_pool_block, in_class, kind->ready[want->index - 1].next);
    if (block->chunk || block->capacity_bytes < want->request->size_bytes)
        return NULL;
    rnl_pool_unrest(pool, block);
    return block;
}

/* How large the block can be, after idle ones were released for it; 0: there is no room. */
static size_t make_room(struct rnl_pool *pool, const rnl_pool_want *want)
{
    size_t asked = want->request->size_bytes, wanted = want->bytes;
    if (wanted > pool->device->info.max_allocation_bytes || wanted > rnl_pool_room(pool) + pool->idle_bytes)
        wanted = asked;
    if (rnl_pool_room(pool) < wanted) {
        size_t lacking = wanted - rnl_pool_room(pool);
        rnl_pool_release_idle(pool, pool->idle_bytes > lacking ? pool->idle_bytes - lacking : 0);
    }
    if (rnl_pool_room(pool) < wanted)
        rnl_pool_release_all(pool);
    return rnl_pool_room(pool) < wanted ? 0 : wanted;
}

static rnl_status place_alone(struct rnl_pool *pool, const rnl_pool_want *want, rnl_pool_block **out_block)
{
    rnl_status refused = RNL_OK;
    *out_block = take_unrounded(pool, want);
    if (*out_block)
        return RNL_OK;
    size_t bytes = make_room(pool, want);
    if (bytes) {
        rnl_status status = rnl_pool_make_own(pool, want->request, bytes, out_block);
        if (status == RNL_RESOURCE_EXHAUSTED) {
            rnl_pool_release_all(pool);
            status = refused = rnl_pool_make_own(pool, want->request, bytes, out_block);
        }
        if (status != RNL_RESOURCE_EXHAUSTED)
            return status;
    }
    if (!want->request->own_memory && !pool->exact) {
        TRY(cut_or_join(pool, want, out_block));
        if (*out_block)
            return RNL_OK;
    }
    return refuse(pool, want, refused);
}

/* ---- */

static rnl_status attempt(struct rnl_pool *pool, const rnl_pool_want *want, rnl_pool_block **out_block)
{
    *out_block = NULL;
    rnl_pool_collect(pool);
    if (!pool->exact && !want->request->own_memory)
        *out_block = rnl_pool_pop(pool, want->kind, want->index);
    if (!*out_block && want->shares)
        TRY(place_in_chunk(pool, want, out_block));
    return *out_block ? RNL_OK : place_alone(pool, want, out_block);
}

rnl_status rnl_pool_find_room(struct rnl_pool *pool, const rnl_pool_want *want, rnl_pool_block **out_block)
{
    rnl_status status = attempt(pool, want, out_block);
    while (status == RNL_RESOURCE_EXHAUSTED && rnl_pool_wait(pool))
        status = attempt(pool, want, out_block);
    return status;
}
