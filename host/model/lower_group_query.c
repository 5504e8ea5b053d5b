/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GroupQueryAttention of com.microsoft: each sample of a batch may have a past of its own length, and new keys stand
 * right behind it.
 */
#include "graph/op_microsoft.h"
#include "model/attention.h"
#include "model/compose.h"
#include "model/lower_list.h"
#include "model/rotary.h"
#include "ops/resize.h"
#include <math.h>

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COSINES, SINES, POSITIONS, BIAS };

typedef struct group_query {
    rnl_attention_sizes sizes;
    int64_t total; /* keys that count, at most */
    bool is_first; /* nothing is in the past yet */
    rnl_view past; /* batch, 1, 1, 1: how long each sample's past is */
} group_query;

/* seqlens_k has each sample's keys but one. */
static rnl_status find_past(rnl_lowering *lowering, group_query *query)
{
    const int64_t shape[] = {query->sizes.batch, 1, 1, 1};
    rnl_view lengths;
    if (query->is_first) {
        TRY(rnl_lower_scalar(lowering, RNL_I64, 0, &query->past));
        query->past = rnl_view_expand(&query->past, 4, shape);
        return RNL_OK;
    }
    TRY(rnl_lower_input(lowering, LENGTHS, RNL_LAYOUT_ROW_MAJOR, &lengths));
    TRY(rnl_compose_reshape(lowering, &lengths, 4, shape, &lengths));
    TRY(rnl_compose_cast(lowering, &lengths, RNL_I64, &lengths));
    return rnl_compose_with(lowering, RNL_MAP_ADD, &lengths, 1 - (double)query->sizes.length, &query->past);
}

/* ---- rotation -------------------------------------------------------------------------------------------------- */

/* The positions of the new tokens, as batch, sequence. */
static rnl_status find_positions(rnl_lowering *lowering, const group_query *query, rnl_view *out_view)
{
    rnl_view steps, first = query->past;
    if (rnl_lower_has_input(lowering, POSITIONS)) {
        TRY(rnl_lower_input(lowering, POSITIONS, RNL_LAYOUT_ANY, out_view));
        if (!query->is_first)
            return RNL_OK;
        first = *out_view;
        rnl_view_slice(&first, 0, 0, 1, 1);
        rnl_view_slice(&first, 1, 0, 1, 1);
    }
    first.rank = 2;
    TRY(rnl_compose_range(lowering, 0, query->sizes.length, 1, 2, &steps));
    return rnl_compose_binary(lowering, RNL_MAP_ADD, &first, &steps, out_view);
}

static rnl_status rotate_one(rnl_lowering *lowering, const rnl_view caches[2], int64_t heads, const group_query *query,
                             rnl_view *view)
{
    const rnl_rotary_sizes sizes = {.heads = heads, .size = query->sizes.size, .turned = 2 * caches[0].shape[2]};
    const bool interleaved = rnl_node_int(lowering->context.node, "rotary_interleaved", 0) != 0;
    const rnl_view from = *view;
    TRY(rnl_lower_scratch(lowering, from.dtype, 4, from.shape, RNL_LAYOUT_ROW_MAJOR, view));
    return rnl_rotary_heads(lowering, &from, caches, &sizes, interleaved, view);
}

static rnl_status rotate(rnl_lowering *lowering, const group_query *query, rnl_attention *attention)
{
    rnl_view positions, caches[2];
    if (rnl_node_int(lowering->context.node, "do_rotary", 0) == 0)
        return RNL_OK;
    TRY(find_positions(lowering, query, &positions));
    for (size_t i = 0; i < 2; i++) {
        TRY(rnl_lower_input(lowering, COSINES + i, RNL_LAYOUT_ANY, &caches[i]));
        TRY(rnl_rotary_at(lowering, &caches[i], &positions, &caches[i]));
    }
    TRY(rotate_one(lowering, caches, query->sizes.heads, query, &attention->q));
    return rotate_one(lowering, caches, query->sizes.kv_heads, query, &attention->k);
}

/* ---- the cache ------------------------------------------------------------------------------------------------- */

/* Where each row of the new cache stands among the rows of past and new keys, one after the other for each head. */
static rnl_status find_rows(rnl_lowering *lowering, const group_query *query, int64_t room, rnl_view *out_rows)
{
    const rnl_attention_sizes *sizes = &query->sizes;
    const int64_t rows = sizes->past + sizes->length;
    rnl_view times, past = query->past, sources[3], base;
    past.rank = 3;
    TRY(rnl_compose_range(lowering, 0, room, 2, 3, &times));
    TRY(rnl_compose_binary(lowering, RNL_MAP_LESS, &times, &past, &sources[0]));
    TRY(rnl_compose_binary(lowering, RNL_MAP_SUB, &times, &past, &sources[2]));
    TRY(rnl_compose_with(lowering, RNL_MAP_ADD, &sources[2], (double)sizes->past, &sources[2]));
    TRY(rnl_compose_with(lowering, RNL_MAP_MIN, &sources[2], (double)rows - 1, &sources[2]));
    TRY(rnl_compose_with(lowering, RNL_MAP_MAX, &sources[2], 0, &sources[2]));
    sources[1] = times;
    TRY(rnl_compose_map(lowering, RNL_MAP_SELECT, sources, 3, out_rows));
    TRY(rnl_compose_range(lowering, 0, sizes->batch * sizes->kv_heads, 0, 1, &base));
    TRY(rnl_compose_with(lowering, RNL_MAP_MUL, &base, (double)rows, &base));
    const int64_t shape[] = {sizes->batch, sizes->kv_heads, 1};
    TRY(rnl_compose_reshape(lowering, &base, 3, shape, &base));
    return rnl_compose_binary(lowering, RNL_MAP_ADD, out_rows, &base, out_rows);
}

/* Past and new keys, or values, in an output's memory. */
static rnl_status append(rnl_lowering *lowering, const group_query *query, size_t past_index, size_t output,
                         const rnl_view *rows, rnl_view *view)
{
    const rnl_attention_sizes *sizes = &query->sizes;
    const int64_t room = query->total > sizes->past ? query->total : sizes->past, length = sizes->past + sizes->length;
    const int64_t shape[] = {sizes->batch, sizes->kv_heads, room, sizes->size};
    const int64_t all[] = {sizes->batch, sizes->kv_heads, length, sizes->size};
    const int64_t flat[] = {sizes->batch * sizes->kv_heads * length, sizes->size};
    rnl_view past, target, both;
    if (rnl_lower_has_output(lowering, output))
        TRY(rnl_lower_output(lowering, output, RNL_LAYOUT_ROW_MAJOR, &target));
    else
        TRY(rnl_lower_scratch(lowering, view->dtype, 4, shape, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(rnl_lower_input(lowering, past_index, RNL_LAYOUT_ANY, &past));
    if (sizes->past == 0) {
        TRY(rnl_lower_copy(lowering, view, &target));
    } else {
        TRY(rnl_lower_scratch(lowering, view->dtype, 4, all, RNL_LAYOUT_ROW_MAJOR, &both));
        TRY(rnl_attention_append(lowering, &past, view, &both));
        TRY(rnl_compose_reshape(lowering, &both, 2, flat, &both));
        TRY(rnl_op_gather(lowering->list, 0, &both, rows, &target));
    }
    *view = target;
    rnl_view_slice(view, 2, 0, query->total, 1);
    return RNL_OK;
}

static rnl_status append_both(rnl_lowering *lowering, const group_query *query, rnl_attention *attention)
{
    const int64_t room = query->total > query->sizes.past ? query->total : query->sizes.past;
    rnl_view rows = {.slot = RNL_NO_SLOT};
    if (query->sizes.past > 0)
        TRY(find_rows(lowering, query, room, &rows));
    TRY(append(lowering, query, PAST_KEY, 1, &rows, &attention->k));
    return append(lowering, query, PAST_VALUE, 2, &rows, &attention->v);
}

/* ---- masks ------------------------------------------------------------------------------------------------------ */

/* Keys up to the query's own, a window's last ones; without causality, up to the sample's last. */
static rnl_status find_allowed(rnl_lowering *lowering, const group_query *query, rnl_view *out_allowed)
{
    const rnl_node *node = lowering->context.node;
    const int64_t window = rnl_node_int(node, "local_window_size", -1);
    const bool causal = rnl_node_int(node, "causal", 1) != 0;
    rnl_view keys, queries, first, near;
    TRY(rnl_compose_range(lowering, 0, query->total, 3, 4, &keys));
    if (!causal) {
        TRY(rnl_compose_with(lowering, RNL_MAP_ADD, &query->past, (double)query->sizes.length, &first));
        return rnl_compose_binary(lowering, RNL_MAP_LESS, &keys, &first, out_allowed);
    }
    TRY(rnl_compose_range(lowering, 0, query->sizes.length, 2, 4, &queries));
    TRY(rnl_compose_binary(lowering, RNL_MAP_ADD, &queries, &query->past, &queries));
    TRY(rnl_compose_binary(lowering, RNL_MAP_LESS_EQUAL, &keys, &queries, out_allowed));
    if (window <= 0)
        return RNL_OK;
    TRY(rnl_compose_with(lowering, RNL_MAP_SUB, &queries, (double)window, &first));
    TRY(rnl_compose_binary(lowering, RNL_MAP_GREATER, &keys, &first, &near));
    return rnl_compose_binary(lowering, RNL_MAP_AND, out_allowed, &near, out_allowed);
}

static rnl_status find_bias(rnl_lowering *lowering, const group_query *query, rnl_attention *attention)
{
    const rnl_dtype dtype = attention->q.dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    rnl_view sources[3];
    TRY(find_allowed(lowering, query, &sources[0]));
    TRY(rnl_lower_input(lowering, BIAS, RNL_LAYOUT_ANY, &sources[1]));
    if (rnl_view_exists(&sources[1]))
        TRY(rnl_compose_cast(lowering, &sources[1], dtype, &sources[1]));
    else
        TRY(rnl_lower_scalar(lowering, dtype, 0, &sources[1]));
    TRY(rnl_lower_scalar(lowering, dtype, -(double)INFINITY, &sources[2]));
    return rnl_compose_map(lowering, RNL_MAP_SELECT, sources, 3, &attention->bias);
}

/* ---- operands --------------------------------------------------------------------------------------------------- */

static rnl_view columns(const rnl_view *view, int64_t first, int64_t count, int64_t heads)
{
    rnl_view part = *view;
    rnl_view_slice(&part, 2, first, count, 1);
    return rnl_attention_heads(&part, heads);
}

static rnl_status find_operands(rnl_lowering *lowering, const rnl_attention_sizes *sizes, rnl_attention *attention)
{
    const int64_t hidden = sizes->heads * sizes->size, kv_hidden = sizes->kv_heads * sizes->size;
    rnl_view query, key, value;
    TRY(rnl_lower_input(lowering, QUERY, RNL_LAYOUT_ANY, &query));
    TRY(rnl_lower_input(lowering, KEY, RNL_LAYOUT_ANY, &key));
    TRY(rnl_lower_input(lowering, VALUE, RNL_LAYOUT_ANY, &value));
    attention->q = columns(&query, 0, hidden, sizes->heads);
    const bool apart = rnl_view_exists(&key);
    attention->k =
        apart ? rnl_attention_heads(&key, sizes->kv_heads) : columns(&query, hidden, kv_hidden, sizes->kv_heads);
    attention->v = apart ? rnl_attention_heads(&value, sizes->kv_heads)
                         : columns(&query, hidden + kv_hidden, kv_hidden, sizes->kv_heads);
    return RNL_OK;
}

rnl_status rnl_lower_group_query_attention(rnl_lowering *lowering)
{
    const rnl_node *node = lowering->context.node;
    const rnl_view none = {.slot = RNL_NO_SLOT};
    rnl_attention attention = {.bias = none, .scores = none, .precision = RNL_DTYPE_NONE};
    group_query query;
    TRY(rnl_group_query_resolve(&lowering->context, &query.sizes, &query.total));
    query.is_first = query.total == query.sizes.length;
    TRY(find_past(lowering, &query));
    TRY(find_operands(lowering, &query.sizes, &attention));
    TRY(rotate(lowering, &query, &attention));
    TRY(append_both(lowering, &query, &attention));
    attention.scale = rnl_attention_scale(node, query.sizes.size, true);
    attention.softcap = rnl_node_float(node, "softcap", 0);
    TRY(find_bias(lowering, &query, &attention));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &attention.target));
    attention.target = rnl_attention_heads(&attention.target, query.sizes.heads);
    return rnl_compose_attention(lowering, &attention);
}
