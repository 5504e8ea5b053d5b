/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's QLinear operators: others between a scale and a zero point for each tensor. */
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include "graph/op_window.h"
#include <string.h>

/* Zero points may be left out in the middle, so that counting inputs does not do. */
static rnl_status check_tensor(const rnl_op_context *context, size_t values, rnl_dtype dtype, size_t scale)
{
    if (!rnl_input_exists(context, scale))
        return FAIL(RNL_INVALID_ARGUMENT, "%s lacks the scale that is its input %zu", context->node->op_type, scale);
    TRY(rnl_check_dtype(context, scale, RNL_TYPE_BIT(RNL_F32)));
    if (rnl_input_exists(context, scale + 1) && context->inputs[scale + 1].dtype != dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "the zero point of %s (input %zu) is %s and must be %s like input %zu",
                    context->node->op_type, scale + 1, rnl_dtype_name(context->inputs[scale + 1].dtype),
                    rnl_dtype_name(dtype), values);
    TRY(rnl_check_single(context, scale));
    return rnl_check_single(context, scale + 1);
}

rnl_status rnl_infer_qlinear_unary(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    const rnl_dtype dtype = context->inputs[0].dtype;
    TRY(check_tensor(context, 0, dtype, 1));
    TRY(check_tensor(context, 0, dtype, 3));
    return rnl_output_like(context, 0, dtype);
}

rnl_status rnl_infer_qlinear_binary(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK];
    size_t rank;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *a = &context->inputs[0], *b = &context->inputs[3];
    if (!rnl_input_exists(context, 3))
        return FAIL(RNL_INVALID_ARGUMENT, "%s lacks its second operand", context->node->op_type);
    TRY(rnl_check_dtype(context, 3, RNL_TYPE_BIT(a->dtype)));
    TRY(check_tensor(context, 0, a->dtype, 1));
    TRY(check_tensor(context, 0, a->dtype, 4));
    TRY(check_tensor(context, 0, a->dtype, 6));
    TRY(rnl_broadcast_shapes(a->shape, a->rank, b->shape, b->rank, shape, &rank));
    return rnl_output_set(context, 0, a->dtype, shape, rank);
}

rnl_status rnl_infer_qlinear_global_pool(rnl_op_context *context)
{
    TRY(rnl_infer_qlinear_unary(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    if (input->rank < 3)
        return FAIL(RNL_INVALID_ARGUMENT, "%s needs a tensor of rank 3 or more, not shape %s", context->node->op_type,
                    rnl_shape_format(input->shape, input->rank).text);
    const size_t first = rnl_node_int(context->node, "channels_last", 0) != 0 ? 1 : 2;
    int64_t shape[RNL_MAX_RANK];
    for (size_t i = 0; i < input->rank; i++)
        shape[i] = i >= first && i < input->rank - 2 + first ? 1 : input->shape[i];
    return rnl_output_set(context, 0, input->dtype, shape, input->rank);
}

rnl_status rnl_infer_qlinear_pool(rnl_op_context *context)
{
    rnl_window window;
    TRY(rnl_infer_qlinear_unary(context));
    if (rnl_node_int(context->node, "channels_last", 0) != 0)
        return FAIL(RNL_UNIMPLEMENTED, "%s with channels last is not supported", context->node->op_type);
    TRY(rnl_window_pool(context, &window));
    const rnl_tensor_desc *input = &context->inputs[0];
    return rnl_window_output(context, 0, input->dtype, input->shape[1], &window);
}

/* Two inputs for the result, then three for each tensor. */
rnl_status rnl_infer_qlinear_concat(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    if (context->input_count < 5 || !rnl_input_exists(context, 1) || !rnl_input_exists(context, 2))
        return FAIL(RNL_INVALID_ARGUMENT, "QLinearConcat lacks the result's zero point or its first tensor");
    const rnl_tensor_desc *first = &context->inputs[2];
    TRY(rnl_check_dtype(context, 2, RNL_TYPE_BIT(RNL_U8) | RNL_TYPE_BIT(RNL_I8)));
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(first->dtype)));
    TRY(rnl_check_single(context, 0));
    TRY(rnl_check_single(context, 1));
    size_t axis;
    int64_t given, shape[RNL_MAX_RANK] = {0};
    TRY(rnl_require_int(context->node, "axis", &given));
    TRY(rnl_axis_resolve(given, first->rank, "axis", &axis));
    memcpy(shape, first->shape, sizeof shape);
    shape[axis] = 0;
    for (size_t i = 2; i < context->input_count; i += 3) {
        const rnl_tensor_desc *input = &context->inputs[i];
        bool fits = rnl_input_exists(context, i) && input->dtype == first->dtype && input->rank == first->rank;
        for (size_t d = 0; fits && d < input->rank; d++)
            fits = d == axis || input->shape[d] == first->shape[d];
        if (!fits || __builtin_add_overflow(shape[axis], input->shape[axis], &shape[axis]))
            return FAIL(RNL_INVALID_ARGUMENT, "input %zu of QLinearConcat does not fit the first tensor", i);
        TRY(check_tensor(context, 2, first->dtype, i + 1));
    }
    return rnl_output_set(context, 0, first->dtype, shape, first->rank);
}
