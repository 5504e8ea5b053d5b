/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft's MatMulNBits. */
#include "graph/op_common.h"
#include "graph/op_rows.h"

/* Inputs by position. */
enum { A, B, SCALES, ZERO_POINTS, GROUPS, BIAS };

static rnl_status read_attributes(const rnl_node *node, rnl_nbits_shape *shape)
{
    int64_t bits = rnl_node_int(node, "bits", 4);
    TRY(rnl_require_int(node, "N", &shape->n));
    TRY(rnl_require_int(node, "K", &shape->k));
    TRY(rnl_require_int(node, "block_size", &shape->block));
    if (bits != 2 && bits != 4 && bits != 8)
        return FAIL(RNL_UNIMPLEMENTED, "MatMulNBits of %" PRId64 " bits is not supported; 2, 4 and 8 are", bits);
    if (rnl_node_int(node, "weight_prepacked", 0) != 0)
        return FAIL(RNL_UNIMPLEMENTED, "MatMulNBits with weights that were packed for a GPU is not supported");
    shape->bits = (int)bits;
    if (shape->n < 1 || shape->k < 1 || shape->n > INT32_MAX || shape->k > INT32_MAX || shape->block < 16 ||
        shape->block > INT32_MAX || (shape->block & (shape->block - 1)) != 0)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "MatMulNBits has K = %" PRId64 ", N = %" PRId64 " and blocks of %" PRId64
                    "; a block is a power of two from 16 on",
                    shape->k, shape->n, shape->block);
    return RNL_OK;
}

static rnl_status check_elements(const rnl_op_context *context, size_t index, int64_t wanted)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    if (!rnl_input_exists(context, index) || rnl_desc_elements(input) == wanted)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of MatMulNBits has shape %s; %" PRId64 " elements are needed", index,
                rnl_shape_format(input->shape, input->rank).text, wanted);
}

rnl_status rnl_nbits_resolve(const rnl_op_context *context, rnl_nbits_shape *out_shape)
{
    TRY(read_attributes(context->node, out_shape));
    const rnl_tensor_desc *a = &context->inputs[A];
    const int64_t per_byte = 8 / out_shape->bits;
    const int64_t blocks = (out_shape->k + out_shape->block - 1) / out_shape->block; /* 31 bits, as the others */
    if (a->rank == 0 || a->shape[a->rank - 1] != out_shape->k)
        return FAIL(RNL_INVALID_ARGUMENT, "MatMulNBits with K = %" PRId64 " of a tensor of shape %s", out_shape->k,
                    rnl_shape_format(a->shape, a->rank).text);
    int64_t bytes;
    if (__builtin_mul_overflow(out_shape->n * blocks, out_shape->block / per_byte, &bytes))
        return FAIL(RNL_INVALID_ARGUMENT, "MatMulNBits with K = %" PRId64 " and N = %" PRId64 " is too large",
                    out_shape->k, out_shape->n);
    TRY(check_elements(context, B, bytes));
    TRY(check_elements(context, SCALES, out_shape->n * blocks));
    if (rnl_input_exists(context, ZERO_POINTS))
        TRY(check_elements(context, ZERO_POINTS,
                           context->inputs[ZERO_POINTS].dtype == RNL_U8
                               ? out_shape->n * ((blocks + per_byte - 1) / per_byte)
                               : out_shape->n * blocks));
    TRY(check_elements(context, GROUPS, out_shape->k));
    return check_elements(context, BIAS, out_shape->n);
}

rnl_status rnl_infer_matmul_nbits(rnl_op_context *context)
{
    rnl_nbits_shape shape;
    TRY(rnl_infer_begin(context));
    const uint32_t type = RNL_TYPE_BIT(context->inputs[A].dtype);
    TRY(rnl_check_dtype(context, B, RNL_TYPE_BIT(RNL_U8)));
    TRY(rnl_check_dtype(context, SCALES, type));
    if (rnl_input_exists(context, ZERO_POINTS))
        TRY(rnl_check_dtype(context, ZERO_POINTS, type | RNL_TYPE_BIT(RNL_U8)));
    if (rnl_input_exists(context, GROUPS))
        TRY(rnl_check_dtype(context, GROUPS, RNL_TYPE_BIT(RNL_I32)));
    if (rnl_input_exists(context, BIAS))
        TRY(rnl_check_dtype(context, BIAS, type));
    TRY(rnl_nbits_resolve(context, &shape));
    const rnl_tensor_desc *a = &context->inputs[A];
    int64_t output[RNL_MAX_RANK];
    for (size_t i = 0; i < a->rank; i++)
        output[i] = i + 1 < a->rank ? a->shape[i] : shape.n;
    return rnl_output_set(context, 0, a->dtype, output, a->rank);
}
