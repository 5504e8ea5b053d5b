/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/op_common.h"
#include "graph/op_rows.h"

static rnl_status bad_shapes(const rnl_op_context *context, const rnl_tensor_desc *a, const rnl_tensor_desc *b)
{
    return FAIL(RNL_INVALID_ARGUMENT, "shapes %s and %s cannot be multiplied by %s",
                rnl_shape_format(a->shape, a->rank).text, rnl_shape_format(b->shape, b->rank).text,
                context->node->op_type);
}

rnl_status rnl_matmul_output(rnl_op_context *context, size_t a_index, size_t b_index, rnl_dtype dtype)
{
    int64_t shape[RNL_MAX_RANK + 2];
    size_t rank;
    const rnl_tensor_desc *a = &context->inputs[a_index], *b = &context->inputs[b_index];
    if (a->rank == 0 || b->rank == 0)
        return bad_shapes(context, a, b);
    int64_t inner = b->rank == 1 ? b->shape[0] : b->shape[b->rank - 2];
    if (a->shape[a->rank - 1] != inner)
        return bad_shapes(context, a, b);
    size_t a_batch = a->rank > 2 ? a->rank - 2 : 0, b_batch = b->rank > 2 ? b->rank - 2 : 0;
    if (rnl_broadcast_shapes(a->shape, a_batch, b->shape, b_batch, shape, &rank) != RNL_OK)
        return bad_shapes(context, a, b);
    if (a->rank > 1)
        shape[rank++] = a->shape[a->rank - 2];
    if (b->rank > 1)
        shape[rank++] = b->shape[b->rank - 1];
    return rnl_output_set(context, 0, dtype, shape, rank);
}

rnl_status rnl_infer_matmul(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 1));
    return rnl_matmul_output(context, 0, 1, context->inputs[0].dtype);
}

rnl_status rnl_gemm_output(rnl_op_context *context, size_t a_index, size_t b_index, size_t c_index, rnl_dtype dtype)
{
    const rnl_tensor_desc *a = &context->inputs[a_index], *b = &context->inputs[b_index];
    if (a->rank != 2 || b->rank != 2)
        return bad_shapes(context, a, b);
    bool trans_a = rnl_node_int(context->node, "transA", 0) != 0,
         trans_b = rnl_node_int(context->node, "transB", 0) != 0;
    if (a->shape[trans_a ? 0 : 1] != b->shape[trans_b ? 1 : 0])
        return bad_shapes(context, a, b);
    int64_t shape[2] = {a->shape[trans_a ? 1 : 0], b->shape[trans_b ? 0 : 1]};
    TRY(rnl_check_broadcast_to(context, c_index, shape, 2));
    return rnl_output_set(context, 0, dtype, shape, 2);
}

rnl_status rnl_infer_gemm(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 2));
    return rnl_gemm_output(context, 0, 1, 2, context->inputs[0].dtype);
}

rnl_status rnl_infer_det(rnl_op_context *context)
{
    const rnl_tensor_desc *x = &context->inputs[0];
    TRY(rnl_infer_begin(context));
    if (x->rank < 2 || x->shape[x->rank - 1] != x->shape[x->rank - 2])
        return FAIL(RNL_INVALID_ARGUMENT, "%s of a tensor that holds no square matrices", context->node->op_type);
    return rnl_output_set(context, 0, x->dtype, x->shape, x->rank - 2);
}
