/* SPDX-License-Identifier: Apache-2.0 */
#include "model/attention.h"

#include "model/compose.h"
#include "model/narrow.h"
#include "ops/attention.h"
#include <math.h>
#include <string.h>

/* Splits a dimension into `outer` and what is left of it. */
static rnl_view split(const rnl_view *view, size_t axis, int64_t outer)
{
    rnl_view result = *view;
    const size_t behind = view->rank - axis;
    memmove(&result.shape[axis + 1], &view->shape[axis], behind * sizeof *view->shape);
    memmove(&result.stride[axis + 1], &view->stride[axis], behind * sizeof *view->stride);
    result.rank++;
    result.shape[axis] = outer;
    result.shape[axis + 1] = outer ? view->shape[axis] / outer : 0;
    result.stride[axis] = view->stride[axis] * result.shape[axis + 1];
    return result;
}

rnl_view rnl_attention_heads(const rnl_view *view, int64_t heads)
{
    static const size_t order[] = {0, 2, 1, 3};
    const rnl_view apart = split(view, 2, heads);
    return rnl_view_permute(&apart, order);
}

rnl_status rnl_attention_append(rnl_lowering *lowering, const rnl_view *past, const rnl_view *view,
                                const rnl_view *target)
{
    const int64_t before = rnl_view_exists(past) ? past->shape[2] : 0;
    rnl_view part = *target;
    rnl_view_slice(&part, 2, before, view->shape[2], 1);
    TRY(rnl_lower_copy(lowering, view, &part));
    if (before == 0)
        return RNL_OK;
    part = *target;
    rnl_view_slice(&part, 2, 0, before, 1);
    return rnl_lower_copy(lowering, past, &part);
}

rnl_status rnl_attention_with_past(rnl_lowering *lowering, size_t past_index, size_t output, rnl_view *view)
{
    rnl_view past, target;
    const bool wanted = rnl_lower_has_output(lowering, output);
    TRY(rnl_lower_input(lowering, past_index, RNL_LAYOUT_ANY, &past));
    if (!wanted && !rnl_view_exists(&past))
        return RNL_OK;
    const int64_t before = rnl_view_exists(&past) ? past.shape[2] : 0;
    const int64_t shape[] = {view->shape[0], view->shape[1], before + view->shape[2], view->shape[3]};
    if (wanted)
        TRY(rnl_lower_output(lowering, output, RNL_LAYOUT_ROW_MAJOR, &target));
    else
        TRY(rnl_lower_scratch(lowering, view->dtype, 4, shape, RNL_LAYOUT_ROW_MAJOR, &target));
    TRY(rnl_attention_append(lowering, &past, view, &target));
    *view = target;
    return RNL_OK;
}

double rnl_attention_scale(const rnl_node *node, int64_t size, bool zero_is_usual)
{
    const double given = (double)rnl_node_float(node, "scale", 0);
    if (rnl_node_attribute(node, "scale") && !(zero_is_usual && given == 0))
        return given;
    return size > 0 ? 1 / sqrt((double)size) : 1;
}

/* a times b with the heads that share keys and values as a dimension of their own. */
rnl_status rnl_attention_product(rnl_lowering *lowering, double alpha, const rnl_view *a, const rnl_view *b,
                                 const rnl_view *target)
{
    rnl_gemm_params params = {.alpha = (float)alpha};
    const int64_t groups = b->shape[1];
    rnl_view left = *a;
    if (a->dtype == RNL_F64 && (double)params.alpha != alpha) { /* a product's factor is a float */
        TRY(rnl_compose_with(lowering, RNL_MAP_MUL, a, alpha, &left));
        params.alpha = 1;
    }
    if (groups == a->shape[1])
        return rnl_compose_product(lowering, &params, &left, b, NULL, target);
    left = split(&left, 1, groups);
    const rnl_view right = split(b, 1, groups), result = split(target, 1, groups);
    return rnl_compose_product(lowering, &params, &left, &right, NULL, &result);
}

rnl_view rnl_attention_rows(const rnl_view *view)
{
    rnl_view result = *view;
    const size_t added = 4 - view->rank;
    for (size_t i = 0; i < 4; i++) {
        result.shape[i] = i < added ? 1 : view->shape[i - added];
        result.stride[i] = i < added ? 0 : view->stride[i - added];
    }
    result.rank = 4;
    return result;
}

rnl_view rnl_attention_turned(const rnl_view *view)
{
    static const size_t order[] = {0, 1, 3, 2};
    return rnl_view_permute(view, order);
}

static rnl_status cap(rnl_lowering *lowering, double limit, rnl_view *scores)
{
    TRY(rnl_compose_with(lowering, RNL_MAP_DIV, scores, limit, scores));
    TRY(rnl_compose_unary(lowering, RNL_MAP_TANH, scores, scores));
    return rnl_compose_with(lowering, RNL_MAP_MUL, scores, limit, scores);
}

static rnl_status hand_out(rnl_lowering *lowering, const rnl_attention *attention, rnl_scores_mode mode,
                           const rnl_view *scores)
{
    if (!rnl_view_exists(&attention->scores) || attention->mode != mode)
        return RNL_OK;
    return rnl_lower_copy(lowering, scores, &attention->scores);
}

/* Scores of queries and keys, as softmax takes them. */
static rnl_status score(rnl_lowering *lowering, const rnl_attention *attention, rnl_view *out_scores)
{
    const rnl_view *q = &attention->q, keys = rnl_attention_turned(&attention->k);
    const int64_t shape[] = {q->shape[0], q->shape[1], q->shape[2], keys.shape[3]};
    TRY(rnl_lower_scratch(lowering, q->dtype, 4, shape, RNL_LAYOUT_ROW_MAJOR, out_scores));
    TRY(rnl_attention_product(lowering, attention->scale, q, &keys, out_scores));
    TRY(hand_out(lowering, attention, RNL_SCORES_RAW, out_scores));
    if (attention->softcap > 0)
        TRY(cap(lowering, (double)attention->softcap, out_scores));
    TRY(hand_out(lowering, attention, RNL_SCORES_CAPPED, out_scores));
    if (rnl_view_exists(&attention->bias))
        TRY(rnl_compose_binary(lowering, RNL_MAP_ADD, out_scores, &attention->bias, out_scores));
    return hand_out(lowering, attention, RNL_SCORES_BIASED, out_scores);
}

/* BOOL: queries that no key serves, broadcast to the scores. */
static rnl_status find_empty(rnl_lowering *lowering, const rnl_view *bias, rnl_view *out_empty)
{
    rnl_view highest;
    TRY(rnl_compose_reduce(lowering, RNL_REDUCE_MAX, 1u << (bias->rank - 1), bias, &highest));
    return rnl_compose_with(lowering, RNL_MAP_EQUAL, &highest, -(double)INFINITY, out_empty);
}

static rnl_status weigh(rnl_lowering *lowering, const rnl_attention *attention, rnl_view *scores)
{
    const rnl_dtype dtype = scores->dtype;
    rnl_view sources[3];
    if (attention->precision != RNL_DTYPE_NONE)
        TRY(rnl_compose_cast(lowering, scores, attention->precision, scores));
    TRY(rnl_lower_scratch(lowering, scores->dtype, 4, scores->shape, RNL_LAYOUT_ROW_MAJOR, &sources[2]));
    TRY(rnl_op_softmax(lowering->list, false, 3, 3, scores, &sources[2]));
    *scores = sources[2];
    if (attention->may_be_empty) {
        TRY(find_empty(lowering, &attention->bias, &sources[0]));
        TRY(rnl_lower_scalar(lowering, scores->dtype, 0, &sources[1]));
        TRY(rnl_compose_map(lowering, RNL_MAP_SELECT, sources, 3, scores));
    }
    TRY(rnl_compose_cast(lowering, scores, dtype, scores));
    return hand_out(lowering, attention, RNL_SCORES_PROBABILITIES, scores);
}

/* As one step, where the device likes that and nothing in between is asked for. */
static bool is_one_step(const rnl_lowering *lowering, const rnl_attention *attention, rnl_attention_step *out_step)
{
    *out_step = (rnl_attention_step){.query = attention->q,
                                     .key = attention->k,
                                     .value = attention->v,
                                     .dst = attention->target,
                                     .bias = attention->bias,
                                     .scale = (float)attention->scale,
                                     .empty_gives_zero = attention->may_be_empty,
                                     .pairs = rnl_narrow_is_on(lowering->planner->model)};
    const bool plain = attention->precision == RNL_DTYPE_NONE || attention->precision == RNL_F32;
    return plain && attention->softcap <= 0 && !rnl_view_exists(&attention->scores) &&
           rnl_op_attention_pays(lowering->list->device, out_step);
}

static rnl_status compute(rnl_lowering *lowering, const rnl_attention *attention)
{
    rnl_attention_step step;
    rnl_view scores, v;
    if (is_one_step(lowering, attention, &step))
        return rnl_op_attention(lowering->list, &step);
    TRY(score(lowering, attention, &scores));
    TRY(weigh(lowering, attention, &scores));
    TRY(rnl_compose_cast(lowering, &attention->v, scores.dtype, &v));
    return rnl_attention_product(lowering, 1, &scores, &v, &attention->target);
}

/* Halves are computed in f32 from end to end, and rounded once. */
rnl_status rnl_compose_attention(rnl_lowering *lowering, const rnl_attention *attention)
{
    rnl_attention wide = *attention;
    const rnl_view *target = &attention->target;
    if (attention->q.dtype != RNL_F16 && attention->q.dtype != RNL_BF16)
        return compute(lowering, attention);
    TRY(rnl_compose_cast(lowering, &wide.q, RNL_F32, &wide.q));
    TRY(rnl_compose_cast(lowering, &wide.k, RNL_F32, &wide.k));
    if (rnl_view_exists(&wide.bias))
        TRY(rnl_compose_cast(lowering, &wide.bias, RNL_F32, &wide.bias));
    TRY(rnl_lower_scratch(lowering, RNL_F32, 4, target->shape, RNL_LAYOUT_ROW_MAJOR, &wide.target));
    TRY(compute(lowering, &wide));
    return rnl_lower_copy(lowering, &wide.target, target);
}
