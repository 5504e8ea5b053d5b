/* SPDX-License-Identifier: Apache-2.0 */
#include "support/qgemm_case.h"
#include <inttypes.h>
#include <math.h>

static int64_t element(const op_tensor *tensor, const qgemm_run *run, const int64_t *at, int64_t row, int64_t column)
{
    int64_t own[RNL_MAX_RANK];
    const size_t rank = tensor->view.rank, skipped = run->test.batch_rank + 2 - rank;
    for (size_t i = 0; i + 2 < rank; ++i)
        own[i] = tensor->view.shape[i] == 1 ? 0 : at[skipped + i];
    own[rank - 2] = tensor->view.shape[rank - 2] == 1 ? 0 : row;
    own[rank - 1] = tensor->view.shape[rank - 1] == 1 ? 0 : column;
    return op_get(tensor, own).i;
}

/* A zero point, bias or scale at a row or column. */
static op_value spread_value(const op_tensor *tensor, int64_t index)
{
    const int64_t at = tensor->view.shape[0] == 1 ? 0 : index;
    return op_get(tensor, &at);
}

static int64_t zero_of(const op_tensor *tensor, const qgemm_run *run, const int64_t *at, int64_t row, int64_t column)
{
    if (!tensor)
        return 0;
    if (tensor->view.rank == 0)
        return op_get(tensor, at).i;
    return tensor->view.rank == 1 ? spread_value(tensor, row + column).i : element(tensor, run, at, row, column);
}

int64_t qgemm_case_sum(const qgemm_run *run, const int64_t *at)
{
    const size_t rank = run->test.batch_rank + 2;
    const int64_t row = at[rank - 2], column = at[rank - 1];
    const int64_t za = zero_of(run->za, run, at, row, 0), zb = zero_of(run->zb, run, at, 0, column);
    int64_t sum = run->bias ? spread_value(run->bias, column).i : 0;
    for (int64_t k = 0; k < run->test.k; ++k)
        sum += (element(run->a, run, at, row, k) - za) * (element(run->b, run, at, k, column) - zb);
    return sum;
}

static double scale_of(const qgemm_run *run, int64_t column)
{
    const double scale = run->a_scale ? spread_value(run->a_scale, 0).f : 1;
    return scale * (run->b_scale ? spread_value(run->b_scale, column).f : 1);
}

/* In float32 at each step, as the operator says: next to a half, what is rounded before decides. */
static double scale_to_byte(const qgemm_run *run, int32_t sum, int64_t column)
{
    const float divisor = run->dst_scale ? (float)spread_value(run->dst_scale, 0).f : 1;
    const float scale = (float)scale_of(run, column) / divisor;
    return (double)((float)sum * scale);
}

static double apply_chain(const qgemm_run *run, double value, const int64_t *at)
{
    value *= 0.5;
    if (run->operand)
        value += op_get_broadcast(run->operand, run->test.batch_rank + 2, at).f;
    return value > -3 ? value : -3;
}

static op_value reference(void *user, const int64_t *at)
{
    const qgemm_run *run = user;
    const rnl_dtype type = run->test.dst_type;
    const int32_t sum = (int32_t)(uint32_t)(uint64_t)qgemm_case_sum(run, at);
    if (type == RNL_I32)
        return op_int(sum);
    const int64_t column = at[run->test.batch_rank + 1];
    double value = sum * scale_of(run, column);
    if (type == RNL_F32)
        return op_float(run->test.chain ? apply_chain(run, value, at) : value);
    const int low = type == RNL_I8 ? -128 : 0;
    value = nearbyint(scale_to_byte(run, sum, column)) + (run->zd ? (double)spread_value(run->zd, 0).i : 0);
    return op_int(value < low ? low : value > low + 255 ? low + 255 : (int64_t)value);
}

/* A matrix, or one stored transposed and viewed so. */
static op_tensor *create_matrix(const qgemm_run *run, rnl_dtype type, const int64_t size[2], size_t less, uint32_t ones,
                                bool transposed, bool gaps)
{
    const qgemm_case *test = &run->test;
    const size_t batch = test->batch_rank - less, rank = batch + 2;
    int64_t shape[RNL_MAX_RANK];
    for (size_t i = 0; i < batch; ++i)
        shape[i] = ones >> (i + less) & 1 ? 1 : test->batch[i + less];
    shape[batch] = size[transposed];
    shape[batch + 1] = size[!transposed];
    op_tensor *tensor = op_tensor_create(type, rank, shape, gaps ? OP_GAPS : OP_ROW_MAJOR);
    if (transposed) {
        const int64_t stride = tensor->view.stride[batch];
        tensor->view.shape[batch] = size[0];
        tensor->view.shape[batch + 1] = size[1];
        tensor->view.stride[batch] = tensor->view.stride[batch + 1];
        tensor->view.stride[batch + 1] = stride;
    }
    return tensor;
}

static void fill_bytes(const qgemm_run *run, op_tensor *tensor)
{
    const bool is_signed = tensor->view.dtype == RNL_I8;
    const int64_t count = op_elements(tensor), low = is_signed ? -128 : 0;
    int64_t at[RNL_MAX_RANK] = {0};
    op_fill(tensor, OP_RANDOM, is_signed ? -128 : 0, is_signed ? 127 : 255);
    for (int64_t i = 0; run->test.extremes && i < count; ++i) {
        op_coordinates(tensor, i, at);
        op_put(tensor, at, op_int(op_random() % 8 ? low + 255 : low));
    }
}

static op_tensor *create_spread(const qgemm_run *run, rnl_dtype type, qgemm_spread spread, bool is_row, size_t less)
{
    const qgemm_case *t = &run->test;
    int64_t shape[RNL_MAX_RANK] = {spread == QGEMM_ONE ? 1 : is_row ? t->m : t->n};
    size_t rank = 1;
    if (spread == QGEMM_NONE)
        return NULL;
    if (spread == QGEMM_EACH_BATCH) {
        rank = t->batch_rank - less + 2;
        for (size_t i = 0; i + 2 < rank; ++i)
            shape[i] = t->batch[i + less];
        shape[rank - 2] = is_row ? t->m : 1;
        shape[rank - 1] = is_row ? 1 : t->n;
    }
    return op_tensor_create(type, rank, shape, t->a_gaps ? OP_GAPS : OP_ROW_MAJOR);
}

static op_tensor *create_scale(const qgemm_run *run, qgemm_spread spread, double low, double high)
{
    op_tensor *tensor = create_spread(run, RNL_F32, spread, false, 0);
    if (tensor)
        op_fill(tensor, OP_RANDOM, low, high);
    return tensor;
}

static rnl_chain_source add_stage(qgemm_run *run, rnl_map_op op, rnl_chain_source a, rnl_chain_source b)
{
    rnl_chain_source result;
    ck_assert(rnl_chain_add_stage(&run->chain, op, (const rnl_chain_source[]){a, b}, 0, 0, &result));
    return result;
}

static rnl_chain_source add_scalar(qgemm_run *run, float value)
{
    rnl_chain_source scalar;
    ck_assert(rnl_chain_add_scalar(&run->chain, value, &scalar));
    return scalar;
}

static void create_chain(qgemm_run *run)
{
    const qgemm_case *t = &run->test;
    rnl_chain_source at = add_stage(run, RNL_MAP_MUL, (rnl_chain_source){RNL_CHAIN_INPUT, 0}, add_scalar(run, 0.5f)), y;
    if (t->chain == 2)
        run->operand = op_tensor_create(RNL_F32, 1, &t->n, OP_ROW_MAJOR);
    if (t->chain == 3)
        run->operand = create_matrix(run, RNL_F16, (const int64_t[]){t->m, t->n}, 0, 0, true, false);
    if (run->operand) {
        op_fill(run->operand, OP_RANDOM, -100, 100);
        ck_assert(rnl_chain_add_operand(&run->chain, &run->operand->view, &y));
        at = add_stage(run, RNL_MAP_ADD, at, y);
    }
    add_stage(run, RNL_MAP_MAX, at, add_scalar(run, -3));
}

static const rnl_view *view_of(const op_tensor *tensor)
{
    return tensor ? &tensor->view : NULL;
}

static void set_params(qgemm_run *run)
{
    run->params = (rnl_qgemm_params){.a_zero_point = view_of(run->za),
                                     .b_zero_point = view_of(run->zb),
                                     .bias = view_of(run->bias),
                                     .a_scale = view_of(run->a_scale),
                                     .b_scale = view_of(run->b_scale),
                                     .dst_scale = view_of(run->dst_scale),
                                     .dst_zero_point = view_of(run->zd),
                                     .chain = run->test.chain ? &run->chain : NULL};
}

void qgemm_case_create(qgemm_run *run)
{
    qgemm_case *t = &run->test;
    t->a_type = t->a_type ? t->a_type : RNL_U8;
    t->b_type = t->b_type ? t->b_type : RNL_I8;
    t->dst_type = t->dst_type ? t->dst_type : RNL_I32;
    run->a = create_matrix(run, t->a_type, (const int64_t[]){t->m, t->k + (t->a_apart ? 5 : 0)}, t->a_less, t->a_ones,
                           t->a_transposed, t->a_gaps);
    run->a->view.shape[run->a->view.rank - 1] = t->k;
    run->b =
        create_matrix(run, t->b_type, (const int64_t[]){t->k, t->n}, t->b_less, t->b_ones, t->b_transposed, t->b_gaps);
    run->dst = create_matrix(run, t->dst_type, (const int64_t[]){t->m, t->n}, 0, 0, t->dst_transposed, t->dst_gaps);
    fill_bytes(run, run->a);
    fill_bytes(run, run->b);
    run->za = create_spread(run, t->a_type, t->za, true, 0);
    run->zb = create_spread(run, t->b_type, t->zb, false, 0);
    run->zd = t->zd ? create_spread(run, t->dst_type, QGEMM_ONE, false, 0) : NULL;
    op_tensor *zeros[3] = {run->za, run->zb, run->zd};
    for (size_t i = 0; i < 3; ++i)
        if (zeros[i])
            fill_bytes(run, zeros[i]);
    run->bias = create_spread(run, RNL_I32, t->bias, false, 0);
    if (run->bias)
        op_fill(run->bias, OP_RANDOM, -100000, 100000);
    run->a_scale = create_scale(run, t->a_scale ? QGEMM_ONE : QGEMM_NONE, 0.01, 0.1);
    run->b_scale = create_scale(run, t->b_scale, 0.001, 0.1);
    run->dst_scale = create_scale(run, t->dst_scale ? QGEMM_ONE : QGEMM_NONE, 0.5, 2);
    if (t->chain)
        create_chain(run);
    set_params(run);
}

static void pack(qgemm_run *run)
{
    size_t bytes = 0;
    op_expect(RNL_OK, rnl_qgemm_packed_bytes(op_device(), &run->b->view, &bytes));
    const int64_t ints = (int64_t)(bytes / 4);
    if (!bytes)
        return;
    run->packed = op_tensor_create(RNL_I32, 1, &ints, OP_ROW_MAJOR);
    run->params.packed_b = &run->packed->view;
    op_expect(RNL_OK, rnl_op_qgemm_pack(op_list(), &run->b->view, &run->packed->view));
}

void qgemm_case_enqueue(qgemm_run *run)
{
    const rnl_view *a = &run->a->view, *b = &run->b->view, *dst = &run->dst->view;
    int64_t ints = 0;
    if (run->test.packed)
        pack(run);
    op_expect(RNL_OK, rnl_qgemm_scratch(op_device(), &run->params, a, b, dst, &ints));
    if (ints > 0 && !run->test.no_scratch)
        run->params.scratch = &op_tensor_create(RNL_I32, 1, &ints, OP_ROW_MAJOR)->view;
    op_expect(RNL_OK, rnl_op_qgemm(op_list(), &run->params, a, b, dst));
}

/* Scaling rounds the sum, each factor and their products to float32. */
void qgemm_case_check(qgemm_run *run)
{
    op_run();
    op_check(run->dst, reference, run, (op_bound){8 * 0x1p-24, 8 * 0x1p-24 * 200});
}

static void note(const qgemm_case *t)
{
    op_note("%s %s %s m%" PRId64 " n%" PRId64 " k%" PRId64
            " batch %zu transposed %d %d %d gaps %d %d %d apart %d zeros %d %d %d "
            "bias %d scales %d %d %d extremes %d packed %d chain %zu",
            rnl_dtype_name(t->a_type), rnl_dtype_name(t->b_type), rnl_dtype_name(t->dst_type), t->m, t->n, t->k,
            t->batch_rank, t->a_transposed, t->b_transposed, t->dst_transposed, t->a_gaps, t->b_gaps, t->dst_gaps,
            t->a_apart, t->za, t->zb, t->zd, t->bias, t->a_scale, t->b_scale, t->dst_scale, t->extremes, t->packed,
            t->chain);
}

void qgemm_case_run(const qgemm_case *given, const char *implementation)
{
    if (!op_chosen())
        return;
    qgemm_run run = {.test = *given};
    qgemm_case_create(&run);
    note(&run.test);
    qgemm_case_enqueue(&run);
    if (implementation)
        ck_assert_str_eq(op_list()->steps[op_list()->step_count - 1].implementation, implementation);
    qgemm_case_check(&run);
    op_reset();
}
