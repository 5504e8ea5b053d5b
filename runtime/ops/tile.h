/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of the tiles of products by work-groups (clkernels/tile.clh), for matrix products and convolutions. */
#ifndef RUNNEL_OPS_TILE_H
#define RUNNEL_OPS_TILE_H

#include "ops/step_build.h"

typedef struct rnl_tile {
    int64_t rows, columns, depth;           /* of a work-group: BM, BN, BK */
    int64_t item_rows, item_columns;        /* of a work-item: TM, TN */
    int64_t parts, part_depth;              /* the sums' terms in so many parts of so many terms */
    int64_t row_tiles, column_tiles, quads; /* quads: fours of columns, in which parts are stored */
} rnl_tile;

/* What is multiplied: `layers` products of rows x depth by depth x columns. */
typedef struct rnl_tile_product {
    int64_t rows, columns, depth, layers;
    uint32_t kind; /* of tile, from 1 to rnl_tile_kinds(); 0: any */
} rnl_tile_product;
uint32_t rnl_tile_kinds(void);

/*
 * The tile for which the device seems to need least time, with as many parts as `scratch` (NULL: none) has memory for;
 * false where no tile fits the device's limits.
 */
bool rnl_tile_choose(const rnl_device *device, const rnl_tile_product *product, const rnl_view *scratch,
                     rnl_tile *out_tile);
/* Floats of the parts' sums; 0 for a single part. INT64_MAX where that overflows. */
int64_t rnl_tile_scratch(const rnl_tile *tile, const rnl_tile_product *product);
/* tile.clh's defines. */
void rnl_tile_define(rnl_step_builder *step, const rnl_tile *tile);
/* The ranges of the kernel and, for several parts, of the one that adds them. */
void rnl_tile_range(rnl_step_builder *step, const rnl_tile *tile, const rnl_tile_product *product);
void rnl_tile_sum_range(rnl_step_builder *step, const rnl_tile *tile, const rnl_tile_product *product);

#endif
