/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention and CausalConvWithState. */
#include "graph/op_common.h"
#include "graph/op_rows.h"

static const char *const rules[] = {"gated_delta", "linear", "gated", "delta"};

/* An input that an update rule needs or has no use for. */
static rnl_status check_presence(const rnl_op_context *context, size_t index, const char *what, bool wanted, int rule)
{
    if (rnl_input_exists(context, index) == wanted)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "the update rule '%s' of LinearAttention %s the input '%s'", rules[rule],
                wanted ? "needs" : "has no use for", what);
}

/* [batches, tokens, `columns` or `or_columns`] */
static rnl_status check_tokens(const rnl_op_context *context, size_t index, int64_t columns, int64_t or_columns)
{
    if (!rnl_input_exists(context, index))
        return RNL_OK;
    const rnl_tensor_desc *query = &context->inputs[0], *input = &context->inputs[index];
    if (input->rank == 3 && input->shape[0] == query->shape[0] && input->shape[1] == query->shape[1] &&
        (input->shape[2] == columns || input->shape[2] == or_columns))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "input %zu of LinearAttention has shape %s, which does not fit queries of %s",
                index, rnl_shape_format(input->shape, input->rank).text,
                rnl_shape_format(query->shape, query->rank).text);
}

static rnl_status find_heads(const rnl_op_context *context, int64_t *out_query_heads, int64_t *out_heads)
{
    const rnl_tensor_desc *query = &context->inputs[0], *value = &context->inputs[2];
    TRY(rnl_require_int(context->node, "q_num_heads", out_query_heads));
    TRY(rnl_require_int(context->node, "kv_num_heads", out_heads));
    if (*out_query_heads < 1 || *out_heads < 1 || *out_query_heads % *out_heads != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "LinearAttention has %" PRId64 " query heads for %" PRId64 " heads",
                    *out_query_heads, *out_heads);
    if (query->rank != 3 || value->rank != 3 || query->shape[2] % *out_query_heads != 0 ||
        value->shape[2] % *out_heads != 0)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "queries of shape %s and values of %s do not divide into LinearAttention's heads",
                    rnl_shape_format(query->shape, query->rank).text, rnl_shape_format(value->shape, value->rank).text);
    return RNL_OK;
}

static rnl_status check_past(const rnl_op_context *context, size_t rank, const int64_t *shape)
{
    if (!rnl_input_exists(context, 3))
        return RNL_OK;
    const rnl_tensor_desc *past = &context->inputs[3];
    bool same = past->rank == rank;
    for (size_t i = 0; same && i < rank; i++)
        same = past->shape[i] == shape[i];
    if (same)
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT, "the past state of %s has shape %s where %s is needed", context->node->op_type,
                rnl_shape_format(past->shape, past->rank).text, rnl_shape_format(shape, rank).text);
}

rnl_status rnl_infer_linear_attention(rnl_op_context *context)
{
    int64_t query_heads, heads;
    int rule;
    TRY(rnl_infer_begin(context));
    TRY(rnl_choose(context->node, "update_rule", rules, 4, &rule));
    TRY(check_presence(context, 4, "decay", rule == 0 || rule == 2, rule));
    TRY(check_presence(context, 5, "beta", rule == 0 || rule == 3, rule));
    TRY(find_heads(context, &query_heads, &heads));
    const rnl_tensor_desc *query = &context->inputs[0], *value = &context->inputs[2];
    const int64_t keys = query->shape[2] / query_heads, values = value->shape[2] / heads;
    const uint32_t type = RNL_TYPE_BIT(query->dtype);
    for (size_t i = 1; i < context->input_count; i++)
        if (i != 3)
            TRY(rnl_check_dtype(context, i, type));
    TRY(check_tokens(context, 1, heads * keys, heads * keys));
    TRY(check_tokens(context, 2, value->shape[2], value->shape[2]));
    TRY(check_tokens(context, 4, heads * keys, heads));
    TRY(check_tokens(context, 5, heads, 1));
    const int64_t state[4] = {query->shape[0], heads, keys, values};
    TRY(rnl_check_dtype(context, 3, RNL_TYPES_FLOAT));
    TRY(check_past(context, 4, state));
    int64_t columns;
    if (!rnl_shape_elements((const int64_t[]){query_heads, values}, 2, &columns))
        return FAIL(RNL_INVALID_ARGUMENT, "LinearAttention's result is too large");
    TRY(rnl_output_set(context, 0, query->dtype, (const int64_t[]){state[0], query->shape[1], columns}, 3));
    return rnl_output_set(context, 1, rnl_input_exists(context, 3) ? context->inputs[3].dtype : query->dtype, state, 4);
}

rnl_status rnl_infer_causal_conv(rnl_op_context *context)
{
    static const char *const activations[] = {"none", "silu", "swish"};
    int activation;
    TRY(rnl_infer_begin(context));
    TRY(rnl_choose(context->node, "activation", activations, 3, &activation));
    TRY(rnl_same_dtype(context, 0, 3));
    const rnl_tensor_desc *src = &context->inputs[0], *weight = &context->inputs[1];
    if (src->rank != 3 || weight->rank != 3 || weight->shape[0] != src->shape[1] || weight->shape[1] != 1 ||
        weight->shape[2] < 1)
        return FAIL(RNL_INVALID_ARGUMENT, "CausalConvWithState of shape %s with weights of shape %s",
                    rnl_shape_format(src->shape, src->rank).text, rnl_shape_format(weight->shape, weight->rank).text);
    if (rnl_input_exists(context, 2))
        TRY(rnl_check_vector(context, 2, src->shape[1]));
    const int64_t state[3] = {src->shape[0], src->shape[1], weight->shape[2] - 1};
    TRY(check_past(context, 3, state));
    TRY(rnl_output_like(context, 0, src->dtype));
    return rnl_output_set(context, 1, src->dtype, state, 3);
}
