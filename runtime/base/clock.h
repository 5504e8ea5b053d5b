/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_BASE_CLOCK_H
#define RUNNEL_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t rnl_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What the calling thread has computed: whatever else the machine is doing. */
static inline uint64_t rnl_clock_thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
