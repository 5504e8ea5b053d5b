/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steering the fake OpenCL driver from the process that it runs in. The table comes from
 * clGetExtensionFunctionAddressForPlatform(platform, "fakeControl"); see support/fake_driver.h. What the environment
 * says at the start of the process (docs/testing.md) holds until it is changed here. Any thread.
 */
#ifndef RUNNEL_TESTS_FAKE_CONTROL_H
#define RUNNEL_TESTS_FAKE_CONTROL_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_DEVICES 3

/* What has happened since the last `reset`, and what there is now. */
typedef struct fake_stats {
    uint64_t calls;        /* of all entry points */
    uint64_t failed_calls; /* made to fail by what is below */
    char first_failed[64]; /* the first of them, "" without */
    uint64_t overlaps;     /* sub-buffers made over a living sibling: NVIDIA's driver keeps no order between them */
    size_t alive;          /* objects that the application holds, without platforms and devices */
    size_t memory_bytes;   /* of all buffers */
    size_t busy_queues;    /* with commands under way, also of queues that were released */
} fake_stats;

typedef struct fake_control {
    /* Everything as at the start, without what the environment asked for; counters at 0. */
    void (*reset)(void);
    void (*get_stats)(fake_stats *out_stats);
    /* Calls so far of one entry point, "clCreateBuffer". */
    uint64_t (*calls_of)(const char *name);
    /* Writes a line for each living object to stderr. */
    void (*list_alive)(void);

    /*
     * The n-th call from now on, of `name` or (NULL) of any entry point, fails with `code` without being made, and so
     * do all later ones `from_then_on`. Releases release, and waits wait, whatever they answer; from then on user
     * events are set, too. 0: none.
     */
    void (*fail_call)(const char *name, uint64_t n, cl_int code, bool from_then_on);
    /* The n-th command from now on that a queue would run ends with `code` instead; so do those behind it in its queue.
     * clFinish says nothing of it. */
    void (*fail_command)(uint64_t n, cl_int code);
    /* The n-th clCreateBuffer from now on succeeds; what uses the buffer fails: CL_MEM_OBJECT_ALLOCATION_FAILURE. */
    void (*lie)(uint64_t n);
    /* clCreateBuffer fails when all buffers of a device together would be larger. 0: than its memory. */
    void (*limit_memory)(size_t bytes);
    /*
     * Device `index` (0, 1: of the first platform, 2: of the second) is lost at its n-th command, flush or finish from
     * now on: they fail with `code` and commands under way end with it. 0: it is there, for new queues.
     */
    void (*lose_device)(unsigned index, uint64_t n, cl_int code);
    /* Each command begins that much later. */
    void (*delay)(unsigned microseconds);
    /* Parts of devices have that many units less than was asked for. */
    void (*shorten_parts)(cl_uint units);
} fake_control;

#endif
