/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_OPS_LOOKUP_H
#define RUNNEL_OPS_LOOKUP_H

#include "ops/op.h"

/*
 * dst = values[i] where src is keys[i], else values[count]. keys: src's type, I64, F32 or F64, sorted, NaN last; of
 * equal ones the first counts. values: dst's type, one more than keys. Both row-major lists.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_lookup(rnl_step_list *list, const rnl_view *src, const rnl_view *keys,
                                               const rnl_view *values, const rnl_view *dst);

#endif
