/* SPDX-License-Identifier: Apache-2.0 */
/* Resize (ONNX's definition, also Upsample) and Gather. */
#ifndef RUNNEL_OPS_RESIZE_H
#define RUNNEL_OPS_RESIZE_H

#include "ops/op.h"

typedef enum rnl_resize_mode { RNL_RESIZE_NEAREST, RNL_RESIZE_LINEAR, RNL_RESIZE_CUBIC } rnl_resize_mode;
typedef enum rnl_resize_coordinates {
    RNL_RESIZE_HALF_PIXEL,
    RNL_RESIZE_HALF_PIXEL_SYMMETRIC,
    RNL_RESIZE_PYTORCH_HALF_PIXEL,
    RNL_RESIZE_ALIGN_CORNERS,
    RNL_RESIZE_ASYMMETRIC,
    RNL_RESIZE_TF_HALF_PIXEL_FOR_NN,
    RNL_RESIZE_TF_CROP_AND_RESIZE
} rnl_resize_coordinates;
typedef enum rnl_resize_nearest {
    RNL_RESIZE_ROUND_PREFER_FLOOR,
    RNL_RESIZE_ROUND_PREFER_CEIL,
    RNL_RESIZE_FLOOR,
    RNL_RESIZE_CEIL
} rnl_resize_nearest;

typedef struct rnl_resize_params {
    rnl_resize_mode mode;
    rnl_resize_coordinates coordinates;
    rnl_resize_nearest nearest;
    float cubic_a; /* -0.75 */
    bool exclude_outside, antialias;
    float extrapolation_value;
    float scale[RNL_MAX_RANK];                            /* dst size / src size as the model gives it, one an axis */
    float roi_begin[RNL_MAX_RANK], roi_end[RNL_MAX_RANK]; /* TF_CROP_AND_RESIZE only */
} rnl_resize_params;

/*
 * src and dst of one rank, at least 1, any layout; at most three axes may differ in size or scale. Linear and cubic:
 * float types. Positions are computed in f32, as onnxruntime does: which sample is nearest hangs on it.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_resize(rnl_step_list *list, const rnl_resize_params *params,
                                               const rnl_view *src, const rnl_view *dst);

/*
 * dst = data with `axis` replaced by indices' dimensions; indices I32 or I64, negative ones count from the end. An
 * index out of range takes the nearest element there is: nothing outside `data` is read.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_gather(rnl_step_list *list, size_t axis, const rnl_view *data,
                                               const rnl_view *indices, const rnl_view *dst);
/*
 * The same where the elements need not lie at a multiple of their size, for CPUs: neighbours in dst's last
 * dimension are neighbours in data too. Else RNL_UNIMPLEMENTED.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_gather_loose(rnl_step_list *list, size_t axis, const rnl_view *data,
                                                     const rnl_view *indices, const rnl_view *dst);

#endif
