/* SPDX-License-Identifier: Apache-2.0 */
/* Operators along one axis: ArgMax, TopK, CumSum and their like, OneHot, sequences; and triangles. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

rnl_status rnl_infer_arg(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK];
    size_t axis, rank = 0;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *data = &context->inputs[0];
    bool keeps = rnl_node_int(context->node, "keepdims", 1) != 0;
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", 0), data->rank, "axis", &axis));
    for (size_t i = 0; i < data->rank; i++)
        if (i != axis || keeps)
            shape[rank++] = i == axis ? 1 : data->shape[i];
    if (data->shape[axis] == 0)
        return FAIL(RNL_INVALID_ARGUMENT, "%s over axis %zu of shape %s, which has no elements", context->node->op_type,
                    axis, rnl_shape_format(data->shape, data->rank).text);
    return rnl_output_set(context, 0, RNL_I64, shape, rank);
}

rnl_status rnl_infer_hardmax(rnl_op_context *context)
{
    size_t axis;
    const rnl_node *node = context->node;
    TRY(rnl_infer_begin(context));
    TRY(rnl_axis_resolve(rnl_node_int(node, "axis", node->opset < 13 ? 1 : -1), context->inputs[0].rank, "axis",
                         &axis));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

rnl_status rnl_scan_axis(const rnl_op_context *context, size_t *out_axis)
{
    int64_t axis;
    size_t count;
    *out_axis = 0;
    TRY(rnl_desc_ints(&context->inputs[1], "axis (input 1)", &axis, 1, &count));
    if (count != 1)
        return FAIL(RNL_INVALID_ARGUMENT, "the axis of %s is an empty tensor", context->node->op_type);
    return rnl_axis_resolve(axis, context->inputs[0].rank, "axis", out_axis);
}

rnl_status rnl_infer_scan(rnl_op_context *context)
{
    size_t axis;
    TRY(rnl_infer_begin(context));
    TRY(rnl_scan_axis(context, &axis));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

/* How many: an attribute before opset 10. */
static rnl_status topk_count(const rnl_op_context *context, int64_t *out_count)
{
    size_t count;
    *out_count = 0;
    if (context->node->opset < 10)
        return rnl_require_int(context->node, "k", out_count);
    TRY(rnl_desc_ints(&context->inputs[1], "k (input 1)", out_count, 1, &count));
    return count == 1 ? RNL_OK : FAIL(RNL_INVALID_ARGUMENT, "k of TopK is an empty tensor");
}

rnl_status rnl_infer_topk(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK], count;
    size_t axis;
    TRY(rnl_infer_begin(context));
    TRY(topk_count(context, &count));
    const rnl_tensor_desc *data = &context->inputs[0];
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", -1), data->rank, "axis", &axis));
    if (count < 0 || count > data->shape[axis])
        return FAIL(RNL_INVALID_ARGUMENT, "TopK takes %" PRId64 " elements of an axis of %" PRId64, count,
                    data->shape[axis]);
    for (size_t i = 0; i < data->rank; i++)
        shape[i] = i == axis ? count : data->shape[i];
    TRY(rnl_output_set(context, 0, data->dtype, shape, data->rank));
    return rnl_output_set(context, 1, RNL_I64, shape, data->rank);
}

/* One element of an input that may be left out. */
static rnl_status check_one(const rnl_op_context *context, size_t index, const char *what)
{
    if (!rnl_input_exists(context, index) || rnl_desc_elements(&context->inputs[index]) == 1)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "%s (input %zu) of %s has shape %s; it must be one element", what, index,
                context->node->op_type,
                rnl_shape_format(context->inputs[index].shape, context->inputs[index].rank).text);
}

rnl_status rnl_infer_trilu(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
    TRY(check_one(context, 1, "k"));
    if (context->inputs[0].rank < 2)
        return FAIL(RNL_INVALID_ARGUMENT, "Trilu takes matrices, not rank %zu", context->inputs[0].rank);
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

rnl_status rnl_infer_eye_like(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    int64_t dtype = rnl_node_int(context->node, "dtype", context->inputs[0].dtype);
    if (context->inputs[0].rank != 2)
        return FAIL(RNL_INVALID_ARGUMENT, "EyeLike takes a matrix, not rank %zu", context->inputs[0].rank);
    if (dtype < 0 || dtype > RNL_BF16 || !(RNL_TYPES_ALL & RNL_TYPE_BIT(dtype)))
        return FAIL(RNL_UNIMPLEMENTED, "EyeLike of ONNX type %" PRId64 " is not implemented", dtype);
    return rnl_output_like(context, 0, (rnl_dtype)dtype);
}

rnl_status rnl_infer_one_hot(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK + 1];
    size_t axis;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *indices = &context->inputs[0], *depth = &context->inputs[1];
    TRY(rnl_check_dtype(context, 1, RNL_TYPES_NUMERIC));
    TRY(check_one(context, 1, "depth"));
    TRY(rnl_check_dtype(context, 2, RNL_TYPES_ALL));
    TRY(rnl_check_vector(context, 2, 2));
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", -1), indices->rank + 1, "axis", &axis));
    if (!depth->host)
        return FAIL(RNL_FAILED_PRECONDITION, "the contents of depth (input 1) are not known while planning");
    for (size_t i = 0; i < indices->rank; i++)
        shape[i < axis ? i : i + 1] = indices->shape[i];
    shape[axis] = rnl_number_convert(rnl_element_load(depth->host, 0, depth->dtype), depth->dtype, RNL_I64).i;
    if (shape[axis] < 0)
        return FAIL(RNL_INVALID_ARGUMENT, "the depth of OneHot is %" PRId64, shape[axis]);
    return rnl_output_set(context, 0, context->inputs[2].dtype, shape, indices->rank + 1);
}

rnl_status rnl_infer_reverse_sequence(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *data = &context->inputs[0];
    int64_t batch = rnl_node_int(context->node, "batch_axis", 1), time = rnl_node_int(context->node, "time_axis", 0);
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
    if (data->rank < 2 || batch < 0 || time < 0 || batch > 1 || time > 1 || batch == time)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "ReverseSequence of rank %zu with batch_axis %" PRId64 " and time_axis %" PRId64, data->rank, batch,
                    time);
    TRY(rnl_check_vector(context, 1, data->shape[batch]));
    return rnl_output_like(context, 0, data->dtype);
}

rnl_status rnl_infer_tensor_scatter(rnl_op_context *context)
{
    static const char *const modes[] = {"linear", "circular"};
    int mode;
    size_t axis;
    TRY(rnl_infer_begin(context));
    TRY(rnl_choose(context->node, "mode", modes, 2, &mode));
    TRY(rnl_same_dtype(context, 0, 1));
    TRY(rnl_check_dtype(context, 2, RNL_TYPE_BIT(RNL_I64)));
    const rnl_tensor_desc *past = &context->inputs[0], *update = &context->inputs[1];
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", -2), past->rank, "axis", &axis));
    bool fits = past->rank == update->rank && axis > 0;
    for (size_t i = 0; i < past->rank && fits; i++)
        fits = i == axis ? update->shape[i] <= past->shape[i] : update->shape[i] == past->shape[i];
    if (!fits)
        return FAIL(RNL_INVALID_ARGUMENT, "TensorScatter of shape %s into shape %s along axis %zu",
                    rnl_shape_format(update->shape, update->rank).text, rnl_shape_format(past->shape, past->rank).text,
                    axis);
    TRY(rnl_check_vector(context, 2, past->shape[0]));
    return rnl_output_like(context, 0, past->dtype);
}
