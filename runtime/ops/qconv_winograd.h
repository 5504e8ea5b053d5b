/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of 8-bit integers with 3x3 taps by Winograd's way in integers (clkernels/qconv_winograd.cl), whose
 * results are those of rnl_op_qconv_panel in every bit.
 */
#ifndef RUNNEL_OPS_QCONV_WINOGRAD_H
#define RUNNEL_OPS_QCONV_WINOGRAD_H

#include "ops/qconv_panel.h"

/*
 * It is faster on this device than what reads rnl_op_qgemm_pack's form: params.winograd is to be set then, and the
 * weights packed by rnl_qconv_winograd_pack. With RUNNEL_QCONV=winograd wherever it can be done on a CPU.
 */
RNL_API bool rnl_qconv_winograd_pays(rnl_device *device, const rnl_qconv_params *params, const rnl_qconv_end *end,
                                     const rnl_view *src, const rnl_view *weight, const rnl_view *dst);
/* Of weights of this shape (M, C, 3, 3), packed; INT64_MAX where that overflows. */
RNL_API int64_t rnl_qconv_winograd_bytes(const int64_t shape[4]);
/* `source`: dense, in that order. `target` is aligned for int32. */
RNL_API void rnl_qconv_winograd_pack(const int64_t shape[4], const int8_t *source, void *target);

#endif
