/* SPDX-License-Identifier: Apache-2.0 */
/* The pool's insides, for its own files. All functions expect its lock to be held, unless they say otherwise. */
#ifndef RUNNEL_DEVICE_POOL_PARTS_H
#define RUNNEL_DEVICE_POOL_PARTS_H

#include "device/chunk.h"
#include "device/stream.h"
#include <runnel/pool.h>

typedef struct rnl_pool_label rnl_pool_label;

/* Memory of one kind: device or pinned. */
typedef struct rnl_pool_kind {
    rnl_link ready[RNL_POOL_CLASSES]; /* blocks in the state RNL_BLOCK_READY, the latest released first */
    rnl_link ready_order;             /* of them the pieces of chunks, the latest released first */
    size_t ready_bytes;               /* of those pieces */
    rnl_link chunks;                  /* the largest first, where new pieces are cut */
    size_t chunk_bytes, chunk_busy_bytes;
    size_t in_use, asked, peak, pending, reserved, idle; /* bytes */
    uint64_t buffers, allocations, hits, driver_allocations;
    size_t first_chunk_bytes; /* 0: no chunks */
} rnl_pool_kind;

#define RNL_POOL_KINDS 2
#define RNL_POOL_LABEL_BUCKETS 64

struct rnl_pool {
    rnl_device *device; /* which owns the pool */
    pthread_mutex_t lock;
    cl_command_queue map_queue; /* maps pinned blocks; made with the first one */
    rnl_pool_kind kinds[RNL_POOL_KINDS];
    rnl_link idle;   /* blocks of their own that nobody uses, the latest released first */
    rnl_link orders; /* of streams: rnl_pool_order */
    rnl_spares spares;
    size_t in_use, idle_bytes, peak, reserved, budget;
    size_t align;
    uint64_t rested;    /* blocks whose use in a stream has ended, so far */
    bool exact;         /* every buffer is a cl_mem of exactly its size: tools that know it see accesses past it */
    bool keeps_nothing; /* and goes back to the driver at once: they see uses after the release too */
    struct rnl_pool_label *labels[RNL_POOL_LABEL_BUCKETS];
};

/* What is looked for. */
typedef struct rnl_pool_want {
    const rnl_pool_request *request;
    rnl_pool_kind *kind;
    size_t bytes; /* the capacity, if there is room */
    size_t index; /* its class */
    bool shares;  /* it may be a piece of a chunk */
} rnl_pool_want;

static inline rnl_pool_kind *rnl_pool_kind_of(struct rnl_pool *pool, rnl_memory memory)
{
    return &pool->kinds[memory == RNL_MEMORY_PINNED];
}

/* ---- pool.c: the states of blocks ---- */

/* A block that was in use, or pending: ready for the next request, or dropped. */
void rnl_pool_rest(struct rnl_pool *pool, rnl_pool_block *block);
/* Takes a ready block out of its lists. */
void rnl_pool_unrest(struct rnl_pool *pool, rnl_pool_block *block);
/* The latest released block of that class, or NULL. */
rnl_pool_block *rnl_pool_pop(struct rnl_pool *pool, rnl_pool_kind *kind, size_t index);

/* ---- pool_memory.c: the driver's objects ---- */

/* RNL_RESOURCE_EXHAUSTED is the driver's answer: the budget was looked at before. */
RNL_NODISCARD rnl_status rnl_pool_make_own(struct rnl_pool *pool, const rnl_pool_request *request, size_t bytes,
                                           rnl_pool_block **out_block);
void rnl_pool_drop_own(struct rnl_pool *pool, rnl_pool_block *block);
RNL_NODISCARD rnl_status rnl_pool_make_chunk(struct rnl_pool *pool, rnl_memory kind, size_t bytes,
                                             rnl_chunk **out_chunk);
/* None of its pieces is in use or pending. */
void rnl_pool_drop_chunk(struct rnl_pool *pool, rnl_pool_kind *kind, rnl_chunk *chunk);
/* Gives a piece that was cut its cl_mem. */
RNL_NODISCARD rnl_status rnl_pool_open_piece(rnl_pool_block *block);
/* Releases it. Nothing uses the piece: parts of a cl_mem that exist at the same time must not overlap. */
void rnl_pool_close_piece(rnl_pool_block *block);

/* ---- pool_trim.c: giving memory back ---- */

/* A ready piece becomes free, and is joined with what is free beside it. */
void rnl_pool_join(struct rnl_pool *pool, rnl_pool_block *block);
/* Joins the ready pieces that were released longest ago until at most `keep` bytes of them are left. */
void rnl_pool_join_ready(struct rnl_pool *pool, rnl_pool_kind *kind, size_t keep);
/* Releases idle blocks, those longest idle first, until at most `keep` bytes of them are left. */
void rnl_pool_release_idle(struct rnl_pool *pool, size_t keep);
/* All of it: idle blocks, and chunks that nobody uses. */
void rnl_pool_release_all(struct rnl_pool *pool);
/* The budget that is not reserved. */
size_t rnl_pool_room(const struct rnl_pool *pool);

/* ---- pool_room.c: what to do when no block is at hand ---- */

/* May give up the lock meanwhile, to wait. */
RNL_NODISCARD rnl_status rnl_pool_find_room(struct rnl_pool *pool, const rnl_pool_want *want,
                                            rnl_pool_block **out_block);

/* ---- pool_order.c: release in a stream's order ---- */

/* A block that was in use becomes pending. */
void rnl_pool_order_add(struct rnl_pool *pool, rnl_pool_block *block, rnl_stream *stream);
/* The latest released pending block of the stream, of device memory and that class, or NULL. Pinned memory is no
 * stream's: the host would touch it too early. */
rnl_pool_block *rnl_pool_order_pop(struct rnl_pool *pool, rnl_stream *stream, size_t index);
/* Blocks whose use has ended become ready. */
void rnl_pool_collect(struct rnl_pool *pool);
/* Gives up the lock and waits until some block's use has ended, if none has by now; false when none is pending. */
bool rnl_pool_wait(struct rnl_pool *pool);
void rnl_pool_free_orders(struct rnl_pool *pool);

/* ---- pool_label.c ---- */

struct rnl_pool_label {
    struct rnl_pool_label *next; /* in its bucket */
    uint64_t buffers, allocations;
    size_t bytes, peak_bytes;
    char name[];
};

/* NULL for no text. */
RNL_NODISCARD rnl_status rnl_pool_find_label(struct rnl_pool *pool, const char *text, rnl_pool_label **out_label);
void rnl_pool_free_labels(struct rnl_pool *pool);

#endif
