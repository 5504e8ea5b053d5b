/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

rnl_status rnl_infer_unary(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

rnl_status rnl_infer_isnan(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    return rnl_output_like(context, 0, RNL_BOOL);
}

rnl_status rnl_infer_gelu(rnl_op_context *context)
{
    static const char *const choices[] = {"none", "tanh"};
    int choice;
    TRY(rnl_infer_begin(context));
    TRY(rnl_choose(context->node, "approximate", choices, 2, &choice));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

/* All inputs broadcast together; the output has `dtype`. */
static rnl_status broadcast_inputs(rnl_op_context *context, rnl_dtype dtype)
{
    int64_t shape[RNL_MAX_RANK];
    size_t rank = 0;
    for (size_t i = 0; i < context->input_count; i++) {
        const rnl_tensor_desc *input = &context->inputs[i];
        TRY(rnl_broadcast_shapes(shape, rank, input->shape, input->rank, shape, &rank));
    }
    return rnl_output_set(context, 0, dtype, shape, rank);
}

rnl_status rnl_infer_variadic(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, context->input_count - 1));
    return broadcast_inputs(context, context->inputs[0].dtype);
}

rnl_status rnl_infer_binary(rnl_op_context *context)
{
    return rnl_infer_variadic(context);
}

rnl_status rnl_infer_bit_shift(rnl_op_context *context)
{
    const char *direction = rnl_node_string(context->node, "direction", "");
    TRY(rnl_infer_variadic(context));
    if (strcmp(direction, "LEFT") != 0 && strcmp(direction, "RIGHT") != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'direction' of BitShift is '%.64s'; it can be LEFT or RIGHT",
                    direction);
    return RNL_OK;
}

/* Nothing broadcasts. */
rnl_status rnl_infer_swiglu(rnl_op_context *context)
{
    const rnl_tensor_desc *a = &context->inputs[0], *b = &context->inputs[1];
    TRY(rnl_infer_variadic(context));
    bool same = a->rank == b->rank;
    for (size_t i = 0; i < a->rank && same; i++)
        same = a->shape[i] == b->shape[i];
    if (!same)
        return FAIL(RNL_INVALID_ARGUMENT, "SwiGLU's inputs have shapes %s and %s; they must be alike",
                    rnl_shape_format(a->shape, a->rank).text, rnl_shape_format(b->shape, b->rank).text);
    return RNL_OK;
}

rnl_status rnl_infer_mod(rnl_op_context *context)
{
    TRY(rnl_infer_variadic(context));
    int64_t fmod = rnl_node_int(context->node, "fmod", 0);
    if (fmod != 0 && fmod != 1)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'fmod' of Mod is %" PRId64 "; it can be 0 or 1", fmod);
    if (fmod == 0 && context->node->opset < 28 && (RNL_TYPES_FLOAT_64 & RNL_TYPE_BIT(context->inputs[0].dtype)))
        return FAIL(RNL_INVALID_ARGUMENT, "Mod of floats needs fmod=1 before opset 28");
    return RNL_OK;
}

/* The exponent may have a type of its own from opset 12 on. */
rnl_status rnl_infer_pow(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    if (context->node->opset < 12)
        TRY(rnl_same_dtype(context, 0, 1));
    TRY(rnl_check_dtype(context, 1, RNL_TYPES_NUMERIC));
    return broadcast_inputs(context, context->inputs[0].dtype);
}

rnl_status rnl_infer_compare(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 1));
    return broadcast_inputs(context, RNL_BOOL);
}

rnl_status rnl_infer_prelu(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 1));
    TRY(rnl_check_broadcast_to(context, 1, context->inputs[0].shape, context->inputs[0].rank));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

rnl_status rnl_infer_where(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 1, 2));
    return broadcast_inputs(context, context->inputs[1].dtype);
}

rnl_status rnl_infer_clip(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 2));
    for (size_t i = 1; i < context->input_count; i++)
        if (rnl_input_exists(context, i) && rnl_desc_elements(&context->inputs[i]) != 1)
            return FAIL(RNL_INVALID_ARGUMENT, "a bound of Clip has shape %s; it must be one element",
                        rnl_shape_format(context->inputs[i].shape, context->inputs[i].rank).text);
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

bool rnl_dropout_draws(const rnl_tensor_desc *mode)
{
    return mode->host && *(const unsigned char *)mode->host != 0;
}

/* What is dropped, if anything, must be known: a Dropout that drops nothing is no step. */
static rnl_status check_dropout(const rnl_op_context *context)
{
    if (rnl_input_exists(context, 1)) {
        TRY(rnl_check_dtype(context, 1, RNL_TYPES_FLOAT_64));
        TRY(rnl_check_single(context, 1));
    }
    if (!rnl_input_exists(context, 2))
        return RNL_OK;
    const rnl_tensor_desc *mode = &context->inputs[2];
    if (mode->dtype != RNL_BOOL || rnl_desc_elements(mode) != 1)
        return FAIL(RNL_INVALID_ARGUMENT, "training_mode of Dropout must be one bool");
    if (!mode->host)
        return FAIL(RNL_FAILED_PRECONDITION, "training_mode (input 2) of Dropout is not known while planning");
    return RNL_OK;
}

rnl_status rnl_infer_dropout(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(check_dropout(context));
    rnl_dtype dtype = context->inputs[0].dtype;
    TRY(rnl_output_like(context, 0, dtype));
    return rnl_output_like(context, 1, context->node->opset < 10 ? dtype : RNL_BOOL);
}
