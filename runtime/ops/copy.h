/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in vectors where elements are neighbours, one by one where they are not. */
#ifndef RUNNEL_OPS_COPY_H
#define RUNNEL_OPS_COPY_H

#include "ops/step_build.h"

/* Appends the step that copies src to dst, of equal types, over dims (views: dst, src; coalesced, an element or more).
 */
RNL_NODISCARD rnl_status rnl_op_copy(rnl_step_list *list, const rnl_dims *dims, const rnl_view *src,
                                     const rnl_view *dst, bool index64);

#endif
