/* SPDX-License-Identifier: Apache-2.0 */
/* Normalising by moments that are computed: LayerNormalization, InstanceNormalization, RMSNormalization. */
#ifndef RUNNEL_OPS_NORMALIZE_H
#define RUNNEL_OPS_NORMALIZE_H

#include "ops/op.h"

/*
 * dst = (src - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and the mean squared difference from it
 * over the axes whose bit is set, in f32 (f64 for f64). scale and bias broadcast to src's shape from the right. All
 * have one type.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_normalize(rnl_step_list *list, uint32_t axes, float epsilon,
                                                  const rnl_view *src, const rnl_view *scale, const rnl_view *bias,
                                                  const rnl_view *dst);
/* dst = src / sqrt(mean of squares + epsilon) * scale, likewise. */
RNL_API RNL_NODISCARD rnl_status rnl_op_normalize_rms(rnl_step_list *list, uint32_t axes, float epsilon,
                                                      const rnl_view *src, const rnl_view *scale, const rnl_view *dst);

#endif
