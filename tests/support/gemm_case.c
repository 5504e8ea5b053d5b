/* SPDX-License-Identifier: Apache-2.0 */
#include "support/gemm_case.h"
#include <inttypes.h>
#include <math.h>

static op_value get_batched(const op_tensor *tensor, const gemm_run *run, const int64_t *at, int64_t row,
                            int64_t column)
{
    int64_t own[RNL_MAX_RANK];
    const size_t rank = tensor->view.rank, skipped = run->test.batch_rank + 2 - rank;
    for (size_t i = 0; i + 2 < rank; ++i)
        own[i] = tensor->view.shape[i] == 1 ? 0 : at[skipped + i];
    own[rank - 2] = row;
    own[rank - 1] = column;
    return op_get(tensor, own);
}

static double apply_chain(const gemm_run *run, double value, const int64_t *at)
{
    const size_t rank = run->test.batch_rank + 2;
    value *= 0.75;
    for (size_t i = 0; i < run->test.operands; ++i) {
        const double y = op_get_broadcast(run->operands[i], rank, at).f;
        value = i == 1 ? value * y : i == 2 ? y - value : value + y;
    }
    return isnan(value) || value > -0.5 ? value : -0.5;
}

op_value gemm_case_reference(void *user, const int64_t *at)
{
    const gemm_run *run = user;
    const gemm_case *test = &run->test;
    const size_t rank = test->batch_rank + 2;
    double sum = 0;
    uint64_t integer = 0;
    for (int64_t k = 0; k < test->k; ++k) {
        const op_value x = get_batched(run->a, run, at, at[rank - 2], k);
        const op_value y = get_batched(run->b, run, at, k, at[rank - 1]);
        sum += x.f * y.f;
        integer += (uint64_t)x.i * (uint64_t)y.i;
    }
    op_value value = {(double)test->alpha * sum, (int64_t)((uint64_t)(int64_t)test->alpha * integer)};
    if (run->c && test->beta != 0) {
        const op_value c = op_get_broadcast(run->c, rank, at);
        value.f += (double)test->beta * c.f;
        value.i = (int64_t)((uint64_t)value.i + (uint64_t)(int64_t)test->beta * (uint64_t)c.i);
    }
    if (test->chain)
        value.f = apply_chain(run, value.f, at);
    return value;
}

/* A matrix, or one stored transposed and viewed so. */
static op_tensor *create_matrix(const gemm_run *run, int64_t rows, int64_t columns, size_t less, uint32_t ones,
                                bool transposed, bool gaps)
{
    const gemm_case *test = &run->test;
    const size_t batch = test->batch_rank - less, rank = batch + 2;
    int64_t shape[RNL_MAX_RANK];
    for (size_t i = 0; i < batch; ++i)
        shape[i] = ones >> (i + less) & 1 ? 1 : test->batch[i + less];
    shape[batch] = transposed ? columns : rows;
    shape[batch + 1] = transposed ? rows : columns;
    op_tensor *tensor = op_tensor_create(test->dtype, rank, shape, gaps ? OP_GAPS : OP_ROW_MAJOR);
    if (transposed) {
        const int64_t stride = tensor->view.stride[batch];
        tensor->view.shape[batch] = rows;
        tensor->view.shape[batch + 1] = columns;
        tensor->view.stride[batch] = tensor->view.stride[batch + 1];
        tensor->view.stride[batch + 1] = stride;
    }
    return tensor;
}

static void create_addend(gemm_run *run)
{
    const rnl_view *dst = &run->dst->view;
    int64_t shape[RNL_MAX_RANK];
    const size_t rank = run->test.c_rank;
    for (size_t i = 0; i < rank; ++i)
        shape[i] = run->test.c_ones >> (rank - 1 - i) & 1 ? 1 : dst->shape[dst->rank - rank + i];
    run->c = op_tensor_create(run->test.dtype, rank, shape, OP_ROW_MAJOR);
}

static rnl_chain_source add_stage(gemm_run *run, rnl_map_op op, rnl_chain_source a, rnl_chain_source b)
{
    rnl_chain_source result;
    ck_assert(rnl_chain_add_stage(&run->chain, op, (const rnl_chain_source[]){a, b}, 0, 0, &result));
    return result;
}

static rnl_chain_source add_operand(gemm_run *run, size_t index)
{
    const gemm_case *test = &run->test;
    const rnl_view *dst = &run->dst->view;
    int64_t shape[RNL_MAX_RANK];
    rnl_chain_source result;
    for (size_t i = 0; i < dst->rank; ++i)
        shape[i] = test->operand_ones[index] >> (dst->rank - 1 - i) & 1 ? 1 : dst->shape[i];
    op_tensor *tensor = op_tensor_create(test->operand_types[index] ? test->operand_types[index] : RNL_F32, dst->rank,
                                         shape, test->operand_layouts[index]);
    op_fill(tensor, OP_RANDOM, -1, 1);
    run->operands[index] = tensor;
    ck_assert(rnl_chain_add_operand(&run->chain, &tensor->view, &result));
    return result;
}

static void create_chain(gemm_run *run)
{
    rnl_chain_source at = {RNL_CHAIN_INPUT, 0}, scalar;
    ck_assert(rnl_chain_add_scalar(&run->chain, 0.75f, &scalar));
    at = add_stage(run, RNL_MAP_MUL, at, scalar);
    for (size_t i = 0; i < run->test.operands; ++i) {
        const rnl_chain_source y = add_operand(run, i);
        if (i == 2)
            at = add_stage(run, RNL_MAP_SUB, y, at);
        else
            at = add_stage(run, i == 1 ? RNL_MAP_MUL : RNL_MAP_ADD, at, y);
    }
    ck_assert(rnl_chain_add_scalar(&run->chain, -0.5f, &scalar));
    add_stage(run, RNL_MAP_MAX, at, scalar);
}

void gemm_case_create(gemm_run *run)
{
    const gemm_case *t = &run->test;
    run->a = create_matrix(run, t->m, t->k, t->a_less, t->a_ones, t->a_transposed, t->a_gaps);
    run->b = create_matrix(run, t->k, t->n, t->b_less, t->b_ones, t->b_transposed, t->b_gaps);
    run->dst = create_matrix(run, t->m, t->n, 0, 0, t->dst_transposed, t->dst_gaps);
    op_fill(run->a, OP_RANDOM, -1, 1);
    op_fill(run->b, OP_RANDOM, -1, 1);
    if (t->chain)
        create_chain(run);
    if (!t->c_rank)
        return;
    create_addend(run);
    op_fill(run->c, OP_RANDOM, -1, 1);
}

static void note(const gemm_case *t)
{
    op_note("%s%s m%" PRId64 " n%" PRId64 " k%" PRId64
            " batch %zu transposed %d %d %d gaps %d %d %d alpha %g beta %g c "
            "%zu/%u chain %d %zu %u,%u,%u,%u",
            rnl_dtype_name(t->dtype), t->packs_b ? " packed" : "", t->m, t->n, t->k, t->batch_rank, t->a_transposed,
            t->b_transposed, t->dst_transposed, t->a_gaps, t->b_gaps, t->dst_gaps, (double)t->alpha, (double)t->beta,
            t->c_rank, t->c_ones, t->chain, t->operands, t->operand_ones[0], t->operand_ones[1], t->operand_ones[2],
            t->operand_ones[3]);
}

void gemm_case_defaults(gemm_case *test)
{
    test->dtype = test->dtype ? test->dtype : RNL_F32;
    if (test->alpha == 0 && test->beta == 0)
        test->alpha = test->beta = 1;
}

/* Each addition of products of at most 1 may round by half a unit of a sum of at most that many. */
static op_bound bound_for(const gemm_case *test)
{
    op_bound bound = op_tolerance(test->dtype);
    const double unit = test->dtype == RNL_F64 ? 0x1p-52 : 0x1p-23;
    const double terms = (double)test->k + 1 + (test->chain ? 8 : 0);
    bound.absolute += terms * unit * (fabs((double)test->alpha) + fabs((double)test->beta));
    return bound;
}

rnl_gemm_params gemm_case_params(gemm_run *run)
{
    return (rnl_gemm_params){
        .alpha = run->test.alpha, .beta = run->test.beta, .chain = run->test.chain ? &run->chain : NULL};
}

/* NULL where there is no packed form. */
static const rnl_view *pack_b(const gemm_run *run)
{
    int64_t floats = 0;
    op_expect(RNL_OK, rnl_gemm_packed(op_device(), &run->b->view, &floats));
    if (floats == 0)
        return NULL;
    const rnl_view *packed = &op_tensor_create(RNL_F32, 1, &floats, OP_ROW_MAJOR)->view;
    op_expect(RNL_OK, rnl_op_gemm_pack(op_list(), &run->b->view, packed));
    return packed;
}

void gemm_case_enqueue(gemm_run *run)
{
    rnl_gemm_params params = gemm_case_params(run);
    const rnl_view *c = run->c ? &run->c->view : NULL;
    int64_t floats = 0;
    if (run->test.packs_b)
        params.packed_b = pack_b(run);
    op_expect(RNL_OK,
              rnl_gemm_scratch(op_device(), &params, &run->a->view, &run->b->view, c, &run->dst->view, &floats));
    if (floats > 0)
        params.scratch = &op_tensor_create(RNL_F32, 1, &floats, OP_ROW_MAJOR)->view;
    op_expect(RNL_OK, rnl_op_gemm(op_list(), &params, &run->a->view, &run->b->view, run->c ? &run->c->view : NULL,
                                  &run->dst->view));
}

void gemm_case_check(gemm_run *run)
{
    op_run();
    op_check(run->dst, gemm_case_reference, run, bound_for(&run->test));
}

void gemm_case_run(const gemm_case *given)
{
    if (!op_chosen())
        return;
    gemm_run run = {.test = *given};
    gemm_case_defaults(&run.test);
    note(&run.test);
    gemm_case_create(&run);
    gemm_case_enqueue(&run);
    gemm_case_check(&run);
    op_reset();
}
