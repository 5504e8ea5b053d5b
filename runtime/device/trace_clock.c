/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's clock beside the host's. No driver's word is taken for which clock its times are of: a marker between two
 * looks at ours bounds the difference from both sides, several of them more narrowly, and new pairs follow the drift.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "device/trace_parts.h"

#define MARKERS 8
/* rusticl (22.3) answers 0, 1, 2 and 3 for the four points of a command's life. */
#define LEAST_TIME_NS 1000

rnl_status rnl_trace_device_create(rnl_device *device, uint32_t pid, rnl_trace_device **out_device)
{
    rnl_trace_device *made = NULL;
    cl_int code = CL_SUCCESS;
    TRY(rnl_alloc(1, sizeof *made, &made));
    made->device = rnl_device_retain(device);
    made->pid = pid;
    pthread_mutex_init(&made->lock, NULL);
    made->queue = CL_NEW(&code, clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &code));
    rnl_trace_device_pair(made, 0);
    if (made->pair_count == 0 && made->queue) {
        clReleaseCommandQueue(made->queue);
        made->queue = NULL;
    }
    *out_device = made;
    return RNL_OK;
}

void rnl_trace_device_free(rnl_trace_device *device)
{
    if (device->queue)
        clReleaseCommandQueue(device->queue);
    pthread_mutex_destroy(&device->lock);
    rnl_free(device->pairs);
    rnl_device_release(device->device);
    rnl_free(device);
}

static bool get_times(cl_event event, uint64_t *out_queued, uint64_t *out_started, uint64_t *out_ended)
{
    cl_ulong queued = 0, started = 0, ended = 0;
    if (RNL_CL_RUN(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_QUEUED, sizeof queued, &queued, NULL)) ||
        RNL_CL_RUN(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof started, &started, NULL)) ||
        RNL_CL_RUN(clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof ended, &ended, NULL)))
        return false;
    *out_queued = queued;
    *out_started = started;
    *out_ended = ended;
    return started >= LEAST_TIME_NS && ended >= started;
}

/* What one marker tells: it ran between the two looks, and was queued within the call that enqueued it. */
static bool mark(rnl_trace_device *device, rnl_clock_pair *out_pair)
{
    cl_event event = NULL;
    uint64_t queued = 0, started = 0, ended = 0;
    const uint64_t before = rnl_clock_ns();
    if (RNL_CL_RUN(clEnqueueMarkerWithWaitList(device->queue, 0, NULL, &event)))
        return false;
    const uint64_t returned = rnl_clock_ns();
    const bool waited = RNL_CL_RUN(clWaitForEvents(1, &event)) == CL_SUCCESS;
    const uint64_t after = rnl_clock_ns();
    const bool ok = waited && get_times(event, &queued, &started, &ended);
    clReleaseEvent(event);
    if (!ok)
        return false;
    const bool has_queued = queued >= LEAST_TIME_NS && queued <= started;
    const int64_t low = (int64_t)(before - (has_queued ? queued : started)), high = (int64_t)(after - ended);
    *out_pair = (rnl_clock_pair){started, low, high < low ? low : high};
    const int64_t by_call = (int64_t)(returned - queued);
    if (has_queued && by_call >= low && by_call < out_pair->high)
        out_pair->high = by_call;
    return true;
}

static bool measure(rnl_trace_device *device, rnl_clock_pair *out_pair)
{
    bool any = false;
    for (int i = 0; i < MARKERS; i++) {
        rnl_clock_pair next;
        if (!mark(device, &next))
            return any;
        const int64_t low = any && out_pair->low > next.low ? out_pair->low : next.low;
        const int64_t high = any && out_pair->high < next.high ? out_pair->high : next.high;
        if (low <= high)
            *out_pair = (rnl_clock_pair){next.device_ns, low, high};
        else if (next.high - next.low < out_pair->high - out_pair->low)
            *out_pair = next; /* a clock jumped */
        any = true;
    }
    return any;
}

void rnl_trace_device_pair(rnl_trace_device *device, uint64_t older_than_ns)
{
    rnl_clock_pair pair = {0};
    if (!device->queue || pthread_mutex_trylock(&device->lock) != 0)
        return; /* another thread is at it */
    const rnl_clock_pair *last = device->pair_count ? &device->pairs[device->pair_count - 1] : NULL;
    if ((!last || rnl_clock_ns() - device->paired_ns >= older_than_ns) && measure(device, &pair) &&
        (!last || pair.device_ns > last->device_ns)) {
        const rnl_error before = *rnl_last_error();
        if (rnl_grow(&device->pairs, &device->pair_capacity, device->pair_count + 1, sizeof pair) == RNL_OK)
            device->pairs[device->pair_count++] = pair;
        else
            rnl_error_restore(&before);
        device->paired_ns = rnl_clock_ns();
    }
    pthread_mutex_unlock(&device->lock);
}

static int64_t offset_of(const rnl_clock_pair *pair)
{
    return pair->low + (pair->high - pair->low) / 2;
}

/* Between two pairs the difference changes evenly; before the first and behind the last one it stays. */
uint64_t rnl_trace_device_map(const rnl_trace_device *device, uint64_t device_ns)
{
    size_t low = 0, high = device->pair_count; /* the first pair that is later */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (device->pairs[middle].device_ns > device_ns)
            high = middle;
        else
            low = middle + 1;
    }
    if (device->pair_count == 0)
        return device_ns;
    if (low == 0 || low == device->pair_count)
        return device_ns + (uint64_t)offset_of(&device->pairs[low == 0 ? 0 : low - 1]);
    const rnl_clock_pair *from = &device->pairs[low - 1], *to = &device->pairs[low];
    const double share = (double)(device_ns - from->device_ns) / (double)(to->device_ns - from->device_ns);
    const double more = share * (double)(offset_of(to) - offset_of(from));
    return device_ns + (uint64_t)(offset_of(from) + (int64_t)more);
}
