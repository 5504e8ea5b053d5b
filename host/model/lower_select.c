/* SPDX-License-Identifier: Apache-2.0 */
/* Operators along one axis: ArgMax, TopK, CumSum and their like, OneHot, sequences; and triangles. */
#include "model/lower_list.h"

#include "graph/host_element.h"
#include "ops/select.h"
#include <string.h>

static bool is(const rnl_node *node, const char *op_type)
{
    return strcmp(node->op_type, op_type) == 0;
}

/* The view with a dimension of 1 at `axis` when it lacks that. */
static void keep_axis(rnl_view *view, size_t rank, size_t axis)
{
    if (view->rank == rank)
        return;
    for (size_t i = view->rank; i > axis; i--) {
        view->shape[i] = view->shape[i - 1];
        view->stride[i] = view->stride[i - 1];
    }
    view->shape[axis] = 1;
    view->stride[axis] = 0;
    view->rank = rank;
}

rnl_status rnl_lower_arg(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    size_t axis;
    rnl_view source, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", 0), source.rank, "axis", &axis));
    keep_axis(&target, source.rank, axis);
    bool last = rnl_node_int(node, "select_last_index", 0) != 0;
    return rnl_op_arg(lowering->list, is(node, "ArgMax"), last, axis, &source, &target);
}

/* The values 0 and 1 of a type. */
static rnl_status zero_and_one(rnl_lowering *lowering, rnl_dtype dtype, rnl_view *out_view)
{
    unsigned char bytes[2 * sizeof(double)] = {0};
    rnl_number one = rnl_number_convert((rnl_number){.u = 1}, RNL_BOOL, dtype);
    rnl_tensor_desc desc = {.dtype = dtype, .rank = 1, .shape = {2}, .host = bytes};
    rnl_element_store(bytes, 1, dtype, one);
    return rnl_lower_constant(lowering, &desc, out_view);
}

static rnl_status hardmax(rnl_lowering *lowering, size_t axis, const rnl_view *source, const rnl_view *target)
{
    rnl_view places, values;
    int64_t shape[RNL_MAX_RANK];
    for (size_t i = 0; i < source->rank; i++)
        shape[i] = i == axis ? 1 : source->shape[i];
    if (rnl_view_elements(source) == 0)
        return RNL_OK;
    TRY(rnl_lower_scratch(lowering, RNL_I64, source->rank, shape, RNL_LAYOUT_ROW_MAJOR, &places));
    TRY(rnl_op_arg(lowering->list, true, false, axis, source, &places));
    TRY(zero_and_one(lowering, target->dtype, &values));
    return rnl_op_one_hot(lowering->list, axis, &places, &values, target);
}

/* All dimensions from the axis on are one. */
static rnl_status hardmax_of_rows(rnl_lowering *lowering, size_t axis)
{
    const rnl_tensor_desc *output = &lowering->context.outputs[0];
    int64_t shape[2] = {1, 1};
    rnl_view source, target, rows, result;
    for (size_t i = 0; i < output->rank; i++)
        shape[i >= axis] *= output->shape[i];
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    if (!rnl_view_reshape(&source, 2, shape, &rows))
        return FAIL(RNL_INTERNAL, "a row-major tensor cannot be reshaped");
    if (rnl_view_reshape(&target, 2, shape, &result))
        return hardmax(lowering, 1, &rows, &result);
    rnl_view dense;
    TRY(rnl_lower_scratch(lowering, output->dtype, output->rank, output->shape, RNL_LAYOUT_ROW_MAJOR, &dense));
    if (!rnl_view_reshape(&dense, 2, shape, &result))
        return FAIL(RNL_INTERNAL, "a row-major tensor cannot be reshaped");
    TRY(hardmax(lowering, 1, &rows, &result));
    return rnl_lower_copy(lowering, &dense, &target);
}

rnl_status rnl_lower_hardmax(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    size_t axis, rank = lowering->context.outputs[0].rank;
    rnl_view source, target;
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", node->opset < 13 ? 1 : -1), rank, "axis", &axis));
    if (node->opset < 13)
        return hardmax_of_rows(lowering, axis);
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    return hardmax(lowering, axis, &source, &target);
}

rnl_status rnl_lower_scan(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_scan_params params = {.product = is(node, "CumProd"),
                              .exclusive = rnl_node_int(node, "exclusive", 0) != 0,
                              .reverse = rnl_node_int(node, "reverse", 0) != 0};
    rnl_view source, target;
    TRY(rnl_scan_axis(&lowering->context, &params.axis));
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    return rnl_op_scan(lowering->list, &params, &source, &target);
}

rnl_status rnl_lower_topk(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    size_t axis;
    rnl_view source, values, places;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", -1), source.rank, "axis", &axis));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &values));
    if (lowering->context.output_count > 1) {
        TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &places));
    } else {
        TRY(rnl_lower_scratch(lowering, RNL_I64, values.rank, values.shape, RNL_LAYOUT_ROW_MAJOR, &places));
    }
    return rnl_op_topk(lowering->list, rnl_node_int(node, "largest", 1) != 0, axis, &source, &values, &places);
}

rnl_status rnl_lower_trilu(rnl_lowering *lowering)
{
    rnl_view source, diagonal, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    if (rnl_lower_has_input(lowering, 1)) {
        TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &diagonal));
    } else {
        TRY(rnl_lower_scalar(lowering, RNL_I64, 0, &diagonal));
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    bool upper = rnl_node_int(lowering->context.node, "upper", 1) != 0;
    return rnl_op_triangle(lowering->list, upper, &source, &diagonal, &target);
}

/* Zeros, and ones along the diagonal, which is a view of its own. */
rnl_status rnl_lower_eye_like(rnl_lowering *lowering)
{
    rnl_view values, zero, one, target;
    int64_t k = rnl_node_int(lowering->context.node, "k", 0);
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(zero_and_one(lowering, target.dtype, &values));
    zero = one = values;
    zero.rank = one.rank = 0;
    one.offset += values.stride[0];
    TRY(rnl_lower_copy(lowering, &zero, &target));
    const int64_t rows = target.shape[0], columns = target.shape[1];
    if (k >= columns || k <= -rows)
        return RNL_OK;
    const int64_t row = k < 0 ? -k : 0, column = k < 0 ? 0 : k;
    const int64_t size = rows - row < columns - column ? rows - row : columns - column;
    rnl_view diagonal = target;
    diagonal.rank = 1;
    diagonal.offset += row * target.stride[0] + column * target.stride[1];
    diagonal.shape[0] = size;
    diagonal.stride[0] = target.stride[0] + target.stride[1];
    return rnl_lower_copy(lowering, &one, &diagonal);
}

rnl_status rnl_lower_one_hot(rnl_lowering *lowering)
{
    rnl_view indices, values, target;
    size_t axis;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &indices));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &values));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(rnl_axis_resolve(rnl_node_int(lowering->context.node, "axis", -1), target.rank, "axis", &axis));
    keep_axis(&indices, target.rank, axis);
    return rnl_op_one_hot(lowering->list, axis, &indices, &values, &target);
}

/* A vector over one dimension, as a view that broadcasts over the others. */
static void along(rnl_view *vector, size_t rank, size_t axis)
{
    int64_t size = vector->shape[0], stride = vector->stride[0];
    for (size_t i = 0; i < rank; i++) {
        vector->shape[i] = i == axis ? size : 1;
        vector->stride[i] = i == axis ? stride : 0;
    }
    vector->rank = rank;
}

rnl_status rnl_lower_reverse_sequence(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_view source, lengths, target;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &source));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &lengths));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    along(&lengths, source.rank, (size_t)rnl_node_int(node, "batch_axis", 1));
    size_t time = (size_t)rnl_node_int(node, "time_axis", 0);
    return rnl_op_reverse_sequence(lowering->list, time, &source, &lengths, &target);
}

rnl_status rnl_lower_tensor_scatter(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_view past, update, starts, target;
    size_t axis;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &past));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &update));
    if (rnl_lower_has_input(lowering, 2)) {
        TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &starts));
        along(&starts, past.rank, 0);
    } else {
        TRY(rnl_lower_scalar(lowering, RNL_I64, 0, &starts));
    }
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ANY, &target));
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", -2), past.rank, "axis", &axis));
    TRY(rnl_lower_copy(lowering, &past, &target));
    bool circular = strcmp(rnl_node_string(node, "mode", "linear"), "circular") == 0;
    return rnl_op_write_sequence(lowering->list, circular, axis, &update, &starts, &target);
}
