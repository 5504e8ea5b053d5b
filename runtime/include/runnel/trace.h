/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces: when each launch and each copy was queued, submitted, started and ended, beside what the host did meanwhile,
 * on the host's clock, as a file that Perfetto (ui.perfetto.dev) and chrome://tracing open.
 *
 *     rnl_trace_create(NULL, &trace);
 *     rnl_stream_options options = RNL_STREAM_OPTIONS_INIT;
 *     options.trace = trace, options.name = "upload";
 *     rnl_stream_create_with(device, &options, &stream);      a track of its own; any number of streams and devices
 *     …
 *     rnl_trace_write(trace, "out.json");
 *
 * A stream without a trace pays nothing. Tracing never makes a program fail: what cannot be recorded is left out and
 * counted. The conventions of rt.h hold.
 */
#ifndef RUNNEL_TRACE_H
#define RUNNEL_TRACE_H

#include <runnel/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnl_trace_options {
    size_t struct_size;
    size_t max_events; /* commands and spans; further ones are counted alone. 0: 1,000,000 */
} rnl_trace_options;
#define RNL_TRACE_OPTIONS_INIT                                                                                         \
    {                                                                                                                  \
        sizeof(rnl_trace_options), 0                                                                                   \
    }

/* Any thread. `options` may be NULL. */
RNL_API RNL_NODISCARD rnl_status rnl_trace_create(const rnl_trace_options *options, rnl_trace **out_trace);
RNL_API rnl_trace *rnl_trace_retain(rnl_trace *trace);
/* Its streams hold it, and it holds their devices. */
RNL_API void rnl_trace_release(rnl_trace *trace);

/*
 * What the calling thread does from now on is put into the trace, too: compiling, planning, placing weights, waiting.
 * NULL: no longer. Gives the trace that it was before. The thread does not hold it: stop before the last release.
 */
RNL_API rnl_trace *rnl_trace_use(rnl_trace *trace);

/*
 * Of each session's runs, and of the requests and batches on several devices, every N-th is recorded from now on, the
 * next one first. The others run on streams that keep no times, and cost nothing. 0: none is; 1: all are. What is
 * enqueued in streams of your own and rnl_trace_span are recorded all the same. Any thread.
 *
 * RNL_TRACE_AUTOMATIC, as it is at first: the next five are, then a third of the runs, until the times of pairs, of
 * which one is recorded, say what that costs; from then on as many as can be at a mean cost of at most 1%: all but
 * each 32nd where a recorded run takes no longer, each 51st where it takes one and a half times as long. It is
 * measured again as runs go on.
 */
#define RNL_TRACE_AUTOMATIC UINT32_MAX
RNL_API void rnl_trace_set_interval(rnl_trace *trace, uint32_t runs);
/* The interval that RNL_TRACE_AUTOMATIC comes to where a recorded run takes so many times as long as another. */
RNL_API uint32_t rnl_trace_choose_interval(double times);
/* How many runs, requests and batches there have been since they were traced, and how many of them were recorded. */
RNL_API uint64_t rnl_trace_get_runs(rnl_trace *trace, uint64_t *out_recorded);

/* The host's clock of all times in a trace: CLOCK_MONOTONIC. */
RNL_API uint64_t rnl_trace_now(void);
/* A span of the calling thread's, from `start_ns` until now. `name` is copied. `trace` may be NULL: nothing happens.
 * Any thread. Spans of one thread lie within each other or side by side. */
RNL_API void rnl_trace_span(rnl_trace *trace, const char *name, uint64_t start_ns);

typedef struct rnl_trace_stats {
    uint64_t commands, spans;
    uint64_t dropped;  /* past max_events, or there was no memory */
    uint64_t clock_ns; /* by how much a device's times may be off the host's, at most; 0: there are none */
} rnl_trace_stats;
RNL_API void rnl_trace_get_stats(rnl_trace *trace, rnl_trace_stats *out_stats);

/*
 * Writes what has ended by now as Chrome trace JSON: a process a device, a thread a stream, and the host's threads.
 * Commands that are under way are left out, so synchronise the streams first. A file of that name is replaced when the
 * new one is complete; on failure nothing is left behind. May be called again. Any thread.
 */
RNL_API RNL_NODISCARD rnl_status rnl_trace_write(rnl_trace *trace, const char *path);

#ifdef __cplusplus
}
#endif
#endif
