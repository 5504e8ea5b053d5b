/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce.h"
#include "support/op_test.h"
#include "support/op_values.h"
#include <math.h>

typedef struct reduce_job {
    rnl_reduce_op op;
    uint32_t axes;
    op_tensor *src, *dst;
    /* of the result that is being made */
    double sum, highest;
    int64_t whole; /* wrapped to 64 bits */
    int64_t count;
} reduce_job;

static void add_float(reduce_job *job, double x)
{
    switch (job->op) {
    case RNL_REDUCE_MAX:
        job->sum = isnan(x) || isnan(job->sum) ? NAN : fmax(job->sum, x);
        break;
    case RNL_REDUCE_MIN:
        job->sum = isnan(x) || isnan(job->sum) ? NAN : fmin(job->sum, x);
        break;
    case RNL_REDUCE_PROD:
        job->sum *= x;
        break;
    case RNL_REDUCE_L1:
        job->sum += fabs(x);
        break;
    case RNL_REDUCE_L2:
    case RNL_REDUCE_SUM_SQUARE:
        job->sum += x * x;
        break;
    case RNL_REDUCE_LOG_SUM_EXP:
        job->sum += exp(x - job->highest);
        break;
    default:
        job->sum += x;
    }
}

static void add_whole(reduce_job *job, op_value value)
{
    const uint64_t wrapped = (uint64_t)job->whole, x = (uint64_t)value.i;
    const bool is_unsigned = job->src->view.dtype == RNL_U64;
    const bool greater = is_unsigned ? x > wrapped : value.i > (int64_t)wrapped;
    switch (job->op) {
    case RNL_REDUCE_MAX:
        job->whole = greater ? value.i : (int64_t)wrapped;
        break;
    case RNL_REDUCE_MIN:
        job->whole = greater ? (int64_t)wrapped : value.i;
        break;
    case RNL_REDUCE_PROD:
        job->whole = (int64_t)(wrapped * x);
        break;
    case RNL_REDUCE_L1:
        job->whole = (int64_t)(wrapped + (!is_unsigned && value.i < 0 ? 0 - x : x));
        break;
    case RNL_REDUCE_L2:
    case RNL_REDUCE_SUM_SQUARE:
        job->whole = (int64_t)(wrapped + x * x);
        break;
    default:
        job->whole = (int64_t)(wrapped + x);
    }
}

/* Calls `add` for each element that reduces to the result at `at`. */
static void for_reduced(reduce_job *job, const int64_t *at, void (*add)(reduce_job *, op_value))
{
    const rnl_view *view = &job->src->view;
    int64_t place[RNL_MAX_RANK] = {0};
    int64_t total = 1;
    for (size_t d = 0; d < view->rank; ++d)
        total *= job->axes >> d & 1 ? view->shape[d] : 1;
    for (int64_t i = 0; i < total; ++i) {
        int64_t rest = i;
        for (size_t d = view->rank; d-- > 0;) {
            const bool reduced = job->axes >> d & 1;
            place[d] = reduced ? rest % view->shape[d] : at[d];
            rest = reduced ? rest / view->shape[d] : rest;
        }
        add(job, op_get(job->src, place));
    }
    job->count = total;
}

static void note_highest(reduce_job *job, op_value value)
{
    job->highest = fmax(job->highest, value.f);
}

static void add_value(reduce_job *job, op_value value)
{
    if (op_is_float(job->src->view.dtype))
        add_float(job, value.f);
    else
        add_whole(job, value);
}

static int64_t finish_whole(const reduce_job *job)
{
    const uint64_t wrapped = (uint64_t)job->whole;
    const bool is_unsigned = op_int_limit(job->src->view.dtype, false) == 0;
    if (job->op == RNL_REDUCE_MEAN)
        return job->count == 0 ? 0
               : is_unsigned   ? (int64_t)(wrapped / (uint64_t)job->count)
                               : (int64_t)wrapped / job->count;
    return job->op == RNL_REDUCE_L2 ? (int64_t)sqrtl((long double)wrapped) : (int64_t)wrapped;
}

static double finish_float(const reduce_job *job)
{
    switch (job->op) {
    case RNL_REDUCE_MEAN:
        return job->sum / (double)job->count;
    case RNL_REDUCE_L2:
        return sqrt(job->sum);
    case RNL_REDUCE_LOG_SUM:
        return log(job->sum);
    case RNL_REDUCE_LOG_SUM_EXP:
        return log(job->sum) + job->highest;
    default:
        return job->sum;
    }
}

static op_value reference(void *user, const int64_t *at)
{
    reduce_job *job = user;
    const rnl_dtype dtype = job->src->view.dtype;
    const bool is_max = job->op == RNL_REDUCE_MAX, is_min = job->op == RNL_REDUCE_MIN;
    job->sum = is_max ? -INFINITY : is_min ? INFINITY : job->op == RNL_REDUCE_PROD;
    job->whole = is_max || is_min ? op_int_limit(dtype, is_min) : job->op == RNL_REDUCE_PROD;
    job->highest = -INFINITY;
    for_reduced(job, at, note_highest);
    job->highest = isinf(job->highest) ? 0 : job->highest;
    for_reduced(job, at, add_value);
    return op_is_float(dtype) ? op_float(finish_float(job)) : op_int(finish_whole(job));
}

static reduce_job make_job(rnl_reduce_op op, rnl_dtype dtype, size_t rank, const int64_t *shape, uint32_t axes,
                           op_layout src_layout, op_layout dst_layout)
{
    reduce_job job = {.op = op, .axes = axes};
    int64_t result[RNL_MAX_RANK];
    for (size_t i = 0; i < rank; ++i)
        result[i] = axes >> i & 1 ? 1 : shape[i];
    job.src = op_tensor_create(dtype, rank, shape, src_layout);
    job.dst = op_tensor_create(dtype, rank, result, dst_layout);
    return job;
}

static void run_job(reduce_job *job, op_bound bound)
{
    op_note("reduction %d of %s, axes %x", (int)job->op, rnl_dtype_name(job->src->view.dtype), job->axes);
    op_expect(RNL_OK, rnl_op_reduce(op_list(), job->op, job->axes, &job->src->view, &job->dst->view));
    op_run();
    op_check(job->dst, reference, job, bound);
    op_reset();
}

/* Sums of numbers of both signs cancel: the error is relative to the sum of their sizes, here below `total`. */
static op_bound sum_bound(rnl_dtype dtype, double total)
{
    op_bound bound = op_tolerance(dtype);
    bound.absolute += total * (dtype == RNL_F64 ? 0x1p-50 : 0x1p-21);
    return bound;
}

static bool has_type(rnl_dtype dtype)
{
    return dtype != RNL_F64 || op_info()->has_fp64;
}

/* Each operator on each float type, by work-items and by groups. */
START_TEST(float_reductions)
{
    static const rnl_dtype types[] = {RNL_F32, RNL_F16, RNL_BF16, RNL_F64};
    const rnl_dtype dtype = types[_i / RNL_REDUCE_COUNT];
    const rnl_reduce_op op = (rnl_reduce_op)(_i % RNL_REDUCE_COUNT);
    const bool positive = op == RNL_REDUCE_PROD || op == RNL_REDUCE_LOG_SUM;
    const int64_t shapes[][3] = {{3, 7, 11}, {2, 3, 131}};
    const int type = _i / RNL_REDUCE_COUNT; /* all operators on the first, some on each of the others */
    if (!has_type(dtype) || (type && (int)op % 3 != type % 3))
        return;
    for (size_t s = 0; s < 2; ++s)
        for (uint32_t axes = 1; axes < 8; axes += 3) {
            reduce_job job = make_job(op, dtype, 3, shapes[s], axes, OP_ROW_MAJOR, OP_ROW_MAJOR);
            op_fill(job.src, OP_RANDOM, positive ? 0.9 : -3, positive ? 1.1 : 3);
            run_job(&job, sum_bound(dtype, op == RNL_REDUCE_MAX || op == RNL_REDUCE_MIN ? 0 : 20));
        }
}
END_TEST

START_TEST(special_values)
{
    static const rnl_reduce_op ops[] = {RNL_REDUCE_MAX, RNL_REDUCE_MIN, RNL_REDUCE_LOG_SUM_EXP, RNL_REDUCE_L1};
    const int64_t shapes[][2] = {{97, 5}, {23, 65}};
    for (size_t s = 0; s < 2; ++s) {
        reduce_job job = make_job(ops[_i], RNL_F32, 2, shapes[s], 2, OP_ROW_MAJOR, OP_ROW_MAJOR);
        op_fill(job.src, OP_RANDOM, -3, 3);
        for (int64_t row = 0; row < shapes[s][0]; ++row) { /* a special value or two in some rows */
            const double values[] = {NAN, INFINITY, -INFINITY, 0, -88, 90};
            op_put(job.src, (int64_t[]){row, row % 5}, op_float(values[row % 6]));
            op_put(job.src, (int64_t[]){row, row % 3}, op_float(values[row / 6 % 6]));
        }
        for (int64_t column = 0; column < shapes[s][1]; ++column) {
            op_put(job.src, (int64_t[]){4, column}, op_float(-INFINITY));
            op_put(job.src, (int64_t[]){5, column}, op_float(INFINITY));
        }
        run_job(&job, sum_bound(RNL_F32, 200));
    }
}
END_TEST

START_TEST(integer_reductions)
{
    static const rnl_dtype types[] = {RNL_I32, RNL_I64, RNL_U8, RNL_I8, RNL_U64, RNL_U32, RNL_I16, RNL_U16};
    const rnl_dtype dtype = types[_i / RNL_REDUCE_LOG_SUM];
    const rnl_reduce_op op = (rnl_reduce_op)(_i % RNL_REDUCE_LOG_SUM);
    const int64_t shapes[][3] = {{3, 7, 5}, {2, 3, 67}};
    const int type = _i / RNL_REDUCE_LOG_SUM; /* all operators on the first, some on each of the others */
    if (type && ((int)op % 4 != type % 4 || (type > 2 && op_small())))
        return;
    for (size_t s = 0; s < 2; ++s) {
        reduce_job job = make_job(op, dtype, 3, shapes[s], s ? 4 : 3, OP_ROW_MAJOR, OP_ROW_MAJOR);
        op_fill(job.src, op == RNL_REDUCE_L2 ? OP_RANDOM : OP_SPECIAL, op_int_limit(dtype, false) ? -9 : 0, 9);
        run_job(&job, op_tolerance(dtype));
    }
}
END_TEST

START_TEST(boolean_reductions)
{
    const int64_t shape[] = {13, 3};
    reduce_job job = make_job(_i ? RNL_REDUCE_MAX : RNL_REDUCE_MIN, RNL_BOOL, 2, shape, 2, OP_GAPS, OP_ROW_MAJOR);
    op_fill(job.src, OP_RANDOM, 0, 1);
    run_job(&job, op_tolerance(RNL_BOOL));
}
END_TEST

typedef struct reduce_form {
    size_t rank;
    int64_t shape[RNL_MAX_RANK];
    uint32_t axes;
} reduce_form;

static const reduce_form forms[] = {
    {0, {0}, 0},
    {1, {5}, 1},
    {1, {5}, 0},
    {1, {1}, 1},
    {2, {3, 129}, 2},
    {2, {129, 3}, 1},
    {3, {4, 5, 6}, 7},
    {3, {4, 1, 70}, 6},
    {4, {2, 3, 7, 5}, 0xc},
    {4, {2, 37, 3, 3}, 0xc},
    {4, {2, 3, 4, 5}, 0x5},
    {5, {2, 3, 2, 3, 4}, 0x15},
    {6, {2, 3, 2, 3, 2, 2}, 0x2a},
    {7, {2, 2, 3, 1, 2, 2, 3}, 0x55},
    {8, {2, 2, 3, 2, 1, 2, 3, 2}, 0xaa},
    {8, {2, 2, 3, 2, 2, 2, 1, 65}, 0xd5},
};
enum { FORMS = sizeof forms / sizeof *forms };

START_TEST(shapes_and_strides)
{
    const reduce_form *f = &forms[_i / OP_LAYOUT_COUNT];
    const op_layout layout = (op_layout)(_i % OP_LAYOUT_COUNT), other = (op_layout)((_i + 2) % OP_LAYOUT_COUNT);
    reduce_job job = make_job(RNL_REDUCE_SUM, RNL_F32, f->rank, f->shape, f->axes, layout, other);
    op_fill(job.src, OP_RANDOM, -3, 3);
    run_job(&job, sum_bound(RNL_F32, 100));
}
END_TEST

START_TEST(long_indices)
{
    for (uint32_t columns = 3; columns < 100; columns += 80) {
        const int64_t shape[] = {1, 5, columns};
        reduce_job job = make_job(RNL_REDUCE_SUM, RNL_F32, 3, shape, 4, OP_REVERSED, OP_GAPS);
        job.src->view.stride[0] = (int64_t)1 << 40;
        op_fill(job.src, OP_RANDOM, -3, 3);
        run_job(&job, sum_bound(RNL_F32, 100));
    }
}
END_TEST

/* Over nothing: the neutral element. */
START_TEST(empty_reductions)
{
    static const rnl_dtype types[] = {RNL_F32, RNL_I32, RNL_I8, RNL_BOOL};
    const int64_t shape[] = {3, 0, 2};
    for (size_t t = 0; t < 4; ++t)
        for (int op = 0; op < RNL_REDUCE_COUNT; ++op) {
            const bool ordering = op == RNL_REDUCE_MAX || op == RNL_REDUCE_MIN;
            if ((types[t] == RNL_BOOL && !ordering) || (t && op >= RNL_REDUCE_LOG_SUM))
                continue;
            reduce_job job = make_job((rnl_reduce_op)op, types[t], 3, shape, 2, OP_ROW_MAJOR, OP_ROW_MAJOR);
            run_job(&job, op_tolerance(types[t]));
        }
    reduce_job none = make_job(RNL_REDUCE_SUM, RNL_F32, 3, shape, 1, OP_ROW_MAJOR, OP_ROW_MAJOR);
    op_expect(RNL_OK, rnl_op_reduce(op_list(), none.op, 1, &none.src->view, &none.dst->view));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

/* A million numbers, all positive: each way of walking keeps the sum. */
START_TEST(long_sums)
{
    static const int64_t shapes[][3] = {{1, 1, 1000003}, {20011, 3, 50}, {1000, 1, 1009}};
    static const uint32_t axes[] = {4, 5, 5};
    if (op_small())
        return;
    reduce_job job = make_job(RNL_REDUCE_SUM, RNL_F32, 3, shapes[_i], axes[_i], OP_ROW_MAJOR, OP_ROW_MAJOR);
    op_fill(job.src, OP_RANDOM, 0.1, 1.7);
    run_job(&job, (op_bound){2e-6, 0});
}
END_TEST

START_TEST(refusals)
{
    const int64_t shape[] = {2, 3}, reduced[] = {2, 1};
    rnl_view src = rnl_view_row_major(0, RNL_F32, 2, shape), dst = rnl_view_row_major(1, RNL_F32, 2, reduced);
    rnl_view whole = rnl_view_row_major(1, RNL_I32, 2, reduced), whole_src = rnl_view_row_major(0, RNL_I32, 2, shape);
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_reduce(op_list(), RNL_REDUCE_SUM, 1, &src, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_reduce(op_list(), RNL_REDUCE_SUM, 4, &src, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_reduce(op_list(), RNL_REDUCE_SUM, 2, &src, &whole));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_reduce(op_list(), RNL_REDUCE_COUNT, 2, &src, &dst));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_reduce(op_list(), RNL_REDUCE_LOG_SUM, 2, &whole_src, &whole));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

static void add_tests(TCase *types, TCase *shapes)
{
    op_add_loop(types, float_reductions, 0, 4 * RNL_REDUCE_COUNT);
    op_add_loop(types, special_values, 0, 4);
    op_add_loop(shapes, shapes_and_strides, 0, FORMS * OP_LAYOUT_COUNT);
    tcase_add_test(shapes, long_indices);
    op_add_loop(shapes, long_sums, 0, 3);
}

int main(void)
{
    Suite *suite = suite_create("reduce");
    TCase *types = op_case(suite, "types"), *shapes = op_case(suite, "shapes"),
          *cpu = op_case_as_cpu(suite, "as a CPU");
    add_tests(types, shapes);
    if (cpu)
        add_tests(cpu, cpu);
    op_add_loop(types, integer_reductions, 0, 8 * RNL_REDUCE_LOG_SUM);
    op_add_loop(types, boolean_reductions, 0, 2);
    tcase_add_test(shapes, empty_reductions);
    tcase_add_test(shapes, refusals);
    return op_main(suite);
}
