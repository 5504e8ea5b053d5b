/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"
#include "ops/qgemm_pack.h"

static bool is_byte(rnl_dtype dtype)
{
    return dtype == RNL_U8 || dtype == RNL_I8;
}

/* One view that a caller may leave out. */
static rnl_status take(const rnl_view *given, rnl_dtype dtype, uint32_t bit, const char *name,
                       rnl_qgemm_problem *problem, const rnl_view **out_view)
{
    if (!rnl_view_exists(given))
        return RNL_OK;
    if (given->dtype != dtype)
        return FAIL(RNL_INVALID_ARGUMENT, "an integer matrix product's %s is %s and must be %s", name,
                    rnl_dtype_name(given->dtype), rnl_dtype_name(dtype));
    problem->has |= bit;
    *out_view = given;
    return RNL_OK;
}

static rnl_status take_views(rnl_qgemm_problem *p, const rnl_qgemm_params *given, rnl_dtype b_type)
{
    const rnl_dtype type = p->dst->dtype;
    TRY(take(given->a_zero_point, p->a->dtype, RNL_QGEMM_HAS_ZA, "first zero point", p, &p->za));
    TRY(take(given->b_zero_point, b_type, RNL_QGEMM_HAS_ZB, "second zero point", p, &p->zb));
    TRY(take(given->bias, RNL_I32, RNL_QGEMM_HAS_BIAS, "bias", p, &p->bias));
    TRY(take(given->a_scale, RNL_F32, RNL_QGEMM_HAS_A_SCALE, "first scale", p, &p->a_scale));
    TRY(take(given->b_scale, RNL_F32, RNL_QGEMM_HAS_B_SCALE, "second scale", p, &p->b_scale));
    TRY(take(given->dst_scale, RNL_F32, RNL_QGEMM_HAS_DST_SCALE, "result's scale", p, &p->dst_scale));
    TRY(take(given->dst_zero_point, type, RNL_QGEMM_HAS_ZD, "result's zero point", p, &p->zd));
    if (p->zb || b_type == RNL_U8)
        p->has |= RNL_QGEMM_ROW_SUMS;
    if (type == RNL_I32 && (p->a_scale || p->b_scale))
        return FAIL(RNL_INVALID_ARGUMENT, "an integer matrix product into int32 takes no scales");
    if (!is_byte(type) && (p->dst_scale || p->zd))
        return FAIL(RNL_INVALID_ARGUMENT, "an integer matrix product into %s has no scale or zero point of its result",
                    rnl_dtype_name(type));
    if (p->chain && type != RNL_F32)
        return FAIL(RNL_INVALID_ARGUMENT, "a chain ends an integer matrix product into float32, not into %s",
                    rnl_dtype_name(type));
    return RNL_OK;
}

static rnl_status check_types(const rnl_view *a, const rnl_view *b, const rnl_view *dst)
{
    if (!is_byte(a->dtype) || !is_byte(b->dtype) ||
        (!is_byte(dst->dtype) && dst->dtype != RNL_I32 && dst->dtype != RNL_F32))
        return FAIL(RNL_UNIMPLEMENTED, "integer matrix product of %s and %s into %s", rnl_dtype_name(a->dtype),
                    rnl_dtype_name(b->dtype), rnl_dtype_name(dst->dtype));
    return RNL_OK;
}

static rnl_status check_matrices(const rnl_view *a, const rnl_view *b, const rnl_view *dst)
{
    if (a->rank < 2 || b->rank < 2 || dst->rank < 2)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "integer matrix product of tensors of rank %zu and %zu into rank %zu; at least 2", a->rank, b->rank,
                    dst->rank);
    const int64_t *a_shape = &a->shape[a->rank - 2], *b_shape = &b->shape[b->rank - 2];
    const int64_t *dst_shape = &dst->shape[dst->rank - 2];
    if (a_shape[1] != b_shape[0] || a_shape[0] != dst_shape[0] || b_shape[1] != dst_shape[1])
        return FAIL(RNL_INVALID_ARGUMENT, "integer matrix product of %lldx%lld and %lldx%lld into %lldx%lld",
                    (long long)a_shape[0], (long long)a_shape[1], (long long)b_shape[0], (long long)b_shape[1],
                    (long long)dst_shape[0], (long long)dst_shape[1]);
    return RNL_OK;
}

static rnl_status check_views(rnl_qgemm_problem *p, const rnl_view *b)
{
    const rnl_view *views[11 + RNL_CHAIN_MAX_OPERANDS] = {
        p->a, b, p->dst, p->za, p->zb, p->bias, p->a_scale, p->b_scale, p->dst_scale, p->zd, p->packed};
    const size_t operands = p->chain ? p->chain->operand_count : 0;
    for (size_t i = 0; i < operands && i < RNL_CHAIN_MAX_OPERANDS; ++i)
        views[11 + i] = &p->chain->operands[i];
    return rnl_views_check(views, sizeof views / sizeof *views, &p->index64);
}

/* The strides with which all but the last two dimensions broadcast to dst's. */
static rnl_status broadcast_batch(const rnl_view *view, const rnl_view *dst, int64_t out_stride[RNL_MAX_RANK])
{
    rnl_view batch = *view;
    batch.rank -= 2;
    if (batch.rank > dst->rank - 2)
        return FAIL(RNL_INVALID_ARGUMENT, "integer matrix product of a tensor of rank %zu into rank %zu", view->rank,
                    dst->rank);
    return rnl_view_broadcast(&batch, dst->rank - 2, dst->shape, out_stride);
}

/* `view` has one element, or one for each of `count` rows or columns, in one dimension or in the one of two. */
static rnl_status spread(const rnl_qgemm_problem *p, const rnl_view *view, bool is_row, int64_t count, const char *name,
                         int64_t out_batch[RNL_MAX_RANK], int64_t *out_stride)
{
    *out_stride = 0;
    if (!view || rnl_view_elements(view) == 1)
        return RNL_OK;
    const size_t rank = view->rank, at = is_row ? rank - 2 : rank - 1;
    if (rank == 1 && view->shape[0] == count) {
        *out_stride = view->stride[0];
        return RNL_OK;
    }
    if (rank < 2 || view->shape[is_row ? rank - 1 : rank - 2] != 1 ||
        (view->shape[at] != count && view->shape[at] != 1) || !out_batch)
        return FAIL(RNL_INVALID_ARGUMENT,
                    "an integer matrix product's %s has neither one element nor one for each of %lld %s", name,
                    (long long)count, is_row ? "rows" : "columns");
    *out_stride = view->shape[at] == 1 ? 0 : view->stride[at];
    return broadcast_batch(view, p->dst, out_batch);
}

static rnl_status find_strides(rnl_qgemm_problem *p)
{
    rnl_dims *batch = &p->batch;
    const rnl_view *singles[3] = {p->a_scale, p->dst_scale, p->zd};
    TRY(spread(p, p->za, true, p->m, "first zero point", batch->stride[RNL_QGEMM_ZA], &p->za_m));
    TRY(spread(p, p->zb, false, p->n, "second zero point", batch->stride[RNL_QGEMM_ZB], &p->zb_n));
    TRY(spread(p, p->bias, false, p->n, "bias", NULL, &p->bias_n));
    TRY(spread(p, p->b_scale, false, p->n, "second scale", NULL, &p->b_scale_n));
    for (size_t i = 0; i < 3; ++i)
        if (singles[i] && rnl_view_elements(singles[i]) != 1)
            return FAIL(RNL_INVALID_ARGUMENT, "an integer matrix product's %s has %lld elements and must have one",
                        i == 0   ? "first scale"
                        : i == 1 ? "result's scale"
                                 : "result's zero point",
                        (long long)rnl_view_elements(singles[i]));
    return RNL_OK;
}

static rnl_status find_batch(rnl_qgemm_problem *p)
{
    rnl_dims *batch = &p->batch;
    *batch = (rnl_dims){.rank = p->dst->rank - 2, .views = RNL_QGEMM_OPERAND};
    TRY(broadcast_batch(p->a, p->dst, batch->stride[RNL_QGEMM_A]), "broadcasting a matrix product's first factor");
    TRY(broadcast_batch(p->b, p->dst, batch->stride[RNL_QGEMM_B]), "broadcasting a matrix product's second factor");
    for (size_t i = 0; i < batch->rank; ++i) {
        batch->shape[i] = p->dst->shape[i];
        batch->stride[RNL_QGEMM_DST][i] = p->dst->stride[i];
    }
    return find_strides(p);
}

static rnl_status find_operands(rnl_qgemm_problem *p)
{
    const size_t rank = p->dst->rank;
    if (!p->chain)
        return RNL_OK;
    TRY(rnl_chain_check(p->chain, p->dst), "at the end of an integer matrix product");
    for (size_t i = 0; i < p->chain->operand_count; ++i) {
        int64_t *stride = p->batch.stride[p->batch.views++];
        TRY(rnl_chain_broadcast(p->chain, i, p->dst, stride));
        p->operand_m[i] = stride[rank - 2];
        p->operand_n[i] = stride[rank - 1];
    }
    return RNL_OK;
}

/* The stride of a row of each of the batch's views; NULL for b's, which have none. */
static int64_t *row_stride(rnl_qgemm_problem *p, size_t view)
{
    switch (view) {
    case RNL_QGEMM_DST:
        return &p->dst_m;
    case RNL_QGEMM_A:
        return &p->a_m;
    case RNL_QGEMM_ZA:
        return &p->za_m;
    default:
        return view >= RNL_QGEMM_OPERAND ? &p->operand_m[view - RNL_QGEMM_OPERAND] : NULL;
    }
}

/* The batch dimension continues the rows: nothing changes from the last row of a matrix to the next matrix. */
static bool continues_rows(rnl_qgemm_problem *p, size_t dim)
{
    for (size_t v = 0; v < p->batch.views; ++v) {
        const int64_t *row = row_stride(p, v);
        if (row ? p->m > 1 && p->batch.stride[v][dim] != *row * p->m : p->batch.stride[v][dim] != 0)
            return false;
    }
    return true;
}

/* Tokens of many sentences times one weight are one matrix. */
static void merge_batch_into_rows(rnl_qgemm_problem *p)
{
    while (p->batch.rank && continues_rows(p, p->batch.rank - 1)) {
        const size_t dim = --p->batch.rank;
        for (size_t v = 0; v < p->batch.views; ++v)
            if (p->m == 1 && row_stride(p, v))
                *row_stride(p, v) = p->batch.stride[v][dim];
        p->m *= p->batch.shape[dim];
    }
}

static void find_matrices(rnl_qgemm_problem *p, const rnl_view *b)
{
    const rnl_view *a = p->a, *dst = p->dst;
    p->m = dst->shape[dst->rank - 2];
    p->n = dst->shape[dst->rank - 1];
    p->k = a->shape[a->rank - 1];
    p->a_m = a->stride[a->rank - 2];
    p->a_k = a->stride[a->rank - 1];
    p->b_k = b->stride[b->rank - 2];
    p->b_n = b->stride[b->rank - 1];
    p->dst_m = dst->stride[dst->rank - 2];
    p->dst_n = dst->stride[dst->rank - 1];
}

/* Has the problem read b from its packed form. */
static rnl_status use_packed(rnl_qgemm_problem *p, const rnl_view *b)
{
    rnl_qgemm_panels panels;
    if (!p->packed || !rnl_qgemm_panels_of(b, &panels)) {
        p->packed = NULL;
        return RNL_OK;
    }
    if (p->packed->dtype != RNL_I32 || rnl_view_elements(p->packed) < panels.ints)
        return FAIL(RNL_INVALID_ARGUMENT, "a packed factor has %lld elements of %s and must have %lld of int32",
                    (long long)rnl_view_elements(p->packed), rnl_dtype_name(p->packed->dtype), (long long)panels.ints);
    p->packed_b = rnl_qgemm_packed_view(&panels, b, p->packed);
    p->b_n = panels.panel_ints;
    return RNL_OK;
}

rnl_status rnl_qgemm_describe(rnl_device *device, const rnl_qgemm_params *params, const rnl_view *a, const rnl_view *b,
                              const rnl_view *dst, rnl_qgemm_problem *p)
{
    *p = (rnl_qgemm_problem){.device = device,
                             .params = params,
                             .a = a,
                             .b = b,
                             .b_given = b,
                             .dst = dst,
                             .chain = params->chain,
                             .packed = rnl_view_exists(params->packed_b) ? params->packed_b : NULL,
                             .scratch = rnl_view_exists(params->scratch) ? params->scratch : NULL};
    TRY(check_types(a, b, dst));
    TRY(take_views(p, params, b->dtype));
    TRY(check_views(p, b));
    TRY(check_matrices(a, b, dst));
    find_matrices(p, b);
    TRY(use_packed(p, b));
    if (p->packed)
        p->b = &p->packed_b;
    TRY(find_batch(p));
    TRY(find_operands(p));
    rnl_dims_coalesce(&p->batch);
    if (p->batch.rank > RNL_QGEMM_MAX_BATCH_DIMS)
        return FAIL(RNL_UNIMPLEMENTED, "integer matrix product with %zu batch dimensions; at most %d are supported",
                    p->batch.rank, RNL_QGEMM_MAX_BATCH_DIMS);
    merge_batch_into_rows(p);
    return RNL_OK;
}

bool rnl_qgemm_takes_vectors(const rnl_qgemm_problem *p)
{
    bool takes = p->dst_n == 1 || p->n == 1;
    for (size_t i = 0; p->chain && i < p->chain->operand_count; ++i)
        takes = takes && (p->operand_n[i] == 0 || p->operand_n[i] == 1);
    return takes;
}
