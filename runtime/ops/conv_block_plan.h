/* SPDX-License-Identifier: Apache-2.0 */
/* How a block's work is cut. Internal to the family. */
#ifndef RUNNEL_OPS_CONV_BLOCK_PLAN_H
#define RUNNEL_OPS_CONV_BLOCK_PLAN_H

#include "ops/conv_block.h"

typedef struct rnl_conv_block_plan {
    int64_t vector, pixels, vectors;              /* a tile of expanded pixels; vectors: of a slice of channels */
    int64_t project_pixels, project_vectors;      /* a tile of projected ones */
    int64_t columns;                              /* depthwise results of a row at once */
    int64_t rows, ring_rows, ring_width, between; /* rows of results at a time; pixels of `between` */
    int64_t slices, parts, bands, items, share;   /* slices of a part; bands of an image, of a work-item */
    int64_t own_floats;                           /* with pairs `between` takes half of them */
    bool weights_once; /* the projection's weights pass once for some rows, not for each tile */
} rnl_conv_block_plan;

/*
 * The part of the work that is done more than once, since bands read each other's rows; or, where registers are short
 * or bands differ much, what the longest band has more than an equal part.
 */
double rnl_conv_block_waste(const rnl_conv_block_shape *shape, const rnl_conv_block_plan *plan);
/* False: it cannot be. */
bool rnl_conv_block_make_plan(const rnl_device *device, const rnl_conv_block_shape *shape,
                              rnl_conv_block_plan *out_plan);

#endif
