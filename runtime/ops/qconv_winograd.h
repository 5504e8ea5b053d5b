/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of 8-bit integers with 3x3 taps by Winograd's way in integers (clkernels/qconv_winograd.cl), whose
 * results are those of rnl_op_qconv_panel in every bit.
 */
#ifndef RUNNEL_OPS_QCONV_WINOGRAD_H
#define RUNNEL_OPS_QCONV_WINOGRAD_H

#include "ops/qconv_panel.h"

/* Ways to do it: tiles of 2x2 pixels by vpmaddwd, of 4x4 by vpdpwssd, and of 2x2 and 4x4 by that with fewer products.
 */
#define RNL_QCONV_WINOGRAD_FORMS 4

/*
 * The form, from 1 on, that is faster on this device than what reads rnl_op_qgemm_pack's; 0: none. params.winograd is
 * to be set to it then, and the weights packed by rnl_qconv_winograd_pack for it. With RUNNEL_QCONV=winograd wherever
 * it can be done on a CPU.
 */
RNL_API int64_t rnl_qconv_winograd_form(rnl_device *device, const rnl_qconv_params *params, const rnl_qconv_end *end,
                                        const rnl_view *src, const rnl_view *weight, const rnl_view *dst);
/* Of weights of this shape (M, C, 3, 3), packed; INT64_MAX where that overflows. */
RNL_API int64_t rnl_qconv_winograd_bytes(int64_t form, const int64_t shape[4]);
/* `source`: dense, in that order. `target` is aligned for int32. */
RNL_API void rnl_qconv_winograd_pack(int64_t form, const int64_t shape[4], const int8_t *source, void *target);

#endif
