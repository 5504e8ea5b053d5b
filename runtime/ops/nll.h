/* SPDX-License-Identifier: Apache-2.0 */
/* The negative logarithm of the likelihood of what was to be found. */
#ifndef RUNNEL_OPS_NLL_H
#define RUNNEL_OPS_NLL_H

#include "ops/op.h"

typedef struct rnl_nll_params {
    bool has_ignored;
    int64_t ignored; /* a target that costs and counts nothing */
} rnl_nll_params;

/*
 * loss[n, …] = -weights[t] * scores[n, t, …] for t = target[n, …] (I32 or I64), and share[n, …] = weights[t]. weights
 * [classes] (1 where left out) has the scores' type; loss and share (may be left out) have one float type. A target out
 * of range takes the nearest class.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_nll(rnl_step_list *list, const rnl_nll_params *params, const rnl_view *scores,
                                            const rnl_view *target, const rnl_view *weights, const rnl_view *loss,
                                            const rnl_view *share);

#endif
