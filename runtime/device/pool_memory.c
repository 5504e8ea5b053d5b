/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's objects behind the pool's blocks. */
#include "device/pool_parts.h"

#include "base/memory.h"
#include "device/wrap.h"

#define LARGE_BYTES ((size_t)4 << 20) /* whose pages are to be large ones */

static rnl_status get_map_queue(struct rnl_pool *pool)
{
    cl_int code = CL_SUCCESS;
    if (!pool->map_queue)
        pool->map_queue = CL_NEW(&code, clCreateCommandQueue(pool->device->context, pool->device->id, 0, &code));
    return rnl_cl_status(code, "clCreateCommandQueue");
}

/* Drivers fail whatever stands behind a failed command: the next one gets another queue. */
static void drop_map_queue(struct rnl_pool *pool)
{
    clReleaseCommandQueue(pool->map_queue);
    pool->map_queue = NULL;
}

static rnl_status map_memory(struct rnl_pool *pool, cl_mem memory, size_t bytes, void **out_host)
{
    cl_int code;
    TRY(get_map_queue(pool));
    *out_host = CL_NEW(&code, clEnqueueMapBuffer(pool->map_queue, memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, bytes,
                                                 0, NULL, NULL, &code));
    if (code != CL_SUCCESS)
        drop_map_queue(pool);
    return rnl_cl_status(code, "clEnqueueMapBuffer");
}

static void release_memory(struct rnl_pool *pool, cl_mem memory, void *host)
{
    if (host && get_map_queue(pool) == RNL_OK) {
        if (clEnqueueUnmapMemObject(pool->map_queue, memory, host, 0, NULL, NULL) != CL_SUCCESS ||
            clFinish(pool->map_queue) != CL_SUCCESS)
            drop_map_queue(pool);
    }
    if (memory)
        clReleaseMemObject(memory);
}

static void CL_CALLBACK unmap_large(cl_mem memory, void *host)
{
    (void)memory;
    rnl_memory_unmap_aligned(host);
}

/*
 * A CPU's memory, of ours: its driver's has small pages. Large ones are as many as the request fills: what is behind it
 * may stay untouched. NULL, and no failure: the driver's it is.
 */
static cl_mem create_large(const struct rnl_pool *pool, size_t bytes, size_t used_bytes)
{
    const rnl_error before = *rnl_last_error();
    void *host = rnl_memory_map_aligned(bytes);
    cl_mem memory = NULL;
    if (!host)
        return NULL;
    rnl_memory_prefer_large_pages(host, used_bytes);
    if (rnl_wrap_memory(pool->device, host, bytes, &memory) == RNL_OK &&
        CL(clSetMemObjectDestructorCallback(memory, unmap_large, host)) == RNL_OK)
        return memory;
    rnl_unwrap_memory(memory);
    rnl_memory_unmap_aligned(host);
    (void)rnl_error_restore(&before);
    return NULL;
}

/*
 * large_bytes: as many as are used, of a CPU's memory in large pages; 0: the driver's memory. Nobody touches it here,
 * so a driver that allocates lazily does so at its first use: the budget is the guard.
 */
static rnl_status create_memory(struct rnl_pool *pool, rnl_memory kind, size_t bytes, size_t large_bytes,
                                cl_mem *out_memory, void **out_host)
{
    cl_int code;
    cl_mem_flags flags = CL_MEM_READ_WRITE | (kind == RNL_MEMORY_PINNED ? CL_MEM_ALLOC_HOST_PTR : 0);
    *out_host = NULL;
    *out_memory = NULL;
    cl_mem memory = large_bytes > 0 ? create_large(pool, bytes, large_bytes) : NULL;
    if (!memory) {
        memory = CL_NEW(&code, clCreateBuffer(pool->device->context, flags, bytes, NULL, &code));
        TRY(rnl_cl_status(code, "clCreateBuffer"));
    }
    rnl_status status = kind == RNL_MEMORY_PINNED ? map_memory(pool, memory, bytes, out_host) : RNL_OK;
    if (status != RNL_OK) {
        release_memory(pool, memory, NULL);
        return status;
    }
    *out_memory = memory;
    pool->reserved += bytes;
    rnl_pool_kind_of(pool, kind)->reserved += bytes;
    rnl_pool_kind_of(pool, kind)->driver_allocations++;
    return RNL_OK;
}

static void destroy_memory(struct rnl_pool *pool, rnl_memory kind, size_t bytes, cl_mem memory, void *host)
{
    release_memory(pool, memory, host);
    pool->reserved -= bytes;
    rnl_pool_kind_of(pool, kind)->reserved -= bytes;
}

rnl_status rnl_pool_make_own(struct rnl_pool *pool, const rnl_pool_request *request, size_t bytes,
                             rnl_pool_block **out_block)
{
    const rnl_memory kind = request->kind;
    const bool is_large =
        kind == RNL_MEMORY_DEVICE && pool->device->maps_in_place && !pool->exact && request->size_bytes >= LARGE_BYTES;
    rnl_pool_block *block;
    *out_block = NULL;
    TRY(rnl_spares_take(&pool->spares, &block));
    rnl_status status =
        create_memory(pool, kind, bytes, is_large ? request->size_bytes : 0, &block->memory, &block->host);
    if (status != RNL_OK) {
        rnl_spares_put(&pool->spares, block);
        return status;
    }
    block->kind = kind;
    block->capacity_bytes = bytes;
    block->class_index = (uint16_t)rnl_pool_class_index(bytes, pool->align);
    *out_block = block;
    return RNL_OK;
}

void rnl_pool_drop_own(struct rnl_pool *pool, rnl_pool_block *block)
{
    destroy_memory(pool, block->kind, block->capacity_bytes, block->memory, block->host);
    if (pool->keeps_nothing)
        rnl_free(block); /* a checker sees who uses the buffer after its release */
    else
        rnl_spares_put(&pool->spares, block);
}

static void insert_by_size(rnl_link *chunks, rnl_chunk *chunk)
{
    rnl_link *at = chunks->next;
    while (at != chunks && RNL_ELEMENT(rnl_chunk, link, at)->size_bytes > chunk->size_bytes)
        at = at->next;
    rnl_list_add_last(at, &chunk->link);
}

/* No piece starts where its chunk does: pocl (3.1) leaves out a copy from a host pointer that is the start of the
 * cl_mem that it writes, also where it writes to another place of it. */
static size_t chunk_start(const struct rnl_pool *pool)
{
    return pool->align;
}

rnl_status rnl_pool_make_chunk(struct rnl_pool *pool, rnl_memory kind, size_t bytes, rnl_chunk **out_chunk)
{
    rnl_chunk *chunk;
    *out_chunk = NULL;
    TRY(rnl_chunk_create(kind, bytes - chunk_start(pool), pool->align, &pool->spares, &chunk));
    rnl_status status = create_memory(pool, kind, bytes, 0, &chunk->memory, &chunk->host);
    if (status != RNL_OK) {
        rnl_chunk_destroy(chunk, &pool->spares);
        return status;
    }
    chunk->start = chunk_start(pool);
    rnl_pool_kind_of(pool, kind)->chunk_bytes += bytes;
    insert_by_size(&rnl_pool_kind_of(pool, kind)->chunks, chunk);
    *out_chunk = chunk;
    return RNL_OK;
}

void rnl_pool_drop_chunk(struct rnl_pool *pool, rnl_pool_kind *kind, rnl_chunk *chunk)
{
    for (rnl_pool_block *block = chunk->first; block; block = block->upper)
        if (block->state == RNL_BLOCK_READY) {
            rnl_pool_unrest(pool, block);
            rnl_pool_close_piece(block);
        }
    kind->chunk_bytes -= chunk->start + chunk->size_bytes;
    rnl_list_remove(&chunk->link);
    destroy_memory(pool, chunk->first->kind, chunk->start + chunk->size_bytes, chunk->memory, chunk->host);
    rnl_chunk_destroy(chunk, &pool->spares);
}

rnl_status rnl_pool_open_piece(rnl_pool_block *block)
{
    const size_t origin = block->chunk->start + block->offset;
    const cl_buffer_region region = {origin, block->capacity_bytes};
    cl_int code;
    block->memory =
        CL_NEW(&code, clCreateSubBuffer(block->chunk->memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    block->host = block->chunk->host ? (char *)block->chunk->host + origin : NULL;
    return rnl_cl_status(code, "clCreateSubBuffer");
}

void rnl_pool_close_piece(rnl_pool_block *block)
{
    if (block->memory)
        clReleaseMemObject(block->memory);
    block->memory = NULL;
    block->host = NULL;
}
