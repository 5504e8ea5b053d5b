/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pool_parts.h"

#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

#define SHARED_BYTES ((size_t)128 << 10) /* what is larger has a cl_mem of its own */
#define FIRST_CHUNK_BYTES ((size_t)256 << 20)
#define FIRST_PINNED_CHUNK_BYTES ((size_t)16 << 20)

/* The first chunk is an eighth of the budget, but not more than `most`; 0: there are to be none. */
static void init_kind(rnl_pool_kind *kind, const struct rnl_pool *pool, size_t most)
{
    size_t bytes = pool->budget / 8;
    for (size_t i = 0; i < RNL_POOL_CLASSES; i++)
        rnl_list_init(&kind->ready[i]);
    rnl_list_init(&kind->ready_order);
    rnl_list_init(&kind->chunks);
    kind->first_chunk_bytes = (bytes < most ? bytes : most) & ~(pool->align - 1);
}

rnl_status rnl_pool_create(struct rnl_device *device, uint64_t budget_bytes, bool exact, struct rnl_pool **out_pool)
{
    struct rnl_pool *pool;
    *out_pool = NULL;
    TRY(rnl_alloc(1, sizeof *pool, &pool));
    const char *arena = getenv("RUNNEL_ARENA");
    pool->device = device;
    pool->budget = budget_bytes > SIZE_MAX ? SIZE_MAX : (size_t)budget_bytes;
    pool->align = device->info.base_align_bytes;
    pool->keeps_nothing = exact;
    pool->exact = exact || (arena && strcmp(arena, "off") == 0);
    init_kind(rnl_pool_kind_of(pool, RNL_MEMORY_DEVICE), pool, FIRST_CHUNK_BYTES);
    /* Where pinned memory has a side of its own on the device, parts of a mapped cl_mem are not asked for: few drivers
     * are tested with them, and pinned buffers are few and large. */
    init_kind(rnl_pool_kind_of(pool, RNL_MEMORY_PINNED), pool, device->maps_in_place ? FIRST_PINNED_CHUNK_BYTES : 0);
    rnl_list_init(&pool->idle);
    rnl_list_init(&pool->orders);
    rnl_spares_init(&pool->spares);
    pthread_mutex_init(&pool->lock, NULL);
    *out_pool = pool;
    return RNL_OK;
}

void rnl_pool_destroy(struct rnl_pool *pool)
{
    if (!pool)
        return;
    rnl_pool_free_orders(pool);
    rnl_pool_release_all(pool);
    if (pool->map_queue)
        clReleaseCommandQueue(pool->map_queue);
    rnl_pool_free_labels(pool);
    rnl_spares_free(&pool->spares);
    pthread_mutex_destroy(&pool->lock);
    rnl_free(pool);
}

/* ---- States ---- */

/* What is idle is memory that nothing else on the machine can use: a quarter of the budget is enough of it. */
static void rest_own(struct rnl_pool *pool, rnl_pool_kind *kind, rnl_pool_block *block)
{
    if (pool->keeps_nothing) {
        rnl_pool_drop_own(pool, block);
        return;
    }
    block->state = RNL_BLOCK_READY;
    rnl_list_add_first(&kind->ready[block->class_index], &block->in_class);
    rnl_list_add_first(&pool->idle, &block->in_order);
    kind->idle += block->capacity_bytes;
    pool->idle_bytes += block->capacity_bytes;
    if (pool->idle_bytes > pool->budget / 4)
        rnl_pool_release_idle(pool, pool->budget / 4);
}

/* Pieces that are ready stand in the way of joining: few of them are kept, and none outside the largest chunk, so that
 * the others become empty. */
static void rest_piece(struct rnl_pool *pool, rnl_pool_kind *kind, rnl_pool_block *block)
{
    rnl_chunk *chunk = block->chunk;
    chunk->busy--;
    kind->chunk_busy_bytes -= block->capacity_bytes;
    block->state = RNL_BLOCK_READY;
    rnl_list_add_first(&kind->ready[block->class_index], &block->in_class);
    rnl_list_add_first(&kind->ready_order, &block->in_order);
    kind->ready_bytes += block->capacity_bytes;
    if (kind->chunks.next != &chunk->link) {
        if (chunk->busy == 0)
            rnl_pool_drop_chunk(pool, kind, chunk);
        else
            rnl_pool_join(pool, block);
    } else if (kind->ready_bytes > kind->chunk_bytes / 64) {
        rnl_pool_join_ready(pool, kind, kind->chunk_bytes / 64);
    }
}

void rnl_pool_rest(struct rnl_pool *pool, rnl_pool_block *block)
{
    rnl_pool_kind *kind = rnl_pool_kind_of(pool, block->kind);
    if (block->chunk)
        rest_piece(pool, kind, block);
    else
        rest_own(pool, kind, block);
}

void rnl_pool_unrest(struct rnl_pool *pool, rnl_pool_block *block)
{
    rnl_pool_kind *kind = rnl_pool_kind_of(pool, block->kind);
    rnl_list_remove(&block->in_class);
    rnl_list_remove(&block->in_order);
    if (block->chunk) {
        kind->ready_bytes -= block->capacity_bytes;
    } else {
        kind->idle -= block->capacity_bytes;
        pool->idle_bytes -= block->capacity_bytes;
    }
}

rnl_pool_block *rnl_pool_pop(struct rnl_pool *pool, rnl_pool_kind *kind, size_t index)
{
    if (rnl_list_is_empty(&kind->ready[index]))
        return NULL;
    rnl_pool_block *block = RNL_ELEMENT(rnl_pool_block, in_class, kind->ready[index].next);
    rnl_pool_unrest(pool, block);
    if (block->chunk) {
        block->chunk->busy++;
        kind->chunk_busy_bytes += block->capacity_bytes;
    }
    return block;
}

/* ---- Taking and giving back ---- */

static void count_in(struct rnl_pool *pool, rnl_pool_kind *kind, rnl_pool_block *block, size_t asked)
{
    rnl_pool_label *label = block->label;
    block->state = RNL_BLOCK_IN_USE;
    block->asked_bytes = asked;
    kind->buffers++;
    kind->allocations++;
    kind->asked += asked;
    kind->in_use += block->capacity_bytes;
    kind->peak = kind->in_use > kind->peak ? kind->in_use : kind->peak;
    pool->in_use += block->capacity_bytes;
    pool->peak = pool->in_use > pool->peak ? pool->in_use : pool->peak;
    if (!label)
        return;
    label->buffers++;
    label->allocations++;
    label->bytes += asked;
    label->peak_bytes = label->bytes > label->peak_bytes ? label->bytes : label->peak_bytes;
}

static void count_out(struct rnl_pool *pool, rnl_pool_kind *kind, rnl_pool_block *block)
{
    kind->buffers--;
    kind->asked -= block->asked_bytes;
    kind->in_use -= block->capacity_bytes;
    pool->in_use -= block->capacity_bytes;
    if (!block->label)
        return;
    block->label->buffers--;
    block->label->bytes -= block->asked_bytes;
}

static rnl_status take_locked(struct rnl_pool *pool, const rnl_pool_request *request, rnl_pool_block **out_block)
{
    rnl_pool_kind *kind = rnl_pool_kind_of(pool, request->kind);
    rnl_pool_label *label = NULL;
    size_t bytes = pool->exact ? request->size_bytes : rnl_pool_class_bytes(request->size_bytes, pool->align);
    const rnl_pool_want want = {request, kind, bytes, rnl_pool_class_index(bytes, pool->align),
                                bytes <= SHARED_BYTES && bytes <= kind->first_chunk_bytes / 4 && !pool->exact &&
                                    !request->own_memory};
    if (request->label)
        TRY(rnl_pool_find_label(pool, request->label, &label));
    rnl_pool_block *block = NULL;
    if (request->stream && request->kind == RNL_MEMORY_DEVICE)
        block = rnl_pool_order_pop(pool, request->stream, want.index);
    if (!block && !pool->exact)
        block = rnl_pool_pop(pool, kind, want.index);
    if (block && request->own_memory && block->chunk) { /* seldom: large blocks are pieces only near the budget */
        rnl_pool_rest(pool, block);
        block = NULL;
    }
    if (block)
        kind->hits++;
    else
        TRY(rnl_pool_find_room(pool, &want, &block));
    block->label = label;
    count_in(pool, kind, block, request->size_bytes);
    *out_block = block;
    return RNL_OK;
}

rnl_status rnl_pool_take(struct rnl_pool *pool, const rnl_pool_request *request, rnl_pool_block **out_block)
{
    *out_block = NULL;
    if (request->size_bytes > pool->device->info.max_allocation_bytes)
        return FAIL(RNL_RESOURCE_EXHAUSTED,
                    "%zu bytes of memory were asked for in one piece on %s, whose largest allocation is %llu bytes",
                    request->size_bytes, pool->device->info.name,
                    (unsigned long long)pool->device->info.max_allocation_bytes);
    pthread_mutex_lock(&pool->lock);
    rnl_status status = take_locked(pool, request, out_block);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void rnl_pool_give_back(struct rnl_pool *pool, rnl_pool_block *block)
{
    pthread_mutex_lock(&pool->lock);
    count_out(pool, rnl_pool_kind_of(pool, block->kind), block);
    rnl_pool_rest(pool, block);
    pthread_mutex_unlock(&pool->lock);
}

void rnl_pool_give_back_after(struct rnl_pool *pool, rnl_pool_block *block, rnl_stream *stream)
{
    /* There others may not even ask how far the stream is: pocl's basic device (3.1) deadlocks when one thread asks for
     * the state of a command that another is running. */
    if (pool->device->runs_in_caller) {
        clFinish(stream->queue);
        rnl_pool_give_back(pool, block);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    count_out(pool, rnl_pool_kind_of(pool, block->kind), block);
    rnl_pool_order_add(pool, block, stream);
    pthread_mutex_unlock(&pool->lock);
}
