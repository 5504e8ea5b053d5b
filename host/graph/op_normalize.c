/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_common.h"
#include "graph/op_rows.h"

static rnl_status check_rank(const rnl_op_context *context, size_t least)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    if (input->rank >= least)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "%s needs a tensor of rank %zu or more, not shape %s", context->node->op_type,
                least, rnl_shape_format(input->shape, input->rank).text);
}

/* Older ones than of opset 14 train where they have outputs for statistics. */
static rnl_status check_mode(const rnl_op_context *context)
{
    const rnl_node *node = context->node;
    const bool trains = rnl_node_int(node, "training_mode", 0) != 0;
    for (uint32_t i = 1; i < node->output_count; i++)
        if (node->outputs[i] != RNL_NO_VALUE && !trains)
            return FAIL(RNL_UNIMPLEMENTED, "BatchNormalization computes statistics with training_mode=1 only");
    if (rnl_node_int(node, "spatial", 1) != 1)
        return FAIL(RNL_UNIMPLEMENTED, "BatchNormalization is implemented with spatial=1 only");
    return RNL_OK;
}

rnl_status rnl_infer_batch_normalization(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(check_mode(context));
    TRY(check_rank(context, 2));
    if (context->node->opset < 14)
        TRY(rnl_same_dtype(context, 0, 4));
    TRY(rnl_same_dtype(context, 1, 2));
    TRY(rnl_same_dtype(context, 3, 4));
    for (size_t i = 1; i < 5; i++) {
        TRY(rnl_check_dtype(context, i, RNL_TYPES_FLOAT_64));
        TRY(rnl_check_vector(context, i, context->inputs[0].shape[1]));
    }
    for (size_t i = 1; i < 3; i++) /* running mean and variance */
        TRY(rnl_output_set(context, i, context->inputs[3].dtype, &context->inputs[0].shape[1], 1));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

rnl_status rnl_infer_instance_normalization(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 2));
    TRY(check_rank(context, 3));
    TRY(rnl_check_vector(context, 1, context->inputs[0].shape[1]));
    TRY(rnl_check_vector(context, 2, context->inputs[0].shape[1]));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

rnl_status rnl_infer_layer_normalization(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK];
    size_t axis;
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 2));
    const rnl_tensor_desc *input = &context->inputs[0];
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", -1), input->rank, "axis", &axis));
    for (size_t i = 1; i < context->input_count; i++)
        TRY(rnl_check_broadcast_to(context, i, input->shape, input->rank));
    int64_t stash = rnl_node_int(context->node, "stash_type", RNL_F32);
    if (stash != RNL_F32 && stash != RNL_BF16)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "attribute 'stash_type' of LayerNormalization is %" PRId64 "; it can be 1 (float) or 16 (bfloat16)",
                    stash);
    for (size_t i = 0; i < input->rank; i++)
        shape[i] = i < axis ? input->shape[i] : 1;
    TRY(rnl_output_like(context, 0, input->dtype));
    TRY(rnl_output_set(context, 1, (rnl_dtype)stash, shape, input->rank));   /* Mean */
    return rnl_output_set(context, 2, (rnl_dtype)stash, shape, input->rank); /* InvStdDev */
}

static rnl_status check_stash_type(const rnl_node *node)
{
    const int64_t stash = rnl_node_int(node, "stash_type", RNL_F32);
    if (stash == RNL_F32 || stash == RNL_BF16 || stash == RNL_F16 || stash == RNL_F64)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "attribute 'stash_type' of %s is %" PRId64 ", which is no float type",
                node->op_type, stash);
}

rnl_status rnl_infer_rms_normalization(rnl_op_context *context)
{
    int64_t shape[RNL_MAX_RANK];
    size_t axis;
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, 1, RNL_TYPES_FLOAT_64));
    TRY(check_stash_type(context->node));
    const rnl_tensor_desc *input = &context->inputs[0];
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", -1), input->rank, "axis", &axis));
    TRY(rnl_check_broadcast_to(context, 1, input->shape, input->rank));
    for (size_t i = 0; i < input->rank; i++)
        shape[i] = i < axis ? input->shape[i] : 1;
    const rnl_dtype stash = input->dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    TRY(rnl_output_like(context, 0, context->inputs[1].dtype));
    return rnl_output_set(context, 1, stash, shape, input->rank); /* the inverse of the root mean square */
}

rnl_status rnl_infer_group_normalization(rnl_op_context *context)
{
    int64_t groups;
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 2));
    TRY(check_rank(context, 2));
    TRY(check_stash_type(context->node));
    TRY(rnl_require_int(context->node, "num_groups", &groups));
    const int64_t channels = context->inputs[0].shape[1];
    if (groups < 1 || channels % groups != 0)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "GroupNormalization cannot divide %" PRId64 " channels into %" PRId64 " groups", channels, groups);
    for (size_t i = 1; i < 3; i++)
        TRY(rnl_check_vector(context, i, context->node->opset < 21 ? groups : channels));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

rnl_status rnl_infer_mean_variance_normalization(rnl_op_context *context)
{
    static const int64_t absent[] = {0, 2, 3};
    size_t count;
    uint32_t bits;
    TRY(rnl_infer_begin(context));
    const int64_t *axes = rnl_node_ints(context->node, "axes", &count);
    TRY(rnl_axes_bits(axes ? axes : absent, axes ? count : 3, context->inputs[0].rank, &bits));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

rnl_status rnl_infer_lp_normalization(rnl_op_context *context)
{
    size_t axis;
    TRY(rnl_infer_begin(context));
    const int64_t p = rnl_node_int(context->node, "p", 2);
    if (p != 1 && p != 2)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'p' of LpNormalization is %" PRId64 "; it can be 1 or 2", p);
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", -1), context->inputs[0].rank, "axis", &axis));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

rnl_status rnl_infer_lrn(rnl_op_context *context)
{
    int64_t size;
    TRY(rnl_infer_begin(context));
    TRY(check_rank(context, 2));
    TRY(rnl_require_int(context->node, "size", &size));
    if (size < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'size' of LRN is %" PRId64, size);
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

rnl_status rnl_infer_softmax(rnl_op_context *context)
{
    size_t axis;
    TRY(rnl_infer_begin(context));
    int64_t absent = context->node->opset < 13 ? 1 : -1;
    TRY(rnl_axis_resolve(rnl_node_int(context->node, "axis", absent), context->inputs[0].rank, "axis", &axis));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}
