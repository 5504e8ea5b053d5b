/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only allocator of device and pinned memory. It keeps what is released for the next request of that size class,
 * and it refuses what is past its budget: several drivers allocate lazily, and abort later when memory runs out.
 */
#ifndef RUNNEL_DEVICE_POOL_H
#define RUNNEL_DEVICE_POOL_H

#include "device/device.h"

typedef struct rnl_pool_block {
    struct rnl_pool_block *next, *previous; /* in the list of free blocks, the latest released first */
    cl_mem memory;
    void *host; /* pinned only: mapped from creation to destruction */
    size_t capacity_bytes;
    rnl_memory kind;
} rnl_pool_block;

RNL_NODISCARD rnl_status rnl_pool_create(struct rnl_device *device, uint64_t budget_bytes, struct rnl_pool **out_pool);
/* Every block has been given back: buffers hold their device. */
void rnl_pool_destroy(struct rnl_pool *pool);
RNL_NODISCARD rnl_status rnl_pool_take(struct rnl_pool *pool, rnl_memory kind, size_t size_bytes,
                                       rnl_pool_block **out_block);
void rnl_pool_give_back(struct rnl_pool *pool, rnl_pool_block *block);
void rnl_pool_get_stats(struct rnl_pool *pool, rnl_device_stats *out_stats);
/* Releases the blocks that nobody uses. */
void rnl_pool_trim(struct rnl_pool *pool);

/* The capacity that a request of this size is rounded up to: at most an eighth more. */
size_t rnl_pool_class_bytes(size_t size_bytes, size_t align_bytes);

#endif
