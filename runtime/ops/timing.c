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

rnl_status rnl_step_timer_read(const rnl_step_timer *timer, uint64_t *out_ns, bool *out_device_clock)
{
    cl_ulong start = 0, end = 0;
    *out_ns = timer->ns;
    *out_device_clock = timer->event != NULL;
    if (!timer->event)
        return RNL_OK;
    TRY(CL(clGetEventProfilingInfo(timer->event, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL)));
    TRY(CL(clGetEventProfilingInfo(timer->event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL)));
    *out_ns = end > start ? end - start : 0;
    return RNL_OK;
}

void rnl_step_timer_clear(rnl_step_timer *timer)
{
    if (timer->event)
        clReleaseEvent(timer->event);
    *timer = (rnl_step_timer){0};
}
