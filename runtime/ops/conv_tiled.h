/* SPDX-License-Identifier: Apache-2.0 */
/* conv:tiled: convolution by work-groups through local memory, for GPUs. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_TILED_H
#define RUNNEL_OPS_CONV_TILED_H

#include "ops/conv_problem.h"

/* The floats of params.scratch that it wants; 0: none. */
int64_t rnl_conv_tiled_scratch(const rnl_device *device, const rnl_conv_problem *problem);
bool rnl_conv_tiled_applies(const rnl_device *device, const void *problem);
bool rnl_conv_tiled_pays(const rnl_device *device, const void *problem);
rnl_status rnl_conv_tiled_append(rnl_step_list *list, const char *name, const void *problem);

#endif
