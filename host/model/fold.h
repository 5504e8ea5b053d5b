/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Constants that are worked into others while planning: a run of nodes that each compute scale * x + shift, with
 * constants of one element for each channel (BatchNormalization; Mul, Add, Sub, Div by a constant), is one scale and
 * one shift a channel. Behind an anchor with constant weights these go into its weights and its bias.
 */
#ifndef RUNNEL_MODEL_FOLD_H
#define RUNNEL_MODEL_FOLD_H

#include "model/lower.h"

/* A run of nodes, each the only reader of the one before. `first` may be an anchor. */
typedef struct rnl_fold {
    uint32_t first, last;
} rnl_fold;

/* One channel of a run: y = scale * x + shift. */
typedef struct rnl_affine {
    double scale, shift;
} rnl_affine;

/* The node computes scale * x + shift of the value x, with constants over the channels in `axis` of its output. */
bool rnl_fold_takes(const rnl_planner *planner, const rnl_node *node, uint32_t x, size_t axis);
/* What the node computes for one channel; rnl_fold_takes has said yes. */
rnl_affine rnl_fold_node(const rnl_planner *planner, const rnl_node *node, uint32_t x, int64_t channel);
/*
 * The run as one, for each of `count` channels. An anchor's own part is its bias and, of Gemm, alpha and beta. The
 * array is the planner's scratch.
 */
RNL_NODISCARD rnl_status rnl_fold_run(rnl_planner *planner, rnl_fold fold, size_t count, rnl_affine **out_affine);
/* False when the run only adds. */
bool rnl_fold_scales(const rnl_planner *planner, rnl_fold fold);

/* The anchor's weights and bias are constants that a run can be worked into. */
bool rnl_fold_takes_anchor(const rnl_planner *planner, const rnl_node *node);
/* An operator that multiplies with weights and can end with a chain. */
bool rnl_fold_is_anchor(const rnl_node *node);

#endif
