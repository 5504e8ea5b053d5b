/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution of 8-bit integers that reads its windows from the image and requantises its results, in one step. */
#ifndef RUNNEL_OPS_QCONV_PANEL_H
#define RUNNEL_OPS_QCONV_PANEL_H

#include "ops/qconv.h"

/* Each view may be NULL or have no slot: a scale of 1, a zero point of 0, no bias, nothing added. */
typedef struct rnl_qconv_end {
    const rnl_view *bias;    /* I32, one for each channel of dst */
    const rnl_view *a_scale; /* F32, one element */
    const rnl_view *b_scale; /* F32, one element or one for each channel of dst */
    const rnl_view *dst_scale, *dst_zero_point;
    /* Of dst's type and shape: added to each result, which is quantised before by dst_scale and dst_zero_point. */
    const rnl_view *addend, *addend_scale, *addend_zero_point;
    const rnl_view *sum_scale, *sum_zero_point; /* what their sum, which is dst then, is quantised by */
    int64_t products; /* for each result, where some of the weights only fill up others; 0: all */
} rnl_qconv_end;

/*
 * dst = saturate(round((sums + bias) * ((a_scale * b_scale) / dst_scale)) + dst_zero_point) with rnl_op_qconv's sums,
 * halves to even, for dst of src's type, and as rnl_op_qmap's RNL_QMAP_ADD has it where something is added:
 * what rnl_op_qgemm and rnl_op_qmap give. `packed` is what rnl_op_qgemm_pack writes of the weights as a matrix of
 * (taps, channels) x filters, or with params.winograd, which needs scratch, what rnl_qconv_winograd_pack does.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_qconv_panel(rnl_step_list *list, const rnl_qconv_params *params,
                                                    const rnl_qconv_end *end, const rnl_view *src,
                                                    const rnl_view *weight, const rnl_view *packed,
                                                    const rnl_view *dst);
/*
 * The bytes, a U8 view, of params.scratch with which rnl_op_qconv_panel is faster; 0: none. They hold nothing before or
 * after.
 */
RNL_API int64_t rnl_qconv_scratch(const rnl_device *device, const rnl_qconv_params *params, const rnl_qconv_end *end,
                                  const rnl_view *src, const rnl_view *weight, const rnl_view *dst);
/*
 * The device has an instruction for it, and this is a problem for it: one group, channels side by side and a multiple
 * of 4, no zero point of the weights, which are I8, and 32-bit indices. RUNNEL_QCONV=columns: never.
 */
RNL_API bool rnl_qconv_panel_applies(rnl_device *device, const rnl_qconv_params *params, const rnl_qconv_end *end,
                                     const rnl_view *src, const rnl_view *weight, const rnl_view *dst);

#endif
