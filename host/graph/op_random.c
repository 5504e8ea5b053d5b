/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_common.h"
#include "graph/op_rows.h"

/* The attribute's type, which must be one of `types`. */
static rnl_status type_of(const rnl_node *node, rnl_dtype absent, uint32_t types, rnl_dtype *out_dtype)
{
    const int64_t code = rnl_node_int(node, "dtype", absent);
    if (code <= 0 || code > RNL_BF16 || !(types & RNL_TYPE_BIT(code)))
        return FAIL(RNL_INVALID_ARGUMENT, "%s cannot make ONNX type %" PRId64, node->op_type, code);
    *out_dtype = (rnl_dtype)code;
    return RNL_OK;
}

rnl_status rnl_infer_random(rnl_op_context *context)
{
    size_t rank;
    rnl_dtype dtype = RNL_F32;
    TRY(rnl_infer_begin(context));
    TRY(type_of(context->node, RNL_F32, RNL_TYPES_FLOAT_64, &dtype));
    if (!rnl_node_attribute(context->node, "shape"))
        return FAIL(RNL_INVALID_ARGUMENT, "%s has no attribute 'shape'", context->node->op_type);
    const int64_t *shape = rnl_node_ints(context->node, "shape", &rank);
    return rnl_output_set(context, 0, dtype, shape, rank);
}

rnl_status rnl_infer_random_like(rnl_op_context *context)
{
    rnl_dtype dtype = RNL_F32;
    TRY(rnl_infer_begin(context));
    TRY(type_of(context->node, context->inputs[0].dtype, RNL_TYPES_FLOAT_64, &dtype));
    return rnl_output_like(context, 0, dtype);
}

rnl_status rnl_infer_bernoulli(rnl_op_context *context)
{
    rnl_dtype dtype = RNL_F32;
    TRY(rnl_infer_begin(context));
    TRY(type_of(context->node, context->inputs[0].dtype, RNL_TYPES_ALL, &dtype));
    return rnl_output_like(context, 0, dtype);
}

rnl_status rnl_infer_multinomial(rnl_op_context *context)
{
    rnl_dtype dtype = RNL_I32;
    TRY(rnl_infer_begin(context));
    TRY(type_of(context->node, RNL_I32, RNL_TYPE_BIT(RNL_I32) | RNL_TYPE_BIT(RNL_I64), &dtype));
    const rnl_tensor_desc *input = &context->inputs[0];
    const int64_t samples = rnl_node_int(context->node, "sample_size", 1);
    if (input->rank != 2 || samples < 0)
        return FAIL(RNL_INVALID_ARGUMENT, "Multinomial of shape %s with sample_size %" PRId64,
                    rnl_shape_format(input->shape, input->rank).text, samples);
    if (input->shape[1] == 0 && input->shape[0] > 0 && samples > 0)
        return FAIL(RNL_INVALID_ARGUMENT, "Multinomial has no class to draw");
    return rnl_output_set(context, 0, dtype, (const int64_t[]){input->shape[0], samples}, 2);
}
