/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that move whole elements, and those that read a shape. */
#include "graph/host_element.h"
#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

static size_t desc_bytes(const rnl_tensor_desc *desc)
{
    return (size_t)rnl_desc_elements(desc) * rnl_dtype_bytes(desc->dtype);
}

/* Identity, Reshape, Flatten, Squeeze, Unsqueeze: the elements stay in their order. */
rnl_status rnl_evaluate_copy(rnl_op_context *context)
{
    TRY(rnl_evaluate_begin(context));
    size_t bytes = desc_bytes(&context->inputs[0]);
    if (bytes > 0)
        memcpy(context->results[0], context->inputs[0].host, bytes);
    return RNL_OK;
}

/* infer clamped `start` and the count; only the start has to be found again. */
rnl_status rnl_evaluate_shape(rnl_op_context *context)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    int64_t rank = (int64_t)input->rank, start = rnl_node_int(context->node, "start", 0);
    if (start < 0)
        start = start < -rank ? 0 : start + rank;
    for (int64_t i = 0; i < context->outputs[0].shape[0]; i++)
        rnl_element_store(context->results[0], i, RNL_I64, (rnl_number){.i = input->shape[start + i]});
    return RNL_OK;
}

rnl_status rnl_evaluate_size(rnl_op_context *context)
{
    rnl_element_store(context->results[0], 0, RNL_I64, (rnl_number){.i = rnl_desc_elements(&context->inputs[0])});
    return RNL_OK;
}

/* Copies each element that operand 0 of the walk points at. */
static void gather_walk(const rnl_op_context *context, rnl_walk *walk)
{
    size_t bytes = rnl_dtype_bytes(context->outputs[0].dtype);
    const char *from = context->inputs[0].host;
    char *to = context->results[0];
    for (; walk->left > 0; rnl_walk_next(walk), to += bytes)
        memcpy(to, from + (size_t)walk->at[0] * bytes, bytes);
}

rnl_status rnl_evaluate_transpose(rnl_op_context *context)
{
    int64_t stride[RNL_MAX_RANK];
    size_t count;
    rnl_walk walk;
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    const int64_t *perm = rnl_node_ints(context->node, "perm", &count);
    rnl_dense_strides(input->shape, input->rank, stride);
    rnl_walk_init(&walk, context->outputs[0].shape, input->rank);
    walk.operands = 1;
    for (size_t i = 0; i < input->rank; i++) {
        int64_t from = perm ? perm[i] : (int64_t)(input->rank - 1 - i);
        walk.stride[0][i] = stride[from < 0 ? from + (int64_t)input->rank : from];
    }
    gather_walk(context, &walk);
    return RNL_OK;
}

rnl_status rnl_evaluate_expand(rnl_op_context *context)
{
    rnl_walk walk;
    TRY(rnl_evaluate_begin(context));
    rnl_walk_init(&walk, context->outputs[0].shape, context->outputs[0].rank);
    rnl_walk_add(&walk, context->inputs[0].shape, context->inputs[0].rank);
    gather_walk(context, &walk);
    return RNL_OK;
}

rnl_status rnl_evaluate_tile(rnl_op_context *context)
{
    int64_t stride[RNL_MAX_RANK];
    rnl_walk walk;
    TRY(rnl_evaluate_begin(context));
    const rnl_tensor_desc *input = &context->inputs[0];
    size_t bytes = rnl_dtype_bytes(input->dtype);
    char *to = context->results[0];
    rnl_dense_strides(input->shape, input->rank, stride);
    rnl_walk_init(&walk, context->outputs[0].shape, input->rank);
    for (; walk.left > 0; rnl_walk_next(&walk), to += bytes) {
        int64_t at = 0;
        for (size_t i = 0; i < input->rank; i++)
            at += walk.index[i] % input->shape[i] * stride[i];
        memcpy(to, (const char *)input->host + (size_t)at * bytes, bytes);
    }
    return RNL_OK;
}

rnl_status rnl_evaluate_constant_of_shape(rnl_op_context *context)
{
    const rnl_tensor_desc *output = &context->outputs[0];
    size_t bytes = rnl_dtype_bytes(output->dtype), total = desc_bytes(output);
    const rnl_attribute *value = rnl_node_attribute(context->node, "value");
    char *to = context->results[0];
    for (size_t at = 0; at < total; at += bytes) {
        if (value && value->type == RNL_ATTRIBUTE_TENSOR)
            memcpy(to + at, value->tensor->data, bytes);
        else
            memset(to + at, 0, bytes);
    }
    return RNL_OK;
}
