/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of 8-bit integers with zero points. */
#ifndef RUNNEL_OPS_QCONV_H
#define RUNNEL_OPS_QCONV_H

#include "ops/conv.h"

typedef struct rnl_qconv_params {
    size_t spatial; /* 1, 2 or 3 */
    int64_t kernel[RNL_MAX_SPATIAL], stride[RNL_MAX_SPATIAL], dilation[RNL_MAX_SPATIAL];
    int64_t pad_begin[RNL_MAX_SPATIAL]; /* the end padding follows from dst's shape */
    int64_t groups;
    /* NULL or no slot: 0. One element of src's type; one, or one for each channel of dst, of the weight's type. */
    const rnl_view *src_zero_point, *weight_zero_point;
    /* Of rnl_op_qconv_panel alone: */
    const rnl_view *scratch; /* memory that rnl_qconv_scratch asked for, or NULL */
    int64_t winograd;        /* the weights are packed by rnl_qconv_winograd_pack in this form; 0: not so */
} rnl_qconv_params;

/*
 * dst[N, M, …] = sums of (src[N, C, …] - its zero point) * (weight[M, C / groups, …] - its zero point), exactly,
 * wrapping at 32 bits. Padding counts as src's zero point. src and weight are each I8 or U8, dst is I32; any strides.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_qconv(rnl_step_list *list, const rnl_qconv_params *params, const rnl_view *src,
                                              const rnl_view *weight, const rnl_view *dst);

/*
 * The windows of a convolution with one group as rows of a matrix, for a product with the weights: dst[N, …, taps, C],
 * dense, of src's type.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_qconv_columns(rnl_step_list *list, const rnl_qconv_params *params,
                                                      const rnl_view *src, const rnl_view *dst);

#endif
