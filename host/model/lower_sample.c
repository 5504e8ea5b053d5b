/* SPDX-License-Identifier: Apache-2.0 */
/* GridSample, AffineGrid, RoiAlign, MaxRoiPool. */
#include "model/lower_list.h"

#include "graph/host_element.h"
#include "graph/op_common.h"
#include "model/compose.h"
#include "ops/sample.h"
#include <string.h>

rnl_status rnl_lower_grid_sample(rnl_lowering *lowering)
{
    int mode, padding;
    rnl_view source, grid, target;
    TRY(rnl_grid_sample_resolve(&lowering->context, &mode, &padding));
    const rnl_grid_sample_params params = {.mode = (rnl_sample_mode)mode,
                                           .padding = (rnl_sample_padding)padding,
                                           .align_corners =
                                               rnl_node_int(lowering->context.node, "align_corners", 0) != 0};
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &grid));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    return rnl_op_grid_sample(lowering->list, &params, &source, &grid, &target);
}

/* The positions -1 … 1 of `size` pixels, along one axis of a view of this rank. */
static rnl_status lower_positions(rnl_lowering *lowering, rnl_dtype dtype, int64_t size, size_t axis, size_t rank,
                                  rnl_view *out_view)
{
    bool align = rnl_node_int(lowering->context.node, "align_corners", 0) != 0;
    rnl_tensor_desc desc = {.dtype = dtype, .rank = rank};
    void *data = NULL;
    for (size_t i = 0; i < rank; i++)
        desc.shape[i] = i == axis ? size : 1;
    TRY(rnl_zone_alloc(lowering->planner->zone, size ? (size_t)size : 1, rnl_dtype_bytes(dtype), &data));
    for (int64_t i = 0; i < size; i++) {
        double last = (double)(size - 1),
               at = align ? (size > 1 ? 2 * (double)i / last - 1 : -1) : (double)(2 * i + 1) / (double)size - 1;
        rnl_element_store(data, i, dtype, (rnl_number){.f = at});
    }
    desc.host = data;
    return rnl_lower_constant(lowering, &desc, out_view);
}

/* Column `index` of theta, N x n x (n + 1), as N x 1 … x n. */
static rnl_view theta_column(const rnl_view *theta, size_t index, size_t rank)
{
    rnl_view column = *theta;
    column.rank = rank;
    column.offset += (int64_t)index * theta->stride[2];
    for (size_t i = 1; i + 1 < rank; i++) {
        column.shape[i] = 1;
        column.stride[i] = 0;
    }
    column.shape[rank - 1] = theta->shape[1];
    column.stride[rank - 1] = theta->stride[1];
    return column;
}

/* The sum over the spatial axes, innermost first, of a column of theta times a position, and the last column. */
rnl_status rnl_lower_affine_grid(rnl_lowering *lowering)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    size_t rank = output->rank, spatial = rank - 2;
    rnl_dtype dtype = output->dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    rnl_view theta, sum, part, positions, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &theta));
    TRY(rnl_compose_cast(lowering, &theta, dtype, &theta));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    sum = theta_column(&theta, spatial, rank);
    for (size_t i = 0; i < spatial; i++) {
        size_t axis = spatial - i;
        rnl_view column = theta_column(&theta, i, rank);
        TRY(lower_positions(lowering, dtype, output->shape[axis], axis, rank, &positions));
        TRY(rnl_compose_binary(lowering, RNL_MAP_MUL, &column, &positions, &part));
        TRY(rnl_compose_binary(lowering, RNL_MAP_ADD, &sum, &part, &sum));
    }
    return rnl_lower_copy(lowering, &sum, &target);
}

rnl_status rnl_lower_roi(rnl_lowering *lowering)
{
    static const char *const modes[] = {"avg", "max"}, *const coordinates[] = {"half_pixel", "output_half_pixel"};
    const rnl_node *node = lowering->context.node;
    bool pool = strcmp(node->op_type, "MaxRoiPool") == 0;
    int mode = RNL_ROI_POOL_MAX, whole = 1;
    rnl_view source, rois, images, target;
    if (!pool)
        TRY(rnl_choose(node, "mode", modes, 2, &mode));
    if (!pool && node->opset >= 16)
        TRY(rnl_choose(node, "coordinate_transformation_mode", coordinates, 2, &whole));
    const rnl_roi_params params = {.mode = (rnl_roi_mode)mode,
                                   .spatial_scale = rnl_node_float(node, "spatial_scale", 1),
                                   .sampling_ratio = rnl_node_int(node, "sampling_ratio", 0),
                                   .half_pixel = !whole};
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &rois));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &images));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    return rnl_op_roi(lowering->list, &params, &source, &rois, &images, &target);
}
