/* SPDX-License-Identifier: Apache-2.0 */
/* conv:winograd: 3x3 taps with a quarter or four ninths of the multiplications, on CPUs. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_WINOGRAD_H
#define RUNNEL_OPS_CONV_WINOGRAD_H

#include "ops/conv_problem.h"

/*
 * Where its weights lie for tiles of side x side pixels: transform i (of (side + 2)^2), channel and filter f are at f /
 * RNL_CONV_PANEL * panel_stride + i * transform_stride + channel * RNL_CONV_PANEL + f % RNL_CONV_PANEL, channels in
 * whole panels. INT64_MAX where it overflows.
 */
typedef struct rnl_winograd_layout {
    int64_t panels, padded_channels, transform_stride, panel_stride, zeros_at, elements;
} rnl_winograd_layout;
rnl_winograd_layout rnl_winograd_find_layout(int64_t side, const int64_t shape[4]);

/* Ways to do this convolution: its variants behind those of panels, see rnl_conv_panel_hash(). 0: it is none for it. */
uint32_t rnl_conv_winograd_ways(const rnl_device *device, const rnl_conv_problem *problem);
/* A hash of all blocks. */
uint64_t rnl_conv_winograd_list(void);
/* The side of its tiles that suits best, 4 or 2, for weights that have no form yet. */
int64_t rnl_conv_winograd_side(const rnl_device *device, const rnl_conv_problem *problem);
/* The floats of params.scratch that it wants. */
int64_t rnl_conv_winograd_scratch(const rnl_device *device, const rnl_conv_problem *problem);
bool rnl_conv_winograd_applies(const rnl_device *device, const void *problem);
bool rnl_conv_winograd_pays(const rnl_device *device, const void *problem);
rnl_status rnl_conv_winograd_append(rnl_step_list *list, const char *name, const void *problem);

#endif
