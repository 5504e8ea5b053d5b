/* SPDX-License-Identifier: Apache-2.0 */
/* conv:bf16: convolution of bfloat16 by pairs of channels, on CPUs that multiply those. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_PAIRS_H
#define RUNNEL_OPS_CONV_PAIRS_H

#include "ops/conv_problem.h"
#include "ops/conv_weight.h"

/* Of integers that hold two channels each: the layout for half as many channels. */
rnl_conv_layout rnl_conv_find_pairs(int64_t groups, size_t rank, const int64_t *shape);

/* As integers of two channels each; it is even. Its shape stays. */
rnl_view rnl_conv_pairs_view(const rnl_view *src);

bool rnl_conv_pairs_applies(const rnl_device *device, const void *problem);
rnl_status rnl_conv_pairs_append(rnl_step_list *list, const char *name, const void *problem);

#endif
