/* SPDX-License-Identifier: Apache-2.0 */
/* A session's insides: what one caller needs to run plans of one model. */
#ifndef RUNNEL_MODEL_SESSION_H
#define RUNNEL_MODEL_SESSION_H

#include "device/trace.h"
#include "model/model.h"
#include "model/ring.h"
#include "model/teamwork.h"
#include "ops/execute.h"

typedef struct rnl_worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool created, stop, busy;
    const rnl_tensor *inputs;
    rnl_tensor *outputs;
    size_t input_count, output_count;
    rnl_complete_fn complete;
    void *user;
} rnl_worker;

typedef struct rnl_profile rnl_profile; /* profile.h */

#define RNL_SESSION_NAME_BYTES 64

struct rnl_session {
    rnl_model *model; /* retained */
    rnl_stream *stream;
    rnl_kernel_set *kernels;
    rnl_ring ring;       /* of weights that stay on the host */
    rnl_buffer **blocks; /* the arena */
    size_t block_count, block_capacity;
    size_t arena_bytes, arena_peak_bytes;
    rnl_slot_memory *slots; /* of the bound plan: one a slot */
    size_t slot_capacity;
    rnl_plan *bound; /* retained: whose slots and constants the arena holds; NULL: none */
    bool has_constants;
    uint8_t guard_band[1024];        /* not on a stack: where a process ends meanwhile, the driver may write it later */
    uint64_t random_key, draw_count; /* from the system; draws of all runs so far */
    struct rnl_edge *edges;          /* the graph's inputs, then its outputs: see edge.h */
    const rnl_tensor **order;        /* scratch: the caller's tensors in the graph's order */
    rnl_tensor_desc *descs;
    bool *nan_values; /* one a value of the bound plan's graph: it held NaN when it was looked at */
    size_t nan_value_capacity;
    size_t step_count;
    rnl_teamwork teamwork;
    rnl_profile *profile; /* NULL until one is asked for */
    bool is_profiled;     /* the run in progress */
    rnl_trace *trace;     /* retained; NULL: not traced */
    rnl_stream *parked;   /* the one that `stream` takes turns with, as not every run is recorded; NULL: none yet */
    bool is_recorded;     /* `stream` is */
    bool is_told;         /* which runs are recorded, by rnl_session_record */
    rnl_trace_turn turn;  /* else */
    rnl_trace_cost trace_cost;
    char name[RNL_SESSION_NAME_BYTES]; /* of its track; "": by number */
    const rnl_plan *named;             /* whose steps `names` are of; the bound one, or none */
    uint32_t *names;
    size_t name_capacity;
    atomic_bool running, cancelled;
    const atomic_bool
        *stop; /* borrowed; cancels, too, and whoever sets it need not know whether a run has begun; or NULL */
    rnl_worker worker;
};

static inline bool rnl_session_is_cancelled(const rnl_session *session)
{
    return atomic_load(&session->cancelled) || (session->stop && atomic_load(session->stop));
}

/* Makes `plan` the bound one, growing the arena when needed. */
RNL_NODISCARD rnl_status rnl_session_bind(rnl_session *session, rnl_plan *plan);
/* Puts the bound plan's slots back to where binding put them. */
void rnl_session_place_slots(rnl_session *session);
/* Lets go of the bound plan and the arena. The stream must be idle. */
void rnl_session_unbind(rnl_session *session);
/* The buffer that holds a slot of the bound plan; it starts at slots[slot].offset_bytes. */
rnl_buffer *rnl_session_buffer(const rnl_session *session, uint32_t slot);
/* Fails when a step wrote behind its value (RUNNEL_ARENA=off). */
RNL_NODISCARD rnl_status rnl_session_check_guards(rnl_session *session);

/* The parts of running the bound plan: before its steps, its steps, and when all has run. */
RNL_NODISCARD rnl_status rnl_session_begin_plan(rnl_session *session);
RNL_NODISCARD rnl_status rnl_session_run_steps(rnl_session *session);
RNL_NODISCARD rnl_status rnl_session_end_plan(rnl_session *session);

/* One run, without the flags that guard against a second one. */
RNL_NODISCARD rnl_status rnl_session_execute(rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                                             rnl_tensor *outputs, size_t output_count);

#endif
