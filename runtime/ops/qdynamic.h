/* SPDX-License-Identifier: Apache-2.0 */
/* Floats as 8-bit integers, with the scale and the zero point that their values ask for. */
#ifndef RUNNEL_OPS_QDYNAMIC_H
#define RUNNEL_OPS_QDYNAMIC_H

#include "ops/op.h"

/*
 * The floats of scratch that rnl_op_quantize_dynamic needs; 0 where it does not apply: it is for CPUs, for src of F32
 * and dst of U8 whose elements lie side by side in one order.
 */
RNL_API size_t rnl_quantize_dynamic_scratch(const rnl_device *device, const rnl_view *src, const rnl_view *dst);
/* As ONNX's DynamicQuantizeLinear has it; scale: F32, zero point: U8, an element each. */
RNL_API RNL_NODISCARD rnl_status rnl_op_quantize_dynamic(rnl_step_list *list, const rnl_view *src,
                                                         const rnl_view *scratch, const rnl_view *dst,
                                                         const rnl_view *scale, const rnl_view *zero_point);

#endif
