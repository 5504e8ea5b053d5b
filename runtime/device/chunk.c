/* SPDX-License-Identifier: Apache-2.0 */
#include "device/chunk.h"

#include "base/memory.h"
#include "base/status.h"
#include <string.h>

/* ---- Spare structures ---- */

void rnl_spares_init(rnl_spares *spares)
{
    rnl_list_init(&spares->list);
}

void rnl_spares_free(rnl_spares *spares)
{
    while (!rnl_list_is_empty(&spares->list)) {
        rnl_link *link = spares->list.next;
        rnl_list_remove(link);
        rnl_free(RNL_ELEMENT(rnl_pool_block, in_class, link));
    }
}

rnl_status rnl_spares_take(rnl_spares *spares, rnl_pool_block **out_block)
{
    if (rnl_list_is_empty(&spares->list))
        return rnl_alloc(1, sizeof **out_block, out_block);
    rnl_link *link = spares->list.next;
    rnl_list_remove(link);
    *out_block = RNL_ELEMENT(rnl_pool_block, in_class, link);
    memset(*out_block, 0, sizeof **out_block);
    return RNL_OK;
}

void rnl_spares_put(rnl_spares *spares, rnl_pool_block *block)
{
    rnl_list_add_first(&spares->list, &block->in_class);
}

/* ---- The index of free pieces ---- */

static void add_free(rnl_chunk *chunk, rnl_pool_block *block)
{
    size_t index = rnl_pool_class_index(block->capacity_bytes, chunk->align_bytes);
    block->state = RNL_BLOCK_FREE;
    block->class_index = (uint16_t)index;
    rnl_list_add_first(&chunk->free[index], &block->in_class);
    chunk->filled[index / 64] |= UINT64_C(1) << index % 64;
}

static void remove_free(rnl_chunk *chunk, rnl_pool_block *block)
{
    size_t index = block->class_index;
    rnl_list_remove(&block->in_class);
    if (rnl_list_is_empty(&chunk->free[index]))
        chunk->filled[index / 64] &= ~(UINT64_C(1) << index % 64);
}

/* The first class from `index` on that has a free piece; RNL_POOL_CLASSES: none has. */
static size_t first_filled(const rnl_chunk *chunk, size_t index)
{
    size_t word = index / 64;
    uint64_t bits = chunk->filled[word] & ~UINT64_C(0) << index % 64;
    while (!bits && ++word < RNL_POOL_CLASSES / 64)
        bits = chunk->filled[word];
    return bits ? word * 64 + (size_t)__builtin_ctzll(bits) : RNL_POOL_CLASSES;
}

#define MOST_LOOKED_AT 64

/* Low places first: the upper end of a chunk stays in one piece. */
static rnl_pool_block *lowest(const rnl_link *list)
{
    rnl_pool_block *best = RNL_ELEMENT(rnl_pool_block, in_class, list->next);
    size_t looked_at = 0;
    for (rnl_link *link = list->next; link != list && looked_at < MOST_LOOKED_AT; link = link->next, looked_at++) {
        rnl_pool_block *block = RNL_ELEMENT(rnl_pool_block, in_class, link);
        if (block->offset < best->offset)
            best = block;
    }
    return best;
}

/* ---- Chunks ---- */

rnl_status rnl_chunk_create(rnl_memory kind, size_t size_bytes, size_t align_bytes, rnl_spares *spares,
                            rnl_chunk **out_chunk)
{
    rnl_chunk *chunk;
    rnl_pool_block *block;
    *out_chunk = NULL;
    TRY(rnl_alloc(1, sizeof *chunk, &chunk));
    rnl_status status = rnl_spares_take(spares, &block);
    if (status != RNL_OK) {
        rnl_free(chunk);
        return status;
    }
    for (size_t i = 0; i < RNL_POOL_CLASSES; i++)
        rnl_list_init(&chunk->free[i]);
    chunk->size_bytes = size_bytes;
    chunk->align_bytes = align_bytes;
    chunk->first = block;
    block->chunk = chunk;
    block->kind = kind;
    block->capacity_bytes = size_bytes;
    add_free(chunk, block);
    *out_chunk = chunk;
    return RNL_OK;
}

void rnl_chunk_destroy(rnl_chunk *chunk, rnl_spares *spares)
{
    for (rnl_pool_block *block = chunk->first, *upper; block; block = upper) {
        upper = block->upper;
        rnl_spares_put(spares, block);
    }
    rnl_free(chunk);
}

/* What `block`, which is in no list, has above `size_bytes` becomes a free piece. */
static rnl_status split(rnl_chunk *chunk, rnl_pool_block *block, size_t size_bytes, rnl_spares *spares)
{
    rnl_pool_block *rest;
    if (block->capacity_bytes == size_bytes)
        return RNL_OK;
    TRY(rnl_spares_take(spares, &rest));
    rest->chunk = chunk;
    rest->kind = block->kind;
    rest->offset = block->offset + size_bytes;
    rest->capacity_bytes = block->capacity_bytes - size_bytes;
    rest->lower = block;
    rest->upper = block->upper;
    if (rest->upper)
        rest->upper->lower = rest;
    block->upper = rest;
    block->capacity_bytes = size_bytes;
    add_free(chunk, rest);
    return RNL_OK;
}

rnl_status rnl_chunk_cut(rnl_chunk *chunk, size_t size_bytes, rnl_spares *spares, rnl_pool_block **out_block)
{
    size_t index = rnl_pool_class_index(size_bytes, chunk->align_bytes);
    *out_block = NULL;
    size_t filled = first_filled(chunk, index);
    if (filled == RNL_POOL_CLASSES)
        return RNL_OK;
    rnl_pool_block *block = lowest(&chunk->free[filled]);
    if (block->capacity_bytes < size_bytes) /* the last class holds all sizes above it */
        return RNL_OK;
    remove_free(chunk, block);
    rnl_status status = split(chunk, block, size_bytes, spares);
    if (status != RNL_OK) {
        add_free(chunk, block);
        return status;
    }
    block->state = RNL_BLOCK_IN_USE;
    block->class_index = (uint16_t)index;
    chunk->busy++;
    *out_block = block;
    return RNL_OK;
}

/* `upper` becomes part of `lower`, its neighbour. */
static void merge(rnl_pool_block *lower, rnl_pool_block *upper, rnl_spares *spares)
{
    lower->capacity_bytes += upper->capacity_bytes;
    lower->upper = upper->upper;
    if (lower->upper)
        lower->upper->lower = lower;
    rnl_spares_put(spares, upper);
}

void rnl_chunk_join(rnl_chunk *chunk, rnl_pool_block *block, rnl_spares *spares)
{
    rnl_pool_block *lower = block->lower, *upper = block->upper;
    if (upper && upper->state == RNL_BLOCK_FREE) {
        remove_free(chunk, upper);
        merge(block, upper, spares);
    }
    if (lower && lower->state == RNL_BLOCK_FREE) {
        remove_free(chunk, lower);
        merge(lower, block, spares);
        block = lower;
    }
    add_free(chunk, block);
}

void rnl_chunk_measure(const rnl_chunk *chunk, size_t *free_bytes, size_t *largest_bytes)
{
    size_t run = 0;
    for (const rnl_pool_block *block = chunk->first; block; block = block->upper) {
        if (block->state != RNL_BLOCK_FREE && block->state != RNL_BLOCK_READY) {
            run = 0;
            continue;
        }
        run += block->capacity_bytes;
        *free_bytes += block->capacity_bytes;
        if (run > *largest_bytes)
            *largest_bytes = run;
    }
}
