/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recording what streams do. A stream that is not traced has no track, and each of its commands looks at that pointer.
 * A command is noted before it is enqueued, its times are asked of its event when the trace is written or enough
 * commands have ended, and they are put on the host's clock by pairs of times that were taken around a marker.
 */
#ifndef RUNNEL_DEVICE_TRACE_H
#define RUNNEL_DEVICE_TRACE_H

#include "device/stream.h"
#include <runnel/trace.h>

/* What a command or a span is called: described once, then an index. */
typedef struct rnl_trace_what {
    const char *name, *category;
    const char *args; /* members of a JSON object, or "" */
    uint64_t flops, bytes;
} rnl_trace_what;

/* The descriptions that every trace has. */
typedef enum rnl_trace_known {
    RNL_TRACE_UNKNOWN,
    RNL_TRACE_WRITE,
    RNL_TRACE_READ,
    RNL_TRACE_COPY,
    RNL_TRACE_FILL,
    RNL_TRACE_MAP,
    RNL_TRACE_UNMAP,
    RNL_TRACE_ACROSS,
    RNL_TRACE_REPLAY,
    RNL_TRACE_KNOWN_COUNT
} rnl_trace_known;

/* Equal descriptions have one index. RNL_TRACE_UNKNOWN where there is no memory. Any thread. */
RNL_API uint32_t rnl_trace_describe(rnl_trace *trace, const rnl_trace_what *what);

/* ---- Which runs are recorded (trace_turn.c) ---- */

/* Where somebody whose runs are recorded stands between two of them. */
typedef struct rnl_trace_turn {
    uint32_t setting, left;
    uint32_t count; /* where the interval is automatic: of runs so far */
} rnl_trace_turn;
/* Whether the next run is recorded; the turn is the caller's own. `measured`: the interval, where that is automatic, as
 * rnl_trace_cost_interval has it. Any thread. */
RNL_API bool rnl_trace_takes(rnl_trace *trace, rnl_trace_turn *turn, uint32_t measured);
/* One that is recorded whosever turn it is. */
RNL_API void rnl_trace_count_extra(rnl_trace *trace);
RNL_API bool rnl_trace_is_automatic(const rnl_trace *trace);

/* What recording costs: how many times as long a recorded run takes as the last one of its kind that was not. */
#define RNL_TRACE_PAIRS 9
#define RNL_TRACE_KINDS 4
typedef struct rnl_trace_cost {
    double times[RNL_TRACE_PAIRS]; /* a ring */
    uint32_t count;
    struct {
        uint64_t kind;
        double ns;
    } plain[RNL_TRACE_KINDS]; /* the last ones that were not recorded */
    uint32_t kinds;
} rnl_trace_cost;
/* A run has succeeded. Of a kind are those that compute the same for as much input. */
RNL_API void rnl_trace_cost_add(rnl_trace_cost *cost, bool is_recorded, uint64_t kind, uint64_t ns);
/* 0: not known yet. */
RNL_API uint32_t rnl_trace_cost_interval(const rnl_trace_cost *cost);

/* For the numbers of those who have none: 1, 2, … Any thread. */
RNL_API uint32_t rnl_trace_next_number(rnl_trace *trace);

/* The trace of the calling thread, or NULL. */
RNL_API rnl_trace *rnl_trace_current(void);
/* A span of the calling thread's in its trace: 0, and nothing happens, where it has none. */
RNL_API uint64_t rnl_trace_start(void);
RNL_API void rnl_trace_stop(uint64_t start_ns, const char *format, ...) RNL_PRINTF(2, 3);

/* ---- Of a stream ---- */

/* The trace that a stream is recorded in, or NULL. */
RNL_API rnl_trace *rnl_stream_trace(const rnl_stream *stream);
/* What would be done when it is synchronised: before a run is no part of it. The stream is idle. */
RNL_API void rnl_stream_look_at_clocks(rnl_stream *stream);
/* Asks for the times of what has ended now, not when they are written, so that what this takes is seen. */
RNL_API void rnl_stream_ask_times(rnl_stream *stream);
/* What the stream's next launch is called, once. */
RNL_API void rnl_stream_call_next(rnl_stream *stream, uint32_t what);
/* The same for one that nobody has a better name for yet. */
void rnl_stream_call_kernel(rnl_stream *stream, const char *name);

RNL_NODISCARD rnl_status rnl_track_create(rnl_trace *trace, rnl_device *device, const char *name,
                                          struct rnl_track **out_track);
/* Where the command's event goes: NULL when it is not recorded. */
cl_event *rnl_track_begin(struct rnl_track *track, uint32_t what, uint64_t bytes, bool wait);
/* `also`: where somebody else wants the event, retained, or NULL. */
void rnl_track_end(struct rnl_track *track, cl_event *also);
/* A command that a thread of ours ran, by the host's clock. Any thread. */
void rnl_track_add(struct rnl_track *track, uint32_t what, uint64_t bytes, uint64_t start_ns, uint64_t end_ns);
/* All of the stream has ended. */
void rnl_track_synchronized(struct rnl_track *track);

/* Around each command that is enqueued: the first gives the place for its event, the second passes its status on. */
static inline cl_event *rnl_stream_begin(rnl_stream *stream, uint32_t what, uint64_t bytes)
{
    stream->is_idle = false;
    cl_event *event = stream->track ? rnl_track_begin(stream->track, what, bytes, false) : NULL;
    return event ? event : stream->event;
}
static inline rnl_status rnl_stream_end(rnl_stream *stream, rnl_status status)
{
    if (stream->track)
        rnl_track_end(stream->track, stream->event);
    return status;
}
/* What rnl_stream_call_next said. */
uint32_t rnl_stream_take_call(rnl_stream *stream);
static inline cl_event *rnl_stream_begin_launch(rnl_stream *stream)
{
    return rnl_stream_begin(stream, stream->track ? rnl_stream_take_call(stream) : 0, 0);
}

#endif
