/* SPDX-License-Identifier: Apache-2.0 */
/* LinearAttention and CausalConvWithState. */
#include "model/lower_list.h"

#include "model/compose.h"
#include "ops/linear_attention.h"
#include <math.h>
#include <string.h>

static rnl_status dense_input(rnl_lowering *lowering, size_t index, rnl_view *out_view)
{
    return rnl_lower_input(lowering, index, RNL_LAYOUT_ROW_MAJOR, out_view);
}

/* Zeros where there is no source. */
static rnl_status copy_or_clear(rnl_lowering *lowering, const rnl_view *source, const rnl_view *target)
{
    rnl_view zero;
    if (rnl_view_exists(source))
        return rnl_lower_copy(lowering, source, target);
    TRY(rnl_lower_scalar(lowering, target->dtype, 0, &zero));
    return rnl_lower_copy(lowering, &zero, target);
}

/* The state that is computed with, in float32: [batches, heads, keys, values]. */
static rnl_status make_state(rnl_lowering *lowering, rnl_linear_attention *attention)
{
    const rnl_op_context *context = &lowering->context;
    const int64_t heads = rnl_node_int(context->node, "kv_num_heads", 1);
    const int64_t shape[] = {attention->query.shape[0], heads, attention->query.shape[2] / attention->query_heads,
                             attention->value.shape[2] / heads};
    rnl_view past;
    TRY(rnl_lower_input(lowering, 3, RNL_LAYOUT_ANY, &past));
    TRY(rnl_lower_scratch(lowering, RNL_F32, 4, shape, RNL_LAYOUT_ROW_MAJOR, &attention->state));
    return copy_or_clear(lowering, &past, &attention->state);
}

rnl_status rnl_lower_linear_attention(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    rnl_linear_attention attention = {.query_heads = rnl_node_int(node, "q_num_heads", 1),
                                      .scale = rnl_node_float(node, "scale", 0)};
    rnl_view present;
    TRY(dense_input(lowering, 0, &attention.query));
    TRY(dense_input(lowering, 1, &attention.key));
    TRY(dense_input(lowering, 2, &attention.value));
    TRY(dense_input(lowering, 4, &attention.decay));
    TRY(dense_input(lowering, 5, &attention.beta));
    TRY(make_state(lowering, &attention));
    if (attention.scale == 0)
        attention.scale = (float)(1 / sqrt((double)attention.state.shape[2]));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &attention.dst));
    const rnl_view target = attention.dst;
    const bool apart = target.shape[2] > 1 && target.stride[2] != 1;
    if (apart) /* a part of a larger value whose rows are not rows */
        TRY(rnl_lower_scratch(lowering, target.dtype, 3, target.shape, RNL_LAYOUT_ROW_MAJOR, &attention.dst));
    TRY(rnl_op_linear_attention(lowering->list, &attention));
    if (apart)
        TRY(rnl_lower_copy(lowering, &attention.dst, &target));
    if (!rnl_lower_has_output(lowering, 1))
        return RNL_OK;
    TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &present));
    return rnl_lower_copy(lowering, &attention.state, &present);
}

/* The last elements of the past and then src: as many as the past has. */
static rnl_status keep_last(rnl_lowering *lowering, const rnl_view *src, const rnl_view *past)
{
    rnl_view target;
    TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &target));
    const int64_t kept = target.shape[2], length = src->shape[2], fresh = length < kept ? length : kept;
    rnl_view newer = *src, to_newer = target, older = *past, to_older = target;
    rnl_view_slice(&newer, 2, length - fresh, fresh, 1);
    rnl_view_slice(&to_newer, 2, kept - fresh, fresh, 1);
    rnl_view_slice(&to_older, 2, 0, kept - fresh, 1);
    if (rnl_view_exists(past))
        rnl_view_slice(&older, 2, fresh, kept - fresh, 1);
    if (fresh < kept)
        TRY(copy_or_clear(lowering, &older, &to_older));
    return rnl_lower_copy(lowering, &newer, &to_newer);
}

rnl_status rnl_lower_causal_conv(rnl_lowering *lowering)
{
    const bool silu = strcmp(rnl_node_string(lowering->context.node, "activation", "none"), "none") != 0;
    rnl_view src, weight, bias, past, dst;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &src));
    TRY(dense_input(lowering, 1, &weight));
    TRY(rnl_lower_input(lowering, 2, RNL_LAYOUT_ANY, &bias));
    TRY(dense_input(lowering, 3, &past));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &dst));
    TRY(rnl_op_causal_conv(lowering->list, silu, &src, &weight, &bias, &past, &dst));
    return rnl_lower_has_output(lowering, 1) ? keep_last(lowering, &src, &past) : RNL_OK;
}
