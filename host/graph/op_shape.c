/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose elements stay as they are while the shape changes, and those that read a shape. */
#include "graph/op_common.h"
#include "graph/op_rows.h"

static size_t clamp_axis(int64_t axis, size_t rank)
{
    int64_t limit = (int64_t)rank;
    if (axis < 0)
        axis = axis < -limit ? 0 : axis + limit;
    return (size_t)(axis > limit ? limit : axis);
}

rnl_status rnl_infer_shape(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    size_t rank = context->inputs[0].rank;
    size_t start = clamp_axis(rnl_node_int(context->node, "start", 0), rank);
    size_t end = clamp_axis(rnl_node_int(context->node, "end", (int64_t)rank), rank);
    int64_t count = end > start ? (int64_t)(end - start) : 0;
    return rnl_output_set(context, 0, RNL_I64, &count, 1);
}

rnl_status rnl_infer_size(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    return rnl_output_set(context, 0, RNL_I64, NULL, 0);
}

/* Fills in 0 (a copy, unless allowzero) and -1 (what remains). */
static rnl_status resolve_reshape(const rnl_tensor_desc *input, bool allow_zero, int64_t *shape, size_t rank)
{
    int64_t total = rnl_desc_elements(input), known = 1;
    size_t free_axis = rank;
    for (size_t i = 0; i < rank; i++) {
        if (shape[i] < -1 || (shape[i] == -1 && free_axis != rank))
            return FAIL(RNL_INVALID_ARGUMENT, "Reshape of %s cannot give a shape with two free or negative dimensions",
                        rnl_shape_format(input->shape, input->rank).text);
        if (shape[i] == -1) {
            free_axis = i;
            shape[i] = 1;
        } else if (shape[i] == 0 && !allow_zero) {
            if (i >= input->rank)
                return FAIL(RNL_INVALID_ARGUMENT, "Reshape copies dimension %zu of shape %s", i,
                            rnl_shape_format(input->shape, input->rank).text);
            shape[i] = input->shape[i];
        }
    }
    bool fits = rnl_shape_elements(shape, rank, &known);
    if (fits && free_axis != rank) {
        fits = known != 0 && total % known == 0;
        shape[free_axis] = fits ? total / known : -1;
    } else if (fits) {
        fits = known == total;
    }
    if (fits)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "a tensor of shape %s cannot be reshaped to %s",
                rnl_shape_format(input->shape, input->rank).text, rnl_shape_format(shape, rank).text);
}

rnl_status rnl_infer_reshape(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK] = {0};
    size_t rank;
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
    TRY(rnl_desc_ints(&context->inputs[1], "shape (input 1)", shape, RNL_MAX_RANK, &rank));
    TRY(resolve_reshape(&context->inputs[0], rnl_node_int(context->node, "allowzero", 0) != 0, shape, rank));
    return rnl_output_set(context, 0, context->inputs[0].dtype, shape, rank);
}

rnl_status rnl_infer_flatten(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    int64_t axis = rnl_node_int(context->node, "axis", 1), limit = (int64_t)input->rank;
    int64_t shape[2] = {1, 1};
    if (axis < (context->node->opset < 11 ? 0 : -limit) || axis > limit)
        return FAIL(RNL_INVALID_ARGUMENT, "Flatten at axis %" PRId64 " of a tensor of rank %zu", axis, input->rank);
    axis = axis < 0 ? axis + limit : axis;
    if (!rnl_shape_elements(input->shape, (size_t)axis, &shape[0]) ||
        !rnl_shape_elements(input->shape + axis, input->rank - (size_t)axis, &shape[1]))
        return FAIL(RNL_INVALID_ARGUMENT, "Flatten of shape %s gives a dimension that is too large",
                    rnl_shape_format(input->shape, input->rank).text);
    return rnl_output_set(context, 0, input->dtype, shape, 2);
}

/* The attribute before opset 13, input 1 after; *out_given tells whether there is one. */
static rnl_status read_axes(const rnl_op_context *context, int64_t *out_axes, size_t *out_count, bool *out_given)
{
    *out_count = 0;
    if (context->node->opset >= 13) {
        *out_given = rnl_input_exists(context, 1);
        if (!*out_given)
            return RNL_OK;
        TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
        return rnl_desc_ints(&context->inputs[1], "axes (input 1)", out_axes, RNL_MAX_RANK, out_count);
    }
    size_t count;
    const int64_t *axes = rnl_node_ints(context->node, "axes", &count);
    *out_given = axes != NULL;
    if (count > RNL_MAX_RANK)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'axes' has %zu elements", count);
    for (size_t i = 0; i < count; i++)
        out_axes[i] = axes[i];
    *out_count = count;
    return RNL_OK;
}

rnl_status rnl_infer_squeeze(rnl_op_context *context)
{
    int64_t axes[RNL_MAX_RANK], shape[RNL_MAX_RANK];
    size_t count, rank = 0;
    uint32_t bits;
    bool given;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    TRY(read_axes(context, axes, &count, &given));
    TRY(rnl_axes_bits(axes, count, input->rank, &bits));
    for (size_t i = 0; i < input->rank; i++) {
        bool named = bits & (1u << i);
        if (named && input->shape[i] != 1)
            return FAIL(RNL_INVALID_ARGUMENT, "Squeeze of axis %zu of shape %s, which is not 1", i,
                        rnl_shape_format(input->shape, input->rank).text);
        if (!named && (given || input->shape[i] != 1))
            shape[rank++] = input->shape[i];
    }
    return rnl_output_set(context, 0, input->dtype, shape, rank);
}

rnl_status rnl_infer_unsqueeze(rnl_op_context *context)
{
    int64_t axes[RNL_MAX_RANK], shape[RNL_MAX_RANK];
    size_t count, from = 0;
    uint32_t bits;
    bool given;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    TRY(read_axes(context, axes, &count, &given));
    if (!given)
        return FAIL(RNL_INVALID_ARGUMENT, "Unsqueeze needs the attribute 'axes'");
    size_t rank = input->rank + count;
    if (rank > RNL_MAX_RANK)
        return FAIL(RNL_INVALID_ARGUMENT, "Unsqueeze of shape %s gives rank %zu; the most is %d",
                    rnl_shape_format(input->shape, input->rank).text, rank, RNL_MAX_RANK);
    TRY(rnl_axes_bits(axes, count, rank, &bits));
    for (size_t i = 0; i < rank; i++)
        shape[i] = bits & (1u << i) ? 1 : input->shape[from++];
    return rnl_output_set(context, 0, input->dtype, shape, rank);
}

rnl_status rnl_infer_transpose(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK];
    size_t count;
    uint32_t bits;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    const int64_t *perm = rnl_node_ints(context->node, "perm", &count);
    if (perm && count != input->rank)
        return FAIL(RNL_INVALID_ARGUMENT, "'perm' has %zu entries for a tensor of shape %s", count,
                    rnl_shape_format(input->shape, input->rank).text);
    TRY(rnl_axes_bits(perm, count, input->rank, &bits));
    for (size_t i = 0; i < input->rank; i++) {
        int64_t from = perm ? perm[i] : (int64_t)(input->rank - 1 - i);
        shape[i] = input->shape[from < 0 ? from + (int64_t)input->rank : from];
    }
    return rnl_output_set(context, 0, input->dtype, shape, input->rank);
}

rnl_status rnl_infer_expand(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK];
    size_t rank;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
    TRY(rnl_desc_ints(&context->inputs[1], "shape (input 1)", shape, RNL_MAX_RANK, &rank));
    for (size_t i = 0; i < rank; i++)
        if (shape[i] < 0)
            return FAIL(RNL_INVALID_ARGUMENT, "Expand to the impossible shape %s", rnl_shape_format(shape, rank).text);
    TRY(rnl_broadcast_shapes(input->shape, input->rank, shape, rank, shape, &rank));
    return rnl_output_set(context, 0, input->dtype, shape, rank);
}

rnl_status rnl_infer_tile(rnl_op_context *context)
{
    int64_t repeats[RNL_MAX_RANK], shape[RNL_MAX_RANK];
    size_t count;
    TRY(rnl_infer_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    TRY(rnl_check_dtype(context, 1, RNL_TYPE_BIT(RNL_I64)));
    TRY(rnl_desc_ints(&context->inputs[1], "repeats (input 1)", repeats, RNL_MAX_RANK, &count));
    if (count != input->rank)
        return FAIL(RNL_INVALID_ARGUMENT, "Tile has %zu repeats for a tensor of shape %s", count,
                    rnl_shape_format(input->shape, input->rank).text);
    for (size_t i = 0; i < count; i++)
        if (repeats[i] < 0 || __builtin_mul_overflow(input->shape[i], repeats[i], &shape[i]))
            return FAIL(RNL_INVALID_ARGUMENT, "Tile repeats axis %zu of shape %s %" PRId64 " times", i,
                        rnl_shape_format(input->shape, input->rank).text, repeats[i]);
    return rnl_output_set(context, 0, input->dtype, shape, count);
}

rnl_status rnl_infer_constant_of_shape(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK];
    size_t rank;
    TRY(rnl_infer_begin(context));
    const rnl_attribute *value = rnl_node_attribute(context->node, "value");
    rnl_dtype dtype = RNL_F32;
    if (value && value->type == RNL_ATTRIBUTE_TENSOR) {
        dtype = value->tensor->dtype;
        if (rnl_dtype_bytes(dtype) == 0 || value->tensor->size_bytes != rnl_dtype_bytes(dtype))
            return FAIL(RNL_INVALID_ARGUMENT, "attribute 'value' of ConstantOfShape must be one element");
    }
    TRY(rnl_desc_ints(&context->inputs[0], "shape (input 0)", shape, RNL_MAX_RANK, &rank));
    return rnl_output_set(context, 0, dtype, shape, rank);
}

/* The block's edge, and that input 0 is an image; `divide` names the axes that it must divide. */
static rnl_status read_block(const rnl_op_context *context, int64_t *out_block)
{
    static const char *const modes[] = {"DCR", "CRD"};
    const rnl_tensor_desc *input = &context->inputs[0];
    int mode;
    TRY(rnl_require_int(context->node, "blocksize", out_block));
    TRY(rnl_choose(context->node, "mode", modes, 2, &mode));
    if (input->rank != 4)
        return FAIL(RNL_INVALID_ARGUMENT, "%s needs a tensor of rank 4, not shape %s", context->node->op_type,
                    rnl_shape_format(input->shape, input->rank).text);
    if (*out_block < 1 || *out_block > INT32_MAX)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'blocksize' of %s is %" PRId64, context->node->op_type,
                    *out_block);
    return RNL_OK;
}

static rnl_status bad_block(const rnl_op_context *context, int64_t block)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    return FAIL(RNL_INVALID_ARGUMENT, "%s with blocks of %" PRId64 " cannot take shape %s", context->node->op_type,
                block, rnl_shape_format(input->shape, input->rank).text);
}

rnl_status rnl_infer_depth_to_space(rnl_op_context *context)
{
    int64_t block;
    TRY(rnl_infer_begin(context));
    TRY(read_block(context, &block));
    const int64_t *in = context->inputs[0].shape;
    int64_t shape[4] = {in[0], in[1] / (block * block), 0, 0};
    if (in[1] % (block * block) != 0 || __builtin_mul_overflow(in[2], block, &shape[2]) ||
        __builtin_mul_overflow(in[3], block, &shape[3]))
        return bad_block(context, block);
    return rnl_output_set(context, 0, context->inputs[0].dtype, shape, 4);
}

rnl_status rnl_infer_space_to_depth(rnl_op_context *context)
{
    int64_t block;
    TRY(rnl_infer_begin(context));
    TRY(read_block(context, &block));
    const int64_t *in = context->inputs[0].shape;
    int64_t shape[4] = {in[0], 0, in[2] / block, in[3] / block};
    if (in[2] % block != 0 || in[3] % block != 0 || __builtin_mul_overflow(in[1], block * block, &shape[1]))
        return bad_block(context, block);
    return rnl_output_set(context, 0, context->inputs[0].dtype, shape, 4);
}
