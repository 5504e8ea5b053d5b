/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What operators along one axis share: the other dimensions number lines, which kernels walk with element_index
 * (walk.clh): idx_t lines, int deep, idx8_t shape, and idx8_t strides for each view.
 */
#ifndef RUNNEL_OPS_LINES_H
#define RUNNEL_OPS_LINES_H

#include "ops/step_build.h"

#define RNL_LINES_GROUP 64 /* as in group.clh */

/* The dimensions of views of one rank but for `axis`; sizes are the last view's. */
void rnl_lines_select(rnl_dims *dims, const rnl_view *const *views, size_t count, size_t axis);
/* The arguments. */
void rnl_lines_add(rnl_step_builder *step, const rnl_dims *dims);
/* A range with a work-item for each line … */
void rnl_lines_range(rnl_step_builder *step, int64_t lines);
/* … and one for each element: columns are the first dimension, lines are counted over the other two. */
void rnl_lines_columns(rnl_step_builder *step, int64_t columns, int64_t lines);
/*
 * A work-group of RNL_LINES_GROUP a line: on GPUs, where lines are long and too few to keep the device busy. Not on
 * emulated ones: Mesa's (22.3) loses what half of a group's work-items store, where there are many groups.
 */
bool rnl_lines_take_groups(const rnl_device *device, int64_t lines, int64_t length);
void rnl_lines_groups(rnl_step_builder *step, int64_t lines);

#endif
