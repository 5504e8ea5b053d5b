/* SPDX-License-Identifier: Apache-2.0 */
/* How long steps take, each by itself. */
#ifndef RUNNEL_OPS_TIMING_H
#define RUNNEL_OPS_TIMING_H

#include "ops/execute.h"

/* One step that was enqueued. Starts as {0}. */
typedef struct rnl_step_timer {
    cl_event event;
    uint64_t ns; /* measured with waits */
} rnl_step_timer;

/* One caller's way to run a plan's steps, and where. */
typedef struct rnl_step_place {
    rnl_stream *stream; /* a timed one */
    rnl_kernel_set *set;
    const rnl_slot_memory *slots;
    size_t slot_count;
} rnl_step_place;

/*
 * rnl_step_enqueue, measured: by the device's own clock, without waiting. With `wait`, and for a step of several
 * kernels, by ours, waiting before and after it: launching and waking are part of that time.
 */
RNL_API RNL_NODISCARD rnl_status rnl_step_enqueue_timed(const rnl_step_place *place, const rnl_step_list *list,
                                                        size_t step_index, bool wait, rnl_step_timer *timer);
/*
 * Once the stream has been synchronised: nanoseconds, and whether the device's clock counted them. 0 and true: the
 * driver gives no times.
 */
RNL_API RNL_NODISCARD rnl_status rnl_step_timer_read(const rnl_step_timer *timer, uint64_t *out_ns,
                                                     bool *out_device_clock);
RNL_API void rnl_step_timer_clear(rnl_step_timer *timer);

#endif
