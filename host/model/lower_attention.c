/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of ai.onnx. */
#include "graph/op_attention.h"
#include "model/attention.h"
#include "model/compose.h"
#include "model/lower_list.h"
#include <math.h>

enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, LENGTHS };

/* ---- masks ----------------------------------------------------------------------------------------------------- */

static rnl_status both(rnl_lowering *lowering, rnl_view *allowed, const rnl_view *more)
{
    if (rnl_view_exists(allowed))
        return rnl_compose_binary(lowering, RNL_MAP_AND, allowed, more, allowed);
    *allowed = *more;
    return RNL_OK;
}

/* How many keys of each sample count, as batch, 1, 1, 1. */
static rnl_status find_lengths(rnl_lowering *lowering, rnl_view *out_lengths)
{
    *out_lengths = (rnl_view){.slot = RNL_NO_SLOT};
    if (!rnl_lower_has_input(lowering, LENGTHS))
        return RNL_OK;
    TRY(rnl_lower_input(lowering, LENGTHS, RNL_LAYOUT_ANY, out_lengths));
    out_lengths->rank = 4;
    for (size_t i = 1; i < 4; i++) {
        out_lengths->shape[i] = 1;
        out_lengths->stride[i] = 0;
    }
    return RNL_OK;
}

/* Where the queries stand among the keys: behind the past, or at the end of each sample's keys. */
static rnl_status find_positions(rnl_lowering *lowering, const rnl_attention_sizes *sizes, const rnl_view *lengths,
                                 rnl_view *out_positions)
{
    rnl_view first;
    TRY(rnl_compose_range(lowering, sizes->past, sizes->length, 2, 4, out_positions));
    if (!rnl_view_exists(lengths))
        return RNL_OK;
    TRY(rnl_compose_with(lowering, RNL_MAP_SUB, lengths, (double)sizes->length, &first));
    return rnl_compose_binary(lowering, RNL_MAP_ADD, out_positions, &first, out_positions);
}

/* Keys within `reach` of each query, before or behind it. */
static rnl_status allow_window(rnl_lowering *lowering, const rnl_view *positions, const rnl_view *keys, int64_t reach,
                               bool before, rnl_view *allowed)
{
    rnl_view limit, near;
    TRY(rnl_compose_with(lowering, before ? RNL_MAP_SUB : RNL_MAP_ADD, positions, (double)reach, &limit));
    TRY(rnl_compose_binary(lowering, before ? RNL_MAP_GREATER_EQUAL : RNL_MAP_LESS_EQUAL, keys, &limit, &near));
    return both(lowering, allowed, &near);
}

/* What is_causal, windows and lengths leave; RNL_NO_SLOT: all. A mask may be empty where *out_sure is not set. */
static rnl_status allow_by_position(rnl_lowering *lowering, const rnl_attention_sizes *sizes, rnl_view *out_allowed,
                                    bool *out_sure)
{
    const rnl_node *node = lowering->context.node;
    const bool causal = rnl_node_int(node, "is_causal", 0) != 0;
    const int64_t left = rnl_node_int(node, "left_window_size", -1);
    const int64_t right = rnl_node_int(node, "right_window_size", -1);
    rnl_view lengths, positions, keys, near;
    *out_allowed = (rnl_view){.slot = RNL_NO_SLOT};
    TRY(find_lengths(lowering, &lengths));
    *out_sure = !rnl_view_exists(&lengths) && left < 0;
    if (!causal && left < 0 && right < 0 && !rnl_view_exists(&lengths))
        return RNL_OK;
    TRY(find_positions(lowering, sizes, &lengths, &positions));
    TRY(rnl_compose_range(lowering, 0, sizes->past + sizes->kv_length, 3, 4, &keys));
    if (causal)
        TRY(allow_window(lowering, &positions, &keys, 0, false, out_allowed));
    if (left >= 0)
        TRY(allow_window(lowering, &positions, &keys, left, true, out_allowed));
    if (right >= 0)
        TRY(allow_window(lowering, &positions, &keys, right, false, out_allowed));
    if (!rnl_view_exists(&lengths))
        return RNL_OK;
    TRY(rnl_compose_binary(lowering, RNL_MAP_LESS, &keys, &lengths, &near));
    return both(lowering, out_allowed, &near);
}

/* The mask with all keys: those that it lacks are masked. */
static rnl_status find_mask(rnl_lowering *lowering, int64_t keys, rnl_view *out_mask)
{
    rnl_view mask, rest, part;
    TRY(rnl_lower_input(lowering, MASK, RNL_LAYOUT_ANY, &mask));
    *out_mask = mask;
    const size_t last = mask.rank - 1;
    if (mask.shape[last] == keys)
        return RNL_OK;
    int64_t shape[RNL_MAX_RANK];
    for (size_t i = 0; i < mask.rank; i++)
        shape[i] = i == last ? keys : mask.shape[i];
    TRY(rnl_lower_scratch(lowering, mask.dtype, mask.rank, shape, RNL_LAYOUT_ROW_MAJOR, out_mask));
    TRY(rnl_lower_scalar(lowering, mask.dtype, mask.dtype == RNL_BOOL ? 0 : -(double)INFINITY, &rest));
    part = *out_mask;
    rnl_view_slice(&part, last, mask.shape[last], keys - mask.shape[last], 1);
    TRY(rnl_lower_copy(lowering, &rest, &part));
    part = *out_mask;
    rnl_view_slice(&part, last, 0, mask.shape[last], 1);
    return rnl_lower_copy(lowering, &mask, &part);
}

/* 0 where a key is allowed, -infinity elsewhere. */
static rnl_status bias_of(rnl_lowering *lowering, rnl_dtype dtype, const rnl_view *allowed, rnl_view *out_bias)
{
    rnl_view sources[3] = {*allowed};
    TRY(rnl_lower_scalar(lowering, dtype, 0, &sources[1]));
    TRY(rnl_lower_scalar(lowering, dtype, -(double)INFINITY, &sources[2]));
    return rnl_compose_map(lowering, RNL_MAP_SELECT, sources, 3, out_bias);
}

/* What is added to the scores, and whether queries may be left without any key. */
static rnl_status find_bias(rnl_lowering *lowering, const rnl_attention_sizes *sizes, rnl_attention *attention)
{
    const rnl_dtype dtype = attention->q.dtype;
    const int64_t keys = sizes->past + sizes->kv_length;
    rnl_view allowed, mask = {.slot = RNL_NO_SLOT}, *bias = &attention->bias;
    bool sure;
    TRY(allow_by_position(lowering, sizes, &allowed, &sure));
    if (rnl_lower_has_input(lowering, MASK)) {
        sure = false;
        TRY(find_mask(lowering, keys, &mask));
        if (mask.dtype == RNL_BOOL)
            TRY(both(lowering, &allowed, &mask));
    }
    if (rnl_view_exists(&allowed))
        TRY(bias_of(lowering, dtype, &allowed, bias));
    if (rnl_view_exists(&mask) && mask.dtype != RNL_BOOL) {
        TRY(rnl_compose_cast(lowering, &mask, dtype, &mask));
        if (rnl_view_exists(bias))
            TRY(rnl_compose_binary(lowering, RNL_MAP_ADD, &mask, bias, bias));
        else
            *bias = mask;
    }
    attention->may_be_empty = !sure && rnl_view_exists(bias) && keys > 0;
    return RNL_OK;
}

/* ---- operands -------------------------------------------------------------------------------------------------- */

static rnl_status find_operand(rnl_lowering *lowering, size_t index, int64_t heads, rnl_view *out_view)
{
    TRY(rnl_lower_input(lowering, index, RNL_LAYOUT_ANY, out_view));
    if (out_view->rank == 3)
        *out_view = rnl_attention_heads(out_view, heads);
    return RNL_OK;
}

/* A device without doubles computes softmax of narrower types in f32 all the same. */
static rnl_dtype precision_of(const rnl_lowering *lowering, rnl_dtype dtype)
{
    const rnl_dtype wanted = (rnl_dtype)rnl_node_int(lowering->context.node, "softmax_precision", RNL_DTYPE_NONE);
    if (wanted == RNL_F64 && dtype != RNL_F64 && !lowering->list->device->info.has_fp64)
        return RNL_F32;
    return wanted;
}

static rnl_status find_target(rnl_lowering *lowering, const rnl_attention_sizes *sizes, rnl_attention *attention)
{
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &attention->target));
    if (sizes->packed)
        attention->target = rnl_attention_heads(&attention->target, sizes->heads);
    if (rnl_lower_has_output(lowering, 3))
        return rnl_lower_output(lowering, 3, RNL_LAYOUT_ROW_MAJOR, &attention->scores);
    return RNL_OK;
}

rnl_status rnl_lower_attention(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    const rnl_view none = {.slot = RNL_NO_SLOT};
    rnl_attention attention = {.bias = none, .scores = none};
    rnl_attention_sizes sizes;
    TRY(rnl_attention_resolve(&lowering->context, &sizes));
    TRY(find_operand(lowering, Q, sizes.heads, &attention.q));
    TRY(find_operand(lowering, K, sizes.kv_heads, &attention.k));
    TRY(find_operand(lowering, V, sizes.kv_heads, &attention.v));
    TRY(rnl_attention_with_past(lowering, PAST_KEY, 1, &attention.k));
    TRY(rnl_attention_with_past(lowering, PAST_VALUE, 2, &attention.v));
    attention.scale = rnl_attention_scale(node, sizes.size, false);
    attention.softcap = rnl_node_float(node, "softcap", 0);
    attention.precision = precision_of(lowering, attention.q.dtype);
    attention.mode = (rnl_scores_mode)rnl_node_int(node, "qk_matmul_output_mode", 0);
    TRY(find_bias(lowering, &sizes, &attention));
    TRY(find_target(lowering, &sizes, &attention));
    return rnl_compose_attention(lowering, &attention);
}

/* ---- FlexAttention in parts ------------------------------------------------------------------------------------- */

/* Products of halves are taken in f32. */
static rnl_dtype wide(rnl_dtype dtype)
{
    return dtype == RNL_F64 ? RNL_F64 : RNL_F32;
}

static rnl_status multiply(rnl_lowering *lowering, rnl_dtype dtype, double scale, const rnl_view *a, const rnl_view *b)
{
    rnl_view left, right, target, result;
    TRY(rnl_compose_cast(lowering, a, dtype, &left));
    TRY(rnl_compose_cast(lowering, b, dtype, &right));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &target));
    if (target.dtype == dtype)
        return rnl_attention_product(lowering, scale, &left, &right, &target);
    TRY(rnl_lower_scratch(lowering, dtype, 4, target.shape, RNL_LAYOUT_ROW_MAJOR, &result));
    TRY(rnl_attention_product(lowering, scale, &left, &right, &result));
    return rnl_lower_copy(lowering, &result, &target);
}

rnl_status rnl_lower_flex_scores(rnl_lowering *lowering)
{
    rnl_view q, k;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &q));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &k));
    k = rnl_attention_turned(&k);
    const double scale = rnl_attention_scale(lowering->context.node, q.shape[3], false);
    return multiply(lowering, wide(q.dtype), scale, &q, &k);
}

rnl_status rnl_lower_flex_values(rnl_lowering *lowering)
{
    rnl_view p, v;
    TRY(rnl_lower_input(lowering, 0, RNL_LAYOUT_ANY, &p));
    TRY(rnl_lower_input(lowering, 1, RNL_LAYOUT_ANY, &v));
    return multiply(lowering, wide(v.dtype), 1, &p, &v);
}
