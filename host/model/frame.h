/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of a graph in several plans. Where a shape depends on what the device computes, or where a node runs late
 * (late.h), the plan ends; its results wait in cells, and the rest of the graph is planned when what it needs is there.
 */
#ifndef RUNNEL_MODEL_FRAME_H
#define RUNNEL_MODEL_FRAME_H

#include "model/cell.h"

typedef struct rnl_frame {
    rnl_session *session;
    rnl_model *model;
    rnl_cell **cells; /* one a value of the graph: those that are there and still wanted */
    bool *is_planned; /* one a value: contents that follow from shapes, so that later plans may depend on them */
} rnl_frame;

RNL_NODISCARD rnl_status rnl_frame_init(rnl_frame *frame, rnl_session *session, rnl_model *model);
void rnl_frame_free(rnl_frame *frame);
/* Runs all nodes; the inputs' cells are there. */
RNL_NODISCARD rnl_status rnl_frame_run(rnl_frame *frame);
/* The cell of a value, a constant's too; borrowed. */
RNL_NODISCARD rnl_status rnl_frame_get(rnl_frame *frame, uint32_t value, rnl_cell **out_cell);
/* The same for a node's input; NULL when the node has none. */
RNL_NODISCARD rnl_status rnl_frame_input(rnl_frame *frame, const rnl_node *node, uint32_t index, rnl_cell **out_cell);
/* The cell becomes a node's output; dropped when nobody reads that. */
void rnl_frame_give(rnl_frame *frame, const rnl_node *node, uint32_t index, rnl_cell *cell);

/* A run from the caller's tensors to the caller's. */
RNL_NODISCARD rnl_status rnl_session_run_frame(rnl_session *session, rnl_tensor *outputs, size_t count);

#endif
