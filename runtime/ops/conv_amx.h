/* SPDX-License-Identifier: Apache-2.0 */
/* conv:amx: convolution by x86's matrix tiles. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_AMX_H
#define RUNNEL_OPS_CONV_AMX_H

#include "ops/conv_problem.h"

#define RNL_AMX_BLOCK 32 /* filters of a block, and channels that a chunk has room for */
#define RNL_AMX_PITCH 4  /* channels of a tap of a line */

/*
 * Where its weights lie: [block][tap][chunk of channels][part][half of the block][pair of channels][16 filters],
 * integers of two bfloat16 each; what is not there is zero. A chunk has `depth` channels, of the 32 that it has room
 * for: of single pixels in one part as many as make all chunks full, where that is possible. Few channels of a row of
 * few taps are a `line`, which takes the place of a chunk: four channels of each tap. `block_stride` and `elements` are
 * of these integers, INT64_MAX where they overflow.
 */
typedef struct rnl_amx_layout {
    bool line;
    int64_t filters, channels, taps, blocks, chunks, depth, block_stride, elements;
} rnl_amx_layout;
rnl_amx_layout rnl_amx_find_layout(int64_t parts, bool transposed, size_t rank, const int64_t *shape);

/* The device has tiles, and the user has not said RUNNEL_AMX=off. */
bool rnl_conv_amx_is_on(const rnl_device *device);
/* What its weights stand for: up to two spatial dimensions, one group; parts: 1 or 3. */
bool rnl_conv_amx_takes(int64_t parts, size_t rank, const int64_t *shape, int64_t groups);
/* Cycles of a convolution of single pixels in float32, by tiles or plainly, whichever takes less. */
double rnl_conv_amx_estimate(const rnl_device *device, int64_t batch, int64_t pixels, int64_t channels,
                             int64_t filters);
/* The floats of params.scratch that it wants. */
int64_t rnl_conv_amx_scratch(const rnl_device *device, const rnl_conv_problem *problem);
bool rnl_conv_amx_applies(const rnl_device *device, const void *problem);
bool rnl_conv_amx_pays(const rnl_device *device, const void *problem);
rnl_status rnl_conv_amx_append(rnl_step_list *list, const char *name, const void *problem);

#endif
