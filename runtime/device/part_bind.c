/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL does not say which threads work for a sub-device, but a native kernel runs in one of them. So as many as it
 * has units are enqueued, and each waits there for the others: then they are in as many threads.
 */
#include "device/part_bind.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "device/host_limits.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE_NS 50000000u

typedef struct meeting {
    atomic_uint arrived;
    uint32_t wanted;
    uint64_t deadline_ns;
    pid_t *threads;
} meeting;

static void CL_CALLBACK arrive(void *data)
{
    meeting *all = *(meeting **)data;
    all->threads[atomic_fetch_add(&all->arrived, 1)] = gettid();
    while (atomic_load(&all->arrived) < all->wanted && rnl_clock_ns() < all->deadline_ns)
        sched_yield();
}

static int by_number(const void *left, const void *right)
{
    const pid_t a = *(const pid_t *)left, b = *(const pid_t *)right;
    return (a > b) - (a < b);
}

/* The threads, sorted; false where they did not meet. What waits in them ends by itself, and is waited for. */
static bool meet(cl_command_queue queue, uint32_t units, pid_t *threads)
{
    meeting all = {.wanted = units, .deadline_ns = rnl_clock_ns() + PATIENCE_NS, .threads = threads}, *at = &all;
    bool right = true;
    for (uint32_t i = 0; i < units && right; i++)
        right =
            clEnqueueNativeKernel(queue, arrive, (void *)&at, sizeof at, 0, NULL, NULL, 0, NULL, NULL) == CL_SUCCESS;
    if (clFinish(queue) != CL_SUCCESS || !right || atomic_load(&all.arrived) != units)
        return false;
    qsort(threads, units, sizeof *threads, by_number);
    for (uint32_t i = 0; i < units; i++)
        right = right && threads[i] != gettid() && (i == 0 || threads[i] != threads[i - 1]);
    return right;
}

/* Twice the same ones. */
static bool find_threads(cl_context context, cl_device_id part, uint32_t units, pid_t *threads)
{
    cl_int code;
    cl_device_exec_capabilities can = 0;
    pid_t *again;
    if (clGetDeviceInfo(part, CL_DEVICE_EXECUTION_CAPABILITIES, sizeof can, &can, NULL) != CL_SUCCESS ||
        !(can & CL_EXEC_NATIVE_KERNEL) || rnl_alloc(units, sizeof *again, &again) != RNL_OK)
        return false;
    cl_command_queue queue = clCreateCommandQueue(context, part, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    const bool found = queue && meet(queue, units, threads) && meet(queue, units, again) &&
                       memcmp(threads, again, units * sizeof *threads) == 0;
    if (queue)
        clReleaseCommandQueue(queue);
    rnl_free(again);
    return found;
}

rnl_bound *rnl_part_bind(cl_context context, cl_device_id part, uint32_t first, uint32_t units, uint32_t whole)
{
    rnl_bound *bound;
    if (rnl_alloc(1, sizeof *bound + units * sizeof *bound->threads, &bound) != RNL_OK)
        return NULL;
    bound->count = units;
    bool right = rnl_host_processors(first, units, whole, &bound->before, &bound->now) &&
                 find_threads(context, part, units, bound->threads);
    for (uint32_t i = 0; i < units && right; i++)
        right = sched_setaffinity(bound->threads[i], sizeof bound->now, &bound->now) == 0;
    if (right)
        return bound;
    rnl_log(RNL_LOG_DEBUG, "a share's threads are not bound to processors");
    rnl_free(bound);
    return NULL;
}

void rnl_part_unbind(rnl_bound *bound)
{
    for (uint32_t i = 0; bound && i < bound->count; i++)
        if (sched_setaffinity(bound->threads[i], sizeof bound->before, &bound->before) != 0)
            rnl_log(RNL_LOG_DEBUG, "a share's thread is gone");
    rnl_free(bound);
}
