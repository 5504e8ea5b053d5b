/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and RotaryEmbedding of ai.onnx. */
#include "graph/op_attention.h"

#include "graph/op_common.h"
#include "graph/op_rows.h"

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };

static rnl_status bad_input(const rnl_op_context *context, size_t index, const char *why)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has shape %s, %s", index, context->node->op_type,
                rnl_shape_format(input->shape, input->rank).text, why);
}

/* Heads of Q, or of K and V: an attribute, or a dimension. */
static rnl_status find_heads(const rnl_op_context *context, size_t index, const char *attribute, int64_t *out_heads)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    *out_heads = input->shape[1];
    if (input->rank == 4)
        return RNL_OK;
    TRY(rnl_require_int(context->node, attribute, out_heads));
    if (*out_heads < 1 || input->shape[2] % *out_heads != 0)
        return bad_input(context, index, "whose last dimension the heads do not divide");
    return RNL_OK;
}

static int64_t length_of(const rnl_tensor_desc *input)
{
    return input->shape[input->rank == 4 ? 2 : 1];
}

static int64_t size_of(const rnl_tensor_desc *input, int64_t heads)
{
    return input->rank == 4 ? input->shape[3] : input->shape[2] / heads;
}

static rnl_status find_sizes(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    const rnl_tensor_desc *q = &context->inputs[Q], *k = &context->inputs[K], *v = &context->inputs[V];
    if ((q->rank != 3 && q->rank != 4) || k->rank != q->rank || v->rank != q->rank)
        return bad_input(context, q->rank == 3 || q->rank == 4 ? (k->rank != q->rank ? K : V) : Q,
                         "where all three are of rank 3 or of rank 4");
    int64_t v_heads;
    TRY(find_heads(context, Q, "q_num_heads", &sizes->heads));
    TRY(find_heads(context, K, "kv_num_heads", &sizes->kv_heads));
    TRY(find_heads(context, V, "kv_num_heads", &v_heads));
    *sizes = (rnl_attention_sizes){.packed = q->rank == 3,
                                   .batch = q->shape[0],
                                   .heads = sizes->heads,
                                   .kv_heads = sizes->kv_heads,
                                   .length = length_of(q),
                                   .kv_length = length_of(k),
                                   .size = size_of(q, sizes->heads),
                                   .v_size = size_of(v, v_heads)};
    if (k->shape[0] != sizes->batch || size_of(k, sizes->kv_heads) != sizes->size)
        return bad_input(context, K, "which does not fit the query's");
    if (v->shape[0] != sizes->batch || v_heads != sizes->kv_heads || length_of(v) != sizes->kv_length)
        return bad_input(context, V, "which does not fit the key's");
    if (sizes->kv_heads < 1 || sizes->heads % sizes->kv_heads != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "%" PRId64 " heads of keys and values cannot serve %" PRId64 " of queries",
                    sizes->kv_heads, sizes->heads);
    return RNL_OK;
}

static rnl_status check_past(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    if (rnl_input_exists(context, PAST_KEY) != rnl_input_exists(context, PAST_VALUE))
        return FAIL(RNL_INVALID_ARGUMENT, "past_key and past_value of Attention are only given together");
    if (!rnl_input_exists(context, PAST_KEY))
        return RNL_OK;
    for (size_t i = PAST_KEY; i <= PAST_VALUE; i++) {
        const rnl_tensor_desc *past = &context->inputs[i];
        const int64_t size = i == PAST_KEY ? sizes->size : sizes->v_size;
        if (past->rank != 4 || past->shape[0] != sizes->batch || past->shape[1] != sizes->kv_heads ||
            past->shape[3] != size || past->shape[2] != context->inputs[PAST_KEY].shape[2])
            return bad_input(context, i, "which does not fit the keys and values");
    }
    sizes->past = context->inputs[PAST_KEY].shape[2];
    if (rnl_input_exists(context, LENGTHS))
        return FAIL(RNL_INVALID_ARGUMENT, "nonpad_kv_seqlen of Attention is not given together with past_key");
    return RNL_OK;
}

/* The last dimension may be shorter than there are keys. */
static rnl_status check_mask(const rnl_op_context *context, const rnl_attention_sizes *sizes)
{
    if (!rnl_input_exists(context, MASK))
        return RNL_OK;
    const rnl_tensor_desc *mask = &context->inputs[MASK];
    const int64_t keys = sizes->past + sizes->kv_length;
    const int64_t most[] = {sizes->batch, sizes->heads, sizes->length, keys};
    bool fits = mask->rank >= 1 && mask->rank <= 4 && mask->shape[mask->rank - 1] <= keys;
    for (size_t i = 0; fits && i + 1 < mask->rank; i++)
        fits = mask->shape[i] == 1 || mask->shape[i] == most[4 - mask->rank + i];
    return fits ? RNL_OK : bad_input(context, MASK, "which does not broadcast to batch, heads, queries and keys");
}

rnl_status rnl_attention_resolve(const rnl_op_context *context, rnl_attention_sizes *out_sizes)
{
    *out_sizes = (rnl_attention_sizes){0};
    TRY(find_sizes(context, out_sizes));
    TRY(check_past(context, out_sizes));
    TRY(check_mask(context, out_sizes));
    return rnl_input_exists(context, LENGTHS) ? rnl_check_vector(context, LENGTHS, out_sizes->batch) : RNL_OK;
}

static rnl_status check_attributes(const rnl_node *node)
{
    const int64_t precision = rnl_node_int(node, "softmax_precision", RNL_F32);
    const int64_t mode = rnl_node_int(node, "qk_matmul_output_mode", 0);
    if (precision != RNL_F32 && precision != RNL_F16 && precision != RNL_F64 && precision != RNL_BF16)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "attribute 'softmax_precision' of Attention is %" PRId64 ", which is no float type", precision);
    if (mode < 0 || mode > 3)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "attribute 'qk_matmul_output_mode' of Attention is %" PRId64 "; it can be 0 to 3", mode);
    if (rnl_node_int(node, "left_window_size", -1) < -1 || rnl_node_int(node, "right_window_size", -1) < -1)
        return FAIL(RNL_INVALID_ARGUMENT, "a window of Attention has a negative size");
    return RNL_OK;
}

rnl_status rnl_infer_attention(rnl_op_context *context)
{
    rnl_attention_sizes sizes;
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, Q, K));
    for (size_t i = V; i <= PAST_VALUE; i++)
        TRY(rnl_check_dtype(context, i, i == MASK ? RNL_TYPES_ALL : RNL_TYPES_FLOAT_64));
    TRY(rnl_check_dtype(context, LENGTHS, RNL_TYPE_BIT(RNL_I64)));
    TRY(rnl_attention_resolve(context, &sizes));
    TRY(check_attributes(context->node));
    const rnl_dtype dtype = context->inputs[Q].dtype, v_dtype = context->inputs[V].dtype;
    if ((rnl_input_exists(context, PAST_KEY) && context->inputs[PAST_KEY].dtype != dtype) ||
        (rnl_input_exists(context, PAST_VALUE) && context->inputs[PAST_VALUE].dtype != v_dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "past keys and values of Attention have other types than the new ones");
    const int64_t keys = sizes.past + sizes.kv_length;
    const int64_t packed[] = {sizes.batch, sizes.length, sizes.heads * sizes.v_size};
    const int64_t whole[] = {sizes.batch, sizes.heads, sizes.length, sizes.v_size};
    const int64_t key[] = {sizes.batch, sizes.kv_heads, keys, sizes.size};
    const int64_t value[] = {sizes.batch, sizes.kv_heads, keys, sizes.v_size};
    const int64_t scores[] = {sizes.batch, sizes.heads, sizes.length, keys};
    TRY(rnl_output_set(context, 0, dtype, sizes.packed ? packed : whole, sizes.packed ? 3 : 4));
    TRY(rnl_output_set(context, 1, dtype, key, 4));
    TRY(rnl_output_set(context, 2, v_dtype, value, 4));
    return rnl_output_set(context, 3, dtype, scores, 4);
}

/* ---- FlexAttention in parts ------------------------------------------------------------------------------------- */

/* Both of rank 4, of one batch, and heads of the second that divide those of the first. */
static rnl_status check_pair(const rnl_op_context *context)
{
    const rnl_tensor_desc *a = &context->inputs[0], *b = &context->inputs[1];
    if (a->rank != 4 || b->rank != 4)
        return bad_input(context, a->rank == 4 ? 1 : 0, "where rank 4 is needed");
    if (a->shape[0] != b->shape[0] || b->shape[1] < 1 || a->shape[1] % b->shape[1] != 0)
        return bad_input(context, 1, "which does not fit the other's");
    return RNL_OK;
}

rnl_status rnl_infer_flex_scores(rnl_op_context *context)
{
    const rnl_tensor_desc *q = &context->inputs[0], *k = &context->inputs[1];
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 1));
    TRY(check_attributes(context->node));
    TRY(check_pair(context));
    if (q->shape[3] != k->shape[3])
        return bad_input(context, 1, "which does not fit the query's");
    const int64_t usual = q->dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    const int64_t shape[] = {q->shape[0], q->shape[1], q->shape[2], k->shape[2]};
    return rnl_output_set(context, 0, (rnl_dtype)rnl_node_int(context->node, "softmax_precision", usual), shape, 4);
}

rnl_status rnl_infer_flex_values(rnl_op_context *context)
{
    const rnl_tensor_desc *p = &context->inputs[0], *v = &context->inputs[1], *q = &context->inputs[2];
    TRY(rnl_infer_begin(context));
    TRY(check_pair(context));
    if (p->shape[3] != v->shape[2])
        return bad_input(context, 1, "which does not fit the scores");
    const int64_t shape[] = {p->shape[0], p->shape[1], p->shape[2], v->shape[3]};
    return rnl_output_set(context, 0, q->dtype, shape, 4);
}

/* ---- RotaryEmbedding ------------------------------------------------------------------------------------------- */

static rnl_status check_cache(const rnl_op_context *context, size_t index, const rnl_rotary_sizes *sizes)
{
    const rnl_tensor_desc *cache = &context->inputs[index];
    const bool by_position = rnl_input_exists(context, 3);
    bool fits = cache->rank == (by_position ? 2 : 3) && cache->shape[cache->rank - 1] == sizes->turned / 2;
    if (fits && !by_position)
        fits = cache->shape[0] == sizes->batch && cache->shape[1] == sizes->length;
    return fits ? RNL_OK : bad_input(context, index, "which does not fit the input's");
}

rnl_status rnl_rotary_resolve(const rnl_op_context *context, rnl_rotary_sizes *out_sizes)
{
    const rnl_tensor_desc *input = &context->inputs[0];
    if (input->rank != 3 && input->rank != 4)
        return bad_input(context, 0, "where rank 3 or 4 is needed");
    int64_t heads;
    TRY(find_heads(context, 0, "num_heads", &heads));
    *out_sizes = (rnl_rotary_sizes){.packed = input->rank == 3,
                                    .batch = input->shape[0],
                                    .heads = heads,
                                    .length = length_of(input),
                                    .size = size_of(input, heads)};
    out_sizes->turned = rnl_node_int(context->node, "rotary_embedding_dim", 0);
    if (out_sizes->turned == 0)
        out_sizes->turned = out_sizes->size;
    if (out_sizes->turned < 0 || out_sizes->turned > out_sizes->size || out_sizes->turned % 2 != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "RotaryEmbedding cannot turn %" PRId64 " of %" PRId64 " elements",
                    out_sizes->turned, out_sizes->size);
    TRY(check_cache(context, 1, out_sizes));
    TRY(check_cache(context, 2, out_sizes));
    const rnl_tensor_desc *positions = &context->inputs[3];
    if (rnl_input_exists(context, 3) &&
        (positions->rank != 2 || positions->shape[0] != out_sizes->batch || positions->shape[1] != out_sizes->length))
        return bad_input(context, 3, "where batch and sequence are needed");
    return RNL_OK;
}

rnl_status rnl_infer_rotary_embedding(rnl_op_context *context)
{
    rnl_rotary_sizes sizes;
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, 0, 2));
    TRY(rnl_check_dtype(context, 3, RNL_TYPE_BIT(RNL_I64)));
    TRY(rnl_rotary_resolve(context, &sizes));
    return rnl_output_like(context, 0, context->inputs[0].dtype);
}
