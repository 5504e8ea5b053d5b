/* SPDX-License-Identifier: Apache-2.0 */
/* com.microsoft: what onnxruntime's optimiser fuses around products, activations, normalisations and embeddings. */
#include "graph/op_microsoft.h"

#include "graph/op_common.h"
#include "graph/op_rows.h"
#include <string.h>

static rnl_status bad_input(const rnl_op_context *context, size_t index, const char *why)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has shape %s, %s", index, context->node->op_type,
                rnl_shape_format(input->shape, input->rank).text, why);
}

/* ---- activations with a bias ------------------------------------------------------------------------------------ */

rnl_status rnl_infer_bias_gelu(rnl_op_context *context)
{
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 1));
    TRY(rnl_check_broadcast_to(context, 1, context->inputs[0].shape, context->inputs[0].rank));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}

/* ---- FusedMatMul ------------------------------------------------------------------------------------------------ */

static void swap(size_t *a, size_t *b)
{
    const size_t kept = *a;
    *a = *b;
    *b = kept;
}

void rnl_fused_matmul_order(const rnl_node *node, bool second, size_t rank, size_t *out_order)
{
    const bool turn = rnl_node_int(node, second ? "transB" : "transA", 0) != 0;
    const bool batch = rnl_node_int(node, second ? "transBatchB" : "transBatchA", 0) != 0;
    for (size_t i = 0; i < rank; i++)
        out_order[i] = i;
    if (batch && rank > 2) { /* the first dimension goes behind the other batch dimensions: it is the matrix's rows */
        for (size_t i = 0; i + 2 < rank; i++)
            out_order[i] = i + 1;
        out_order[rank - 2] = 0;
    }
    if (turn && rank > 1)
        swap(&out_order[rank - 2], &out_order[rank - 1]);
}

rnl_status rnl_infer_fused_matmul(rnl_op_context *context)
{
    rnl_tensor_desc turned[2];
    TRY(rnl_infer_begin(context));
    for (size_t k = 0; k < 2; k++) {
        const rnl_tensor_desc *input = &context->inputs[k];
        size_t order[RNL_MAX_RANK];
        turned[k] = *input;
        rnl_fused_matmul_order(context->node, k == 1, input->rank, order);
        for (size_t i = 0; i < input->rank; i++)
            turned[k].shape[i] = input->shape[order[i]];
    }
    rnl_op_context product = *context;
    product.inputs = turned;
    return rnl_infer_matmul(&product);
}

/* ---- SkipLayerNormalization and SkipSimplifiedLayerNormalization ------------------------------------------------- */

rnl_status rnl_infer_skip_normalization(rnl_op_context *context)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    int64_t shape[RNL_MAX_RANK];
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 4));
    if (input->rank < 2)
        return bad_input(context, 0, "where rank 2 or 3 is needed");
    TRY(rnl_check_broadcast_to(context, 1, input->shape, input->rank));
    for (size_t i = 2; i < context->input_count; i++)
        TRY(rnl_check_vector(context, i, input->shape[input->rank - 1]));
    for (size_t i = 0; i < input->rank; i++)
        shape[i] = i + 1 < input->rank ? input->shape[i] : 1;
    TRY(rnl_output_like(context, 0, input->dtype));
    TRY(rnl_output_set(context, 1, RNL_F32, shape, input->rank));
    TRY(rnl_output_set(context, 2, RNL_F32, shape, input->rank));
    for (size_t i = 1; i < 3 && i < context->output_count; i++)
        if (context->node->outputs[i] != RNL_NO_VALUE)
            return FAIL(RNL_UNIMPLEMENTED, "output %zu of %s, which training uses, is not computed", i,
                        context->node->op_type);
    return rnl_output_like(context, 3, input->dtype);
}

/* ---- EmbedLayerNormalization ------------------------------------------------------------------------------------- */

enum { IDS, SEGMENT_IDS, WORDS, POSITIONS, SEGMENTS, GAMMA, BETA, EMBED_MASK, POSITION_IDS };

static rnl_status check_table(const rnl_op_context *context, size_t index, int64_t hidden)
{
    const rnl_tensor_desc *table = &context->inputs[index];
    if (rnl_input_exists(context, index) && (table->rank != 2 || table->shape[1] != hidden))
        return bad_input(context, index, "where rows of the hidden size are needed");
    return RNL_OK;
}

/* Batch and sequence, as the words' identifiers have them; positions may be the same for all samples. */
static rnl_status check_ids(const rnl_op_context *context, size_t index)
{
    const rnl_tensor_desc *ids = &context->inputs[index], *words = &context->inputs[IDS];
    if (!rnl_input_exists(context, index))
        return RNL_OK;
    TRY(rnl_check_dtype(context, index, RNL_TYPE_BIT(RNL_I32)));
    const bool one = index == POSITION_IDS && ids->rank == 2 && ids->shape[0] == 1;
    if (ids->rank != 2 || (ids->shape[0] != words->shape[0] && !one) || ids->shape[1] != words->shape[1])
        return bad_input(context, index, "which does not fit the identifiers'");
    return RNL_OK;
}

static rnl_status check_tables(const rnl_op_context *context, int64_t hidden)
{
    for (size_t i = WORDS; i <= SEGMENTS; i++)
        TRY(check_table(context, i, hidden));
    TRY(rnl_check_vector(context, GAMMA, hidden));
    TRY(rnl_check_vector(context, BETA, hidden));
    if (rnl_input_exists(context, SEGMENTS) != rnl_input_exists(context, SEGMENT_IDS))
        return FAIL(RNL_INVALID_ARGUMENT, "EmbedLayerNormalization needs identifiers of segments and their embedding, "
                                          "or neither");
    if (!rnl_input_exists(context, POSITION_IDS) && context->inputs[POSITIONS].shape[0] < context->inputs[IDS].shape[1])
        return bad_input(context, POSITIONS, "which is too short for the sequence");
    return RNL_OK;
}

rnl_status rnl_infer_embed_layer_normalization(rnl_op_context *context)
{
    const rnl_tensor_desc *ids = &context->inputs[IDS];
    TRY(rnl_infer_begin(context));
    for (size_t i = WORDS; i <= BETA; i++)
        if (i != SEGMENTS && !rnl_input_exists(context, i))
            return FAIL(RNL_INVALID_ARGUMENT, "input %zu of EmbedLayerNormalization is missing", i);
    TRY(rnl_check_dtype(context, WORDS, RNL_TYPES_FLOAT_64));
    for (size_t i = POSITIONS; i <= BETA; i++)
        if (rnl_input_exists(context, i) && context->inputs[i].dtype != context->inputs[WORDS].dtype)
            return FAIL(RNL_INVALID_ARGUMENT, "input %zu of EmbedLayerNormalization has another type than the words'",
                        i);
    if (ids->rank != 2)
        return bad_input(context, IDS, "where batch and sequence are needed");
    TRY(check_ids(context, SEGMENT_IDS));
    TRY(check_ids(context, EMBED_MASK));
    TRY(check_ids(context, POSITION_IDS));
    if (context->inputs[WORDS].rank != 2)
        return bad_input(context, WORDS, "where rows of the hidden size are needed");
    TRY(check_tables(context, context->inputs[WORDS].shape[1]));
    const int64_t shape[] = {ids->shape[0], ids->shape[1], context->inputs[WORDS].shape[1]};
    TRY(rnl_output_set(context, 0, context->inputs[WORDS].dtype, shape, 3));
    TRY(rnl_output_set(context, 1, RNL_I32, shape, 1));
    return rnl_output_set(context, 2, context->inputs[WORDS].dtype, shape, 3);
}

/* ---- RotaryEmbedding --------------------------------------------------------------------------------------------- */

enum { ROTARY_POSITIONS = 1, COSINES, SINES };

/* Without heads, a head is as long as the cache says. */
static int64_t head_size(const rnl_op_context *context, int64_t heads)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    if (input->rank == 4)
        return input->shape[3];
    return heads > 0 ? input->shape[2] / heads : 2 * context->inputs[COSINES].shape[1];
}

rnl_status rnl_microsoft_rotary_resolve(const rnl_op_context *context, rnl_rotary_sizes *out_sizes)
{
    const rnl_tensor_desc *input = &context->inputs[0], *positions = &context->inputs[ROTARY_POSITIONS];
    if (input->rank != 3 && input->rank != 4)
        return bad_input(context, 0, "where rank 3 or 4 is needed");
    for (size_t i = COSINES; i <= SINES; i++)
        if (context->inputs[i].rank != 2 || context->inputs[i].shape[1] != context->inputs[COSINES].shape[1])
            return bad_input(context, i, "where both caches are of rank 2 and as wide");
    const int64_t size = head_size(context, rnl_node_int(context->node, "num_heads", 0));
    const bool packed = input->rank == 3;
    if (packed && (size < 1 || input->shape[2] % size != 0))
        return bad_input(context, 0, "whose last dimension is no number of heads");
    *out_sizes = (rnl_rotary_sizes){.packed = packed,
                                    .batch = input->shape[0],
                                    .heads = packed ? input->shape[2] / size : input->shape[1],
                                    .length = input->shape[packed ? 1 : 2],
                                    .size = size,
                                    .turned = 2 * context->inputs[COSINES].shape[1]};
    const int64_t wanted = rnl_node_int(context->node, "rotary_embedding_dim", 0);
    if (out_sizes->turned > size || (wanted > 0 && wanted != out_sizes->turned))
        return bad_input(context, COSINES, "which does not fit the size of a head");
    const bool first = positions->rank == 1 && positions->shape[0] == 1;
    const bool each =
        positions->rank == 2 && positions->shape[0] == out_sizes->batch && positions->shape[1] == out_sizes->length;
    return first || each ? RNL_OK : bad_input(context, ROTARY_POSITIONS, "where one, or batch and sequence are needed");
}

rnl_status rnl_infer_microsoft_rotary(rnl_op_context *context)
{
    rnl_rotary_sizes sizes;
    TRY(rnl_infer_begin(context));
    TRY(rnl_check_dtype(context, ROTARY_POSITIONS, RNL_TYPE_BIT(RNL_I64)));
    for (size_t i = COSINES; i <= SINES; i++)
        if (context->inputs[i].dtype != context->inputs[0].dtype)
            return FAIL(RNL_INVALID_ARGUMENT, "a cache of RotaryEmbedding has another type than the input");
    if (rnl_node_int(context->node, "is_packed_batching", 0) != 0)
        return FAIL(RNL_UNIMPLEMENTED, "RotaryEmbedding of batches packed into one is not implemented");
    TRY(rnl_microsoft_rotary_resolve(context, &sizes));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}
