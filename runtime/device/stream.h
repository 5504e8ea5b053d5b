/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_DEVICE_STREAM_H
#define RUNNEL_DEVICE_STREAM_H

#include "device/device.h"
#include "device/fate.h"

struct rnl_gemm_cache;
struct rnl_pool_order;
struct rnl_track;

struct rnl_stream {
    atomic_uint references;
    rnl_device *device; /* retained */
    cl_command_queue queue;
    rnl_fate *fate;          /* its first failure, sticky */
    rnl_fates waits_for;     /* of the streams that it waited for since it was synchronised last */
    bool is_idle;            /* its queue: nothing was enqueued since it was synchronised last */
    bool is_inside;          /* of the device's gate: kernels were launched and not waited for yet */
    struct rnl_mover *mover; /* mover.h; NULL until there was a job */
    bool has_turns;          /* since it was synchronised last: see mover.h */
    bool waits_outside;      /* for what is not the stream's own, since it was synchronised last */
    bool is_watched;         /* each launch and copy is waited for: watch.h */
    cl_event *event;         /* where the next launches leave their events; NULL: nowhere */
    bool is_handed_out;      /* its queue: others enqueue there unseen */
    uint32_t products;       /* matrix products that followed each other, with nothing else in between */
    struct rnl_team *team;   /* kernel/team.c's: which may take launches; NULL: none */
    bool helps_team;         /* rnl_team_help */
    uint64_t team_launches;  /* that it took so far */
    uint32_t team_losses;    /* its own when the stream went inside */
    rnl_status (*leave_team)(rnl_stream *stream); /* while it has taken some: makes the queue wait for it */
    struct rnl_gemm_cache *gemms; /* ops/gemm_api_cache.c's, which sets the hook that waits for its products */
    void (*free_gemms)(rnl_stream *stream);
    rnl_trace *trace;             /* retained; NULL: the stream is not traced */
    struct rnl_track *track;      /* the trace's: see trace.h */
    uint32_t trace_what;          /* what the next launch is called there */
    struct rnl_pool_order *order; /* the pool's, under its lock: see pool.h */
};

/* A stream on an in-order queue of the device's context, whose reference it takes, also when it fails. */
RNL_NODISCARD rnl_status rnl_stream_take_queue(rnl_device *device, cl_command_queue queue, rnl_stream **out_stream);

/* Releases the stream unless that would be the last release; false then. */
bool rnl_stream_let_go(rnl_stream *stream);
/* What the last release does, now or when a marker behind the last command `has_ended`. */
void rnl_stream_destroy(rnl_stream *stream, bool has_ended);

/* Before each launch of a kernel, a library's too. */
RNL_API void rnl_stream_enter(rnl_stream *stream);
/* The sticky failure as this thread's error, or RNL_OK. Checked before each enqueue on the stream's queue. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_check(rnl_stream *stream);
/* The same before what may not go there. */
RNL_NODISCARD rnl_status rnl_stream_check_only(rnl_stream *stream);
/* What is enqueued on its queue from now on comes behind all launches before it; failures become the stream's. */
void rnl_stream_rejoin(rnl_stream *stream);
/* Keeps the calling thread's error as the stream's failure if it is the first; returns `status`. RNL_OK is ignored. */
RNL_API rnl_status rnl_stream_fail(rnl_stream *stream, rnl_status status);

/* It holds no stream, so that releasing an event waits for nothing. */
struct rnl_event {
    atomic_uint references;
    rnl_device *device; /* retained */
    cl_event event;
    rnl_fates fates; /* first its stream's own, then those of what that waited for */
};

/* A negative state of a command that has ended is its error; clFinish does not tell. */
RNL_NODISCARD rnl_status rnl_command_check(cl_event event);

#endif
