/* SPDX-License-Identifier: Apache-2.0 */
#include "device/watch.h"

#include "base/clock.h"
#include "base/verbose.h"
#include "device/guard.h"
#include "device/waiter.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool rnl_switch_is_on(const char *variable)
{
    const char *value = getenv(variable);
    return value && *value && strcmp(value, "0") != 0;
}

bool rnl_watch_is_wanted(void)
{
    return rnl_switch_is_on("RUNNEL_SYNC") || rnl_guard_is_on() || rnl_verbose_is_on(RNL_VERBOSE_RUN);
}

void rnl_place_text(const rnl_device *device, char text[RNL_PLACE_BYTES])
{
    snprintf(text, RNL_PLACE_BYTES, "%u:%u", (unsigned)device->info.platform_index,
             (unsigned)device->info.device_index);
}

void rnl_watch_begin(rnl_watch *watch, rnl_stream *stream)
{
    *watch = (rnl_watch){.stream = stream, .is_on = stream->is_watched};
    if (!watch->is_on)
        return;
    watch->before = stream->event;
    if (!stream->event)
        stream->event = &watch->event;
    watch->start_ns = rnl_clock_ns();
}

/* rusticl's clFinish (22.3) does not wait for commands that wait for the host. */
static rnl_status wait_for(rnl_stream *stream, cl_event event)
{
    rnl_status status = CL(clFinish(stream->queue));
    if (event && (stream->has_turns || stream->waits_for.count > 0))
        clWaitForEvents(1, &event);
    if (status == RNL_OK && event)
        status = rnl_command_check(event);
    if (status == RNL_OK)
        status = rnl_guards_check(stream->device);
    return status;
}

rnl_status rnl_watch_end(rnl_watch *watch, rnl_status status)
{
    rnl_stream *stream = watch->stream;
    if (!watch->is_on)
        return status;
    const cl_event event = *stream->event;
    stream->event = watch->before;
    if (status == RNL_OK && !rnl_waiter_is_here())
        status = wait_for(stream, event);
    if (!watch->before && event)
        clReleaseEvent(event);
    return status;
}

void rnl_watch_tell(const rnl_watch *watch, const char *subject, const char *program, const char *detail)
{
    char place[RNL_PLACE_BYTES];
    if (!watch->is_on || !rnl_verbose_is_on(RNL_VERBOSE_RUN))
        return;
    rnl_place_text(watch->stream->device, place);
    rnl_verbose_write(&(rnl_verbose_event){RNL_VERBOSE_RUN, place, subject, program, detail,
                                           (double)(rnl_clock_ns() - watch->start_ns) / 1e6});
}
