/* SPDX-License-Identifier: Apache-2.0 */
/* Attention and MultiHeadAttention of com.microsoft. */
#include "graph/op_microsoft.h"
#include "model/attention.h"
#include "model/compose.h"
#include "model/lower_list.h"
#include "model/matrix.h"
#include <float.h>
#include <string.h>

#define FILTER_VALUE (-10000.0f) /* added to the scores of masked keys */

/* ---- masks ------------------------------------------------------------------------------------------------------- */

/* `count` numbers from `first` on, as batch, 1, 1, 1. */
static rnl_status per_sample(rnl_lowering *lowering, const rnl_view *list, int64_t first, int64_t count,
                             rnl_view *out_view)
{
    rnl_view part = *list;
    rnl_view_slice(&part, 0, first, count, 1);
    part.rank = 4;
    for (size_t i = 1; i < 4; i++) {
        part.shape[i] = 1;
        part.stride[i] = 0;
    }
    return rnl_compose_cast(lowering, &part, RNL_I64, out_view);
}

/* A list has the end of each sample's keys, and may have their starts behind; a longer one has sums that nobody needs.
 */
static rnl_status allow_by_list(rnl_lowering *lowering, const rnl_attention_sizes *sizes, const rnl_view *list,
                                rnl_view *out_allowed)
{
    rnl_view ends, starts, keys, behind;
    TRY(rnl_compose_range(lowering, 0, sizes->past + sizes->kv_length, 3, 4, &keys));
    TRY(per_sample(lowering, list, 0, sizes->batch, &ends));
    TRY(rnl_compose_binary(lowering, RNL_MAP_LESS, &keys, &ends, out_allowed));
    if (list->shape[0] != 2 * sizes->batch)
        return RNL_OK;
    TRY(per_sample(lowering, list, sizes->batch, sizes->batch, &starts));
    TRY(rnl_compose_binary(lowering, RNL_MAP_GREATER_EQUAL, &keys, &starts, &behind));
    return rnl_compose_binary(lowering, RNL_MAP_AND, out_allowed, &behind, out_allowed);
}

/* A mask as batch, 1, queries or 1, keys. */
static rnl_view as_scores(const rnl_view *mask, const rnl_attention_sizes *sizes)
{
    rnl_view result = *mask;
    result.rank = 4;
    if (mask->rank == 4) {
        rnl_view_slice(&result, 2, sizes->past, sizes->length, 1);
        rnl_view_slice(&result, 3, 0, sizes->past + sizes->kv_length, 1);
        return result;
    }
    result.shape[3] = mask->shape[mask->rank - 1];
    result.stride[3] = mask->stride[mask->rank - 1];
    result.shape[2] = mask->rank == 3 ? mask->shape[1] : 1;
    result.stride[2] = mask->rank == 3 ? mask->stride[1] : 0;
    result.shape[1] = 1;
    result.stride[1] = 0;
    return result;
}

static rnl_status allow_by_mask(rnl_lowering *lowering, const rnl_attention_sizes *sizes, size_t index,
                                rnl_view *out_allowed)
{
    rnl_view mask;
    TRY(rnl_lower_input(lowering, index, RNL_LAYOUT_ANY, &mask));
    if (mask.rank == 1)
        return allow_by_list(lowering, sizes, &mask, out_allowed);
    mask = as_scores(&mask, sizes);
    return rnl_compose_with(lowering, RNL_MAP_GREATER, &mask, 0, out_allowed);
}

/* `bias`, or 0, where a key is allowed; `number` elsewhere. */
static rnl_status choose(rnl_lowering *lowering, rnl_dtype dtype, const rnl_view *allowed, double number,
                         rnl_view *bias)
{
    rnl_view sources[3] = {*allowed, *bias};
    if (!rnl_view_exists(bias))
        TRY(rnl_lower_scalar(lowering, dtype, 0, &sources[1]));
    TRY(rnl_lower_scalar(lowering, dtype, number, &sources[2]));
    return rnl_compose_map(lowering, RNL_MAP_SELECT, sources, 3, bias);
}

static rnl_status hide_future(rnl_lowering *lowering, rnl_dtype dtype, const rnl_attention_sizes *sizes, rnl_view *bias)
{
    rnl_view keys, queries, allowed;
    TRY(rnl_compose_range(lowering, 0, sizes->past + sizes->kv_length, 3, 4, &keys));
    TRY(rnl_compose_range(lowering, sizes->past, sizes->length, 2, 4, &queries));
    TRY(rnl_compose_binary(lowering, RNL_MAP_LESS_EQUAL, &keys, &queries, &allowed));
    return choose(lowering, dtype, &allowed, -(double)FLT_MAX, bias);
}

static rnl_status find_bias(rnl_lowering *lowering, const rnl_attention_sizes *sizes, size_t mask_index,
                            size_t bias_index, rnl_attention *attention)
{
    const rnl_node *node = lowering->context.node;
    const rnl_dtype dtype = attention->q.dtype == RNL_F64 ? RNL_F64 : RNL_F32;
    rnl_view allowed, more, *bias = &attention->bias;
    if (rnl_lower_has_input(lowering, mask_index)) {
        TRY(allow_by_mask(lowering, sizes, mask_index, &allowed));
        TRY(choose(lowering, dtype, &allowed, (double)rnl_node_float(node, "mask_filter_value", FILTER_VALUE), bias));
    }
    if (rnl_node_int(node, "unidirectional", 0))
        TRY(hide_future(lowering, dtype, sizes, bias));
    if (!rnl_lower_has_input(lowering, bias_index))
        return RNL_OK;
    TRY(rnl_lower_input(lowering, bias_index, RNL_LAYOUT_ANY, &more));
    TRY(rnl_compose_cast(lowering, &more, dtype, &more));
    if (rnl_view_exists(bias))
        return rnl_compose_binary(lowering, RNL_MAP_ADD, bias, &more, bias);
    *bias = more;
    return RNL_OK;
}

static rnl_status attend(rnl_lowering *lowering, const rnl_attention_sizes *sizes, size_t mask_index, size_t bias_index,
                         rnl_attention *attention)
{
    attention->scale = rnl_attention_scale(lowering->context.node, sizes->size, true);
    TRY(find_bias(lowering, sizes, mask_index, bias_index, attention));
    TRY(rnl_lower_output(lowering, 0, RNL_LAYOUT_ROW_MAJOR, &attention->target));
    attention->target = rnl_attention_heads(&attention->target, sizes->heads);
    return rnl_compose_attention(lowering, attention);
}

static rnl_attention new_attention(void)
{
    const rnl_view none = {.slot = RNL_NO_SLOT};
    return (rnl_attention){.bias = none, .scores = none, .precision = RNL_DTYPE_NONE};
}

/* ---- Attention --------------------------------------------------------------------------------------------------- */

enum { INPUT, WEIGHTS, BIAS, MASK, PAST, ATTENTION_BIAS };

/* One of the entries along a dimension, which vanishes. */
static rnl_view pick(const rnl_view *view, size_t axis, int64_t entry)
{
    rnl_view result = *view;
    rnl_view_slice(&result, axis, entry, 1, 1);
    const size_t behind = view->rank - axis - 1;
    memmove(&result.shape[axis], &view->shape[axis + 1], behind * sizeof *view->shape);
    memmove(&result.stride[axis], &view->stride[axis + 1], behind * sizeof *view->stride);
    result.rank--;
    return result;
}

/* Keys and values, behind the past's where there are any, in the output that is to have them. */
static rnl_status append_present(rnl_lowering *lowering, const rnl_attention_sizes *sizes, rnl_attention *attention)
{
    rnl_view past, present, *views[] = {&attention->k, &attention->v};
    const int64_t shape[] = {2, sizes->batch, sizes->heads, sizes->past + sizes->kv_length, sizes->size};
    const bool wanted = rnl_lower_has_output(lowering, 1);
    TRY(rnl_lower_input(lowering, PAST, RNL_LAYOUT_ANY, &past));
    if (!wanted && !rnl_view_exists(&past))
        return RNL_OK;
    if (wanted)
        TRY(rnl_lower_output(lowering, 1, RNL_LAYOUT_ROW_MAJOR, &present));
    else
        TRY(rnl_lower_scratch(lowering, past.dtype, 5, shape, RNL_LAYOUT_ROW_MAJOR, &present));
    for (int64_t i = 0; i < 2; i++) {
        const rnl_view before = rnl_view_exists(&past) ? pick(&past, 0, i) : past, target = pick(&present, 0, i);
        TRY(rnl_attention_append(lowering, &before, views[i], &target));
        *views[i] = target;
    }
    return RNL_OK;
}

/* The columns of one of query, key and value, as heads. */
static rnl_view part_of(const rnl_view *projected, int64_t first, int64_t columns, int64_t heads)
{
    rnl_view part = *projected;
    rnl_view_slice(&part, 2, first, columns, 1);
    return rnl_attention_heads(&part, heads);
}

rnl_status rnl_lower_microsoft_attention(rnl_lowering *lowering)
{
    rnl_attention attention = new_attention();
    rnl_attention_sizes sizes;
    rnl_view projected;
    TRY(rnl_microsoft_attention_resolve(&lowering->context, &sizes));
    const int64_t hidden = sizes.heads * sizes.size, v_hidden = sizes.heads * sizes.v_size;
    TRY(rnl_lower_projection(lowering, &projected));
    attention.q = part_of(&projected, 0, hidden, sizes.heads);
    attention.k = part_of(&projected, hidden, hidden, sizes.heads);
    attention.v = part_of(&projected, 2 * hidden, v_hidden, sizes.heads);
    TRY(append_present(lowering, &sizes, &attention));
    return attend(lowering, &sizes, MASK, ATTENTION_BIAS, &attention);
}

/* ---- MultiHeadAttention ------------------------------------------------------------------------------------------ */

enum { QUERY, KEY, VALUE, MHA_BIAS, MHA_MASK, MHA_ATTENTION_BIAS, PAST_KEY, PAST_VALUE };

/* Batch, sequence, heads, size with a part of the bias added, as batch, heads, sequence, size. */
static rnl_status add_bias(rnl_lowering *lowering, int64_t first, rnl_view *view)
{
    static const size_t order[] = {0, 2, 1, 3};
    rnl_view bias;
    const int64_t shape[] = {view->shape[2], view->shape[3]};
    TRY(rnl_lower_input(lowering, MHA_BIAS, RNL_LAYOUT_ANY, &bias));
    if (rnl_view_exists(&bias)) {
        rnl_view_slice(&bias, 0, first, shape[0] * shape[1], 1);
        TRY(rnl_compose_reshape(lowering, &bias, 2, shape, &bias));
        TRY(rnl_compose_binary(lowering, RNL_MAP_ADD, view, &bias, view));
    }
    *view = rnl_view_permute(view, order);
    return RNL_OK;
}

/* Query, key or value as batch, sequence, heads, size. */
static rnl_view apart(const rnl_view *view, int64_t heads)
{
    static const size_t order[] = {0, 2, 1, 3};
    const rnl_view result = rnl_attention_heads(view, heads);
    return rnl_view_permute(&result, order);
}

static rnl_status find_operands(rnl_lowering *lowering, const rnl_attention_sizes *sizes, rnl_attention *attention)
{
    rnl_view views[3];
    for (size_t i = QUERY; i <= VALUE; i++)
        TRY(rnl_lower_input(lowering, i, RNL_LAYOUT_ANY, &views[i]));
    const int64_t hidden = sizes->heads * sizes->size;
    const bool packed = views[QUERY].rank == 5, given = !packed && views[KEY].rank == 4;
    attention->q = packed ? pick(&views[QUERY], 3, 0) : apart(&views[QUERY], sizes->heads);
    TRY(add_bias(lowering, 0, &attention->q));
    attention->k = views[KEY];
    attention->v = views[VALUE];
    if (given) /* from a cache: they have had their bias */
        return RNL_OK;
    if (packed || views[KEY].rank == 5) {
        const rnl_view *both = packed ? &views[QUERY] : &views[KEY];
        attention->k = pick(both, 3, packed ? 1 : 0);
        attention->v = pick(both, 3, packed ? 2 : 1);
    } else {
        attention->k = apart(&views[KEY], sizes->heads);
        attention->v = apart(&views[VALUE], sizes->heads);
    }
    TRY(add_bias(lowering, hidden, &attention->k));
    return add_bias(lowering, 2 * hidden, &attention->v);
}

rnl_status rnl_lower_multi_head_attention(rnl_lowering *lowering)
{
    rnl_attention attention = new_attention();
    rnl_attention_sizes sizes;
    TRY(rnl_multi_head_resolve(&lowering->context, &sizes));
    TRY(find_operands(lowering, &sizes, &attention));
    TRY(rnl_attention_with_past(lowering, PAST_KEY, 1, &attention.k));
    TRY(rnl_attention_with_past(lowering, PAST_VALUE, 2, &attention.v));
    return attend(lowering, &sizes, MHA_MASK, MHA_ATTENTION_BIAS, &attention);
}
