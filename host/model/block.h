/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: a depthwise convolution and those of single pixels before and behind it, with the groups that they are
 * anchors of, as one step where that is faster. Nothing else reads what lies between them.
 */
#ifndef RUNNEL_MODEL_BLOCK_H
#define RUNNEL_MODEL_BLOCK_H

#include "model/fuse_grow.h"
#include "ops/conv_block.h"

typedef struct rnl_block {
    uint32_t nodes[3]; /* the convolutions in their order; RNL_NO_NODE: there is none before, or behind */
    rnl_conv_block_shape shape;
} rnl_block;

/* Sets the planner's blocks; its groups are there. */
RNL_NODISCARD rnl_status rnl_fuse_blocks(rnl_planner *planner, const rnl_readers *readers);
/* The last of its convolutions. */
uint32_t rnl_block_last(const rnl_block *block);
/* Lowers a block where its last node stands. */
RNL_NODISCARD rnl_status rnl_lower_block(rnl_lowering *lowering, const rnl_block *block);

#endif
