/* SPDX-License-Identifier: Apache-2.0 */
/* conv:panel: convolution at the speed of a CPU's multiply-adds. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_PANEL_H
#define RUNNEL_OPS_CONV_PANEL_H

#include "ops/conv_problem.h"

bool rnl_conv_panel_applies(const rnl_device *device, const void *problem);
/* Tiles for this device: the first variants of a convolution that panels can do. */
uint32_t rnl_conv_panel_tiles(const rnl_device *device);
/* Of what the best way depends on. */
rnl_hash rnl_conv_panel_hash(const rnl_conv_problem *problem);
rnl_status rnl_conv_panel_append(rnl_step_list *list, const char *name, const void *problem);

#endif
