/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parts of a reserved block are free: splitting, joining, and finding room. Bookkeeping only: no OpenCL call is
 * made here, and a lock is the caller's.
 */
#ifndef RUNNEL_DEVICE_CHUNK_H
#define RUNNEL_DEVICE_CHUNK_H

#include "device/pool.h"
#include "device/pool_class.h"

/* Block structures that wait for their next use, so that splitting seldom allocates. */
typedef struct rnl_spares {
    rnl_link list;
} rnl_spares;

void rnl_spares_init(rnl_spares *spares);
void rnl_spares_free(rnl_spares *spares);
RNL_NODISCARD rnl_status rnl_spares_take(rnl_spares *spares, rnl_pool_block **out_block);
void rnl_spares_put(rnl_spares *spares, rnl_pool_block *block);

/* A reserved block that several buffers share. Its pieces tile it without gaps, in the order of their addresses. */
typedef struct rnl_chunk {
    rnl_link link; /* in its kind's list, the largest first */
    size_t size_bytes, align_bytes;
    size_t start;          /* where in `memory` the piece at offset 0 lies */
    size_t busy;           /* pieces that are in use or pending */
    rnl_pool_block *first; /* the piece at offset 0 */
    cl_mem memory;
    void *host; /* pinned only: mapped from creation to destruction */
    uint64_t filled[RNL_POOL_CLASSES / 64];
    rnl_link free[RNL_POOL_CLASSES]; /* pieces in the state RNL_BLOCK_FREE, by class */
} rnl_chunk;

/* One free piece of `size_bytes`, a multiple of the alignment. */
RNL_NODISCARD rnl_status rnl_chunk_create(rnl_memory kind, size_t size_bytes, size_t align_bytes, rnl_spares *spares,
                                          rnl_chunk **out_chunk);
/* The pieces' and the chunk's own cl_mem have been released. */
void rnl_chunk_destroy(rnl_chunk *chunk, rnl_spares *spares);

/*
 * Cuts a piece of `size_bytes`, which rnl_pool_class_bytes gave, from the smallest free piece that is large enough and
 * lies lowest. *out_block is NULL without an error where there is none; else it is in use.
 */
RNL_NODISCARD rnl_status rnl_chunk_cut(rnl_chunk *chunk, size_t size_bytes, rnl_spares *spares,
                                       rnl_pool_block **out_block);
/* Makes a piece free, which has no cl_mem any more, and joins it with the free pieces beside it. */
void rnl_chunk_join(rnl_chunk *chunk, rnl_pool_block *block, rnl_spares *spares);

/* Adds what is free or ready, and the largest run of neighbours that are: they would be joined for who asks. */
void rnl_chunk_measure(const rnl_chunk *chunk, size_t *free_bytes, size_t *largest_bytes);

#endif
