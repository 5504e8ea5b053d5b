/* SPDX-License-Identifier: Apache-2.0 */
#include <runnel/stream_pool.h>

#include "base/memory.h"
#include "device/waiter.h"
#include <string.h>

#define STREAMS 4 /* where nothing is asked for */
#define MOST_BATCHES 65536

typedef struct batch {
    uint64_t number;
    size_t slot;      /* of its stream */
    rnl_event *event; /* its end; NULL: it is open */
    pthread_t thread; /* that began it */
} batch;

typedef struct slot {
    rnl_stream *stream; /* NULL: it failed, and a new one is made when it is needed */
    bool lent;
} slot;

struct rnl_stream_pool {
    atomic_uint references;
    rnl_device *device; /* retained */
    bool timed;
    size_t slot_count, batch_limit;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t ended; /* a batch */
    slot *slots;
    size_t next_slot;
    batch *batches; /* in the order of their begin */
    size_t batch_count;
    uint64_t next_number;
    rnl_error failure; /* not reported yet; status RNL_OK: none */
    uint64_t failed_batch, more_failed;
};

/* ---- Making and releasing ---- */

static rnl_status make_stream(const rnl_stream_pool *pool, slot *it)
{
    rnl_stream_options options = RNL_STREAM_OPTIONS_INIT;
    options.timed = pool->timed;
    return rnl_stream_create_with(pool->device, &options, &it->stream);
}

static rnl_status read_options(const rnl_stream_pool_options *given, rnl_stream_pool_options *out)
{
    *out = (rnl_stream_pool_options)RNL_STREAM_POOL_OPTIONS_INIT;
    if (given && given->struct_size < sizeof given->struct_size)
        return FAIL(RNL_INVALID_ARGUMENT, "stream pool options were not initialised with RNL_STREAM_POOL_OPTIONS_INIT");
    if (given)
        memcpy(out, given, given->struct_size < sizeof *out ? given->struct_size : sizeof *out);
    out->stream_count = out->stream_count ? out->stream_count : STREAMS;
    out->batch_limit = out->batch_limit ? out->batch_limit : out->stream_count;
    if (out->stream_count > RNL_STREAM_POOL_MOST)
        return FAIL(RNL_INVALID_ARGUMENT, "a pool has at most %d streams, and %u were asked for", RNL_STREAM_POOL_MOST,
                    (unsigned)out->stream_count);
    if (out->batch_limit > MOST_BATCHES)
        return FAIL(RNL_INVALID_ARGUMENT, "at most %d batches can be under way, and %u were asked for", MOST_BATCHES,
                    (unsigned)out->batch_limit);
    return RNL_OK;
}

rnl_status rnl_stream_pool_create(rnl_device *device, const rnl_stream_pool_options *options,
                                  rnl_stream_pool **out_pool)
{
    rnl_stream_pool_options known;
    rnl_stream_pool *pool;
    rnl_status status = RNL_OK;
    *out_pool = NULL;
    TRY(read_options(options, &known));
    TRY(rnl_alloc(1, sizeof *pool, &pool));
    atomic_init(&pool->references, 1);
    pool->device = rnl_device_retain(device);
    pool->timed = known.timed;
    pool->slot_count = known.stream_count;
    pool->batch_limit = known.batch_limit;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->ended, NULL);
    GOTO(rnl_alloc(pool->slot_count, sizeof *pool->slots, &pool->slots));
    GOTO(rnl_alloc(pool->batch_limit, sizeof *pool->batches, &pool->batches));
    for (size_t i = 0; i < pool->slot_count; i++)
        GOTO(make_stream(pool, &pool->slots[i]));
    *out_pool = pool;
    pool = NULL;
done:
    rnl_stream_pool_release(pool);
    return status;
}

rnl_stream_pool *rnl_stream_pool_retain(rnl_stream_pool *pool)
{
    if (pool)
        atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
    return pool;
}

void rnl_stream_pool_release(rnl_stream_pool *pool)
{
    if (!pool || atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) != 1)
        return;
    for (size_t i = 0; pool->batches && i < pool->batch_count; i++)
        rnl_event_release(pool->batches[i].event);
    for (size_t i = 0; pool->slots && i < pool->slot_count; i++)
        rnl_stream_release(pool->slots[i].stream);
    rnl_free(pool->batches);
    rnl_free(pool->slots);
    pthread_cond_destroy(&pool->ended);
    pthread_mutex_destroy(&pool->lock);
    rnl_device_release(pool->device);
    rnl_free(pool);
}

/* ---- Batches. All of these are called with the lock held ---- */

static void forget(rnl_stream_pool *pool, size_t index)
{
    rnl_event_release(pool->batches[index].event);
    pool->batch_count--;
    memmove(&pool->batches[index], &pool->batches[index + 1], (pool->batch_count - index) * sizeof *pool->batches);
    pthread_cond_broadcast(&pool->ended);
}

/*
 * A failed stream is given up, one that is lent when it comes back. What it still does is waited for: nobody could ask
 * for it afterwards, and it uses the batch's memory.
 */
static void drop_failed(slot *it)
{
    if (!it->stream || it->lent || rnl_ending() || rnl_stream_check(it->stream) == RNL_OK)
        return;
    (void)!rnl_stream_synchronize(it->stream);
    rnl_stream_release(it->stream);
    it->stream = NULL;
}

/* The first batch's, though a later one may be seen to fail before it. */
static void keep_failure(rnl_stream_pool *pool, uint64_t number)
{
    if (pool->failure.status != RNL_OK) {
        pool->more_failed++;
        if (number > pool->failed_batch)
            return;
    }
    pool->failure = *rnl_last_error();
    pool->failed_batch = number;
}

/* An event whose state the driver does not tell is waited for. */
static bool has_run(rnl_stream_pool *pool, const batch *it)
{
    bool done = false;
    if (!it->event)
        return false;
    if (rnl_event_query(it->event, &done) == RNL_OK)
        return done;
    keep_failure(pool, it->number);
    if (!done)
        (void)!rnl_event_synchronize(it->event);
    return true;
}

/* Forgets the batches that have run. */
static void reap(rnl_stream_pool *pool)
{
    for (size_t i = 0; i < pool->batch_count;) {
        const batch it = pool->batches[i];
        if (!has_run(pool, &it)) {
            i++;
            continue;
        }
        forget(pool, i);
        drop_failed(&pool->slots[it.slot]);
    }
}

/* Lets go of what a stream holds until it is synchronised: see gate.h. */
static void settle(rnl_stream_pool *pool, slot *it)
{
    for (size_t i = 0; i < pool->batch_count; i++)
        if (&pool->slots[pool->batches[i].slot] == it)
            return;
    if (it->stream && !it->lent)
        (void)!rnl_stream_synchronize(it->stream);
}

static bool has_open_batch(const rnl_stream_pool *pool)
{
    for (size_t i = 0; i < pool->batch_count; i++)
        if (!pool->batches[i].event && pthread_equal(pool->batches[i].thread, pthread_self()))
            return true;
    return false;
}

/* The event of the first batch, below `limit`, that has been ended; NULL: there is none. Retained. */
static rnl_event *first_ended(const rnl_stream_pool *pool, uint64_t limit)
{
    for (size_t i = 0; i < pool->batch_count; i++)
        if (pool->batches[i].event && pool->batches[i].number < limit)
            return rnl_event_retain(pool->batches[i].event);
    return NULL;
}

/* Gives up the lock meanwhile. What the event says is heard by reap. */
static void wait_for(rnl_stream_pool *pool, rnl_event *event)
{
    pthread_mutex_unlock(&pool->lock);
    (void)!rnl_event_synchronize(event);
    rnl_event_release(event);
    pthread_mutex_lock(&pool->lock);
}

/* The next stream that is not lent; slot_count: there is none. */
static size_t find_slot(const rnl_stream_pool *pool)
{
    for (size_t i = 0; i < pool->slot_count; i++) {
        const size_t index = (pool->next_slot + i) % pool->slot_count;
        if (!pool->slots[index].lent)
            return index;
    }
    return pool->slot_count;
}

/* Until a batch may begin, on *out_slot. */
static rnl_status find_room(rnl_stream_pool *pool, size_t *out_slot)
{
    for (;;) {
        reap(pool);
        *out_slot = find_slot(pool);
        const bool full = pool->batch_count == pool->batch_limit;
        if (!full && *out_slot < pool->slot_count)
            return RNL_OK;
        TRY(rnl_waiter_refuse_to_wait());
        if (has_open_batch(pool))
            return FAIL(RNL_FAILED_PRECONDITION,
                        "a batch was begun where %s, by a thread whose own batch is still open",
                        full ? "as many are under way as may be" : "all of the pool's streams are lent");
        rnl_event *event = full ? first_ended(pool, UINT64_MAX) : NULL;
        if (event)
            wait_for(pool, event);
        else
            pthread_cond_wait(&pool->ended, &pool->lock);
    }
}

static rnl_status begin(rnl_stream_pool *pool, rnl_stream **out_stream, uint64_t *out_batch)
{
    size_t index;
    TRY(find_room(pool, &index));
    slot *it = &pool->slots[index];
    drop_failed(it);
    if (!it->stream)
        TRY(make_stream(pool, it), "in the place of a stream that failed");
    it->lent = true;
    pool->next_slot = (index + 1) % pool->slot_count;
    pool->batches[pool->batch_count++] = (batch){.number = pool->next_number, .slot = index, .thread = pthread_self()};
    if (out_batch)
        *out_batch = pool->next_number;
    pool->next_number++;
    *out_stream = it->stream;
    return RNL_OK;
}

static rnl_status end(rnl_stream_pool *pool, const rnl_stream *stream, rnl_event **out_event)
{
    size_t i = 0;
    while (i < pool->batch_count && (pool->batches[i].event || pool->slots[pool->batches[i].slot].stream != stream))
        i++;
    if (i == pool->batch_count)
        return FAIL(RNL_FAILED_PRECONDITION, "a batch was ended on a stream that the pool has not lent");
    slot *it = &pool->slots[pool->batches[i].slot];
    const uint64_t number = pool->batches[i].number;
    rnl_status status = rnl_stream_record(it->stream, &pool->batches[i].event);
    it->lent = false;
    pthread_cond_broadcast(&pool->ended);
    if (status == RNL_OK) {
        if (out_event)
            *out_event = rnl_event_retain(pool->batches[i].event);
        return RNL_OK;
    }
    const rnl_error error = *rnl_last_error();
    forget(pool, i);
    drop_failed(it);
    status = rnl_error_restore(&error);
    return rnl_error_add(status, "batch %llu of a stream pool", (unsigned long long)number);
}

/* ---- What callers call ---- */

rnl_status rnl_stream_pool_begin(rnl_stream_pool *pool, rnl_stream **out_stream, uint64_t *out_batch)
{
    *out_stream = NULL;
    if (out_batch)
        *out_batch = 0;
    pthread_mutex_lock(&pool->lock);
    const rnl_status status = begin(pool, out_stream, out_batch);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

rnl_status rnl_stream_pool_end(rnl_stream_pool *pool, rnl_stream *stream, rnl_event **out_event)
{
    if (out_event)
        *out_event = NULL;
    pthread_mutex_lock(&pool->lock);
    const rnl_status status = end(pool, stream, out_event);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

static rnl_status report(rnl_stream_pool *pool, uint64_t *out_batch)
{
    if (pool->failure.status == RNL_OK)
        return RNL_OK;
    rnl_status status = rnl_error_restore(&pool->failure);
    if (pool->more_failed > 0)
        status = rnl_error_add(status, "batch %llu of a stream pool, and %llu more failed",
                               (unsigned long long)pool->failed_batch, (unsigned long long)pool->more_failed);
    else
        status = rnl_error_add(status, "batch %llu of a stream pool", (unsigned long long)pool->failed_batch);
    if (out_batch)
        *out_batch = pool->failed_batch;
    pool->failure.status = RNL_OK;
    pool->more_failed = 0;
    return status;
}

rnl_status rnl_stream_pool_synchronize(rnl_stream_pool *pool, uint64_t *out_batch)
{
    rnl_event *event;
    if (out_batch)
        *out_batch = 0;
    TRY(rnl_waiter_refuse_to_wait());
    pthread_mutex_lock(&pool->lock);
    const uint64_t limit = pool->next_number;
    reap(pool);
    while ((event = first_ended(pool, limit)) != NULL) {
        wait_for(pool, event);
        reap(pool);
    }
    for (size_t i = 0; i < pool->slot_count; i++)
        settle(pool, &pool->slots[i]);
    const rnl_status status = report(pool, out_batch);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

uint32_t rnl_stream_pool_busy(rnl_stream_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    reap(pool);
    const uint32_t count = (uint32_t)pool->batch_count;
    pthread_mutex_unlock(&pool->lock);
    return count;
}
