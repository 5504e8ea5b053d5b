/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pool.h"

#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

struct rnl_pool {
    rnl_device *device; /* which owns the pool */
    pthread_mutex_t lock;
    cl_command_queue map_queue;      /* maps pinned blocks; made with the first one */
    rnl_pool_block *newest, *oldest; /* free blocks */
    size_t in_use, idle, peak, budget;
    bool exact; /* no rounding up, so that tools which know a buffer's size see accesses past it */
};

rnl_status rnl_pool_create(struct rnl_device *device, uint64_t budget_bytes, struct rnl_pool **out_pool)
{
    struct rnl_pool *pool;
    *out_pool = NULL;
    TRY(rnl_alloc(1, sizeof *pool, &pool));
    const char *arena = getenv("RUNNEL_ARENA");
    pool->device = device;
    pool->budget = budget_bytes > SIZE_MAX ? SIZE_MAX : (size_t)budget_bytes;
    pool->exact = arena && strcmp(arena, "off") == 0;
    pthread_mutex_init(&pool->lock, NULL);
    *out_pool = pool;
    return RNL_OK;
}

size_t rnl_pool_class_bytes(size_t size_bytes, size_t align_bytes)
{
    size_t step = align_bytes;
    /* Eight classes to each power of two. */
    while (step <= SIZE_MAX / 32 && step * 16 <= size_bytes)
        step *= 2;
    return size_bytes > SIZE_MAX - step ? size_bytes : rnl_align_up(size_bytes, step);
}

/* ---- The list of free blocks ---- */

static void unlink_block(struct rnl_pool *pool, rnl_pool_block *block)
{
    *(block->previous ? &block->previous->next : &pool->newest) = block->next;
    *(block->next ? &block->next->previous : &pool->oldest) = block->previous;
    block->next = block->previous = NULL;
    pool->idle -= block->capacity_bytes;
}

static void link_block(struct rnl_pool *pool, rnl_pool_block *block)
{
    block->previous = NULL;
    block->next = pool->newest;
    *(pool->newest ? &pool->newest->previous : &pool->oldest) = block;
    pool->newest = block;
    pool->idle += block->capacity_bytes;
}

static rnl_pool_block *find_free(struct rnl_pool *pool, rnl_memory kind, size_t size, size_t most)
{
    for (rnl_pool_block *block = pool->newest; block; block = block->next)
        if (block->kind == kind && block->capacity_bytes >= size && block->capacity_bytes <= most)
            return block;
    return NULL;
}

/* ---- Blocks ---- */

static void destroy_block(struct rnl_pool *pool, rnl_pool_block *block)
{
    if (!block)
        return;
    if (block->host &&
        clEnqueueUnmapMemObject(pool->map_queue, block->memory, block->host, 0, NULL, NULL) == CL_SUCCESS)
        clFinish(pool->map_queue);
    if (block->memory)
        clReleaseMemObject(block->memory);
    rnl_free(block);
}

/* Releases idle blocks, those longest idle first, until at most `keep` bytes of them are left. */
static bool release_idle(struct rnl_pool *pool, size_t keep)
{
    bool any = false;
    while (pool->oldest && pool->idle > keep) {
        rnl_pool_block *block = pool->oldest;
        unlink_block(pool, block);
        destroy_block(pool, block);
        any = true;
    }
    return any;
}

static rnl_status map_block(struct rnl_pool *pool, rnl_pool_block *block)
{
    cl_int code;
    if (!pool->map_queue) {
        pool->map_queue = CL_NEW(&code, clCreateCommandQueue(pool->device->context, pool->device->id, 0, &code));
        TRY(rnl_cl_status(code, "clCreateCommandQueue"));
    }
    block->host = CL_NEW(&code, clEnqueueMapBuffer(pool->map_queue, block->memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                                   0, block->capacity_bytes, 0, NULL, NULL, &code));
    return rnl_cl_status(code, "clEnqueueMapBuffer");
}

/* Nobody touches a new block here, so a driver that allocates lazily does so at its first use: the budget is the guard.
 */
static rnl_status create_block(struct rnl_pool *pool, rnl_memory kind, size_t capacity, rnl_pool_block **out_block)
{
    rnl_pool_block *block;
    cl_int code;
    cl_mem_flags flags = CL_MEM_READ_WRITE | (kind == RNL_MEMORY_PINNED ? CL_MEM_ALLOC_HOST_PTR : 0);
    TRY(rnl_alloc(1, sizeof *block, &block));
    block->kind = kind;
    block->capacity_bytes = capacity;
    block->memory = CL_NEW(&code, clCreateBuffer(pool->device->context, flags, capacity, NULL, &code));
    rnl_status status = rnl_cl_status(code, "clCreateBuffer");
    if (status == RNL_OK && kind == RNL_MEMORY_PINNED)
        status = map_block(pool, block);
    if (status != RNL_OK) {
        destroy_block(pool, block);
        return status;
    }
    *out_block = block;
    return RNL_OK;
}

/* ---- Taking and giving back ---- */

static rnl_status over_budget(const struct rnl_pool *pool, size_t size)
{
    return FAIL(RNL_RESOURCE_EXHAUSTED,
                "%zu bytes of memory were asked for on %s, where %zu of the %zu bytes allowed are in use", size,
                pool->device->info.name, pool->in_use, pool->budget);
}

/* A block of `capacity`, within the budget. */
static rnl_status make_room_and_create(struct rnl_pool *pool, rnl_memory kind, size_t capacity,
                                       rnl_pool_block **out_block)
{
    size_t left = pool->budget > pool->in_use ? pool->budget - pool->in_use : 0;
    if (capacity > left)
        return over_budget(pool, capacity);
    release_idle(pool, left - capacity);
    rnl_status status = create_block(pool, kind, capacity, out_block);
    if (status == RNL_RESOURCE_EXHAUSTED && release_idle(pool, 0))
        status = create_block(pool, kind, capacity, out_block);
    return status;
}

static rnl_status take_locked(struct rnl_pool *pool, rnl_memory kind, size_t size, rnl_pool_block **out_block)
{
    size_t align = pool->device->info.base_align_bytes, most = pool->device->info.max_allocation_bytes;
    size_t wanted = pool->exact ? size : rnl_pool_class_bytes(size, align);
    rnl_pool_block *block = find_free(pool, kind, size, wanted);
    if (block) {
        unlink_block(pool, block);
        *out_block = block;
        return RNL_OK;
    }
    /* Near a limit nothing is rounded up. */
    size_t left = pool->budget > pool->in_use ? pool->budget - pool->in_use : 0;
    if (wanted > most || wanted > left)
        wanted = size;
    return make_room_and_create(pool, kind, wanted, out_block);
}

rnl_status rnl_pool_take(struct rnl_pool *pool, rnl_memory kind, size_t size_bytes, rnl_pool_block **out_block)
{
    *out_block = NULL;
    if (size_bytes > pool->device->info.max_allocation_bytes)
        return FAIL(RNL_RESOURCE_EXHAUSTED,
                    "%zu bytes of memory were asked for in one piece on %s, whose largest allocation is %llu bytes",
                    size_bytes, pool->device->info.name, (unsigned long long)pool->device->info.max_allocation_bytes);
    pthread_mutex_lock(&pool->lock);
    rnl_status status = take_locked(pool, kind, size_bytes, out_block);
    if (status == RNL_OK) {
        pool->in_use += (*out_block)->capacity_bytes;
        if (pool->in_use > pool->peak)
            pool->peak = pool->in_use;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void rnl_pool_give_back(struct rnl_pool *pool, rnl_pool_block *block)
{
    pthread_mutex_lock(&pool->lock);
    pool->in_use -= block->capacity_bytes;
    link_block(pool, block);
    /* What is idle is memory that nothing else on the machine can use: a quarter of the budget is enough of it. */
    release_idle(pool, pool->budget / 4);
    pthread_mutex_unlock(&pool->lock);
}

void rnl_pool_trim(struct rnl_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    release_idle(pool, 0);
    pthread_mutex_unlock(&pool->lock);
}

void rnl_pool_get_stats(struct rnl_pool *pool, rnl_device_stats *out_stats)
{
    pthread_mutex_lock(&pool->lock);
    out_stats->pool_in_use_bytes = pool->in_use;
    out_stats->pool_reserved_bytes = pool->in_use + pool->idle;
    out_stats->pool_peak_bytes = pool->peak;
    out_stats->pool_budget_bytes = pool->budget;
    pthread_mutex_unlock(&pool->lock);
}

void rnl_pool_destroy(struct rnl_pool *pool)
{
    if (!pool)
        return;
    release_idle(pool, 0);
    if (pool->map_queue)
        clReleaseCommandQueue(pool->map_queue);
    pthread_mutex_destroy(&pool->lock);
    rnl_free(pool);
}
