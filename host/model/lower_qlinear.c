/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's QLinear operators: in one step where they are elementwise, else on float32 in between. */
#include "model/lower_quantized.h"

#include "model/lower_list.h"
#include "ops/pool.h"
#include "ops/reduce.h"
#include <string.h>

/* A tensor with its scale and zero point; the views that rnl_quantized points at. */
typedef struct parts {
    rnl_view values, scale, zero_point;
} parts;

static rnl_quantized quantized(const parts *p)
{
    return (rnl_quantized){&p->values, &p->scale, &p->zero_point};
}

static rnl_status lower_scale_and_zero(rnl_lowering *lowering, size_t scale, parts *p)
{
    TRY(rnl_lower_input(lowering, scale, RNL_LAYOUT_ANY, &p->scale));
    TRY(rnl_lower_input(lowering, scale + 1, RNL_LAYOUT_ANY, &p->zero_point));
    p->scale = rnl_view_of_columns(&p->scale);
    p->zero_point = rnl_view_of_columns(&p->zero_point);
    return RNL_OK;
}

static rnl_status lower_source(rnl_lowering *lowering, size_t values, parts *p)
{
    TRY(rnl_lower_input(lowering, values, RNL_LAYOUT_ANY, &p->values));
    return lower_scale_and_zero(lowering, values + 1, p);
}

static rnl_status lower_target(rnl_lowering *lowering, size_t scale, parts *p)
{
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &p->values));
    return lower_scale_and_zero(lowering, scale, p);
}

/* op(first, second), where `second` may be NULL. */
static rnl_status append(rnl_lowering *lowering, rnl_qmap_op op, float parameter, const parts *first,
                         const parts *second, const parts *target)
{
    const rnl_quantized a = quantized(first), y = quantized(target);
    if (!second)
        return rnl_op_qmap(lowering->list, op, parameter, &a, NULL, &y);
    const rnl_quantized b = quantized(second);
    return rnl_op_qmap(lowering->list, op, parameter, &a, &b, &y);
}

static rnl_status lower_binary(rnl_lowering *lowering, rnl_qmap_op op)
{
    parts a, b, y;
    TRY(lower_source(lowering, 0, &a));
    TRY(lower_source(lowering, 3, &b));
    TRY(lower_target(lowering, 6, &y));
    return append(lowering, op, 0, &a, &b, &y);
}

rnl_status rnl_lower_qlinear_add(rnl_lowering *lowering)
{
    return lower_binary(lowering, RNL_QMAP_ADD);
}

rnl_status rnl_lower_qlinear_mul(rnl_lowering *lowering)
{
    return lower_binary(lowering, RNL_QMAP_MUL);
}

static rnl_status lower_unary(rnl_lowering *lowering, rnl_qmap_op op, float parameter)
{
    parts x, y;
    TRY(lower_source(lowering, 0, &x));
    TRY(lower_target(lowering, 3, &y));
    return append(lowering, op, parameter, &x, NULL, &y);
}

rnl_status rnl_lower_qlinear_sigmoid(rnl_lowering *lowering)
{
    return lower_unary(lowering, RNL_QMAP_SIGMOID, 0);
}

rnl_status rnl_lower_qlinear_leaky_relu(rnl_lowering *lowering)
{
    return lower_unary(lowering, RNL_QMAP_LEAKY_RELU, rnl_node_float(lowering->context.node, "alpha", 0.01f));
}

/* Each tensor into its part of the result. */
rnl_status rnl_lower_qlinear_concat(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    size_t axis;
    int64_t start = 0;
    parts x, y;
    TRY(lower_target(lowering, 0, &y));
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", 0), y.values.rank, "axis", &axis));
    for (size_t i = 2; i < node->input_count; i += 3) {
        parts piece = y;
        TRY(lower_source(lowering, i, &x));
        rnl_view_slice(&piece.values, axis, start, x.values.shape[axis], 1);
        start += x.values.shape[axis];
        TRY(append(lowering, RNL_QMAP_COPY, 0, &x, NULL, &piece));
    }
    return RNL_OK;
}

/* ---- on float32 ------------------------------------------------------------------------------------------------ */

/* The input as numbers, and memory for the result's. */
static rnl_status open_numbers(rnl_lowering *lowering, rnl_layout layout, parts *y, rnl_view *out_source,
                               rnl_view *out_target)
{
    const rnl_tensor_desc *x = &lowering->context.inputs[0], *result = &lowering->context.outputs[0];
    parts given;
    TRY(lower_source(lowering, 0, &given));
    TRY(lower_target(lowering, 3, y));
    TRY(rnl_lower_scratch(lowering, RNL_F32, x->rank, x->shape, layout, out_source));
    TRY(rnl_lower_scratch(lowering, RNL_F32, result->rank, result->shape, layout, out_target));
    const rnl_quantized source = quantized(&given);
    return rnl_op_qmap(lowering->list, RNL_QMAP_COPY, 0, &source, NULL, &(rnl_quantized){out_source, NULL, NULL});
}

static rnl_status close_numbers(rnl_lowering *lowering, const rnl_view *numbers, const parts *y)
{
    const rnl_quantized target = quantized(y);
    return rnl_op_qmap(lowering->list, RNL_QMAP_COPY, 0, &(rnl_quantized){numbers, NULL, NULL}, NULL, &target);
}

rnl_status rnl_lower_qlinear_global_pool(rnl_lowering *lowering)
{
    bool channels_last = rnl_node_int(lowering->context.node, "channels_last", 0) != 0;
    rnl_view source, target;
    parts y;
    TRY(open_numbers(lowering, RNL_LAYOUT_ROW_MAJOR, &y, &source, &target));
    uint32_t all = (1u << source.rank) - 1;
    uint32_t axes = channels_last ? all & ~1u & ~(1u << (source.rank - 1)) : all & ~3u;
    TRY(rnl_op_reduce(lowering->list, RNL_REDUCE_MEAN, axes, &source, &target));
    return close_numbers(lowering, &target, &y);
}

rnl_status rnl_lower_qlinear_pool(rnl_lowering *lowering)
{
    rnl_window window;
    rnl_view source, target;
    parts y;
    TRY(rnl_window_pool(&lowering->context, &window));
    rnl_pool_params params = {.spatial = window.spatial,
                              .count_include_pad = rnl_node_int(lowering->context.node, "count_include_pad", 0) != 0};
    memcpy(params.kernel, window.kernel, sizeof params.kernel);
    memcpy(params.stride, window.stride, sizeof params.stride);
    memcpy(params.dilation, window.dilation, sizeof params.dilation);
    memcpy(params.pad_begin, window.pad_begin, sizeof params.pad_begin);
    memcpy(params.pad_end, window.pad_end, sizeof params.pad_end);
    TRY(open_numbers(lowering, RNL_LAYOUT_CHANNELS_LAST, &y, &source, &target));
    TRY(rnl_op_pool(lowering->list, RNL_POOL_AVERAGE, &params, &source, &target, &(rnl_view){.slot = RNL_NO_SLOT}));
    return close_numbers(lowering, &target, &y);
}

rnl_status rnl_lower_qlinear_softmax(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    bool flattens = rnl_node_int(node, "opset", 13) < 13; /* of the Softmax that it stands for */
    size_t axis;
    rnl_view source, target;
    parts y;
    TRY(open_numbers(lowering, RNL_LAYOUT_ROW_MAJOR, &y, &source, &target));
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", flattens ? 1 : -1), source.rank, "axis", &axis));
    TRY(rnl_op_softmax(lowering->list, false, axis, flattens ? source.rank - 1 : axis, &source, &target));
    return close_numbers(lowering, &target, &y);
}
