/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_quantize.h"
#include "graph/op_common.h"
#include "graph/op_params.h"
#include "graph/op_rows.h"

static bool is_float(rnl_dtype dtype)
{
    return (RNL_TYPES_FLOAT & RNL_TYPE_BIT(dtype)) != 0;
}

/* An attribute that names a type; 0 and absent are the same. */
static rnl_status type_attribute(const rnl_node *node, const char *name, uint32_t types, rnl_dtype *out_dtype)
{
    int64_t code = rnl_node_int(node, name, 0);
    *out_dtype = RNL_DTYPE_NONE;
    if (code == 0)
        return RNL_OK;
    if (code < 0 || code > 31 || !(types & RNL_TYPE_BIT(code)))
        return FAIL(RNL_UNIMPLEMENTED, "%s of opset %" PRId64 " with '%s' of ONNX type %" PRId64 " is not implemented",
                    node->op_type, node->opset, name, code);
    *out_dtype = (rnl_dtype)code;
    return RNL_OK;
}

static rnl_status wrong_scale(const rnl_op_context *context)
{
    const rnl_tensor_desc *x = &context->inputs[0], *scale = &context->inputs[1];
    return FAIL(RNL_INVALID_ARGUMENT, "the scale of %s has shape %s, which fits neither %s nor its axis nor its blocks",
                context->node->op_type, rnl_shape_format(scale->shape, scale->rank).text,
                rnl_shape_format(x->shape, x->rank).text);
}

/* The scale's shape is x's, but for one dimension of as many elements as there are blocks. */
static rnl_status check_blocks(const rnl_op_context *context, rnl_quantize *q)
{
    const rnl_tensor_desc *x = &context->inputs[0], *scale = &context->inputs[1];
    bool fits = scale->rank == x->rank;
    q->by = RNL_QUANTIZE_BLOCKS;
    q->blocks = q->size / q->block + (q->size % q->block != 0);
    for (size_t i = 0; i < x->rank && fits; i++)
        fits = scale->shape[i] == (i == q->axis ? q->blocks : x->shape[i]);
    return fits ? RNL_OK : wrong_scale(context);
}

static rnl_status find_axis(const rnl_op_context *context, rnl_quantize *q)
{
    const rnl_tensor_desc *x = &context->inputs[0];
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", 1), x->rank, "axis", &q->axis));
    q->size = x->shape[q->axis];
    for (size_t i = q->axis + 1; i < x->rank && rnl_desc_elements(x) > 0; i++)
        q->inner *= x->shape[i];
    return RNL_OK;
}

/* What the scale's shape says: one for all, one for each index of an axis, or one a block. */
static rnl_status find_granularity(const rnl_op_context *context, rnl_quantize *q)
{
    const rnl_tensor_desc *x = &context->inputs[0], *scale = &context->inputs[1];
    q->inner = 1;
    q->size = rnl_desc_elements(x);
    q->block = rnl_node_int(context->node, "block_size", 0);
    if (q->block < 0)
        return FAIL(RNL_INVALID_ARGUMENT, "block_size of %s is %" PRId64, context->node->op_type, q->block);
    if (rnl_desc_elements(scale) == 1 && scale->rank <= 1)
        return RNL_OK;
    if (context->node->opset < 13)
        return FAIL(RNL_INVALID_ARGUMENT, "the scale of %s of opset %" PRId64 " has shape %s; it must be one element",
                    context->node->op_type, context->node->opset, rnl_shape_format(scale->shape, scale->rank).text);
    TRY(find_axis(context, q));
    if (q->block > 0)
        return check_blocks(context, q);
    q->by = RNL_QUANTIZE_AXIS;
    return scale->rank == 1 && scale->shape[0] == q->size ? RNL_OK : wrong_scale(context);
}

static rnl_status check_zero_point(const rnl_op_context *context)
{
    const rnl_tensor_desc *scale = &context->inputs[1], *zero = &context->inputs[2];
    if (!rnl_input_exists(context, 2) || (rnl_desc_elements(zero) == 1 && rnl_desc_elements(scale) == 1))
        return RNL_OK;
    bool equal = scale->rank == zero->rank;
    for (size_t i = 0; i < scale->rank && equal; i++)
        equal = scale->shape[i] == zero->shape[i];
    if (equal)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "the scale of %s has shape %s, its zero point %s", context->node->op_type,
                rnl_shape_format(scale->shape, scale->rank).text, rnl_shape_format(zero->shape, zero->rank).text);
}

static rnl_status check_output(const rnl_op_context *context, rnl_dtype *output)
{
    if (!rnl_input_exists(context, 2))
        return RNL_OK;
    rnl_dtype zero = context->inputs[2].dtype;
    TRY(rnl_check_dtype(context, 2, RNL_TYPES_QUANTIZED));
    if (*output != RNL_DTYPE_NONE && *output != zero)
        return FAIL(RNL_INVALID_ARGUMENT, "output_dtype of %s is %s, its zero point %s", context->node->op_type,
                    rnl_dtype_name(*output), rnl_dtype_name(zero));
    *output = zero;
    return RNL_OK;
}

rnl_status rnl_quantize_resolve(const rnl_op_context *context, rnl_quantize *out_quantize)
{
    rnl_quantize q = {.output = RNL_DTYPE_NONE};
    *out_quantize = q;
    rnl_dtype scale = context->inputs[1].dtype;
    TRY(rnl_check_dtype(context, 1, RNL_TYPES_FLOAT | RNL_TYPE_BIT(RNL_I32) | RNL_TYPE_BIT(RNL_F8E8M0)));
    TRY(type_attribute(context->node, "output_dtype", RNL_TYPES_QUANTIZED, &q.output));
    TRY(check_output(context, &q.output));
    TRY(check_zero_point(context));
    TRY(find_granularity(context, &q));
    if (q.output == RNL_DTYPE_NONE)
        q.output = RNL_U8;
    TRY(type_attribute(context->node, "precision", RNL_TYPES_FLOAT, &q.precision));
    if (q.precision == RNL_DTYPE_NONE)
        q.precision = is_float(scale) ? scale : RNL_F32;
    *out_quantize = q;
    return RNL_OK;
}

rnl_status rnl_dequantize_resolve(const rnl_op_context *context, rnl_quantize *out_quantize)
{
    rnl_quantize q = {.precision = RNL_F32};
    *out_quantize = q;
    rnl_dtype scale = context->inputs[1].dtype;
    TRY(rnl_check_dtype(context, 1, RNL_TYPES_FLOAT | RNL_TYPE_BIT(RNL_F8E8M0)));
    TRY(rnl_check_dtype(context, 2, RNL_TYPE_BIT(context->inputs[0].dtype)));
    TRY(type_attribute(context->node, "output_dtype", RNL_TYPES_FLOAT, &q.output));
    TRY(check_zero_point(context));
    TRY(find_granularity(context, &q));
    if (q.output == RNL_DTYPE_NONE)
        q.output = is_float(scale) ? scale : RNL_F32;
    *out_quantize = q;
    return RNL_OK;
}

rnl_status rnl_infer_quantize(rnl_op_context *context)
{
    rnl_quantize q;
    TRY(rnl_infer_begin(context));
    TRY(rnl_quantize_resolve(context, &q));
    return rnl_output_like(context, 0, q.output);
}

rnl_status rnl_infer_dequantize(rnl_op_context *context)
{
    rnl_quantize q;
    TRY(rnl_infer_begin(context));
    TRY(rnl_dequantize_resolve(context, &q));
    return rnl_output_like(context, 0, q.output);
}
