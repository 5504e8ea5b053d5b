/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_MODEL_ROTARY_H
#define RUNNEL_MODEL_ROTARY_H

#include "model/lower.h"

/*
 * Turns the first `turned` elements of the last dimension, in pairs: neighbours when interleaved, else one of the first
 * half with one of the second; the rest is copied. Cosines and sines, one a pair, broadcast.
 */
RNL_NODISCARD rnl_status rnl_compose_rotary(rnl_lowering *lowering, const rnl_view *source, const rnl_view *cosines,
                                            const rnl_view *sines, int64_t turned, bool interleaved,
                                            const rnl_view *target);
/* The rows of a cache at positions (batch, sequence). */
RNL_NODISCARD rnl_status rnl_rotary_at(rnl_lowering *lowering, const rnl_view *cache, const rnl_view *positions,
                                       rnl_view *out_view);

#endif
