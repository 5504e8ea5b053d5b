/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a run's inputs and outputs travel. Where the device uses the host's memory, a slot is the caller's memory itself,
 * for that run. A device with memory of its own gets them through pinned memory, so that copies of one session overlap
 * with the steps of another. What neither suits is copied as it is.
 */
#ifndef RUNNEL_MODEL_EDGE_H
#define RUNNEL_MODEL_EDGE_H

#include "model/session.h"

typedef struct rnl_edge {
    void *wrapped;       /* of this run: a memory object that is the caller's memory; NULL: none */
    rnl_buffer *staging; /* pinned, as large as was needed so far; NULL: none yet */
    void *target;        /* of this run: the caller's memory that the staged output goes to; NULL: none */
    unsigned asked;      /* outputs: how often, in this run */
    /* Outputs: host memory lent to the caller. */
    void *lent;
    size_t lent_bytes;
} rnl_edge;

RNL_NODISCARD rnl_status rnl_edges_create(rnl_session *session);
void rnl_edges_free(rnl_session *session);

/* The outputs are the graph's. */
RNL_NODISCARD rnl_status rnl_edges_check(const rnl_session *session, rnl_tensor *outputs, size_t count);
/* Before the steps: inputs are there, outputs know their memory, type and shape. */
RNL_NODISCARD rnl_status rnl_edges_begin(rnl_session *session, rnl_tensor *outputs, size_t count);
/* An output of this type and shape, in the session's memory where the caller gives none. */
RNL_NODISCARD rnl_status rnl_edges_describe(rnl_session *session, size_t index, const rnl_tensor_desc *desc,
                                            rnl_tensor *tensor);
/* Behind the steps: enqueues reading the outputs that are not in place. */
RNL_NODISCARD rnl_status rnl_edges_read(rnl_session *session, rnl_tensor *outputs, size_t count);
/* When all has run. */
void rnl_edges_finish(rnl_session *session);
/* However the run went: lets go of the caller's memory. */
void rnl_edges_end(rnl_session *session);

#endif
