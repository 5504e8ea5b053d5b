/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RUNNEL_SYNC=1, RUNNEL_VERBOSE=run and RUNNEL_GUARD=1: a stream that ends each launch and copy before the next. Read
 * when a stream is made; other streams pay a branch.
 */
#ifndef RUNNEL_DEVICE_WATCH_H
#define RUNNEL_DEVICE_WATCH_H

#include "device/stream.h"

/* Of one command: begun before it is enqueued, ended behind it. */
typedef struct rnl_watch {
    rnl_stream *stream;
    cl_event event, *before; /* before: what stream->event was */
    uint64_t start_ns;
    bool is_on;
} rnl_watch;

/* The variable says so: set, and neither empty nor 0. */
RNL_API bool rnl_switch_is_on(const char *variable);
bool rnl_watch_is_wanted(void);
/* Bytes of the device's place, "0:1". */
#define RNL_PLACE_BYTES 24
RNL_API void rnl_place_text(const rnl_device *device, char text[RNL_PLACE_BYTES]);

RNL_API void rnl_watch_begin(rnl_watch *watch, rnl_stream *stream);
/*
 * `status` is the enqueueing's. Waits, and fails with what the command failed with, or with the guard that it broke:
 * the caller adds what it was, and makes the failure the stream's. Not on a thread that callbacks run on: it must not
 * wait.
 */
RNL_API RNL_NODISCARD rnl_status rnl_watch_end(rnl_watch *watch, rnl_status status);
/* A line of RUNNEL_VERBOSE=run about the command. */
RNL_API void rnl_watch_tell(const rnl_watch *watch, const char *subject, const char *program, const char *detail);

#endif
