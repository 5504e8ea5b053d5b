/* SPDX-License-Identifier: Apache-2.0 */
#include "device/ending.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* A call under way may wait for what never comes, and the process must end. */
#define LONGEST_WAIT_MS 5000
#define COUNTERS 64

enum state { OPEN, ENDING, CLOSED };
static atomic_int state;
/* Calls under way; a thread uses one of the counters, so that threads rarely share a cache line. */
static struct {
    _Alignas(64) atomic_uint calls;
} counters[COUNTERS];
static pid_t watched;
static pthread_t ender; /* set before `state` */

static atomic_uint *own_counter(void)
{
    const uintptr_t thread = (uintptr_t)pthread_self();
    return &counters[(thread >> 12 ^ thread >> 20) % COUNTERS].calls;
}

static bool begin(enum state last)
{
    atomic_fetch_add(own_counter(), 1);
    if (atomic_load(&state) <= (int)last)
        return true;
    atomic_fetch_sub(own_counter(), 1);
    return false;
}

bool rnl_cl_begin(void)
{
    return begin(OPEN);
}

bool rnl_cl_begin_late(void)
{
    return begin(ENDING);
}

int32_t rnl_cl_end(int32_t code)
{
    atomic_fetch_sub_explicit(own_counter(), 1, memory_order_release);
    return code;
}

void *rnl_cl_end_new(void *object)
{
    atomic_fetch_sub_explicit(own_counter(), 1, memory_order_release);
    return object;
}

bool rnl_ending(void)
{
    return atomic_load_explicit(&state, memory_order_acquire) != OPEN;
}

void rnl_ending_sleep(void)
{
    while (rnl_ending() && !pthread_equal(pthread_self(), ender))
        pause();
}

/* A counter that was 0 once stays so, but for calls that are refused at once. */
static void wait_for_calls(int *left_ms)
{
    const struct timespec pause = {0, 1000000};
    for (size_t i = 0; i < COUNTERS; i++)
        for (; atomic_load(&counters[i].calls) > 0 && *left_ms > 0; --*left_ms)
            nanosleep(&pause, NULL);
}

static void close_at_exit(void)
{
    int left_ms = LONGEST_WAIT_MS;
    if (getpid() != watched) /* a child's copy: the calls are the parent's */
        left_ms = 0;
    ender = pthread_self();
    atomic_store(&state, ENDING);
    wait_for_calls(&left_ms);
    atomic_store(&state, CLOSED);
    wait_for_calls(&left_ms);
}

static void watch(void)
{
    watched = getpid();
    atexit(close_at_exit);
}

void rnl_ending_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}
