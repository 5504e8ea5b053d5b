/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and MultiHeadAttention of com.microsoft. */
#include "graph/op_common.h"
#include "graph/op_microsoft.h"
#include "graph/op_rows.h"

static rnl_status bad_input(const rnl_op_context *context, size_t index, const char *why)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has shape %s, %s", index, context->node->op_type,
                rnl_shape_format(input->shape, input->rank).text, why);
}

/* Lengths of keys, ends and starts, or a mask over the keys. */
static rnl_status check_mask(const rnl_op_context *context, size_t index, const rnl_attention_sizes *sizes)
{
    const rnl_tensor_desc *mask = &context->inputs[index];
    const int64_t keys = sizes->past + sizes->kv_length, batch = sizes->batch;
    bool fits = false;
    if (!rnl_input_exists(context, index))
        return RNL_OK;
    TRY(rnl_check_dtype(context, index, RNL_TYPE_BIT(RNL_I32)));
    if (mask->rank == 1)
        fits = mask->shape[0] == batch || mask->shape[0] == 2 * batch || mask->shape[0] == 3 * batch + 2;
    else if (mask->rank == 2)
        fits = mask->shape[0] == batch && mask->shape[1] == keys;
    else if (mask->rank == 3)
        fits = mask->shape[0] == batch && mask->shape[1] == sizes->length && mask->shape[2] == keys;
    else if (mask->rank == 4)
        fits = mask->shape[0] == batch && mask->shape[1] == 1 && mask->shape[2] >= sizes->past + sizes->length &&
               mask->shape[3] >= keys;
    return fits ? RNL_OK : bad_input(context, index, "which is no mask for the batch and its keys");
}

static rnl_status check_bias(const rnl_op_context *context, size_t index, const rnl_attention_sizes *sizes)
{
    const rnl_tensor_desc *bias = &context->inputs[index];
    if (!rnl_input_exists(context, index))
        return RNL_OK;
    const int64_t shape[] = {sizes->batch, sizes->heads, sizes->length, sizes->past + sizes->kv_length};
    if (bias->dtype != context->inputs[0].dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "the attention_bias of %s has another type than its input",
                    context->node->op_type);
    return rnl_check_broadcast_to(context, index, shape, 4);
}

/* One of past keys or values: batch, heads, past, size. */
static bool fits_past(const int64_t *shape, const rnl_attention_sizes *sizes, int64_t past, int64_t size)
{
    return shape[0] == sizes->batch && shape[1] == sizes->heads && shape[2] == past && shape[3] == size;
}

static rnl_status find_head_count(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    TRY(rnl_require_int(context->node, "num_heads", &sizes->heads));
    if (sizes->heads < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'num_heads' of %s is %" PRId64, context->node->op_type,
                    sizes->heads);
    sizes->kv_heads = sizes->heads;
    return RNL_OK;
}

/* ---- Attention --------------------------------------------------------------------------------------------------- */

enum { INPUT, WEIGHTS, BIAS, MASK, PAST, ATTENTION_BIAS };

/* Sizes of a head, from the weights' columns or from qkv_hidden_sizes. */
static rnl_status find_projection(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    const rnl_tensor_desc *input = &context->inputs[INPUT], *weights = &context->inputs[WEIGHTS];
    size_t count;
    const int64_t *hidden = rnl_node_ints(context->node, "qkv_hidden_sizes", &count);
    if (input->rank != 3)
        return bad_input(context, INPUT, "where batch, sequence and hidden size are needed");
    if (weights->rank != 2 || weights->shape[0] != input->shape[2])
        return bad_input(context, WEIGHTS, "which the input cannot be multiplied by");
    const int64_t columns = weights->shape[1];
    const int64_t third[] = {columns / 3, columns / 3, columns - columns / 3 * 2};
    if (!hidden || count == 0)
        hidden = third;
    else if (count != 3 || hidden[0] < 0 || hidden[0] != hidden[1] || hidden[0] > columns ||
             hidden[2] != columns - hidden[0] - hidden[1])
        return FAIL(RNL_INVALID_ARGUMENT, "attribute 'qkv_hidden_sizes' of Attention does not fit the weights");
    if (hidden[0] % sizes->heads != 0 || hidden[2] % sizes->heads != 0)
        return bad_input(context, WEIGHTS, "whose columns the heads do not divide");
    sizes->size = hidden[0] / sizes->heads;
    sizes->v_size = hidden[2] / sizes->heads;
    return rnl_check_vector(context, BIAS, columns);
}

rnl_status rnl_microsoft_attention_resolve(const rnl_op_context *context, rnl_attention_sizes *out_sizes)
{
    const rnl_tensor_desc *input = &context->inputs[INPUT], *past = &context->inputs[PAST];
    *out_sizes = (rnl_attention_sizes){.packed = true};
    TRY(find_head_count(context, out_sizes));
    TRY(find_projection(context, out_sizes));
    out_sizes->batch = input->shape[0];
    out_sizes->length = out_sizes->kv_length = input->shape[1];
    if (rnl_input_exists(context, PAST)) {
        if (past->rank != 5 || past->shape[0] != 2 || out_sizes->size != out_sizes->v_size ||
            !fits_past(past->shape + 1, out_sizes, past->shape[3], out_sizes->size))
            return bad_input(context, PAST, "where keys and values, batch, heads, past and size are needed");
        out_sizes->past = past->shape[3];
    }
    TRY(check_mask(context, MASK, out_sizes));
    return check_bias(context, ATTENTION_BIAS, out_sizes);
}

rnl_status rnl_infer_microsoft_attention(rnl_op_context *context)
{
    const rnl_node *node = context->node;
    rnl_attention_sizes sizes;
    TRY(rnl_infer_begin(context));
    TRY(rnl_same_dtype(context, INPUT, BIAS));
    if (rnl_node_int(node, "do_rotary", 0) || rnl_node_int(node, "past_present_share_buffer", 0))
        return FAIL(RNL_UNIMPLEMENTED, "Attention with do_rotary or past_present_share_buffer is not implemented");
    TRY(rnl_microsoft_attention_resolve(context, &sizes));
    if (rnl_input_exists(context, PAST) && context->inputs[PAST].dtype != context->inputs[INPUT].dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "the past of Attention has another type than its input");
    if (context->output_count > 1 && node->outputs[1] != RNL_NO_VALUE && sizes.size != sizes.v_size)
        return FAIL(RNL_INVALID_ARGUMENT, "present keys and values of Attention need heads of one size");
    const int64_t shape[] = {sizes.batch, sizes.length, sizes.heads * sizes.v_size};
    const int64_t present[] = {2, sizes.batch, sizes.heads, sizes.past + sizes.kv_length, sizes.size};
    TRY(rnl_output_set(context, 0, context->inputs[INPUT].dtype, shape, 3));
    return rnl_output_set(context, 1, context->inputs[INPUT].dtype, present, 5);
}

/* ---- MultiHeadAttention ------------------------------------------------------------------------------------------ */

enum { QUERY, KEY, VALUE, MHA_BIAS, MHA_MASK, MHA_ATTENTION_BIAS, PAST_KEY, PAST_VALUE };

/* Query, key and value in one tensor of rank 5. */
static rnl_status find_packed(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    const rnl_tensor_desc *query = &context->inputs[QUERY];
    if (query->shape[2] != sizes->heads || query->shape[3] != 3)
        return bad_input(context, QUERY, "where batch, sequence, heads, 3 and size are needed");
    sizes->size = sizes->v_size = query->shape[4];
    sizes->kv_length = sizes->length;
    return RNL_OK;
}

/* Key and value in one tensor of rank 5. */
static rnl_status find_packed_keys(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    const rnl_tensor_desc *key = &context->inputs[KEY];
    if (key->shape[0] != sizes->batch || key->shape[2] != sizes->heads || key->shape[3] != 2 ||
        key->shape[4] != sizes->size || rnl_input_exists(context, VALUE))
        return bad_input(context, KEY, "where batch, sequence, heads, 2 and size are needed, and no value");
    sizes->kv_length = key->shape[1];
    sizes->v_size = sizes->size;
    return RNL_OK;
}

static rnl_status find_keys(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    const rnl_tensor_desc *key = &context->inputs[KEY], *value = &context->inputs[VALUE];
    if (key->rank == 5)
        return find_packed_keys(context, sizes);
    if (!rnl_input_exists(context, VALUE) || (key->rank != 3 && key->rank != 4) || value->rank != key->rank)
        return bad_input(context, KEY, "where key and value of rank 3 or 4 are needed");
    if (key->rank == 4) {
        sizes->kv_length = key->shape[2];
        sizes->v_size = value->shape[3];
        return fits_past(key->shape, sizes, key->shape[2], sizes->size) &&
                       fits_past(value->shape, sizes, key->shape[2], value->shape[3])
                   ? RNL_OK
                   : bad_input(context, KEY, "which does not fit the query and the value");
    }
    sizes->kv_length = key->shape[1];
    sizes->v_size = value->shape[2] / sizes->heads;
    const bool fits = key->shape[0] == sizes->batch && key->shape[2] == sizes->heads * sizes->size &&
                      value->shape[0] == sizes->batch && value->shape[1] == key->shape[1] &&
                      value->shape[2] % sizes->heads == 0;
    return fits ? RNL_OK : bad_input(context, KEY, "which does not fit the query and the value");
}

static rnl_status find_past(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    const rnl_tensor_desc *key = &context->inputs[PAST_KEY], *value = &context->inputs[PAST_VALUE];
    if (rnl_input_exists(context, PAST_KEY) != rnl_input_exists(context, PAST_VALUE))
        return FAIL(RNL_INVALID_ARGUMENT, "past_key and past_value of MultiHeadAttention are only given together");
    if (!rnl_input_exists(context, PAST_KEY))
        return RNL_OK;
    if (key->rank != 4 || value->rank != 4 || !fits_past(key->shape, sizes, key->shape[2], sizes->size) ||
        !fits_past(value->shape, sizes, key->shape[2], sizes->v_size))
        return bad_input(context, PAST_KEY, "where batch, heads, past and size are needed");
    sizes->past = key->shape[2];
    return RNL_OK;
}

rnl_status rnl_multi_head_resolve(const rnl_op_context *context, rnl_attention_sizes *out_sizes)
{
    const rnl_tensor_desc *query = &context->inputs[QUERY];
    *out_sizes = (rnl_attention_sizes){.packed = true};
    TRY(find_head_count(context, out_sizes));
    if (query->rank != 3 && query->rank != 5)
        return bad_input(context, QUERY, "where rank 3 or 5 is needed");
    out_sizes->batch = query->shape[0];
    out_sizes->length = query->shape[1];
    if (query->rank == 5) {
        TRY(find_packed(context, out_sizes));
    } else {
        if (query->shape[2] % out_sizes->heads != 0)
            return bad_input(context, QUERY, "whose last dimension the heads do not divide");
        out_sizes->size = query->shape[2] / out_sizes->heads;
        if (!rnl_input_exists(context, KEY))
            return FAIL(RNL_INVALID_ARGUMENT, "MultiHeadAttention has a query of rank 3 and no key");
        TRY(find_keys(context, out_sizes));
    }
    TRY(find_past(context, out_sizes));
    TRY(rnl_check_vector(context, MHA_BIAS, out_sizes->heads * (2 * out_sizes->size + out_sizes->v_size)));
    TRY(check_mask(context, MHA_MASK, out_sizes));
    return check_bias(context, MHA_ATTENTION_BIAS, out_sizes);
}

rnl_status rnl_infer_multi_head_attention(rnl_op_context *context)
{
    const rnl_dtype dtype = context->inputs[QUERY].dtype;
    rnl_attention_sizes sizes;
    TRY(rnl_infer_begin(context));
    for (size_t i = KEY; i <= PAST_VALUE; i++)
        if (i != MHA_MASK && rnl_input_exists(context, i) && context->inputs[i].dtype != dtype)
            return FAIL(RNL_INVALID_ARGUMENT, "input %zu of MultiHeadAttention has another type than the query", i);
    TRY(rnl_multi_head_resolve(context, &sizes));
    const int64_t keys = sizes.past + sizes.kv_length;
    const int64_t shape[] = {sizes.batch, sizes.length, sizes.heads * sizes.v_size};
    const int64_t key[] = {sizes.batch, sizes.heads, keys, sizes.size};
    const int64_t value[] = {sizes.batch, sizes.heads, keys, sizes.v_size};
    TRY(rnl_output_set(context, 0, dtype, shape, 3));
    TRY(rnl_output_set(context, 1, dtype, key, 4));
    return rnl_output_set(context, 2, dtype, value, 4);
}
