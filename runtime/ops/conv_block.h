/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A depthwise convolution with the convolutions of single pixels before and behind it as one step, for CPUs: what lies
 * between them never leaves a core's cache. Of the first and the last, one may be missing.
 */
#ifndef RUNNEL_OPS_CONV_BLOCK_H
#define RUNNEL_OPS_CONV_BLOCK_H

#include "ops/conv.h"

/* Images are src_size (height, width); `hidden` channels are convolved by windows of taps x taps. */
typedef struct rnl_conv_block_shape {
    bool expands, projects;
    bool pairs; /* the products are of bfloat16, of even numbers of channels */
    int64_t batch, channels, hidden,
        filters; /* without the first convolution channels are hidden, … last, filters are */
    int64_t src_size[2], dst_size[2], pad_begin[2];
    int64_t taps, stride;
} rnl_conv_block_shape;

typedef struct rnl_conv_block {
    rnl_conv_block_shape shape;
    rnl_view weights[3], biases[3]; /* as rnl_conv_weight_layout says, with pairs the products' as
                                       rnl_conv_pairs_layout does; RNL_NO_SLOT: none */
    const rnl_chain *chains[3];     /* NULL: none; those within as rnl_conv_block_takes says */
    rnl_view scratch;               /* for rnl_conv_block_scratch's floats */
} rnl_conv_block;

/* Such a chain can stand within the block: short, and of the result and numbers alone. */
RNL_API bool rnl_conv_block_takes(const rnl_chain *chain);
/*
 * Whether a block and all of its parts lose to convolutions one by one, as they do where matrix tiles are much faster;
 * asked of the largest one, so that one model has few kinds of programs.
 */
RNL_API bool rnl_conv_block_loses(const rnl_device *device, const rnl_conv_block_shape *shape);
/* True where that is faster on the device than its convolutions one by one, or the user has asked for it. */
RNL_API bool rnl_conv_block_pays(const rnl_device *device, const rnl_conv_block_shape *shape);
/* The float32 elements of memory that it needs; 0: it cannot be. They hold nothing before or after. */
RNL_API int64_t rnl_conv_block_scratch(const rnl_device *device, const rnl_conv_block_shape *shape);
/*
 * src N x C x H x W, dst likewise, of float32, with a channel stride of 1. With pairs either may be bfloat16, and src
 * has to be where the block expands it, with an even offset and strides (rnl_conv_is_even).
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_conv_block(rnl_step_list *list, const rnl_conv_block *block,
                                                   const rnl_view *src, const rnl_view *dst);

#endif
