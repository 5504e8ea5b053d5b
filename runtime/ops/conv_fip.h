/* SPDX-License-Identifier: Apache-2.0 */
/* conv:fip: half of the products of two in three sums become additions, on CPUs. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_FIP_H
#define RUNNEL_OPS_CONV_FIP_H

#include "ops/conv_problem.h"

/*
 * Where its weights lie: panel p (of RNL_CONV_PANEL filters) at p * panel_stride, in it chunks of `chunk` terms, the
 * last one of fewer, at chunk_stride, [tap and channel][RNL_CONV_PANEL]; behind each what is subtracted from each
 * filter's sums, negated, and the scale of its results. INT64_MAX where it overflows.
 */
typedef struct rnl_fip_layout {
    int64_t panels, terms, chunk, chunks, chunk_stride, panel_stride, elements;
} rnl_fip_layout;
/* Terms of a chunk, of so many. */
int64_t rnl_conv_fip_chunk(int64_t terms);
rnl_fip_layout rnl_conv_fip_find_layout(bool transposed, size_t rank, const int64_t *shape);

/* What its weights stand for: one group, a multiple of 16 channels; transposed: only as a matrix. */
bool rnl_conv_fip_takes(bool transposed, size_t rank, const int64_t *shape, int64_t groups, rnl_dtype dtype);
/* The device gains by it, as was measured once, or the user wishes it; never in deterministic plans. */
bool rnl_conv_fip_is_on(const rnl_device *device);
/* The floats of params.scratch that it wants. */
int64_t rnl_conv_fip_scratch(const rnl_device *device, const rnl_conv_problem *problem);
bool rnl_conv_fip_applies(const rnl_device *device, const void *problem);
bool rnl_conv_fip_pays(const rnl_device *device, const void *problem);
/* Times as fast as plain sums, where that pays and the device gains by it; 1 elsewhere. */
double rnl_conv_fip_gain(const rnl_device *device, const rnl_conv_problem *problem);
/* Cycles of single pixels, so or plainly, whichever is less; false: nothing goes so on this device. */
bool rnl_conv_fip_estimate(const rnl_device *device, int64_t pixels, int64_t channels, int64_t filters,
                           double *out_cycles);
rnl_status rnl_conv_fip_append(rnl_step_list *list, const char *name, const void *problem);

#endif
