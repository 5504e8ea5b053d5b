/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A value between two plans of one run: on the device, on the host, or on both. It moves when it is first asked for on
 * the other side. Cells belong to one session's thread; several frames may hold one.
 */
#ifndef RUNNEL_MODEL_CELL_H
#define RUNNEL_MODEL_CELL_H

#include "graph/op_common.h"
#include "model/session.h"

typedef struct rnl_cell {
    unsigned references;
    rnl_tensor_desc desc; /* its host is NULL */
    rnl_buffer *buffer;   /* retained; NULL: not on the device */
    size_t offset_bytes;
    const void *host;      /* NULL: not on the host, unless it has no elements */
    void *owned;           /* host memory that goes with the cell */
    struct rnl_cell *base; /* retained: whose host memory this is a part of; NULL: nobody's */
} rnl_cell;

RNL_NODISCARD rnl_status rnl_cell_create(rnl_dtype dtype, size_t rank, const int64_t *shape, rnl_cell **out_cell);
rnl_cell *rnl_cell_retain(rnl_cell *cell);
/* The session's stream must be idle: nothing may still use the memory. */
void rnl_cell_release(rnl_cell *cell);
/* Releases what a variable holds and makes it hold `cell`, which is retained. */
void rnl_cell_set(rnl_cell **variable, rnl_cell *cell);
size_t rnl_cell_bytes(const rnl_cell *cell);

/* Memory of its own on either side, undefined; for no elements, none on the device. */
RNL_NODISCARD rnl_status rnl_cell_alloc_host(rnl_cell *cell);
RNL_NODISCARD rnl_status rnl_cell_alloc_device(rnl_session *session, rnl_cell *cell);
/* Contents to either side. To the host waits for the stream. */
RNL_NODISCARD rnl_status rnl_cell_to_host(rnl_session *session, rnl_cell *cell);
RNL_NODISCARD rnl_status rnl_cell_to_device(rnl_session *session, rnl_cell *cell);
/* One that shares the memory: dense elements of this shape, `offset_bytes` into `base`. */
RNL_NODISCARD rnl_status rnl_cell_part(rnl_cell *base, size_t offset_bytes, size_t rank, const int64_t *shape,
                                       rnl_cell **out_cell);
/* A tensor of one element, on the host. */
RNL_NODISCARD rnl_status rnl_cell_of_int(rnl_dtype dtype, size_t rank, int64_t value, rnl_cell **out_cell);
/* The one element of an integer or bool; `what` names it when there is not just one. */
RNL_NODISCARD rnl_status rnl_cell_int(rnl_session *session, rnl_cell *cell, const char *what, int64_t *out_value);

/* What joins the results of no iteration: the declared shape behind a 0, its free dimensions 0. */
RNL_NODISCARD rnl_status rnl_cell_of_nothing(const rnl_value_info *info, rnl_cell **out_cell);

#endif
