/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that read images at positions that other tensors give: GridSample, RoiAlign, MaxRoiPool. Any layout. */
#ifndef RUNNEL_OPS_SAMPLE_H
#define RUNNEL_OPS_SAMPLE_H

#include "ops/op.h"

typedef enum rnl_sample_mode { RNL_SAMPLE_NEAREST, RNL_SAMPLE_LINEAR, RNL_SAMPLE_CUBIC } rnl_sample_mode;
typedef enum rnl_sample_padding { RNL_SAMPLE_ZEROS, RNL_SAMPLE_BORDER, RNL_SAMPLE_REFLECTION } rnl_sample_padding;

typedef struct rnl_grid_sample_params {
    rnl_sample_mode mode;
    rnl_sample_padding padding;
    bool align_corners;
} rnl_grid_sample_params;

/*
 * src N x C x 1 to 3 spatial dimensions, none of size 0; grid N x dst's spatial dimensions x their number, of floats,
 * the innermost dimension's position first. Nearest: any type; else floats. A position that is NaN gives NaN, or, in
 * nearest, some pixel or a zero.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_grid_sample(rnl_step_list *list, const rnl_grid_sample_params *params,
                                                    const rnl_view *src, const rnl_view *grid, const rnl_view *dst);

typedef enum rnl_roi_mode { RNL_ROI_ALIGN_AVERAGE, RNL_ROI_ALIGN_MAX, RNL_ROI_POOL_MAX } rnl_roi_mode;
typedef struct rnl_roi_params {
    rnl_roi_mode mode;
    float spatial_scale;
    int64_t sampling_ratio; /* samples along each side of a bin; 0: one a pixel */
    bool half_pixel;        /* the corner of the first pixel lies at -0.5 */
} rnl_roi_params;

/*
 * src N x C x H x W of floats; rois R x 4 (x1, y1, x2, y2), for POOL_MAX R x 5 with the image's number first; `images`
 * (I64) R numbers of images, RNL_NO_SLOT for POOL_MAX; dst R x C x H' x W'. A number of an image that is not there is
 * that of the nearest one. ALIGN_MAX is the greatest of the weighted pixels, as ONNX defines it.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_roi(rnl_step_list *list, const rnl_roi_params *params, const rnl_view *src,
                                            const rnl_view *rois, const rnl_view *images, const rnl_view *dst);

#endif
