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
/* A product, or a convolution, and all that may go with it; views without a slot are not there. */
typedef struct rnl_product {
    rnl_view a, a_scale, a_zero, b, b_scale, b_zero, bias, y_scale, y_zero, target;
    float alpha;
    rnl_chain *chain; /* what the product ends with; NULL: nothing */
    /* Of a constant that is packed once for the model: `b` has its shape and no slot then. */
    uint32_t b_constant; /* RNL_NO_VALUE: none */
    uint32_t b_index;    /* of the input */
    rnl_packing b_packing;
} rnl_product;
/*
 * From a list of the inputs' indices in that order, RNL_NO_VALUE: not there. The target is output 0, in this layout:
 * channels last for a convolution.
 */
RNL_NODISCARD rnl_status rnl_lower_product_inputs(rnl_lowering *lowering, const uint32_t indices[9], rnl_layout layout,
                                                  rnl_product *out_product);
/* Has `b` lie in memory as it is, for what does not read it packed. */
RNL_NODISCARD rnl_status rnl_lower_plain_factor(rnl_lowering *lowering, rnl_product *product);
/* Scales of `a` and of the result, and zero points, are one or one for each row; those of `b`, and the bias, for each
 * column. */
RNL_NODISCARD rnl_status rnl_lower_product(rnl_lowering *lowering, rnl_product *product);
/* A tensor of F32 as U8, with the scale and zero point that its values ask for. */
RNL_NODISCARD rnl_status rnl_lower_quantization(rnl_lowering *lowering, const rnl_view *source, const rnl_view *target,
                                                const rnl_view *scale, const rnl_view *zero_point);

#endif
