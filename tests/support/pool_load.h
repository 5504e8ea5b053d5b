/* SPDX-License-Identifier: Apache-2.0 */
/* Random allocations and releases from several threads, with all of them checked now and then. */
#ifndef RUNNEL_TESTS_POOL_LOAD_H
#define RUNNEL_TESTS_POOL_LOAD_H

#include <runnel/pool.h>

typedef struct pool_load {
    uint64_t operations; /* of all threads: one is an allocation or a release */
    uint64_t sample;     /* operations between two checks */
    unsigned threads;
    size_t least_bytes, most_bytes; /* sizes are log-uniform between these */
    double live;                    /* the part of the budget that is in use, on average */
} pool_load;

typedef struct pool_load_result {
    uint64_t operations, failures;        /* failures: refused for want of memory */
    uint64_t samples, above;              /* above: those with a fragmentation of 10% or more */
    double worst, mean;                   /* fragmentation */
    size_t reserved_first, reserved_most; /* after the first tenth, and the most after it */
    size_t in_use_mean;
    double seconds;
} pool_load_result;

/*
 * Each thread has slots; it picks one, and fills it if it is empty, else checks and empties it. Every 64th buffer is
 * filled on the device, and read back before its release. After each `sample` operations all threads stop: no two
 * buffers overlap, and what the pool counts is what there is. NULL, or a sentence on what was wrong.
 */
const char *pool_load_run(rnl_device *device, const pool_load *load, pool_load_result *out_result);

#endif
