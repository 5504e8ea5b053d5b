/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_MODEL_ROTARY_H
#define RUNNEL_MODEL_ROTARY_H

#include "graph/op_attention.h"
#include "model/lower.h"

/*
 * Turns the first elements of each head, in pairs: neighbours when interleaved, else one of the first half with one of
 * the second; the rest is copied. `caches`: cosines and sines, one a pair, at batch (or 1) and sequence.
 */
RNL_NODISCARD rnl_status rnl_rotary_heads(rnl_lowering *lowering, const rnl_view *source, const rnl_view caches[2],
                                          const rnl_rotary_sizes *sizes, bool interleaved, const rnl_view *target);
/* The rows of a table of rank 2 at positions of rank 2. */
RNL_NODISCARD rnl_status rnl_rotary_at(rnl_lowering *lowering, const rnl_view *cache, const rnl_view *positions,
                                       rnl_view *out_view);

#endif
