/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights that stay in host memory (rnl_model_options.weight_budget_bytes) and pass through a ring of device memory of
 * the session's, ahead of the steps that read them. A plan says in stretches of steps what each needs, where in the
 * ring that goes, and whose place it takes.
 */
#ifndef RUNNEL_MODEL_RING_H
#define RUNNEL_MODEL_RING_H

#include "model/plan.h"

struct rnl_session;

/* A slot that has a place in the ring during a stretch. */
typedef struct rnl_ring_load {
    uint32_t slot, segment;
    size_t offset_bytes;
} rnl_ring_load;

/* One stretch of memory: a weight, or several that are neighbours on the host and in the ring. */
typedef struct rnl_ring_copy {
    const void *host;
    uint32_t segment;
    size_t offset_bytes, size_bytes;
} rnl_ring_copy;

/* Steps from `first_step` to the next stretch's. */
typedef struct rnl_stretch {
    size_t first_step, first_load, load_count, first_copy, copy_count;
    uint32_t segment; /* all of it lies in one */
    size_t offset_bytes, size_bytes;
    size_t after; /* of the stretches before: how many must have ended before this one's copies start */
} rnl_stretch;

struct rnl_ring_plan {
    rnl_stretch *stretches;
    size_t stretch_count, stretch_capacity;
    rnl_ring_load *loads;
    size_t load_count, load_capacity;
    rnl_ring_copy *copies;
    size_t copy_count, copy_capacity;
    size_t *segment_bytes; /* of the ring's buffers */
    size_t segment_count, segment_capacity;
    bool is_whole; /* no stretch takes another's place: all stays in the ring from one run to the next */
};

/* What a session has of it. */
typedef struct rnl_ring {
    rnl_buffer **segments;
    size_t segment_count, segment_capacity;
    rnl_stream *stream;  /* copies; NULL until a plan needs it */
    rnl_event **arrived; /* a stretch: its weights are there; NULL: nobody waits for that any more */
    rnl_event **ended;   /* a stretch: its steps have run; the same */
    size_t event_capacity[2];
    size_t next_stretch, next_load; /* whose steps, and whose copies, are enqueued next */
    bool is_loaded;                 /* with all that the bound plan reads, by an earlier run */
    size_t bytes;                   /* of the segments */
} rnl_ring;

/* ---- ring_plan.c ---- */

/*
 * Divides the plan's steps into stretches. Fails where one step reads more than the budget, saying how much that is.
 * Nothing to do for a model without a budget.
 */
RNL_NODISCARD rnl_status rnl_ring_plan_make(rnl_plan *plan);
void rnl_ring_plan_free(struct rnl_ring_plan *ring);
/* Bytes of host memory. */
size_t rnl_ring_plan_bytes(const struct rnl_ring_plan *ring);

/* ---- ring.c: of the session's bound plan ---- */

/* Before a plan is bound: memory for it. */
RNL_NODISCARD rnl_status rnl_ring_reserve(struct rnl_session *session, const rnl_plan *plan);
/* Before the steps: what finds room in the ring starts to travel. */
RNL_NODISCARD rnl_status rnl_ring_begin(struct rnl_session *session);
/* Before a step is enqueued, and behind the last one: its weights' slots say where they are. */
RNL_NODISCARD rnl_status rnl_ring_reach(struct rnl_session *session, size_t step);
/* When all has run. */
RNL_NODISCARD rnl_status rnl_ring_end(struct rnl_session *session);
/* After a failure: waits for what is under way; the next run copies everything again. */
void rnl_ring_recover(struct rnl_session *session);
/* The buffer that holds a weight when all steps have been enqueued. */
rnl_buffer *rnl_ring_buffer(const struct rnl_session *session, uint32_t slot);
void rnl_ring_free(rnl_ring *ring);

#endif
