/* SPDX-License-Identifier: Apache-2.0 */
/* Products of quantised matrices, and what quantises by the values that it finds. */
#include "graph/op_common.h"
#include "graph/op_rows.h"

#define BYTES (RNL_TYPE_BIT(RNL_U8) | RNL_TYPE_BIT(RNL_I8))
#define F32 RNL_TYPE_BIT(RNL_F32)
#define I32 RNL_TYPE_BIT(RNL_I32)
#define SCALES (F32 | RNL_TYPE_BIT(RNL_F16) | RNL_TYPE_BIT(RNL_BF16))

rnl_status rnl_check_single(const rnl_op_context *context, size_t index)
{
    if (!rnl_input_exists(context, index) || rnl_desc_elements(&context->inputs[index]) == 1)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has shape %s where one element is needed", index,
                context->node->op_type,
                rnl_shape_format(context->inputs[index].shape, context->inputs[index].rank).text);
}

rnl_status rnl_check_zero_point(const rnl_op_context *context, size_t values, size_t zero_point)
{
    if (!rnl_input_exists(context, zero_point) || context->inputs[zero_point].dtype == context->inputs[values].dtype)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "the zero point of %s (input %zu) is %s and must be %s like input %zu",
                context->node->op_type, zero_point, rnl_dtype_name(context->inputs[zero_point].dtype),
                rnl_dtype_name(context->inputs[values].dtype), values);
}

rnl_status rnl_infer_dynamic_quantize(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_output_like(context, 0, RNL_U8));
    TRY(rnl_output_set(context, 1, RNL_F32, NULL, 0));
    return rnl_output_set(context, 2, RNL_U8, NULL, 0);
}

rnl_status rnl_infer_matmul_integer(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, 1, BYTES));
    TRY(rnl_check_zero_point(context, 0, 2));
    TRY(rnl_check_zero_point(context, 1, 3));
    return rnl_matmul_output(context, 0, 1, RNL_I32);
}

rnl_status rnl_check_qlinear(const rnl_op_context *context, size_t first, size_t second, size_t result)
{
    uint32_t scales = context->node->opset >= 21 ? SCALES : F32;
    TRY(rnl_check_dtype(context, second, BYTES));
    TRY(rnl_check_dtype(context, result + 1, BYTES));
    TRY(rnl_check_dtype(context, first + 1, scales));
    TRY(rnl_check_dtype(context, second + 1, scales));
    TRY(rnl_check_dtype(context, result, scales));
    TRY(rnl_check_zero_point(context, first, first + 2));
    return rnl_check_zero_point(context, second, second + 2);
}

rnl_status rnl_infer_qlinear_matmul(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_qlinear(context, 0, 3, 6));
    return rnl_matmul_output(context, 0, 3, context->inputs[7].dtype);
}

rnl_status rnl_infer_qgemm(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_qlinear(context, 0, 3, 7));
    TRY(rnl_check_dtype(context, 6, I32));
    static const size_t singles[] = {1, 2, 7, 8};
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++)
        TRY(rnl_check_single(context, singles[i]));
    bool quantizes = rnl_input_exists(context, 8);
    if (quantizes != rnl_input_exists(context, 7))
        return FAIL(RNL_INVALID_ARGUMENT, "QGemm needs both a scale and a zero point for its result, or neither");
    return rnl_gemm_output(context, 0, 3, 6, quantizes ? context->inputs[8].dtype : RNL_F32);
}

static rnl_status check_bias(const rnl_op_context *context, size_t bias, size_t factor)
{
    const rnl_tensor_desc *b = &context->inputs[factor];
    return b->rank ? rnl_check_vector(context, bias, b->shape[b->rank - 1]) : RNL_OK;
}

rnl_status rnl_infer_dynamic_quantize_matmul(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, 1, BYTES));
    TRY(rnl_check_dtype(context, 2, F32));
    TRY(rnl_check_dtype(context, 4, F32));
    TRY(rnl_check_zero_point(context, 1, 3));
    TRY(check_bias(context, 4, 1));
    return rnl_matmul_output(context, 0, 1, RNL_F32);
}

rnl_status rnl_infer_matmul_integer_to_float(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, 1, BYTES));
    TRY(rnl_check_dtype(context, 2, F32 | RNL_TYPE_BIT(RNL_F16)));
    TRY(rnl_same_dtype(context, 2, 3));
    if (rnl_input_exists(context, 6))
        TRY(rnl_check_dtype(context, 6, RNL_TYPE_BIT(context->inputs[2].dtype)));
    TRY(rnl_check_zero_point(context, 0, 4));
    TRY(rnl_check_zero_point(context, 1, 5));
    TRY(check_bias(context, 6, 1));
    return rnl_matmul_output(context, 0, 1, context->inputs[2].dtype);
}
