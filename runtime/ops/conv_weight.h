/* SPDX-License-Identifier: Apache-2.0 */
/* Where a convolution's packed weights lie. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_WEIGHT_H
#define RUNNEL_OPS_CONV_WEIGHT_H

#include "ops/conv.h"

/*
 * Element (group, tap, channel, filter f) is at group * group_stride + f / RNL_CONV_PANEL * panel_stride +
 * tap * tap_stride + channel * RNL_CONV_PANEL + f % RNL_CONV_PANEL. Filters and channels are a group's. Depthwise
 * weights are those of one group with one channel; their taps are farthest apart, so that a vector of weights may start
 * anywhere.
 */
typedef struct rnl_conv_layout {
    bool depthwise;
    int64_t groups, panels, taps, channels, filters;
    int64_t group_stride, panel_stride, tap_stride;
    int64_t zeros_at, elements;
} rnl_conv_layout;

/* INT64_MAX where it overflows. */
rnl_conv_layout rnl_conv_find_layout(bool transposed, int64_t groups, size_t rank, const int64_t *shape);

#endif
