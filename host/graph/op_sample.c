/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample, AffineGrid, RoiAlign, MaxRoiPool. */
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

static rnl_status check_rank(const rnl_op_context *context, size_t index, size_t rank)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    if (input->rank == rank)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has shape %s; rank %zu is needed", index, context->node->op_type,
                rnl_shape_format(input->shape, input->rank).text, rank);
}

rnl_status rnl_grid_sample_resolve(const rnl_op_context *context, int *out_mode, int *out_padding)
{
    static const char *const modes_16[] = {"bilinear", "nearest", "bicubic"};
    static const char *const modes_20[] = {"linear", "nearest", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    static const int order[] = {1, 0, 2}; /* nearest, linear, cubic */
    TRY(rnl_choose(context->node, "mode", context->node->opset < 20 ? modes_16 : modes_20, 3, out_mode));
    *out_mode = order[*out_mode];
    return rnl_choose(context->node, "padding_mode", paddings, 3, out_padding);
}

rnl_status rnl_infer_grid_sample(rnl_op_context *context)
{
    int mode, padding;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0], *grid = &context->inputs[1];
    TRY(rnl_grid_sample_resolve(context, &mode, &padding));
    TRY(rnl_check_dtype(context, 1, RNL_TYPES_FLOAT_64));
    if (input->rank < 3 || input->rank > 5)
        return FAIL(RNL_UNIMPLEMENTED, "GridSample is implemented for 1 to 3 spatial dimensions, not for shape %s",
                    rnl_shape_format(input->shape, input->rank).text);
    TRY(check_rank(context, 1, input->rank));
    if (mode != 0 && !(RNL_TYPES_FLOAT_64 & RNL_TYPE_BIT(input->dtype)))
        return FAIL(RNL_UNIMPLEMENTED, "GridSample interpolates floats, not %s", rnl_dtype_name(input->dtype));
    if (grid->shape[0] != input->shape[0] || grid->shape[grid->rank - 1] != (int64_t)input->rank - 2)
        return FAIL(RNL_INVALID_ARGUMENT, "GridSample's grid of shape %s does not belong to an image of shape %s",
                    rnl_shape_format(grid->shape, grid->rank).text, rnl_shape_format(input->shape, input->rank).text);
    int64_t shape[5] = {input->shape[0], input->shape[1]};
    for (size_t i = 2; i < input->rank; i++)
        shape[i] = grid->shape[i - 1];
    return rnl_output_set(context, 0, input->dtype, shape, input->rank);
}

rnl_status rnl_infer_affine_grid(rnl_op_context *context)
{
    int64_t size[5], shape[5];
    size_t rank;
    TRY(rnl_infer_begin(context));
    TRY(check_rank(context, 0, 3));
    const rnl_tensor_desc *theta = &context->inputs[0];
    TRY(rnl_desc_ints(&context->inputs[1], "size (input 1)", size, 5, &rank));
    bool fits = (rank == 4 || rank == 5) && theta->shape[0] == size[0] && theta->shape[1] == (int64_t)rank - 2 &&
                theta->shape[2] == (int64_t)rank - 1;
    for (size_t i = 0; i < rank && fits; i++)
        fits = size[i] >= 0;
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT, "AffineGrid's theta has shape %s, which is not that of the size %s",
                    rnl_shape_format(theta->shape, theta->rank).text, rnl_shape_format(size, rank).text);
    shape[0] = size[0];
    for (size_t i = 2; i < rank; i++)
        shape[i - 1] = size[i];
    shape[rank - 1] = (int64_t)rank - 2;
    return rnl_output_set(context, 0, theta->dtype, shape, rank);
}

rnl_status rnl_infer_roi_align(rnl_op_context *context)
{
    const rnl_node *node = context->node;
    int64_t height = rnl_node_int(node, "output_height", 1), width = rnl_node_int(node, "output_width", 1);
    TRY(rnl_infer_begin(context));
    TRY(check_rank(context, 0, 4));
    TRY(check_rank(context, 1, 2));
    TRY(check_rank(context, 2, 1));
    TRY(rnl_same_dtype(context, 0, 1));
    TRY(rnl_check_dtype(context, 2, RNL_TYPE_BIT(RNL_I64)));
    const rnl_tensor_desc *rois = &context->inputs[1];
    TRY(rnl_check_vector(context, 2, rois->shape[0]));
    if (rois->shape[1] != 4 || height < 1 || width < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "RoiAlign of regions of shape %s into %" PRId64 "x%" PRId64,
                    rnl_shape_format(rois->shape, rois->rank).text, height, width);
    return rnl_output_set(context, 0, context->inputs[0].dtype,
                          (const int64_t[]){rois->shape[0], context->inputs[0].shape[1], height, width}, 4);
}

rnl_status rnl_infer_max_roi_pool(rnl_op_context *context)
{
    size_t count;
    const int64_t *pooled = rnl_node_ints(context->node, "pooled_shape", &count);
    TRY(rnl_infer_begin(context));
    TRY(check_rank(context, 0, 4));
    TRY(check_rank(context, 1, 2));
    TRY(rnl_same_dtype(context, 0, 1));
    const rnl_tensor_desc *rois = &context->inputs[1];
    if (count != 2 || pooled[0] < 1 || pooled[1] < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'pooled_shape' of MaxRoiPool must be two sizes");
    if (rois->shape[1] != 5)
        return FAIL(RNL_INVALID_ARGUMENT, "MaxRoiPool's regions have shape %s; five numbers each are needed",
                    rnl_shape_format(rois->shape, rois->rank).text);
    return rnl_output_set(context, 0, context->inputs[0].dtype,
                          (const int64_t[]){rois->shape[0], context->inputs[0].shape[1], pooled[0], pooled[1]}, 4);
}
