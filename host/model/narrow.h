/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bfloat16 by option: a float32 graph on a device that multiplies pairs of bfloat16. Convolutions and products with
 * constant weights read bfloat16 and add up in float32. A value that only such nodes read, and others that take either
 * type, is stored as bfloat16: its view says so, its description stays float32. Everybody else gets a float32 copy.
 */
#ifndef RUNNEL_MODEL_NARROW_H
#define RUNNEL_MODEL_NARROW_H

#include "model/lower.h"

/* Whether the model is to be, and can be. */
bool rnl_narrow_is_on(const rnl_model *model);
/* Finds the values that are stored as bfloat16; after rnl_fuse and rnl_place_homes. */
RNL_NODISCARD rnl_status rnl_narrow_find(rnl_planner *planner);
/* Conv, MatMul or Gemm whose weights are pairs of bfloat16. */
bool rnl_narrow_multiplies(const rnl_planner *planner, const rnl_node *node);
/* Conv of single channels: it reads either type and multiplies float32. */
bool rnl_narrow_is_depthwise(const rnl_planner *planner, const rnl_node *node);

#endif
