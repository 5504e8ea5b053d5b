/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that a thread of the library does at a stream's turn: what is enqueued on the stream afterwards waits for it,
 * the caller does not. A stream's jobs run one after the other, on a thread that ends with the last of them.
 */
#ifndef RUNNEL_DEVICE_MOVER_H
#define RUNNEL_DEVICE_MOVER_H

#include "device/stream.h"

typedef struct rnl_job {
    struct rnl_job *next;
    void (*run)(struct rnl_job *job); /* frees the job */
} rnl_job;

/* RNL_RESOURCE_EXHAUSTED, and the job is the caller's again, where no thread is to be had. */
RNL_NODISCARD rnl_status rnl_mover_submit(rnl_stream *stream, rnl_job *job);
/* Until no job of the stream's is left, and no thread. */
void rnl_mover_wait(rnl_stream *stream);
void rnl_mover_free(struct rnl_mover *mover);

/* A turn of a stream: from its begin on, what is enqueued waits for its end. Starts as {0}. */
typedef struct rnl_turn {
    rnl_stream *stream; /* retained; NULL: there is none */
    rnl_event *before;
    cl_event after;
} rnl_turn;

RNL_NODISCARD rnl_status rnl_turn_begin(rnl_stream *stream, rnl_turn *turn);
/* Until all that was enqueued before has run; fails with the stream's failure. */
RNL_NODISCARD rnl_status rnl_turn_wait(rnl_turn *turn);
/* The failure, if there is one, is the stream's; what waits goes on. */
void rnl_turn_end(rnl_turn *turn, rnl_status status);

#endif
