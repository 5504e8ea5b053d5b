/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/implementation.h"
#include "ops/sample.h"
#include "ops/step_build.h"

#define ITEM_CHANNELS 8   /* that a work-item makes on a GPU */
#define MOST_SAMPLES 1024 /* along a side of a bin */

static rnl_status check_types(const rnl_roi_params *params, const rnl_view *src, const rnl_view *rois,
                              const rnl_view *images, const rnl_view *dst)
{
    if (!rnl_dtype_is_float(src->dtype) || rois->dtype != src->dtype || dst->dtype != src->dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "regions of %s by %s into %s", rnl_dtype_name(src->dtype),
                    rnl_dtype_name(rois->dtype), rnl_dtype_name(dst->dtype));
    if (params->mode != RNL_ROI_POOL_MAX && (!rnl_view_exists(images) || images->dtype != RNL_I64))
        return FAIL(RNL_INVALID_ARGUMENT, "regions need int64 numbers of images");
    if (params->sampling_ratio < 0 || params->sampling_ratio > MOST_SAMPLES)
        return FAIL(RNL_UNIMPLEMENTED, "a sampling ratio of %lld; 0 to %d are supported",
                    (long long)params->sampling_ratio, MOST_SAMPLES);
    return RNL_OK;
}

static rnl_status check_shapes(const rnl_roi_params *params, const rnl_view *src, const rnl_view *rois,
                               const rnl_view *images, const rnl_view *dst)
{
    const bool pool = params->mode == RNL_ROI_POOL_MAX;
    const bool fits = src->rank == 4 && dst->rank == 4 && rois->rank == 2 && rois->shape[0] == dst->shape[0] &&
                      rois->shape[1] == (pool ? 5 : 4) && dst->shape[1] == src->shape[1] &&
                      (pool || (images->rank == 1 && images->shape[0] == dst->shape[0]));
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT, "regions, their images and results have shapes that do not belong together");
    if (src->shape[0] == 0 || src->shape[2] == 0 || src->shape[3] == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "regions of images of which there are none");
    for (size_t i = 0; i < 4; ++i)
        if (src->shape[i] > INT32_MAX / 2 || dst->shape[i] > INT32_MAX / 2)
            return FAIL(RNL_UNIMPLEMENTED, "regions of or in more than 2^30 pixels");
    if (dst->shape[2] * dst->shape[3] > INT32_MAX)
        return FAIL(RNL_UNIMPLEMENTED, "regions in more than 2^31 bins");
    return RNL_OK;
}

static void add_sizes(rnl_step_builder *step, const rnl_view *view)
{
    const int32_t sizes[4] = {(int32_t)view->shape[0], (int32_t)view->shape[1], (int32_t)view->shape[2],
                              (int32_t)view->shape[3]};
    rnl_step_value(step, sizes, sizeof sizes);
}

rnl_status rnl_op_roi(rnl_step_list *list, const rnl_roi_params *params, const rnl_view *src, const rnl_view *rois,
                      const rnl_view *images, const rnl_view *dst)
{
    bool index64 = false;
    rnl_step_builder step;
    TRY(rnl_views_check((const rnl_view *[]){src, rois, images, dst}, 4, &index64), "operands of regions");
    TRY(check_types(params, src, rois, images, dst));
    const uint64_t count = (uint64_t)rnl_view_elements(dst);
    if (count == 0)
        return RNL_OK;
    TRY(check_shapes(params, src, rois, images, dst));
    const int64_t channels = src->shape[1];
    const int64_t each = rnl_device_is_cpu(list->device) || channels < ITEM_CHANNELS ? channels : ITEM_CHANNELS;
    const int32_t flags[4] = {(int32_t)params->sampling_ratio, params->half_pixel, (int32_t)each, 0};
    rnl_step_begin(&step, list, "roi:portable", index64);
    rnl_step_type(&step, "T", src->dtype);
    rnl_step_define(&step, "MODE=%d", (int)params->mode);
    rnl_step_view(&step, dst);
    rnl_step_view(&step, src);
    rnl_step_view(&step, rois);
    if (params->mode != RNL_ROI_POOL_MAX) {
        rnl_step_view(&step, images);
        rnl_step_index(&step, images->stride[0]);
    }
    add_sizes(&step, src);
    add_sizes(&step, dst);
    rnl_step_value(&step, flags, sizeof flags);
    rnl_step_float(&step, params->spatial_scale);
    rnl_step_indices(&step, 4, src->stride, 4, 0);
    rnl_step_indices(&step, 4, dst->stride, 4, 0);
    rnl_step_indices(&step, 2, rois->stride, 2, 0);
    const size_t bins = (size_t)(dst->shape[2] * dst->shape[3]);
    rnl_step_range(&step, 3, (size_t[3]){bins, (size_t)((channels + each - 1) / each), (size_t)dst->shape[0]},
                   (size_t[3]){16, 1, 1});
    step.step.bytes = count * 5 * rnl_dtype_bytes(dst->dtype);
    rnl_step_writes(&step, dst->slot);
    return rnl_step_end(&step, "roi.cl", "roi");
}
