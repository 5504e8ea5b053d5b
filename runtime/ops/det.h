/* SPDX-License-Identifier: Apache-2.0 */
/* Determinants: of each square matrix in the last two dimensions, by elimination with pivots (LU). */
#ifndef RUNNEL_OPS_DET_H
#define RUNNEL_OPS_DET_H

#include "ops/op.h"

/* F32, or F64 for matrices of that: the type of the copies that are worked on. */
RNL_API rnl_dtype rnl_det_work_type(rnl_dtype dtype);
/* dst has src's dimensions but the last two; `work`: as many elements as src, dense. Floats. */
RNL_API RNL_NODISCARD rnl_status rnl_op_det(rnl_step_list *list, const rnl_view *src, const rnl_view *work,
                                            const rnl_view *dst);

#endif
