/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only allocator of device and pinned memory. It keeps what is released for the next request of that size class,
 * and it refuses what is past its budget: several drivers allocate lazily, and abort later when memory runs out.
 */
#ifndef RUNNEL_DEVICE_POOL_H
#define RUNNEL_DEVICE_POOL_H

#include "device/device.h"
#include "device/pool_class.h"
#include "device/pool_list.h"

typedef enum rnl_block_state {
    RNL_BLOCK_FREE,    /* a piece of a chunk without a cl_mem: it may be split and joined */
    RNL_BLOCK_READY,   /* nobody uses it; it keeps its cl_mem for the next request of its class */
    RNL_BLOCK_PENDING, /* released in a stream's order; its use was not seen to end yet */
    RNL_BLOCK_IN_USE
} rnl_block_state;

/* Memory for one buffer: a cl_mem of its own, or a piece of a chunk, which is a sub-buffer of it. */
typedef struct rnl_pool_block {
    cl_mem memory;
    void *host; /* pinned only: mapped from creation to destruction */
    size_t capacity_bytes;
    rnl_memory kind;
    /* The pool's own. */
    rnl_block_state state;
    uint16_t class_index;
    struct rnl_chunk *chunk;              /* NULL: a cl_mem of its own */
    size_t offset;                        /* in the chunk */
    struct rnl_pool_block *lower, *upper; /* neighbours in the chunk */
    rnl_link in_class;                    /* in a list of its state and class */
    rnl_link in_order;                    /* ready: among those by age; pending: among those of one marker */
    size_t asked_bytes;
    struct rnl_pool_label *label;
    uint64_t order_number; /* counts what was released in its stream's order */
} rnl_pool_block;

typedef struct rnl_pool_request {
    rnl_memory kind;
    size_t size_bytes;
    const char *label;  /* NULL: none */
    rnl_stream *stream; /* whose work will use it first: takes what was released in that order; NULL: any */
    bool own_memory;    /* not a part of a larger cl_mem */
} rnl_pool_request;

RNL_NODISCARD rnl_status rnl_pool_create(struct rnl_device *device, uint64_t budget_bytes, bool exact,
                                         struct rnl_pool **out_pool);
/* Every block has been given back: buffers hold their device. */
void rnl_pool_destroy(struct rnl_pool *pool);
RNL_NODISCARD rnl_status rnl_pool_take(struct rnl_pool *pool, const rnl_pool_request *request,
                                       rnl_pool_block **out_block);
/* Nothing that was enqueued uses the block any more. */
void rnl_pool_give_back(struct rnl_pool *pool, rnl_pool_block *block);
/* Commands of `stream` may still use it; commands of no other stream. */
void rnl_pool_give_back_after(struct rnl_pool *pool, rnl_pool_block *block, rnl_stream *stream);
void rnl_pool_get_stats(struct rnl_pool *pool, rnl_device_stats *out_stats);
/* Releases the memory that nobody uses. */
void rnl_pool_trim(struct rnl_pool *pool);

/* ---- For streams: stream->order is the pool's, and NULL as long as nothing was released in the stream's order ---- */

/* What is released in the stream's order up to now has this number. */
uint64_t rnl_pool_order_mark(const rnl_stream *stream);
/* All that was enqueued before `mark` was taken has ended. */
void rnl_pool_order_done(rnl_stream *stream, uint64_t mark);
/* The stream ends; its queue still exists. */
void rnl_pool_order_end(rnl_stream *stream);

#endif
