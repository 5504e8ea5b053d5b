/* SPDX-License-Identifier: Apache-2.0 */
/* conv-transpose:panel: transposed convolution on CPUs as ordinary ones. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_PHASES_H
#define RUNNEL_OPS_CONV_PHASES_H

#include "ops/conv_problem.h"

bool rnl_conv_phases_apply(const rnl_device *device, const void *problem);
rnl_status rnl_conv_phases_append(rnl_step_list *list, const char *name, const void *problem);

#endif
