/* SPDX-License-Identifier: Apache-2.0 */
/* Direct convolution and transposed convolution, 1 to 3 spatial dimensions, groups, strides, dilations. */
#ifndef RUNNEL_OPS_CONV_H
#define RUNNEL_OPS_CONV_H

#include "ops/chain.h"

#define RNL_MAX_SPATIAL 3

typedef struct rnl_conv_params {
    size_t spatial; /* 1, 2 or 3 */
    int64_t stride[RNL_MAX_SPATIAL], dilation[RNL_MAX_SPATIAL];
    int64_t pad_begin[RNL_MAX_SPATIAL]; /* the end padding follows from dst's shape */
    int64_t groups;
    const rnl_chain *chain; /* what is done to each result before it is stored; NULL: nothing */
} rnl_conv_params;

/*
 * The layout that the kernels want weights in: memory order [k…][c][m]. m are all output channels of all groups (the M
 * of ONNX's M x C/g x k…; for a transposed convolution the M/g of C x M/g x k…), contiguous, each row padded to a
 * multiple of RNL_CONV_CHANNEL_ALIGN; c are the input channels (C/g, transposed C). Groups are not padded: a vector
 * read across a group's end reads the next group's weights, and those lanes are not stored.
 *
 * Behind the weights lie zeros, as many as a group has input channels and at least RNL_CONV_ZEROS: the taps that fall
 * into padding read them in place of src, and the last vector read may reach into them. So every element that the view
 * does not name must be zero. Writes the view (offset 0, the slot given) and the elements to allocate, INT64_MAX where
 * that overflows.
 */
#define RNL_CONV_CHANNEL_ALIGN 16
#define RNL_CONV_ZEROS 64
RNL_API void rnl_conv_weight_layout(bool transposed, int64_t groups, uint32_t slot, rnl_dtype dtype, size_t rank,
                                    const int64_t *shape, rnl_view *out_view, int64_t *out_elements);

/*
 * src N x C x spatial…, weight as rnl_conv_weight_layout says and of src's type, bias [M] or RNL_NO_SLOT, dst N x M x
 * spatial…. The channel stride of src and dst is 1, the others are free. f32, f16, bf16 storage, f32 accumulation.
 * Implementations, best first: conv:depthwise, conv:portable; conv-transpose:portable.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_conv(rnl_step_list *list, const rnl_conv_params *params, const rnl_view *src,
                                             const rnl_view *weight, const rnl_view *bias, const rnl_view *dst);
RNL_API RNL_NODISCARD rnl_status rnl_op_conv_transpose(rnl_step_list *list, const rnl_conv_params *params,
                                                       const rnl_view *src, const rnl_view *weight,
                                                       const rnl_view *bias, const rnl_view *dst);

#endif
