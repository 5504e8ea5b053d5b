/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that was released in a stream's order. The stream's own next requests take it at once. For others a marker is
 * enqueued, when memory is looked for or many blocks have gathered: it covers all blocks released before it. When the
 * marker has ended, in whatever way, the blocks are ready for anyone.
 */
#include "device/pool_parts.h"

#include "base/memory.h"

#define MOST_BATCHES 8
#define MOST_GATHERED 64 /* blocks before a marker is enqueued for them unasked */

/* Blocks that wait for one marker. */
typedef struct batch {
    cl_event marker;
    rnl_link blocks;
    uint64_t last_number; /* of what was released in this order */
} batch;

typedef struct rnl_pool_order {
    rnl_link link;          /* in the pool's list */
    cl_command_queue queue; /* NULL: the stream has ended */
    rnl_link gathered;      /* blocks that no marker covers yet */
    size_t gathered_count;
    uint64_t last_number, marked_number; /* what was released up to that number has a marker */
    batch batches[MOST_BATCHES];         /* the oldest first */
    size_t batch_count;
    rnl_link by_class[RNL_POOL_CLASSES]; /* device memory, the latest released first */
    rnl_link pinned;
} rnl_pool_order;

/* ---- Ends ---- */

static void rest_all(struct rnl_pool *pool, rnl_link *blocks)
{
    while (!rnl_list_is_empty(blocks)) {
        rnl_pool_block *block = RNL_ELEMENT(rnl_pool_block, in_order, blocks->next);
        rnl_list_remove(&block->in_class);
        rnl_list_remove(&block->in_order);
        rnl_pool_kind_of(pool, block->kind)->pending -= block->capacity_bytes;
        rnl_pool_rest(pool, block);
        pool->rested++;
    }
}

static void end_oldest(struct rnl_pool *pool, rnl_pool_order *order)
{
    rnl_link blocks;
    rnl_list_init(&blocks);
    rnl_list_move_all(&order->batches[0].blocks, &blocks);
    clReleaseEvent(order->batches[0].marker);
    order->batch_count--;
    for (size_t i = 0; i < order->batch_count; i++) {
        batch *to = &order->batches[i], *from = to + 1;
        to->marker = from->marker;
        to->last_number = from->last_number;
        rnl_list_init(&to->blocks);
        rnl_list_move_all(&from->blocks, &to->blocks);
    }
    rest_all(pool, &blocks);
}

/* A state that cannot be told counts as ended, like a failure: memory must not be stuck. */
static bool has_ended(cl_event marker)
{
    cl_int state = CL_COMPLETE;
    return clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL) != CL_SUCCESS ||
           state <= CL_COMPLETE;
}

static void end_finished(struct rnl_pool *pool, rnl_pool_order *order)
{
    while (order->batch_count > 0 && has_ended(order->batches[0].marker))
        end_oldest(pool, order);
}

/* Waits for all of the stream's work. */
static void finish(struct rnl_pool *pool, rnl_pool_order *order)
{
    clFinish(order->queue);
    while (order->batch_count > 0)
        end_oldest(pool, order);
    rest_all(pool, &order->gathered);
    order->gathered_count = 0;
}

/* ---- Markers ---- */

static void mark(struct rnl_pool *pool, rnl_pool_order *order)
{
    cl_event marker = NULL;
    if (rnl_list_is_empty(&order->gathered) || order->batch_count == MOST_BATCHES)
        return;
    cl_int code = rnl_cl_fault_pending() ? rnl_cl_fault() : clEnqueueMarkerWithWaitList(order->queue, 0, NULL, &marker);
    if (code == CL_SUCCESS)
        code = clFlush(order->queue);
    if (code != CL_SUCCESS) {
        if (marker)
            clReleaseEvent(marker);
        finish(pool, order);
        return;
    }
    batch *newest = &order->batches[order->batch_count++];
    newest->marker = marker;
    newest->last_number = order->marked_number = order->last_number;
    order->gathered_count = 0;
    rnl_list_init(&newest->blocks);
    rnl_list_move_all(&order->gathered, &newest->blocks);
}

static rnl_status create_order(struct rnl_pool *pool, rnl_stream *stream, rnl_pool_order **out_order)
{
    rnl_pool_order *order;
    TRY(rnl_alloc(1, sizeof *order, &order));
    order->queue = stream->queue;
    rnl_list_init(&order->gathered);
    rnl_list_init(&order->pinned);
    for (size_t i = 0; i < RNL_POOL_CLASSES; i++)
        rnl_list_init(&order->by_class[i]);
    rnl_list_add_first(&pool->orders, &order->link);
    *out_order = order;
    return RNL_OK;
}

void rnl_pool_order_add(struct rnl_pool *pool, rnl_pool_block *block, rnl_stream *stream)
{
    if (!stream->order && create_order(pool, stream, &stream->order) != RNL_OK) {
        clFinish(stream->queue);
        rnl_pool_rest(pool, block);
        return;
    }
    rnl_pool_order *order = stream->order;
    block->state = RNL_BLOCK_PENDING;
    block->order_number = ++order->last_number;
    rnl_list_add_first(block->kind == RNL_MEMORY_PINNED ? &order->pinned : &order->by_class[block->class_index],
                       &block->in_class);
    rnl_list_add_last(&order->gathered, &block->in_order);
    rnl_pool_kind_of(pool, block->kind)->pending += block->capacity_bytes;
    if (++order->gathered_count >= MOST_GATHERED) {
        end_finished(pool, order);
        mark(pool, order);
    }
}

rnl_pool_block *rnl_pool_order_pop(struct rnl_pool *pool, rnl_stream *stream, size_t index)
{
    if (!stream->order || pool->exact)
        return NULL;
    rnl_link *list = &stream->order->by_class[index];
    if (rnl_list_is_empty(list))
        return NULL;
    rnl_pool_block *block = RNL_ELEMENT(rnl_pool_block, in_class, list->next);
    rnl_list_remove(&block->in_class);
    rnl_list_remove(&block->in_order);
    stream->order->gathered_count -= block->order_number > stream->order->marked_number;
    rnl_pool_kind_of(pool, block->kind)->pending -= block->capacity_bytes;
    return block;
}

/* ---- For who looks for memory ---- */

void rnl_pool_collect(struct rnl_pool *pool)
{
    for (rnl_link *link = pool->orders.next, *next; link != &pool->orders; link = next) {
        rnl_pool_order *order = RNL_ELEMENT(rnl_pool_order, link, link);
        next = link->next;
        end_finished(pool, order);
        mark(pool, order);
        end_finished(pool, order);
        if (!order->queue && order->batch_count == 0) {
            rnl_list_remove(&order->link);
            rnl_free(order);
        }
    }
}

/* The order whose oldest marker it is; it may have been ended by somebody else meanwhile. */
static rnl_pool_order *find_marker(struct rnl_pool *pool, cl_event marker)
{
    for (rnl_link *link = pool->orders.next; link != &pool->orders; link = link->next) {
        rnl_pool_order *order = RNL_ELEMENT(rnl_pool_order, link, link);
        if (order->batch_count > 0 && order->batches[0].marker == marker)
            return order;
    }
    return NULL;
}

bool rnl_pool_wait(struct rnl_pool *pool)
{
    cl_event marker = NULL;
    const uint64_t rested = pool->rested;
    rnl_pool_collect(pool);
    if (pool->rested != rested)
        return true; /* ended since the caller looked */
    for (rnl_link *link = pool->orders.next; link != &pool->orders && !marker; link = link->next) {
        rnl_pool_order *order = RNL_ELEMENT(rnl_pool_order, link, link);
        marker = order->batch_count > 0 ? order->batches[0].marker : NULL;
    }
    if (!marker || clRetainEvent(marker) != CL_SUCCESS)
        return false;
    pthread_mutex_unlock(&pool->lock);
    clWaitForEvents(1, &marker);
    pthread_mutex_lock(&pool->lock);
    /* The marker cannot have become another's: this function holds it. */
    rnl_pool_order *order = find_marker(pool, marker);
    if (order)
        end_oldest(pool, order);
    clReleaseEvent(marker);
    return true;
}

void rnl_pool_free_orders(struct rnl_pool *pool)
{
    while (!rnl_list_is_empty(&pool->orders)) {
        rnl_pool_order *order = RNL_ELEMENT(rnl_pool_order, link, pool->orders.next);
        while (order->batch_count > 0) {
            clWaitForEvents(1, &order->batches[0].marker);
            end_oldest(pool, order);
        }
        rnl_list_remove(&order->link);
        rnl_free(order);
    }
}

/* ---- For streams ---- */

uint64_t rnl_pool_order_mark(const rnl_stream *stream)
{
    struct rnl_pool *pool = stream->device->pool;
    uint64_t number = 0;
    pthread_mutex_lock(&pool->lock);
    if (stream->order)
        number = stream->order->last_number;
    pthread_mutex_unlock(&pool->lock);
    return number;
}

void rnl_pool_order_done(rnl_stream *stream, uint64_t mark)
{
    struct rnl_pool *pool = stream->device->pool;
    if (mark == 0)
        return;
    pthread_mutex_lock(&pool->lock);
    rnl_pool_order *order = stream->order;
    while (order->batch_count > 0 && order->batches[0].last_number <= mark)
        end_oldest(pool, order);
    if (order->batch_count == 0 && order->last_number == mark) {
        rest_all(pool, &order->gathered);
        order->gathered_count = 0;
    }
    pthread_mutex_unlock(&pool->lock);
}

void rnl_pool_order_end(rnl_stream *stream)
{
    struct rnl_pool *pool = stream->device->pool;
    rnl_pool_order *order = stream->order;
    if (!order)
        return;
    pthread_mutex_lock(&pool->lock);
    end_finished(pool, order);
    mark(pool, order);
    if (!rnl_list_is_empty(&order->gathered)) /* there are too many markers */
        finish(pool, order);
    order->queue = NULL;
    stream->order = NULL;
    rnl_pool_collect(pool);
    pthread_mutex_unlock(&pool->lock);
}
