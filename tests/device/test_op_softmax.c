/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/reduce.h"
#include "support/op_test.h"
#include <math.h>

typedef struct softmax_job {
    bool logarithm;
    size_t first, last;
    op_tensor *src, *dst;
} softmax_job;

static double at_number(const softmax_job *job, const int64_t *at, int64_t number)
{
    int64_t place[RNL_MAX_RANK] = {0};
    for (size_t d = job->src->view.rank; d-- > 0;) {
        const bool inside = d >= job->first && d <= job->last;
        place[d] = inside ? number % job->src->view.shape[d] : at[d];
        number = inside ? number / job->src->view.shape[d] : number;
    }
    return op_get(job->src, place).f;
}

static op_value reference(void *user, const int64_t *at)
{
    const softmax_job *job = user;
    int64_t count = 1;
    double highest = -INFINITY, sum = 0;
    for (size_t d = job->first; d <= job->last; ++d)
        count *= job->src->view.shape[d];
    for (int64_t i = 0; i < count; ++i) {
        const double x = at_number(job, at, i);
        highest = isnan(x) || x > highest ? x : highest;
    }
    for (int64_t i = 0; i < count; ++i)
        sum += exp(at_number(job, at, i) - highest);
    const double x = op_get(job->src, at).f - highest;
    return op_float(job->logarithm ? x - log(sum) : exp(x) / sum);
}

static softmax_job make_job(rnl_dtype dtype, size_t rank, const int64_t *shape, op_layout src, op_layout dst)
{
    softmax_job job = {.logarithm = false};
    job.src = op_tensor_create(dtype, rank, shape, src);
    job.dst = op_tensor_create(dtype, rank, shape, dst);
    return job;
}

static void run_job(softmax_job *job)
{
    op_bound bound = op_tolerance(job->src->view.dtype);
    if (job->logarithm) /* near 0 it is the difference of larger numbers */
        bound.absolute += job->src->view.dtype == RNL_F64 ? 1e-14 : 4e-6;
    op_note("softmax of %s, axes %zu to %zu, logarithm %d", rnl_dtype_name(job->src->view.dtype), job->first, job->last,
            job->logarithm);
    op_expect(RNL_OK,
              rnl_op_softmax(op_list(), job->logarithm, job->first, job->last, &job->src->view, &job->dst->view));
    op_run();
    op_check(job->dst, reference, job, bound);
    op_reset();
}

START_TEST(types)
{
    static const rnl_dtype dtypes[] = {RNL_F32, RNL_F16, RNL_BF16, RNL_F64};
    const int64_t shapes[][2] = {{9, 13}, {5, 130}};
    const rnl_dtype dtype = dtypes[_i / 2];
    for (size_t s = 0; s < 2 && (dtype != RNL_F64 || op_info()->has_fp64); ++s) {
        softmax_job job = make_job(dtype, 2, shapes[s], OP_ROW_MAJOR, OP_ROW_MAJOR);
        job.first = job.last = 1;
        job.logarithm = _i % 2;
        op_fill(job.src, OP_RANDOM, -20, 20);
        run_job(&job);
    }
}
END_TEST

typedef struct softmax_form {
    size_t rank, first, last;
    int64_t shape[RNL_MAX_RANK];
} softmax_form;

static const softmax_form forms[] = {
    {1, 0, 0, {7}},
    {1, 0, 0, {1}},
    {2, 0, 0, {67, 3}},
    {2, 0, 1, {5, 6}},
    {3, 2, 2, {2, 3, 65}},
    {3, 1, 1, {2, 70, 3}},
    {4, 1, 3, {2, 3, 5, 7}},
    {4, 1, 1, {2, 3, 5, 7}},
    {5, 0, 2, {2, 3, 2, 2, 3}},
    {6, 3, 5, {2, 1, 2, 3, 1, 5}},
    {8, 2, 6, {2, 1, 2, 3, 2, 2, 2, 2}},
};
enum { FORMS = sizeof forms / sizeof *forms };

START_TEST(shapes_and_strides)
{
    const softmax_form *f = &forms[_i / OP_LAYOUT_COUNT];
    softmax_job job = make_job(RNL_F32, f->rank, f->shape, (op_layout)(_i % OP_LAYOUT_COUNT),
                               (op_layout)((_i + 3) % OP_LAYOUT_COUNT));
    job.first = f->first;
    job.last = f->last;
    job.logarithm = _i & 1;
    op_fill(job.src, OP_RANDOM, -9, 9);
    run_job(&job);
}
END_TEST

START_TEST(special_values)
{
    const int64_t shape[] = {24, _i & 2 ? 81 : 6};
    softmax_job job = make_job(RNL_F32, 2, shape, OP_ROW_MAJOR, OP_ROW_MAJOR);
    const double values[] = {NAN, INFINITY, -INFINITY, 1e30, -1e30, 100};
    job.first = job.last = 1;
    job.logarithm = _i & 1;
    op_fill(job.src, OP_RANDOM, -3, 3);
    for (int64_t row = 0; row < 23; ++row)
        op_put(job.src, (int64_t[]){row, row % 6}, op_float(values[row % 6]));
    for (int64_t row = 6; row < 18; ++row)
        op_put(job.src, (int64_t[]){row, (row + 2) % 6}, op_float(values[(row / 6) + 1]));
    for (int64_t column = 0; column < shape[1]; ++column)
        op_put(job.src, (int64_t[]){23, column}, op_float(-INFINITY));
    run_job(&job);
}
END_TEST

START_TEST(long_set)
{
    const int64_t shape[] = {2, 100003};
    if (op_small())
        return;
    softmax_job job = make_job(RNL_F32, 2, shape, _i ? OP_SHUFFLED : OP_ROW_MAJOR, OP_ROW_MAJOR);
    job.first = job.last = 1;
    op_fill(job.src, OP_RANDOM, -1, 1);
    /* The reference takes the square of the size: look at a few elements through views of them. */
    op_expect(RNL_OK, rnl_op_softmax(op_list(), false, 1, 1, &job.src->view, &job.dst->view));
    op_run();
    for (int64_t i = 0; i < 5; ++i) {
        const int64_t at[] = {i % 2, i * 25000};
        const double expected = reference(&job, at).f, got = op_get(job.dst, at).f;
        ck_assert_double_le(fabs(got - expected), 4e-6 * expected);
    }
}
END_TEST

START_TEST(nothing_and_refusals)
{
    const int64_t empty[] = {2, 0}, shape[] = {2, 3};
    rnl_view none = rnl_view_row_major(0, RNL_F32, 2, empty), src = rnl_view_row_major(0, RNL_F32, 2, shape);
    rnl_view whole = rnl_view_row_major(0, RNL_I32, 2, shape);
    op_expect(RNL_OK, rnl_op_softmax(op_list(), false, 1, 1, &none, &none));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_softmax(op_list(), false, 1, 2, &src, &src));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_softmax(op_list(), false, 1, 0, &src, &src));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_softmax(op_list(), false, 1, 1, &src, &none));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_softmax(op_list(), false, 1, 1, &whole, &whole));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    op_add_loop(tests, types, 0, 8);
    op_add_loop(tests, shapes_and_strides, 0, FORMS * OP_LAYOUT_COUNT);
    op_add_loop(tests, special_values, 0, 4);
    op_add_loop(tests, long_set, 0, 2);
}

int main(void)
{
    Suite *suite = suite_create("softmax");
    TCase *tests = op_case(suite, "softmax");
    add_tests(tests);
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    tcase_add_test(tests, nothing_and_refusals);
    return op_main(suite);
}
