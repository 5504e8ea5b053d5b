/* SPDX-License-Identifier: Apache-2.0 */
/* conv:strassen: single pixels with seven eighths of the multiplications, on CPUs. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_STRASSEN_H
#define RUNNEL_OPS_CONV_STRASSEN_H

#include "ops/conv_problem.h"

/*
 * Where its weights lie: pair p of panels (of RNL_CONV_PANEL filters) at p * pair_stride, in it 7 blocks at
 * i * block_stride, each [half of the channels][RNL_CONV_PANEL]. INT64_MAX where it overflows.
 */
typedef struct rnl_strassen_layout {
    int64_t filters, channels, pairs, block_stride, pair_stride, elements;
} rnl_strassen_layout;
rnl_strassen_layout rnl_strassen_find_layout(int64_t filters, int64_t channels);

/* What its weights stand for: single pixels in one group, a multiple of 32 channels. */
bool rnl_conv_strassen_takes(size_t rank, const int64_t *shape, int64_t groups, rnl_dtype dtype);
/* The floats of params.scratch that it wants. */
int64_t rnl_conv_strassen_scratch(const rnl_device *device, const rnl_conv_problem *problem);
bool rnl_conv_strassen_applies(const rnl_device *device, const void *problem);
bool rnl_conv_strassen_pays(const rnl_device *device, const void *problem);
rnl_status rnl_conv_strassen_append(rnl_step_list *list, const char *name, const void *problem);

#endif
