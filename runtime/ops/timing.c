/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/timing.h"
#include "base/clock.h"

static rnl_status enqueue(const rnl_step_place *place, const rnl_step_list *list, size_t step_index)
{
    return rnl_step_enqueue(place->stream, place->set, list, step_index, place->slots, place->slot_count);
}

static rnl_status enqueue_and_wait(const rnl_step_place *place, const rnl_step_list *list, size_t step_index,
                                   rnl_step_timer *timer)
{
    TRY(rnl_stream_synchronize(place->stream));
    const uint64_t start = rnl_clock_ns();
    TRY(enqueue(place, list, step_index));
    TRY(rnl_stream_synchronize(place->stream));
    timer->ns = rnl_clock_ns() - start;
    return RNL_OK;
}

rnl_status rnl_step_enqueue_timed(const rnl_step_place *place, const rnl_step_list *list, size_t step_index, bool wait,
                                  rnl_step_timer *timer)
{
    *timer = (rnl_step_timer){0};
    if (wait || list->steps[step_index].kind != RNL_STEP_KERNEL)
        return enqueue_and_wait(place, list, step_index, timer);
    place->stream->event = &timer->event;
    const rnl_status status = enqueue(place, list, step_index);
    place->stream->event = NULL;
    return status;
}

/* rusticl (22.3) answers 0, 1, 2 and 3 for the four points of a command's life. */
static bool is_a_time(uint64_t queued, uint64_t start, uint64_t end)
{
    return queued > 0 && end > start;
}

static rnl_status ask(cl_event event, cl_profiling_info point, uint64_t *out_ns)
{
    cl_ulong ns = 0;
    const rnl_status status = CL(clGetEventProfilingInfo(event, point, sizeof ns, &ns, NULL));
    *out_ns = ns;
    return status;
}

rnl_status rnl_step_timer_read(const rnl_step_timer *timer, uint64_t *out_ns, bool *out_device_clock)
{
    uint64_t queued = 0, start = 0, end = 0;
    *out_ns = timer->ns;
    *out_device_clock = timer->event != NULL;
    if (!timer->event)
        return RNL_OK;
    TRY(ask(timer->event, CL_PROFILING_COMMAND_QUEUED, &queued));
    TRY(ask(timer->event, CL_PROFILING_COMMAND_START, &start));
    TRY(ask(timer->event, CL_PROFILING_COMMAND_END, &end));
    *out_ns = is_a_time(queued, start, end) ? end - start : 0;
    return RNL_OK;
}

void rnl_step_timer_clear(rnl_step_timer *timer)
{
    if (timer->event)
        clReleaseEvent(timer->event);
    *timer = (rnl_step_timer){0};
}
