/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes whose results have shapes that only running them tells: a plan ends before each, and the session runs it. */
#ifndef RUNNEL_MODEL_LATE_H
#define RUNNEL_MODEL_LATE_H

#include "model/frame.h"

typedef enum rnl_late {
    RNL_LATE_NOT,
    RNL_LATE_HOST, /* inferred and evaluated on the host, once all that it reads is there */
    RNL_LATE_IF,
    RNL_LATE_LOOP,
    RNL_LATE_SCAN
} rnl_late;

rnl_late rnl_late_kind(const rnl_node *node);

/* Runs a late node: what it reads is in the frame's cells, and so is then what it gives. */
RNL_NODISCARD rnl_status rnl_late_run(rnl_frame *frame, const rnl_node *node);

/* ---- control.c, scan.c ---- */

RNL_NODISCARD rnl_status rnl_run_if(rnl_frame *frame, const rnl_node *node);
RNL_NODISCARD rnl_status rnl_run_loop(rnl_frame *frame, const rnl_node *node);
RNL_NODISCARD rnl_status rnl_run_scan(rnl_frame *frame, const rnl_node *node);

/*
 * Runs one of a node's graphs. `inputs` are its own, without what it captures; they stay the caller's. outputs[i], one
 * for each of the graph's, are retained for the caller; all are NULL on failure.
 */
RNL_NODISCARD rnl_status rnl_call_graph(rnl_frame *frame, const rnl_node *node, rnl_graph *graph,
                                        rnl_cell *const *inputs, rnl_cell **outputs);

#endif
