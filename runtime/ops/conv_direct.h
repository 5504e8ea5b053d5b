/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution as it is defined, for float64, which the fast ways do not take. */
#ifndef RUNNEL_OPS_CONV_DIRECT_H
#define RUNNEL_OPS_CONV_DIRECT_H

#include "ops/conv.h"

/*
 * As rnl_op_conv and rnl_op_conv_transpose, but `weight` is the tensor as ONNX has it, any layout goes, and there is
 * neither chain nor scratch. Operands have one float type.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_conv_direct(rnl_step_list *list, const rnl_conv_params *params, bool transposed,
                                                    const rnl_view *src, const rnl_view *weight, const rnl_view *bias,
                                                    const rnl_view *dst);

#endif
