/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/normalize.h"
#include "support/op_test.h"
#include <math.h>

typedef struct normalize_job {
    uint32_t axes;
    op_tensor *src, *scale, *bias, *dst;
} normalize_job;

#define EPSILON 1e-3f

static double at_number(const normalize_job *job, const int64_t *at, int64_t number)
{
    int64_t place[RNL_MAX_RANK];
    for (size_t d = job->src->view.rank; d-- > 0;) {
        const int64_t size = job->src->view.shape[d];
        place[d] = job->axes >> d & 1 ? number % size : at[d];
        number = job->axes >> d & 1 ? number / size : number;
    }
    return op_get(job->src, place).f;
}

static op_value reference(void *user, const int64_t *at)
{
    const normalize_job *job = user;
    const size_t rank = job->src->view.rank;
    int64_t count = 1;
    double sum = 0, squares = 0;
    for (size_t d = 0; d < rank; ++d)
        count *= job->axes >> d & 1 ? job->src->view.shape[d] : 1;
    for (int64_t i = 0; i < count; ++i)
        sum += at_number(job, at, i);
    const double mean = sum / (double)count;
    for (int64_t i = 0; i < count; ++i)
        squares += pow(at_number(job, at, i) - mean, 2);
    const double deviation = sqrt(squares / (double)count + (double)EPSILON);
    return op_float((op_get(job->src, at).f - mean) / deviation * op_get_broadcast(job->scale, rank, at).f +
                    op_get_broadcast(job->bias, rank, at).f);
}

typedef struct normalize_form {
    size_t rank;
    uint32_t axes;
    size_t own_rank; /* of scale and bias */
    int64_t shape[RNL_MAX_RANK], own_shape[RNL_MAX_RANK];
} normalize_form;

static const normalize_form forms[] = {
    {2, 2, 1, {5, 37}, {37}}, /* LayerNormalization */
    {3, 4, 1, {2, 3, 64}, {64}},
    {3, 6, 2, {2, 5, 12}, {5, 12}},
    {2, 2, 0, {3, 100}, {0}},
    {4, 12, 3, {2, 6, 4, 5}, {6, 1, 1}}, /* InstanceNormalization */
    {4, 12, 3, {1, 19, 3, 7}, {19, 1, 1}},
    {3, 4, 2, {2, 16, 9}, {16, 1}},
    {5, 28, 4, {2, 33, 2, 3, 2}, {33, 1, 1, 1}},
    {1, 1, 1, {3}, {3}},
    {3, 2, 3, {4, 70, 5}, {4, 1, 5}},
    {2, 1, 1, {1, 6}, {6}},
};
enum { FORMS = sizeof forms / sizeof *forms };

static void run_types(const normalize_form *form, rnl_dtype dtype, rnl_dtype to, op_layout src, op_layout dst,
                      double offset)
{
    normalize_job job = {.axes = form->axes};
    op_bound bound = op_tolerance(to);
    job.src = op_tensor_create(dtype, form->rank, form->shape, src);
    job.dst = op_tensor_create(to, form->rank, form->shape, dst);
    job.scale = op_tensor_create(dtype, form->own_rank, form->own_shape, OP_ROW_MAJOR);
    job.bias = op_tensor_create(dtype, form->own_rank, form->own_shape, OP_ROW_MAJOR);
    op_fill(job.src, OP_RANDOM, offset - 3, offset + 3);
    op_fill(job.scale, OP_RANDOM, -2, 2);
    op_fill(job.bias, OP_RANDOM, -2, 2);
    /* The mean's rounding is relative to the mean, the result's to its largest part. */
    bound.absolute += dtype == RNL_F64 ? 1e-12 : 4e-6 + 2e-6 * fabs(offset);
    op_note("axes %x of rank %zu, %s, layouts %d %d", form->axes, form->rank, rnl_dtype_name(dtype), (int)src,
            (int)dst);
    op_expect(RNL_OK, rnl_op_normalize(op_list(), form->axes, EPSILON, &job.src->view, &job.scale->view,
                                       &job.bias->view, &job.dst->view));
    op_run();
    op_check(job.dst, reference, &job, bound);
    op_reset();
}

static void run_form(const normalize_form *form, rnl_dtype dtype, op_layout src, op_layout dst, double offset)
{
    run_types(form, dtype, dtype, src, dst, offset);
}

START_TEST(shapes_and_layouts)
{
    run_form(&forms[_i / OP_LAYOUT_COUNT], RNL_F32, (op_layout)(_i % OP_LAYOUT_COUNT), OP_ROW_MAJOR, 0);
    run_form(&forms[_i / OP_LAYOUT_COUNT], RNL_F32, (op_layout)(_i % OP_LAYOUT_COUNT),
             (op_layout)(_i % OP_LAYOUT_COUNT), 1);
}
END_TEST

START_TEST(types)
{
    static const rnl_dtype dtypes[] = {RNL_F16, RNL_BF16, RNL_F64};
    if (dtypes[_i % 3] == RNL_F64 && !op_info()->has_fp64)
        return;
    run_form(&forms[_i / 3 ? 5 : 0], dtypes[_i % 3], OP_CHANNELS_LAST, OP_CHANNELS_LAST, 0);
}
END_TEST

/* float32 to bfloat16: vectors along rows and across, and neither. */
START_TEST(narrowing)
{
    static const size_t some[] = {0, 1, 6, 9, 10};
    run_types(&forms[some[_i]], RNL_F32, RNL_BF16, OP_ROW_MAJOR, _i % 2 ? OP_GAPS : OP_ROW_MAJOR, 0);
}
END_TEST

/* Squares of differences, not differences of squares. */
START_TEST(large_means)
{
    run_form(&forms[_i * 4], RNL_F32, OP_CHANNELS_LAST, OP_CHANNELS_LAST, 1000);
}
END_TEST

START_TEST(long_rows)
{
    const normalize_form form = {2, 2, 1, {2, op_small() ? 300 : 50003}, {op_small() ? 300 : 50003}};
    normalize_job job = {.axes = form.axes};
    job.src = op_tensor_create(RNL_F32, 2, form.shape, OP_ROW_MAJOR);
    job.dst = op_tensor_create(RNL_F32, 2, form.shape, OP_ROW_MAJOR);
    job.scale = op_tensor_create(RNL_F32, 1, form.own_shape, OP_ROW_MAJOR);
    job.bias = op_tensor_create(RNL_F32, 1, form.own_shape, OP_ROW_MAJOR);
    op_fill(job.src, OP_RANDOM, 2, 3);
    op_fill(job.scale, OP_RANDOM, -2, 2);
    op_fill(job.bias, OP_RANDOM, -2, 2);
    op_expect(RNL_OK, rnl_op_normalize(op_list(), form.axes, EPSILON, &job.src->view, &job.scale->view, &job.bias->view,
                                       &job.dst->view));
    op_run();
    for (int64_t i = 0; i < 6; ++i) {
        const int64_t at[] = {i % 2, i * (form.shape[1] - 1) / 5};
        ck_assert_double_le(fabs(op_get(job.dst, at).f - reference(&job, at).f), 2e-5);
    }
}
END_TEST

START_TEST(nothing_and_refusals)
{
    const int64_t empty[] = {2, 0}, shape[] = {2, 3}, other[] = {4};
    rnl_view none = rnl_view_row_major(0, RNL_F32, 2, empty), src = rnl_view_row_major(0, RNL_F32, 2, shape);
    rnl_view one = rnl_view_row_major(1, RNL_F32, 0, NULL), four = rnl_view_row_major(1, RNL_F32, 1, other);
    rnl_view whole = rnl_view_row_major(0, RNL_I32, 2, shape), whole_one = rnl_view_row_major(1, RNL_I32, 0, NULL);
    op_expect(RNL_OK, rnl_op_normalize(op_list(), 2, 0, &none, &one, &one, &none));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_normalize(op_list(), 2, 0, &src, &one, &one, &none));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_normalize(op_list(), 4, 0, &src, &one, &one, &src));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_normalize(op_list(), 2, 0, &src, &four, &one, &src));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_normalize(op_list(), 2, 0, &src, &one, &whole_one, &src));
    rnl_view half = rnl_view_row_major(0, RNL_F16, 2, shape);
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_normalize(op_list(), 2, 0, &src, &one, &one, &half));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_normalize(op_list(), 2, 0, &whole, &whole_one, &whole_one, &whole));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    op_add_loop(tests, shapes_and_layouts, 0, FORMS * OP_LAYOUT_COUNT);
    op_add_loop(tests, types, 0, 6);
    op_add_loop(tests, narrowing, 0, 5);
    op_add_loop(tests, large_means, 0, 2);
    tcase_add_test(tests, long_rows);
}

int main(void)
{
    Suite *suite = suite_create("normalize");
    TCase *tests = op_case(suite, "normalize");
    add_tests(tests);
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    tcase_add_test(tests, nothing_and_refusals);
    return op_main(suite);
}
