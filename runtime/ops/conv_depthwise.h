/* SPDX-License-Identifier: Apache-2.0 */
/* conv:depthwise: one channel in and out of each group, and several of them. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_DEPTHWISE_H
#define RUNNEL_OPS_CONV_DEPTHWISE_H

#include "ops/conv_problem.h"

bool rnl_conv_depthwise_applies(const rnl_device *device, const void *problem);
rnl_status rnl_conv_depthwise_append(rnl_step_list *list, const char *name, const void *problem);

#endif
