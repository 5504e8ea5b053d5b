/* SPDX-License-Identifier: Apache-2.0 */
/* Normalisations besides those over layers and instances, which lower_reduce.c has. */
#include "model/lower_list.h"

#include "model/compose.h"
#include "ops/normalize.h"
#include <string.h>

#define MEAN_VARIANCE_OFFSET 1e-9 /* added to the deviation, by the operator's definition */

/* ---- RMSNormalization, SimplifiedLayerNormalization ------------------------------------------------------------- */

static rnl_dtype wider(rnl_dtype a, rnl_dtype b)
{
    if (a == b)
        return a;
    return a == RNL_F64 || b == RNL_F64 ? RNL_F64 : RNL_F32;
}

/* For training: 1 / sqrt(mean of squares + epsilon). */
static rnl_status write_inverse_rms(rnl_lowering *lowering, const rnl_view *source, uint32_t axes, float epsilon)
{
    rnl_view exact, squares, mean, target;
    TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(rnl_compose_cast(lowering, source, source->dtype == RNL_F64 ? RNL_F64 : RNL_F32, &exact));
    TRY(rnl_compose_binary(lowering, RNL_MAP_MUL, &exact, &exact, &squares));
    TRY(rnl_compose_reduce(lowering, RNL_REDUCE_MEAN, axes, &squares, &mean));
    TRY(rnl_compose_with(lowering, RNL_MAP_ADD, &mean, (double)epsilon, &mean));
    TRY(rnl_compose_unary(lowering, RNL_MAP_SQRT, &mean, &mean));
    TRY(rnl_compose_unary(lowering, RNL_MAP_RECIPROCAL, &mean, &mean));
    return rnl_lower_copy(lowering, &mean, &target);
}

/* The result has the scale's type, which may differ from the input's. */
rnl_status rnl_lower_rms_norm(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    const float epsilon = rnl_node_float(node, "epsilon", 1e-5f);
    rnl_view source, scale, target, result;
    size_t axis;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &scale));
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", -1), source.rank, "axis", &axis));
    const uint32_t axes = ((1u << source.rank) - 1) & ~((1u << axis) - 1);
    const rnl_dtype dtype = wider(source.dtype, scale.dtype);
    if (rnl_lower_has_output(lowering, 1))
        TRY(write_inverse_rms(lowering, &source, axes, epsilon));
    TRY(rnl_compose_cast(lowering, &source, dtype, &source));
    TRY(rnl_compose_cast(lowering, &scale, dtype, &scale));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    if (target.dtype == dtype)
        return rnl_op_normalize_rms(lowering->list, axes, epsilon, &source, &scale, &target);
    TRY(rnl_lower_scratch(lowering, dtype, source.rank, source.shape, RNL_LAYOUT_ROW_MAJOR, &result));
    TRY(rnl_op_normalize_rms(lowering->list, axes, epsilon, &source, &scale, &result));
    return rnl_lower_copy(lowering, &result, &target);
}

/* ---- GroupNormalization ---------------------------------------------------------------------------------------- */

/* N, C, … becomes N, groups, C / groups, …. */
static rnl_view in_groups(const rnl_view *view, int64_t groups)
{
    rnl_view result = *view;
    memmove(&result.shape[2], &view->shape[1], (view->rank - 1) * sizeof *view->shape);
    memmove(&result.stride[2], &view->stride[1], (view->rank - 1) * sizeof *view->stride);
    result.rank++;
    result.shape[1] = groups;
    result.shape[2] = groups ? view->shape[1] / groups : 0;
    result.stride[1] = view->stride[1] * result.shape[2];
    return result;
}

/* One number a channel, or before opset 21 one a group, as a view that broadcasts over N, groups, C / groups, …. */
static rnl_view over_groups(const rnl_view *view, bool each_channel, const rnl_view *like)
{
    rnl_view result = *view;
    result.rank = like->rank - 1;
    for (size_t i = 1; i < result.rank; i++) {
        result.shape[i] = 1;
        result.stride[i] = 0;
    }
    result.shape[0] = like->shape[1];
    if (!each_channel)
        return result;
    result.shape[1] = like->shape[2];
    result.stride[1] = view->stride[0];
    result.stride[0] = view->stride[0] * like->shape[2];
    return result;
}

rnl_status rnl_lower_group_norm(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    const int64_t groups = rnl_node_int(node, "num_groups", 1);
    const float epsilon = rnl_node_float(node, "epsilon", 1e-5f);
    rnl_view sources[3], target;
    for (size_t i = 0; i < 3; i++)
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &sources[i]));
    if (sources[0].rank == RNL_MAX_RANK)
        return FAIL(RNL_UNIMPLEMENTED, "GroupNormalization takes tensors of rank %d or less", RNL_MAX_RANK - 1);
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    const bool each_channel = node->opset >= 21;
    sources[0] = in_groups(&sources[0], groups);
    target = in_groups(&target, groups);
    sources[1] = over_groups(&sources[1], each_channel, &sources[0]);
    sources[2] = over_groups(&sources[2], each_channel, &sources[0]);
    const uint32_t axes = ((1u << target.rank) - 1) & ~3u;
    return rnl_op_normalize(lowering->list, axes, epsilon, &sources[0], &sources[1], &sources[2], &target);
}

/* ---- MeanVarianceNormalization, LpNormalization ---------------------------------------------------------------- */

rnl_status rnl_lower_mean_variance_norm(rnl_lowering *lowering)
{
    static const int64_t absent[] = {0, 2, 3};
    size_t count;
    uint32_t axes = 0;
    rnl_view source, mean, spread, target;
    const int64_t *given = rnl_node_ints(lowering->context.node, "axes", &count);
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    for (size_t i = 0; i < (given ? count : 3); i++) {
        const int64_t axis = given ? given[i] : absent[i];
        axes |= 1u << (axis < 0 ? axis + (int64_t)source.rank : axis);
    }
    TRY(rnl_compose_cast(lowering, &source, source.dtype == RNL_F64 ? RNL_F64 : RNL_F32, &source));
    TRY(rnl_compose_reduce(lowering, RNL_REDUCE_MEAN, axes, &source, &mean));
    TRY(rnl_compose_binary(lowering, RNL_MAP_SUB, &source, &mean, &source));
    TRY(rnl_compose_binary(lowering, RNL_MAP_MUL, &source, &source, &spread));
    TRY(rnl_compose_reduce(lowering, RNL_REDUCE_MEAN, axes, &spread, &spread));
    TRY(rnl_compose_unary(lowering, RNL_MAP_SQRT, &spread, &spread));
    TRY(rnl_compose_with(lowering, RNL_MAP_ADD, &spread, MEAN_VARIANCE_OFFSET, &spread));
    TRY(rnl_compose_binary(lowering, RNL_MAP_DIV, &source, &spread, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    return rnl_lower_copy(lowering, &source, &target);
}

/* x / norm, and 0 where the norm is: all the elements are 0 there, so they may be divided by 1. */
rnl_status rnl_lower_lp_norm(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    const rnl_reduce_op op = rnl_node_int(node, "p", 2) == 1 ? RNL_REDUCE_L1 : RNL_REDUCE_L2;
    rnl_view sources[2], parts[3], target;
    size_t axis;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &sources[0]));
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", -1), sources[0].rank, "axis", &axis));
    /* A norm may be larger than float16's largest number where the quotient is not. */
    TRY(rnl_compose_cast(lowering, &sources[0], sources[0].dtype == RNL_F64 ? RNL_F64 : RNL_F32, &sources[0]));
    TRY(rnl_compose_reduce(lowering, op, 1u << axis, &sources[0], &parts[2]));
    TRY(rnl_compose_with(lowering, RNL_MAP_EQUAL, &parts[2], 0, &parts[0]));
    TRY(rnl_lower_scalar(lowering, sources[0].dtype, 1, &parts[1]));
    TRY(rnl_compose_map(lowering, RNL_MAP_SELECT, parts, 3, &sources[1]));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    if (target.dtype == sources[0].dtype)
        return rnl_op_map(lowering->list, RNL_MAP_DIV, 0, 0, sources, 2, &target);
    TRY(rnl_compose_map(lowering, RNL_MAP_DIV, sources, 2, &sources[0]));
    return rnl_lower_copy(lowering, &sources[0], &target);
}

/* ---- BatchNormalization in training ----------------------------------------------------------------------------- */

/* One number a channel as a view that broadcasts over images of this rank. */
static rnl_view over_channels(const rnl_view *view, size_t rank)
{
    rnl_view result = *view;
    result.rank = rank - 1;
    for (size_t i = 1; i < result.rank; i++) {
        result.shape[i] = 1;
        result.stride[i] = 0;
    }
    return result;
}

/* What is kept of an earlier statistic, and the rest of the new one: 1, C, 1, …. */
static rnl_status write_running(rnl_lowering *lowering, size_t index, const rnl_view *statistic)
{
    const double kept = (double)rnl_node_float(lowering->context.node, "momentum", 0.9f);
    rnl_view before, now = *statistic, target;
    if (!rnl_lower_has_output(lowering, index))
        return RNL_OK;
    now.rank = 1;
    now.shape[0] = statistic->shape[1];
    now.stride[0] = statistic->stride[1];
    TRY(rnl_lower_input(lowering, index + 2, RNL_LAYOUT_ANY, &before));
    TRY(rnl_compose_cast(lowering, &before, now.dtype, &before));
    TRY(rnl_compose_with(lowering, RNL_MAP_MUL, &before, kept, &before));
    TRY(rnl_compose_with(lowering, RNL_MAP_MUL, &now, 1 - kept, &now));
    TRY(rnl_compose_binary(lowering, RNL_MAP_ADD, &before, &now, &before));
    TRY(rnl_lower_output(lowering, index, RNL_LAYOUT_ROW_MAJOR, &target));
    return rnl_lower_copy(lowering, &before, &target);
}

static rnl_status write_statistics(rnl_lowering *lowering, uint32_t axes, const rnl_view *source)
{
    rnl_view exact, mean, spread;
    if (!rnl_lower_has_output(lowering, 1) && !rnl_lower_has_output(lowering, 2))
        return RNL_OK;
    TRY(rnl_compose_cast(lowering, source, source->dtype == RNL_F64 ? RNL_F64 : RNL_F32, &exact));
    TRY(rnl_compose_reduce(lowering, RNL_REDUCE_MEAN, axes, &exact, &mean));
    TRY(rnl_compose_binary(lowering, RNL_MAP_SUB, &exact, &mean, &spread));
    TRY(rnl_compose_binary(lowering, RNL_MAP_MUL, &spread, &spread, &spread));
    TRY(rnl_compose_reduce(lowering, RNL_REDUCE_MEAN, axes, &spread, &spread));
    TRY(write_running(lowering, 1, &mean));
    return write_running(lowering, 2, &spread);
}

rnl_status rnl_lower_training_norm(rnl_lowering *lowering)
{
    const float epsilon = rnl_node_float(lowering->context.node, "epsilon", 1e-5f);
    rnl_view sources[3], target;
    for (size_t i = 0; i < 3; i++) {
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &sources[i]));
        TRY(rnl_compose_cast(lowering, &sources[i], sources[0].dtype, &sources[i]));
    }
    const size_t rank = sources[0].rank;
    const uint32_t axes = ((1u << rank) - 1) & ~2u;
    const rnl_view scale = over_channels(&sources[1], rank), shift = over_channels(&sources[2], rank);
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    TRY(rnl_op_normalize(lowering->list, axes, epsilon, &sources[0], &scale, &shift, &target));
    return write_statistics(lowering, axes, &sources[0]);
}
