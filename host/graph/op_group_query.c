/* SPDX-License-Identifier: Apache-2.0 */
/* GroupQueryAttention of com.microsoft. */
#include "graph/op_common.h"
#include "graph/op_microsoft.h"
#include "graph/op_rows.h"

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COSINES, SINES, POSITIONS, BIAS };

static rnl_status bad_input(const rnl_op_context *context, size_t index, const char *why)
{
    const rnl_tensor_desc *input = &context->inputs[index];
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of %s has shape %s, %s", index, context->node->op_type,
                rnl_shape_format(input->shape, input->rank).text, why);
}

static rnl_status find_heads(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    TRY(rnl_require_int(context->node, "num_heads", &sizes->heads));
    TRY(rnl_require_int(context->node, "kv_num_heads", &sizes->kv_heads));
    if (sizes->heads < 1 || sizes->kv_heads < 1 || sizes->heads % sizes->kv_heads != 0 ||
        sizes->heads > RNL_HOST_MAX_ELEMENTS)
        return FAIL(RNL_INVALID_ARGUMENT, "%" PRId64 " heads of keys and values cannot serve %" PRId64 " of queries",
                    sizes->kv_heads, sizes->heads);
    return RNL_OK;
}

/* Keys and values of their own, or in the query's columns behind it. */
static rnl_status find_operands(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    const rnl_tensor_desc *query = &context->inputs[QUERY];
    const bool apart = rnl_input_exists(context, KEY);
    const int64_t heads = sizes->heads + (apart ? 0 : 2 * sizes->kv_heads);
    if (query->rank != 3 || query->shape[2] % heads != 0)
        return bad_input(context, QUERY, "where batch, sequence and heads of one size are needed");
    sizes->batch = query->shape[0];
    sizes->length = sizes->kv_length = query->shape[1];
    sizes->size = sizes->v_size = query->shape[2] / heads;
    if (apart != rnl_input_exists(context, VALUE))
        return FAIL(RNL_INVALID_ARGUMENT, "GroupQueryAttention has a key without a value, or the other way round");
    for (size_t i = KEY; apart && i <= VALUE; i++) {
        const rnl_tensor_desc *input = &context->inputs[i];
        if (input->rank != 3 || input->shape[0] != sizes->batch || input->shape[1] != sizes->length ||
            input->shape[2] != sizes->kv_heads * sizes->size)
            return bad_input(context, i, "which does not fit the query's");
    }
    return RNL_OK;
}

static rnl_status find_past(const rnl_op_context *context, rnl_attention_sizes *sizes)
{
    if (rnl_input_exists(context, PAST_KEY) != rnl_input_exists(context, PAST_VALUE))
        return FAIL(RNL_INVALID_ARGUMENT, "past_key and past_value of GroupQueryAttention are only given together");
    if (!rnl_input_exists(context, PAST_KEY))
        return RNL_OK;
    sizes->past = context->inputs[PAST_KEY].shape[2];
    for (size_t i = PAST_KEY; i <= PAST_VALUE; i++) {
        const rnl_tensor_desc *past = &context->inputs[i];
        if (past->rank != 4 || past->shape[0] != sizes->batch || past->shape[1] != sizes->kv_heads ||
            past->shape[2] != sizes->past || past->shape[3] != sizes->size)
            return bad_input(context, i, "where batch, heads, past and size are needed");
    }
    return RNL_OK;
}

static rnl_status check_rotation(const rnl_op_context *context, const rnl_attention_sizes *sizes)
{
    const rnl_tensor_desc *positions = &context->inputs[POSITIONS];
    if (rnl_node_int(context->node, "do_rotary", 0) == 0)
        return RNL_OK;
    for (size_t i = COSINES; i <= SINES; i++) {
        const rnl_tensor_desc *cache = &context->inputs[i];
        if (!rnl_input_exists(context, i))
            return FAIL(RNL_INVALID_ARGUMENT, "GroupQueryAttention with do_rotary needs cos_cache and sin_cache");
        if (cache->rank != 2 || cache->shape[1] != context->inputs[COSINES].shape[1] ||
            2 * cache->shape[1] > sizes->size)
            return bad_input(context, i, "which does not fit the size of a head");
    }
    if (!rnl_input_exists(context, POSITIONS))
        return RNL_OK;
    TRY(rnl_check_dtype(context, POSITIONS, RNL_TYPE_BIT(RNL_I64)));
    const bool fits =
        positions->rank == 2 && positions->shape[0] == sizes->batch && positions->shape[1] == sizes->length;
    return fits ? RNL_OK : bad_input(context, POSITIONS, "where batch and sequence are needed");
}

rnl_status rnl_group_query_resolve(const rnl_op_context *context, rnl_attention_sizes *out_sizes, int64_t *out_total)
{
    size_t count;
    *out_sizes = (rnl_attention_sizes){.packed = true};
    *out_total = 0;
    TRY(find_heads(context, out_sizes));
    TRY(find_operands(context, out_sizes));
    TRY(find_past(context, out_sizes));
    TRY(check_rotation(context, out_sizes));
    if (rnl_desc_elements(&context->inputs[LENGTHS]) != out_sizes->batch)
        return bad_input(context, LENGTHS, "where one number a sample is needed");
    if (rnl_desc_elements(&context->inputs[TOTAL]) != 1)
        return bad_input(context, TOTAL, "where one number is needed");
    TRY(rnl_desc_ints(&context->inputs[TOTAL], "total_sequence_length (input 6)", out_total, 1, &count));
    if (*out_total < out_sizes->length || *out_total > out_sizes->past + out_sizes->length)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "total_sequence_length of GroupQueryAttention is %" PRId64 "; with %" PRId64
                    " new tokens and room for %" PRId64 " past ones it cannot be",
                    *out_total, out_sizes->length, out_sizes->past);
    const int64_t scores[] = {out_sizes->batch, out_sizes->heads, out_sizes->length, *out_total};
    return rnl_input_exists(context, BIAS) ? rnl_check_broadcast_to(context, BIAS, scores, 4) : RNL_OK;
}

rnl_status rnl_infer_group_query_attention(rnl_op_context *context)
{
    const rnl_dtype dtype = context->inputs[QUERY].dtype;
    rnl_attention_sizes sizes;
    int64_t total;
    TRY(rnl_infer_begin(context));
    if (!rnl_input_exists(context, LENGTHS) || !rnl_input_exists(context, TOTAL))
        return FAIL(RNL_INVALID_ARGUMENT, "GroupQueryAttention needs seqlens_k and total_sequence_length");
    TRY(rnl_check_dtype(context, LENGTHS, RNL_TYPE_BIT(RNL_I32)));
    TRY(rnl_check_dtype(context, TOTAL, RNL_TYPE_BIT(RNL_I32)));
    for (size_t i = KEY; i <= BIAS; i++)
        if (i != LENGTHS && i != TOTAL && i != POSITIONS && rnl_input_exists(context, i) &&
            context->inputs[i].dtype != dtype)
            return FAIL(RNL_INVALID_ARGUMENT, "input %zu of GroupQueryAttention has another type than the query", i);
    if (rnl_node_int(context->node, "smooth_softmax", 0) > 0)
        return FAIL(RNL_UNIMPLEMENTED, "GroupQueryAttention with smooth_softmax is not implemented");
    TRY(rnl_group_query_resolve(context, &sizes, &total));
    const int64_t room = total > sizes.past ? total : sizes.past;
    const int64_t shape[] = {sizes.batch, sizes.length, sizes.heads * sizes.size};
    const int64_t present[] = {sizes.batch, sizes.kv_heads, room, sizes.size};
    TRY(rnl_output_set(context, 0, dtype, shape, 3));
    TRY(rnl_output_set(context, 1, dtype, present, 4));
    return rnl_output_set(context, 2, dtype, present, 4);
}
