/* SPDX-License-Identifier: Apache-2.0 */
/* Copies whose memory order matters: what is contiguous in dst is not in src, or lies there in rows of its own. */
#ifndef RUNNEL_OPS_TRANSPOSE_H
#define RUNNEL_OPS_TRANSPOSE_H

#include "ops/step_build.h"

/*
 * Appends the step that copies src to dst, of equal types, over dims (views: dst, src; coalesced, at least one element)
 * when that is better than walking elements; *out_done says whether it did.
 */
RNL_NODISCARD rnl_status rnl_op_transpose(rnl_step_list *list, const rnl_dims *dims, const rnl_view *src,
                                          const rnl_view *dst, bool index64, bool *out_done);

#endif
