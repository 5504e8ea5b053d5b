/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread a device, made when it is first needed: it completes the user events that the device's streams wait for
 * when they wait for an event of another context, and it calls the callbacks of the device's own events. Drivers'
 * callbacks do neither: setting a user event in one locks up some drivers.
 */
#ifndef RUNNEL_DEVICE_WAITER_H
#define RUNNEL_DEVICE_WAITER_H

#include "device/stream.h"

typedef struct rnl_waiter rnl_waiter;

#define RNL_WAITER_NAME "runnel-waiter" /* what debuggers call the thread */

/* What is enqueued on `stream` from now on runs after `event`, which is of another context. */
RNL_NODISCARD rnl_status rnl_waiter_wait(rnl_stream *stream, rnl_event *event);
RNL_NODISCARD rnl_status rnl_waiter_notify(rnl_event *event, rnl_event_fn notify, void *user);

/*
 * On a waiter's thread, and there alone: true when the stream, which nobody holds any more, is destroyed once it has
 * ended: destroying waits for that, which may be up to the thread itself.
 */
bool rnl_waiter_destroy_later(rnl_stream *stream);
/* Sets a user event, if need be by trying again: a stream that waits for one which is not set waits for ever. */
RNL_NODISCARD rnl_status rnl_user_event_complete(cl_event target);
/* On a waiter's thread. */
bool rnl_waiter_is_here(void);
/* RNL_FAILED_PRECONDITION on a waiter's thread, which would wait for itself. */
RNL_NODISCARD rnl_status rnl_waiter_refuse_to_wait(void);

/*
 * Ends the thread once all it has to wait for has ended, and waits for that, unless the caller is such a thread itself.
 * NULL is legal.
 */
void rnl_waiter_end(rnl_waiter *waiter);

#endif
