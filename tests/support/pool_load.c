/* SPDX-License-Identifier: Apache-2.0 */
#include "support/pool_load.h"

#include "base/clock.h"
#include "device/buffer.h"
#include "device/chunk.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_THREADS 64
#define MARKED_EVERY 64

typedef struct slot {
    rnl_buffer *buffer;
    uint32_t mark; /* what it was filled with; 0: nothing */
} slot;

typedef struct shared {
    rnl_device *device;
    const pool_load *load;
    pool_load_result *result;
    pthread_barrier_t barrier;
    struct worker *workers;
    size_t slots; /* of each thread */
    uint64_t rounds;
    double fragmentation_sum, in_use_sum;
    const rnl_buffer **order; /* all live buffers, for the check */
    atomic_bool stop;
    char problem[256];
} shared;

typedef struct worker {
    shared *all;
    pthread_t thread;
    rnl_stream *stream;
    slot *slots;
    uint64_t state, failures, operations;
} worker;

static uint64_t next_random(worker *own)
{
    own->state ^= own->state << 13;
    own->state ^= own->state >> 7;
    own->state ^= own->state << 17;
    return own->state;
}

static void complain(shared *all, const char *what, uint64_t found, uint64_t expected)
{
    if (!atomic_exchange(&all->stop, true))
        snprintf(all->problem, sizeof all->problem, "%.150s: %llu instead of %llu", what, (unsigned long long)found,
                 (unsigned long long)expected);
}

static size_t random_size(worker *own)
{
    const pool_load *load = own->all->load;
    double u = (double)(next_random(own) >> 11) / 9007199254740992.0;
    return (size_t)((double)load->least_bytes * exp(u * log((double)load->most_bytes / (double)load->least_bytes)));
}

/* ---- One operation ---- */

static void fill(worker *own, slot *at)
{
    rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
    size_t size = random_size(own) & ~(size_t)3;
    options.stream = own->stream;
    rnl_status status = rnl_buffer_create_with(own->all->device, RNL_MEMORY_DEVICE, size, &options, &at->buffer);
    at->mark = 0;
    if (status == RNL_RESOURCE_EXHAUSTED) {
        own->failures++;
        return;
    }
    if (status == RNL_OK && next_random(own) % MARKED_EVERY == 0) {
        at->mark = (uint32_t)next_random(own) | 1;
        status = rnl_stream_fill(own->stream, at->buffer, 0, &at->mark, 4, size < 256 ? size : 256);
        if (status == RNL_OK)
            status = rnl_stream_fill(own->stream, at->buffer, size - 4, &at->mark, 4, 4);
    }
    if (status != RNL_OK)
        complain(own->all, rnl_last_error()->message, status, RNL_OK);
}

static void empty(worker *own, slot *at)
{
    uint32_t first = at->mark, last = at->mark;
    rnl_status status = RNL_OK;
    if (at->mark) {
        status = rnl_stream_read(own->stream, &first, at->buffer, 0, 4);
        if (status == RNL_OK)
            status = rnl_stream_read(own->stream, &last, at->buffer, rnl_buffer_size(at->buffer) - 4, 4);
        if (status == RNL_OK)
            status = rnl_stream_synchronize(own->stream);
    }
    if (status != RNL_OK)
        complain(own->all, rnl_last_error()->message, status, RNL_OK);
    if (first != at->mark || last != at->mark)
        complain(own->all, "a buffer's contents", first != at->mark ? first : last, at->mark);
    if (next_random(own) % 4 != 0)
        rnl_buffer_release(at->buffer); /* nothing that uses it is under way */
    else if (rnl_buffer_release_after(at->buffer, own->stream) != RNL_OK)
        complain(own->all, rnl_last_error()->message, 0, 0);
    at->buffer = NULL;
}

static void operate(worker *own)
{
    slot *at = &own->slots[next_random(own) % own->all->slots];
    if (!at->buffer)
        fill(own, at);
    else
        empty(own, at);
    own->operations++;
}

/* ---- The check, while all others wait ---- */

static const void *memory_of(const rnl_buffer *buffer)
{
    return buffer->block->chunk ? (const void *)buffer->block->chunk : (const void *)buffer->block;
}

static int by_place(const void *a, const void *b)
{
    const rnl_buffer *first = *(const rnl_buffer *const *)a, *second = *(const rnl_buffer *const *)b;
    uintptr_t one = (uintptr_t)memory_of(first), two = (uintptr_t)memory_of(second);
    if (one != two)
        return one < two ? -1 : 1;
    return first->block->offset < second->block->offset ? -1 : first->block->offset > second->block->offset;
}

static size_t gather(shared *all, size_t *in_use)
{
    size_t count = 0;
    *in_use = 0;
    for (unsigned i = 0; i < all->load->threads; i++)
        for (size_t k = 0; k < all->slots; k++) {
            const rnl_buffer *buffer = all->workers[i].slots[k].buffer;
            if (!buffer)
                continue;
            all->order[count++] = buffer;
            *in_use += buffer->block->capacity_bytes;
        }
    qsort(all->order, count, sizeof *all->order, by_place);
    return count;
}

static void check(shared *all, uint64_t round)
{
    pool_load_result *result = all->result;
    rnl_pool_stats stats;
    rnl_device_stats device_stats;
    size_t in_use, count = gather(all, &in_use);
    for (size_t i = 1; i < count; i++) {
        const rnl_pool_block *lower = all->order[i - 1]->block, *upper = all->order[i]->block;
        if (memory_of(all->order[i - 1]) == memory_of(all->order[i]) &&
            lower->offset + lower->capacity_bytes > upper->offset)
            complain(all, "two buffers overlap", upper->offset, lower->offset + lower->capacity_bytes);
    }
    rnl_device_pool_stats(all->device, RNL_MEMORY_DEVICE, &stats);
    rnl_device_get_stats(all->device, &device_stats);
    if (stats.in_use_bytes != in_use)
        complain(all, "bytes in use", stats.in_use_bytes, in_use);
    if (stats.buffers != count)
        complain(all, "buffers in use", stats.buffers, count);
    if (stats.reserved_bytes > device_stats.pool_budget_bytes)
        complain(all, "bytes reserved", stats.reserved_bytes, device_stats.pool_budget_bytes);
    result->samples++;
    result->above += stats.fragmentation >= 0.1;
    result->worst = stats.fragmentation > result->worst ? stats.fragmentation : result->worst;
    all->fragmentation_sum += stats.fragmentation;
    all->in_use_sum += (double)in_use;
    if (round == all->rounds / 10)
        result->reserved_first = stats.reserved_bytes;
    if (round >= all->rounds / 10 && stats.reserved_bytes > result->reserved_most)
        result->reserved_most = stats.reserved_bytes;
}

static void *work(void *argument)
{
    worker *own = argument;
    shared *all = own->all;
    for (uint64_t round = 0; round < all->rounds; round++) {
        for (uint64_t i = 0; i < all->load->sample / all->load->threads && !atomic_load(&all->stop); i++)
            operate(own);
        pthread_barrier_wait(&all->barrier);
        if (own == all->workers)
            check(all, round);
        pthread_barrier_wait(&all->barrier);
    }
    return NULL;
}

/* ---- */

static bool open_worker(worker *own, shared *all, unsigned number)
{
    own->all = all;
    own->state = UINT64_C(88172645463325252) + number * UINT64_C(7919);
    own->slots = calloc(all->slots, sizeof *own->slots);
    return own->slots && rnl_stream_create(all->device, &own->stream) == RNL_OK;
}

static void close_worker(worker *own)
{
    for (size_t i = 0; own->slots && i < own->all->slots; i++)
        if (own->slots[i].buffer)
            empty(own, &own->slots[i]);
    rnl_stream_release(own->stream);
    free(own->slots);
}

static void run_workers(shared *all, worker *workers)
{
    const unsigned threads = all->load->threads;
    uint64_t start = rnl_clock_ns();
    pthread_barrier_init(&all->barrier, NULL, threads);
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&all->barrier);
    all->result->seconds = (double)(rnl_clock_ns() - start) * 1e-9;
}

static void check_end(shared *all)
{
    rnl_pool_stats stats;
    rnl_device_pool_trim(all->device);
    rnl_device_pool_stats(all->device, RNL_MEMORY_DEVICE, &stats);
    if (stats.in_use_bytes || stats.buffers)
        complain(all, "bytes in use at the end", stats.in_use_bytes, 0);
    if (stats.reserved_bytes > stats.pending_bytes && stats.pending_bytes == 0)
        complain(all, "bytes reserved at the end", stats.reserved_bytes, 0);
}

const char *pool_load_run(rnl_device *device, const pool_load *load, pool_load_result *out_result)
{
    static shared all;
    static worker workers[MOST_THREADS];
    rnl_device_stats stats;
    all = (shared){.device = device, .load = load, .result = out_result, .workers = workers};
    memset(workers, 0, sizeof workers);
    *out_result = (pool_load_result){0};
    rnl_device_get_stats(device, &stats);
    double range = (double)load->most_bytes / (double)load->least_bytes;
    double mean = (double)(load->most_bytes - load->least_bytes) / log(range);
    /* Half of the slots are full on average. */
    all.slots = (size_t)(2 * load->live * (double)stats.pool_budget_bytes / mean / load->threads) + 1;
    all.rounds = load->operations / load->sample;
    all.order = calloc(all.slots * load->threads, sizeof *all.order);
    bool ready = all.order != NULL;
    for (unsigned i = 0; i < load->threads && ready; i++)
        ready = open_worker(&workers[i], &all, i + 1);
    if (ready)
        run_workers(&all, workers);
    else
        complain(&all, "the threads' slots", 0, all.slots);
    for (unsigned i = 0; i < load->threads; i++) {
        out_result->failures += workers[i].failures;
        out_result->operations += workers[i].operations;
        close_worker(&workers[i]);
    }
    check_end(&all);
    free(all.order);
    if (out_result->samples) {
        out_result->mean = all.fragmentation_sum / (double)out_result->samples;
        out_result->in_use_mean = (size_t)(all.in_use_sum / (double)out_result->samples);
    }
    return atomic_load(&all.stop) ? all.problem : NULL;
}
