/* SPDX-License-Identifier: Apache-2.0 */
/* What the lowering functions of quantised operators share. */
#ifndef RUNNEL_MODEL_LOWER_QUANTIZED_H
#define RUNNEL_MODEL_LOWER_QUANTIZED_H

#include "model/lower.h"
#include "ops/qgemm.h"
#include "ops/qmap.h"

/* Input `index`, a scale, as F32. */
RNL_NODISCARD rnl_status rnl_lower_scale(rnl_lowering *lowering, size_t index, rnl_view *out_view);
/* Has one element, or is not there. */
bool rnl_is_single(const rnl_view *view);
/* One number a row, or a column, of a matrix, in the shape that broadcasts to it. */
rnl_view rnl_view_of_rows(const rnl_view *view);
rnl_view rnl_view_of_columns(const rnl_view *view);
/* A product of 8-bit integers, with memory of its own where that makes it faster. */
RNL_NODISCARD rnl_status rnl_lower_integer_product(rnl_lowering *lowering, rnl_qgemm_params *params, const rnl_view *a,
                                                   const rnl_view *b, const rnl_view *target);
/* A tensor of F32 as U8, with the scale and zero point that its values ask for. */
RNL_NODISCARD rnl_status rnl_lower_quantization(rnl_lowering *lowering, const rnl_view *source, const rnl_view *target,
                                                const rnl_view *scale, const rnl_view *zero_point);

#endif
