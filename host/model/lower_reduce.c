/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions, softmax and normalisations. */
#include "model/lower_list.h"

#include "ops/normalize.h"
#include "ops/pool.h"
#include "ops/reduce.h"
#include <string.h>

static const struct {
    const char *op_type;
    rnl_reduce_op op;
} reductions[] = {
    {"ReduceSum", RNL_REDUCE_SUM},        {"ReduceMean", RNL_REDUCE_MEAN},
    {"ReduceMax", RNL_REDUCE_MAX},        {"ReduceMin", RNL_REDUCE_MIN},
    {"ReduceProd", RNL_REDUCE_PROD},      {"ReduceL1", RNL_REDUCE_L1},
    {"ReduceL2", RNL_REDUCE_L2},          {"ReduceSumSquare", RNL_REDUCE_SUM_SQUARE},
    {"ReduceLogSum", RNL_REDUCE_LOG_SUM}, {"ReduceLogSumExp", RNL_REDUCE_LOG_SUM_EXP},
};

/* The shape of a reduction with its axes kept as 1. */
static rnl_view kept(const rnl_view *target, const rnl_view *source, uint32_t axes)
{
    rnl_view result = *target;
    size_t next = 0;
    bool dropped = target->rank != source->rank;
    result.rank = source->rank;
    for (size_t i = 0; i < source->rank; i++) {
        bool reduced = axes >> i & 1;
        result.shape[i] = reduced ? 1 : source->shape[i];
        result.stride[i] = reduced ? 0 : target->stride[next];
        next += dropped && reduced ? 0 : 1;
    }
    return result;
}

rnl_status rnl_lower_reduce(rnl_lowering *lowering)
{
    rnl_reduce_op op = RNL_REDUCE_SUM;
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (strcmp(reductions[i].op_type, lowering->context.node->op_type) == 0)
            op = reductions[i].op;
    uint32_t axes;
    bool noop;
    rnl_view source, target;
    TRY(rnl_reduce_axes(&lowering->context, &axes, &noop));
    if (noop)
        return rnl_lower_identity(lowering);
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    target = kept(&target, &source, axes);
    return rnl_op_reduce(lowering->list, op, axes, &source, &target);
}

rnl_status rnl_lower_global_pool(rnl_lowering *lowering)
{
    bool average = strcmp(lowering->context.node->op_type, "GlobalAveragePool") == 0;
    rnl_view source, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    uint32_t axes = ((1u << source.rank) - 1) & ~3u;
    return rnl_op_reduce(lowering->list, average ? RNL_REDUCE_MEAN : RNL_REDUCE_MAX, axes, &source, &target);
}

rnl_status rnl_lower_softmax(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    bool logarithm = strcmp(node->op_type, "LogSoftmax") == 0, flattens = node->opset < 13;
    size_t axis;
    rnl_view source, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    if (source.rank == 0) {
        source.rank = target.rank = 1;
        source.shape[0] = target.shape[0] = 1;
        source.stride[0] = target.stride[0] = 1;
    }
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", flattens ? 1 : -1), source.rank, "axis", &axis));
    return rnl_op_softmax(lowering->list, logarithm, axis, flattens ? source.rank - 1 : axis, &source, &target);
}

/* A vector over the channels, as a view that broadcasts over an image of this rank. */
static void broadcast_channels(rnl_view *view, size_t rank)
{
    int64_t channels = view->shape[0], stride = view->stride[0];
    view->rank = rank > 1 ? rank - 1 : rank;
    for (size_t i = 0; i < view->rank; i++) {
        view->shape[i] = 1;
        view->stride[i] = 0;
    }
    view->shape[0] = channels;
    view->stride[0] = stride;
}

rnl_status rnl_lower_batch_norm(rnl_lowering *lowering)
{
    rnl_view sources[5], target;
    if (rnl_node_int(lowering->context.node, "training_mode", 0))
        return rnl_lower_training_norm(lowering);
    for (size_t i = 0; i < 5; i++) {
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &sources[i]));
        if (i > 0)
            broadcast_channels(&sources[i], sources[0].rank);
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    float epsilon = rnl_node_float(lowering->context.node, "epsilon", 1e-5f);
    return rnl_op_map(lowering->list, RNL_MAP_NORMALIZE, epsilon, 0, sources, 5, &target);
}

/* Statistics over the axes of `axes` in f32, kept as 1: mean, and the mean of squared differences from it. */
static rnl_status moments(rnl_lowering *lowering, const rnl_view *source, uint32_t axes, rnl_view *out_mean,
                          rnl_view *out_variance)
{
    int64_t shape[RNL_MAX_RANK];
    rnl_view difference;
    for (size_t i = 0; i < source->rank; i++)
        shape[i] = axes >> i & 1 ? 1 : source->shape[i];
    TRY(rnl_lower_scratch(lowering, source->dtype, source->rank, shape, RNL_LAYOUT_ROW_MAJOR, out_mean));
    TRY(rnl_lower_scratch(lowering, source->dtype, source->rank, shape, RNL_LAYOUT_ROW_MAJOR, out_variance));
    TRY(rnl_lower_scratch(lowering, source->dtype, source->rank, source->shape, RNL_LAYOUT_ROW_MAJOR, &difference));
    TRY(rnl_op_reduce(lowering->list, RNL_REDUCE_MEAN, axes, source, out_mean));
    TRY(rnl_op_map(lowering->list, RNL_MAP_SUB, 0, 0, (rnl_view[]){*source, *out_mean}, 2, &difference));
    TRY(rnl_op_map(lowering->list, RNL_MAP_MUL, 0, 0, (rnl_view[]){difference, difference}, 2, &difference));
    return rnl_op_reduce(lowering->list, RNL_REDUCE_MEAN, axes, &difference, out_variance);
}

rnl_status rnl_lower_instance_norm(rnl_lowering *lowering)
{
    rnl_view sources[3], target;
    for (size_t i = 0; i < 3; i++)
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &sources[i]));
    uint32_t axes = ((1u << sources[0].rank) - 1) & ~3u;
    broadcast_channels(&sources[1], sources[0].rank);
    broadcast_channels(&sources[2], sources[0].rank);
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    float epsilon = rnl_node_float(lowering->context.node, "epsilon", 1e-5f);
    return rnl_op_normalize(lowering->list, axes, epsilon, &sources[0], &sources[1], &sources[2], &target);
}

static rnl_status write_inverse_deviation(rnl_lowering *lowering, const rnl_view *variance, float epsilon,
                                          const rnl_view *target)
{
    rnl_view offset, shifted;
    TRY(rnl_lower_scalar(lowering, variance->dtype, (double)epsilon, &offset));
    TRY(rnl_lower_scratch(lowering, variance->dtype, variance->rank, variance->shape, RNL_LAYOUT_ROW_MAJOR, &shifted));
    TRY(rnl_op_map(lowering->list, RNL_MAP_ADD, 0, 0, (rnl_view[]){*variance, offset}, 2, &shifted));
    TRY(rnl_op_map(lowering->list, RNL_MAP_SQRT, 0, 0, &shifted, 1, &shifted));
    if (shifted.dtype == target->dtype)
        return rnl_op_map(lowering->list, RNL_MAP_RECIPROCAL, 0, 0, &shifted, 1, target);
    TRY(rnl_op_map(lowering->list, RNL_MAP_RECIPROCAL, 0, 0, &shifted, 1, &shifted));
    return rnl_lower_copy(lowering, &shifted, target);
}

/* f16 statistics would lose what they measure: they are taken in f32. */
static rnl_status in_float(rnl_lowering *lowering, rnl_view *view)
{
    rnl_view source = *view;
    if (source.dtype != RNL_F16 && source.dtype != RNL_BF16)
        return RNL_OK;
    TRY(rnl_lower_scratch(lowering, RNL_F32, source.rank, source.shape, RNL_LAYOUT_ROW_MAJOR, view));
    return rnl_lower_copy(lowering, &source, view);
}

/* Input, scale and bias, which may be left out. */
static rnl_status layer_norm_inputs(rnl_lowering *lowering, rnl_view sources[3])
{
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &sources[0]));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &sources[1]));
    if (rnl_lower_has_input(lowering, 2))
        return rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &sources[2]);
    return rnl_lower_scalar(lowering, sources[0].dtype, 0, &sources[2]);
}

/* The outputs that training wants: mean, and the inverse of the standard deviation. */
static rnl_status layer_norm_statistics(rnl_lowering *lowering, const rnl_view *source, uint32_t axes, float epsilon)
{
    rnl_view exact = *source, mean, variance, target;
    TRY(in_float(lowering, &exact));
    TRY(moments(lowering, &exact, axes, &mean, &variance));
    if (rnl_lower_has_output(lowering, 1)) {
        TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &target));
        TRY(rnl_lower_copy(lowering, &mean, &target));
    }
    if (!rnl_lower_has_output(lowering, 2))
        return RNL_OK;
    TRY(rnl_lower_output(lowering, 2, RNL_LAYOUT_ROW_MAJOR, &target));
    return write_inverse_deviation(lowering, &variance, epsilon, &target);
}

rnl_status rnl_lower_layer_norm(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    float epsilon = rnl_node_float(node, "epsilon", 1e-5f);
    rnl_view sources[3], target;
    size_t axis;
    TRY(layer_norm_inputs(lowering, sources));
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", -1), sources[0].rank, "axis", &axis));
    uint32_t axes = ((1u << sources[0].rank) - 1) & ~((1u << axis) - 1);
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(rnl_op_normalize(lowering->list, axes, epsilon, &sources[0], &sources[1], &sources[2], &target));
    if (rnl_lower_has_output(lowering, 1) || rnl_lower_has_output(lowering, 2))
        return layer_norm_statistics(lowering, &sources[0], axes, epsilon);
    return RNL_OK;
}

rnl_status rnl_lower_lrn(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_lrn_params params = {.size = rnl_node_int(node, "size", 1),
                             .alpha = rnl_node_float(node, "alpha", 1e-4f),
                             .beta = rnl_node_float(node, "beta", 0.75f),
                             .bias = rnl_node_float(node, "bias", 1)};
    rnl_view source, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    return rnl_op_lrn(lowering->list, &params, &source, &target);
}
