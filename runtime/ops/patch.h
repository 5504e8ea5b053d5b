/* SPDX-License-Identifier: Apache-2.0 */
/* Images from and into windows: Col2Im, MaxUnpool, and the columns of a deformable convolution. Any layout. */
#ifndef RUNNEL_OPS_PATCH_H
#define RUNNEL_OPS_PATCH_H

#include "ops/op.h"

#define RNL_PATCH_MAX_SPATIAL (RNL_MAX_RANK - 2)

typedef struct rnl_col2im_params {
    int64_t block[RNL_PATCH_MAX_SPATIAL], blocks[RNL_PATCH_MAX_SPATIAL]; /* taps; how many blocks along each axis */
    int64_t stride[RNL_PATCH_MAX_SPATIAL], dilation[RNL_PATCH_MAX_SPATIAL], pad_begin[RNL_PATCH_MAX_SPATIAL];
} rnl_col2im_params;

/* src: N x (C * taps) x blocks; dst: N x C x spatial…. Sums in f32 (f64 for f64), integers wrap, of bool: any. */
RNL_API RNL_NODISCARD rnl_status rnl_op_col2im(rnl_step_list *list, const rnl_col2im_params *params,
                                               const rnl_view *src, const rnl_view *dst);

/*
 * Writes each element of src to the place in dst that `indices` (I64, src's shape) says: a row-major number in `shape`,
 * which has dst's rank and lies at dst's beginning. Others stay; what lies outside `shape` is left out.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_max_unpool(rnl_step_list *list, const int64_t *shape, const rnl_view *src,
                                                   const rnl_view *indices, const rnl_view *dst);

typedef struct rnl_deform_params {
    int64_t kernel[2], stride[2], dilation[2], pad_begin[2]; /* h, w */
    int64_t offset_groups;
} rnl_deform_params;

/*
 * dst: N x C x taps x H' x W', of src: N x C x H x W, bilinear, zeros outside. offsets: N x (groups * taps * 2) x H' x
 * W', the vertical one first; mask (optional): N x (groups * taps) x H' x W'. One float type.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_deform(rnl_step_list *list, const rnl_deform_params *params,
                                               const rnl_view *src, const rnl_view *offsets, const rnl_view *mask,
                                               const rnl_view *dst);

#endif
