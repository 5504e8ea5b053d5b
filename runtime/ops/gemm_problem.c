/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm_problem.h"
#include "base/status.h"

static bool is_supported(rnl_dtype dtype)
{
    return rnl_dtype_is_float(dtype) || dtype == RNL_I32 || dtype == RNL_U32 || dtype == RNL_I64 || dtype == RNL_U64;
}

/* Exactly representable as every integer type that is multiplied. */
static bool is_small_integer(float value)
{
    return value >= -16777216.0f && value <= 16777216.0f && value == (float)(int32_t)value;
}

static rnl_status check_types(const rnl_gemm_params *params, const rnl_view *a, const rnl_view *b, const rnl_view *c,
                              const rnl_view *dst)
{
    if (!is_supported(dst->dtype))
        return FAIL(RNL_UNIMPLEMENTED, "matrix product of %s", rnl_dtype_name(dst->dtype));
    if (a->dtype != dst->dtype || b->dtype != dst->dtype || (c && c->dtype != dst->dtype))
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product of %s and %s into %s", rnl_dtype_name(a->dtype),
                    rnl_dtype_name(b->dtype), rnl_dtype_name(dst->dtype));
    if (!rnl_dtype_is_float(dst->dtype) && (!is_small_integer(params->alpha) || !is_small_integer(params->beta)))
        return FAIL(RNL_UNIMPLEMENTED, "matrix product of %s with factors %g and %g that are not integers",
                    rnl_dtype_name(dst->dtype), (double)params->alpha, (double)params->beta);
    return RNL_OK;
}

static rnl_status check_views(rnl_gemm_problem *problem)
{
    const rnl_view *views[4 + RNL_CHAIN_MAX_OPERANDS] = {problem->a, problem->b, problem->c, problem->dst};
    const size_t operands = problem->chain ? problem->chain->operand_count : 0;
    for (size_t i = 0; i < operands && i < RNL_CHAIN_MAX_OPERANDS; ++i)
        views[4 + i] = &problem->chain->operands[i];
    return rnl_views_check(views, sizeof views / sizeof *views, &problem->index64);
}

static rnl_status check_matrices(const rnl_view *a, const rnl_view *b, const rnl_view *dst)
{
    if (a->rank < 2 || b->rank < 2 || dst->rank < 2)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product of tensors of rank %zu and %zu into rank %zu; at least 2",
                    a->rank, b->rank, dst->rank);
    const int64_t *a_shape = &a->shape[a->rank - 2], *b_shape = &b->shape[b->rank - 2];
    const int64_t *dst_shape = &dst->shape[dst->rank - 2];
    if (a_shape[1] != b_shape[0] || a_shape[0] != dst_shape[0] || b_shape[1] != dst_shape[1])
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product of %lldx%lld and %lldx%lld into %lldx%lld",
                    (long long)a_shape[0], (long long)a_shape[1], (long long)b_shape[0], (long long)b_shape[1],
                    (long long)dst_shape[0], (long long)dst_shape[1]);
    return RNL_OK;
}

/* The strides with which all but the last two dimensions broadcast to dst's. */
static rnl_status broadcast_batch(const rnl_view *view, const rnl_view *dst, int64_t out_stride[RNL_MAX_RANK])
{
    rnl_view batch = *view;
    batch.rank -= 2;
    if (batch.rank > dst->rank - 2)
        return FAIL(RNL_INVALID_ARGUMENT, "matrix product of a tensor of rank %zu into rank %zu", view->rank,
                    dst->rank);
    return rnl_view_broadcast(&batch, dst->rank - 2, dst->shape, out_stride);
}

static rnl_status find_batch(rnl_gemm_problem *problem)
{
    rnl_dims *batch = &problem->batch;
    const rnl_view *dst = problem->dst;
    int64_t c_stride[RNL_MAX_RANK] = {0};
    *batch = (rnl_dims){.rank = dst->rank - 2, .views = RNL_GEMM_OPERAND};
    TRY(broadcast_batch(problem->a, dst, batch->stride[RNL_GEMM_A]), "broadcasting a matrix product's first factor");
    TRY(broadcast_batch(problem->b, dst, batch->stride[RNL_GEMM_B]), "broadcasting a matrix product's second factor");
    if (problem->c)
        TRY(rnl_view_broadcast(problem->c, dst->rank, dst->shape, c_stride), "broadcasting a matrix product's addend");
    problem->c_m = c_stride[dst->rank - 2];
    problem->c_n = c_stride[dst->rank - 1];
    for (size_t i = 0; i < batch->rank; ++i) {
        batch->shape[i] = dst->shape[i];
        batch->stride[RNL_GEMM_DST][i] = dst->stride[i];
        batch->stride[RNL_GEMM_C][i] = c_stride[i];
    }
    return RNL_OK;
}

static rnl_status find_operands(rnl_gemm_problem *problem)
{
    rnl_dims *batch = &problem->batch;
    const rnl_chain *chain = problem->chain;
    const size_t rank = problem->dst->rank;
    if (!chain)
        return RNL_OK;
    TRY(rnl_chain_check(chain, problem->dst), "at the end of a matrix product");
    for (size_t i = 0; i < chain->operand_count; ++i) {
        int64_t *stride = batch->stride[batch->views++];
        TRY(rnl_chain_broadcast(chain, i, problem->dst, stride));
        problem->operand_m[i] = stride[rank - 2];
        problem->operand_n[i] = stride[rank - 1];
    }
    return RNL_OK;
}

/* The batch dimension continues the rows: nothing changes from the last row of a matrix to the next matrix. */
static bool continues_rows(const rnl_gemm_problem *problem, size_t dim)
{
    const rnl_dims *batch = &problem->batch;
    if (batch->stride[RNL_GEMM_B][dim] != 0)
        return false;
    for (size_t i = 0; problem->m > 1 && i + RNL_GEMM_OPERAND < batch->views; ++i)
        if (batch->stride[RNL_GEMM_OPERAND + i][dim] != problem->operand_m[i] * problem->m)
            return false;
    return problem->m == 1 || (batch->stride[RNL_GEMM_A][dim] == problem->a_m * problem->m &&
                               batch->stride[RNL_GEMM_DST][dim] == problem->dst_m * problem->m &&
                               batch->stride[RNL_GEMM_C][dim] == problem->c_m * problem->m);
}

/* Tokens of many sentences times one weight are one matrix. */
static void merge_batch_into_rows(rnl_gemm_problem *problem)
{
    rnl_dims *batch = &problem->batch;
    while (batch->rank && continues_rows(problem, batch->rank - 1)) {
        const size_t dim = --batch->rank;
        if (problem->m == 1) {
            problem->a_m = batch->stride[RNL_GEMM_A][dim];
            problem->c_m = batch->stride[RNL_GEMM_C][dim];
            problem->dst_m = batch->stride[RNL_GEMM_DST][dim];
            for (size_t i = 0; i + RNL_GEMM_OPERAND < batch->views; ++i)
                problem->operand_m[i] = batch->stride[RNL_GEMM_OPERAND + i][dim];
        }
        problem->m *= batch->shape[dim];
    }
}

rnl_status rnl_gemm_describe(const rnl_gemm_params *params, const rnl_view *a, const rnl_view *b, const rnl_view *c,
                             const rnl_view *dst, rnl_gemm_problem *out_problem)
{
    if (!rnl_view_exists(c))
        c = NULL;
    rnl_gemm_problem problem = {.alpha = params->alpha,
                                .beta = params->beta,
                                .a = a,
                                .b = b,
                                .c = c,
                                .dst = dst,
                                .chain = params->chain,
                                .normwise = params->normwise,
                                .scratch = rnl_view_exists(params->scratch) ? params->scratch : NULL};
    TRY(check_types(params, a, b, c, dst));
    TRY(check_views(&problem));
    TRY(check_matrices(a, b, dst));
    TRY(find_batch(&problem));
    TRY(find_operands(&problem));
    if (params->beta == 0)
        problem.c = NULL;
    problem.m = dst->shape[dst->rank - 2];
    problem.n = dst->shape[dst->rank - 1];
    problem.k = a->shape[a->rank - 1];
    problem.a_m = a->stride[a->rank - 2];
    problem.a_k = a->stride[a->rank - 1];
    problem.b_k = b->stride[b->rank - 2];
    problem.b_n = b->stride[b->rank - 1];
    problem.dst_m = dst->stride[dst->rank - 2];
    problem.dst_n = dst->stride[dst->rank - 1];
    rnl_dims_coalesce(&problem.batch);
    if (problem.batch.rank > RNL_GEMM_MAX_BATCH_DIMS)
        return FAIL(RNL_UNIMPLEMENTED, "matrix product with %zu batch dimensions; at most %d are supported",
                    problem.batch.rank, RNL_GEMM_MAX_BATCH_DIMS);
    merge_batch_into_rows(&problem);
    *out_problem = problem;
    return RNL_OK;
}

uint64_t rnl_gemm_flops(const rnl_gemm_problem *problem)
{
    return 2 * (uint64_t)rnl_view_elements(problem->dst) * (uint64_t)problem->k +
           rnl_chain_flops(problem->chain, problem->dst);
}

uint64_t rnl_gemm_bytes(const rnl_gemm_problem *problem)
{
    uint64_t elements = (uint64_t)rnl_view_elements(problem->a) + (uint64_t)rnl_view_elements(problem->b) +
                        (uint64_t)rnl_view_elements(problem->dst);
    if (problem->c)
        elements += (uint64_t)rnl_view_elements(problem->c);
    return elements * rnl_dtype_bytes(problem->dst->dtype) + rnl_chain_bytes(problem->chain);
}

void rnl_gemm_add_chain(rnl_step_builder *step, const rnl_gemm_problem *problem)
{
    int64_t strides[RNL_CHAIN_MAX_OPERANDS][RNL_MAX_RANK] = {{0}};
    const rnl_dims *batch = &problem->batch;
    for (size_t i = 0; problem->chain && i < problem->chain->operand_count; ++i) {
        for (size_t d = 0; d < batch->rank; ++d)
            strides[i][d] = batch->stride[RNL_GEMM_OPERAND + i][batch->rank - 1 - d];
        strides[i][6] = problem->operand_m[i];
        strides[i][7] = problem->operand_n[i];
    }
    rnl_chain_define(step, problem->chain, problem->operand_n);
    rnl_chain_arguments(step, problem->chain, 8, (const int64_t(*)[RNL_MAX_RANK])strides, 8);
}
