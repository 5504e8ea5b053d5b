/* SPDX-License-Identifier: Apache-2.0 */
/* Split and Concat. */
#include "graph/op_common.h"
#include "graph/op_rows.h"

/* Equal parts; from opset 18 on the last one may be smaller. */
static rnl_status equal_parts(const rnl_op_context *context, int64_t dim, int64_t *out_sizes)
{
    const rnl_node *node = context->node;
    int64_t parts = (int64_t)context->output_count, wanted = rnl_node_int(node, "num_outputs", parts);
    if (node->opset >= 18 && !rnl_node_attribute(node, "num_outputs"))
        return FAIL(RNL_INVALID_ARGUMENT, "Split needs the input 'split' or the attribute 'num_outputs'");
    if (wanted != parts)
        return FAIL(RNL_INVALID_ARGUMENT, "'num_outputs' of Split is %" PRId64 " but it has %" PRId64 " outputs",
                    wanted, parts);
    int64_t size = dim / parts + (dim % parts != 0), last = dim - size * (parts - 1);
    if (last < 0 || (last != size && node->opset < 18))
        return FAIL(RNL_INVALID_ARGUMENT, "Split cannot cut an axis of %" PRId64 " into %" PRId64 " equal parts", dim,
                    parts);
    for (int64_t i = 0; i < parts; i++)
        out_sizes[i] = i == parts - 1 ? last : size;
    return RNL_OK;
}

static rnl_status check_sizes(const rnl_op_context *context, int64_t dim, const int64_t *sizes, size_t count)
{
    int64_t total = 0;
    if (count != context->output_count)
        return FAIL(RNL_INVALID_ARGUMENT, "Split names %zu sizes for %zu outputs", count, context->output_count);
    for (size_t i = 0; i < count; i++)
        if (sizes[i] < 0 || __builtin_add_overflow(total, sizes[i], &total))
            return FAIL(RNL_INVALID_ARGUMENT, "a part of Split has the size %" PRId64, sizes[i]);
    if (total != dim)
        return FAIL(RNL_INVALID_ARGUMENT, "the parts of Split add up to %" PRId64 ", the axis has %" PRId64, total,
                    dim);
    return RNL_OK;
}

rnl_status rnl_split_resolve(const rnl_op_context *context, size_t *out_axis, int64_t *out_sizes)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    size_t count = 0;
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", 0), input->rank, "axis", out_axis));
    int64_t dim = input->shape[*out_axis];
    if (context->node->opset < 13) {
        const int64_t *sizes = rnl_node_ints(context->node, "split", &count);
        if (!sizes)
            return equal_parts(context, dim, out_sizes);
        for (size_t i = 0; i < count && i < context->output_count; i++)
            out_sizes[i] = sizes[i];
        return check_sizes(context, dim, out_sizes, count);
    }
    if (!rnl_input_exists(context, 1))
        return equal_parts(context, dim, out_sizes);
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
    TRY(rnl_desc_ints(&context->inputs[1], "split (input 1)", out_sizes, context->output_count, &count));
    return check_sizes(context, dim, out_sizes, count);
}

rnl_status rnl_infer_split(rnl_op_context *context)
{
    rnl_status status = RNL_OK;
    int64_t shape[RNL_MAX_RANK], *sizes = NULL;
    size_t axis;
    GOTO(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    GOTO(rnl_alloc(context->output_count, sizeof *sizes, &sizes));
    GOTO(rnl_split_resolve(context, &axis, sizes));
    for (size_t i = 0; i < input->rank; i++)
        shape[i] = input->shape[i];
    for (size_t i = 0; i < context->output_count; i++) {
        shape[axis] = sizes[i];
        GOTO(rnl_output_set(context, i, input->dtype, shape, input->rank));
    }
done:
    rnl_free(sizes);
    return status;
}

rnl_status rnl_infer_concat(rnl_op_context *context)
{
    int64_t attribute, shape[RNL_MAX_RANK] = {0};
    size_t axis;
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, context->input_count - 1));
    const rnl_tensor_desc *first = &context->inputs[0];
    TRY(rnl_require_int(context->node, "axis", &attribute));
    TRY(rnl_axis_resolve(attribute, first->rank, "axis", &axis));
    for (size_t i = 0; i < first->rank; i++)
        shape[i] = first->shape[i];
    for (size_t k = 1; k < context->input_count; k++) {
        const rnl_tensor_desc *input = &context->inputs[k];
        bool fits = input->rank == first->rank;
        for (size_t i = 0; fits && i < first->rank; i++)
            fits = i == axis || input->shape[i] == first->shape[i];
        if (!fits || __builtin_add_overflow(shape[axis], input->shape[axis], &shape[axis]))
            return FAIL(RNL_INVALID_ARGUMENT, "shapes %s and %s cannot be concatenated along axis %zu",
                        rnl_shape_format(first->shape, first->rank).text,
                        rnl_shape_format(input->shape, input->rank).text, axis);
    }
    return rnl_output_set(context, 0, first->dtype, shape, first->rank);
}
