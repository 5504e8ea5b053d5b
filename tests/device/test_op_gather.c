/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/implementation.h"
#include "ops/resize.h"
#include "support/op_test.h"
#include "support/op_values.h"

typedef struct gather_job {
    size_t axis;
    op_tensor *data, *indices, *dst;
} gather_job;

static op_value reference(void *user, const int64_t *at)
{
    const gather_job *job = user;
    const size_t replaced = job->indices->view.rank;
    int64_t from[RNL_MAX_RANK] = {0};
    const int64_t size = job->data->view.shape[job->axis], wanted = op_get(job->indices, at + job->axis).i;
    int64_t index = wanted < 0 ? wanted + size : wanted;
    index = index < 0 ? 0 : index >= size ? size - 1 : index; /* out of range: the nearest */
    for (size_t i = 0; i < job->data->view.rank; ++i)
        from[i] = i < job->axis ? at[i] : i == job->axis ? index : at[i + replaced - 1];
    return op_get(job->data, from);
}

static gather_job make_job(rnl_dtype dtype, rnl_dtype index_type, size_t axis, size_t rank, const int64_t *shape,
                           size_t index_rank, const int64_t *index_shape, int layout)
{
    gather_job job = {.axis = axis};
    int64_t result[RNL_MAX_RANK];
    size_t d = 0;
    for (size_t i = 0; i < axis; ++i)
        result[d++] = shape[i];
    for (size_t i = 0; i < index_rank; ++i)
        result[d++] = index_shape[i];
    for (size_t i = axis + 1; i < rank; ++i)
        result[d++] = shape[i];
    job.data = op_tensor_create(dtype, rank, shape, (op_layout)(layout % OP_LAYOUT_COUNT));
    job.indices = op_tensor_create(index_type, index_rank, index_shape, (op_layout)((layout + 2) % OP_LAYOUT_COUNT));
    job.dst = op_tensor_create(dtype, d, result, (op_layout)((layout + 3) % OP_LAYOUT_COUNT));
    op_fill(job.data, OP_SPECIAL, 0, 100);
    op_fill(job.indices, OP_RANDOM, (double)-shape[axis], (double)(shape[axis] - 1));
    return job;
}

static void run_job(gather_job *job)
{
    op_note("gather of %s along %zu", rnl_dtype_name(job->data->view.dtype), job->axis);
    op_expect(RNL_OK, rnl_op_gather(op_list(), job->axis, &job->data->view, &job->indices->view, &job->dst->view));
    op_run();
    op_check(job->dst, reference, job, (op_bound){0, 0});
    op_reset();
}

START_TEST(types)
{
    static const rnl_dtype dtypes[] = {RNL_F32, RNL_F16, RNL_BF16, RNL_F64, RNL_I8,  RNL_U8,  RNL_I16,
                                       RNL_U16, RNL_I32, RNL_U32,  RNL_I64, RNL_U64, RNL_BOOL};
    const int64_t shape[] = {5, 7}, indices[] = {9};
    gather_job job = make_job(dtypes[_i / 2], _i % 2 ? RNL_I32 : RNL_I64, 0, 2, shape, 1, indices, 0);
    run_job(&job);
}
END_TEST

typedef struct gather_form {
    size_t axis, rank;
    int64_t shape[RNL_MAX_RANK];
    size_t index_rank;
    int64_t index_shape[RNL_MAX_RANK];
} gather_form;

static const gather_form forms[] = {
    {0, 1, {5}, 0, {0}},
    {0, 1, {5}, 1, {3}},
    {0, 2, {11, 67}, 2, {3, 4}},
    {1, 2, {4, 5}, 1, {37}},
    {1, 3, {2, 5, 3}, 0, {0}},
    {2, 3, {3, 4, 5}, 2, {2, 33}},
    {0, 2, {9, 3}, 3, {2, 1, 3}},
    {1, 4, {2, 6, 3, 5}, 2, {2, 2}},
    {3, 4, {2, 3, 2, 5}, 5, {2, 1, 2, 3, 2}},
    {4, 8, {2, 1, 2, 3, 4, 2, 1, 3}, 1, {5}},
};
enum { FORMS = sizeof forms / sizeof *forms };

START_TEST(shapes_and_strides)
{
    const gather_form *f = &forms[_i / OP_LAYOUT_COUNT];
    gather_job job = make_job(RNL_F32, RNL_I64, f->axis, f->rank, f->shape, f->index_rank, f->index_shape, _i);
    run_job(&job);
}
END_TEST

START_TEST(out_of_range)
{
    const int64_t shape[] = {3, 4}, indices[] = {6};
    static const int64_t values[] = {INT64_MIN, INT64_MAX, 4, -5, 1 + ((int64_t)1 << 32), INT32_MIN};
    gather_job job = make_job(RNL_F32, RNL_I64, 1, 2, shape, 1, indices, 2);
    for (int64_t i = 0; i < 6; ++i)
        op_put(job.indices, &i, op_int(values[i]));
    run_job(&job);
}
END_TEST

START_TEST(long_indices)
{
    const int64_t shape[] = {1, 9, 35}, indices[] = {4};
    gather_job job = make_job(RNL_U16, RNL_I32, 1, 3, shape, 1, indices, OP_GAPS);
    job.data->view.stride[0] = (int64_t)1 << 40;
    run_job(&job);
}
END_TEST

/* Where the elements lie is the model's part: see test_mapped_weights.py. */
START_TEST(loose)
{
    static const rnl_dtype dtypes[] = {RNL_U8, RNL_F16, RNL_F32, RNL_F64};
    const int64_t shape[] = {11, 67}, indices[] = {3, 4};
    gather_job job = make_job(dtypes[_i], _i % 2 ? RNL_I32 : RNL_I64, 0, 2, shape, 2, indices, OP_ROW_MAJOR);
    const int64_t result[] = {3, 4, 67};
    job.dst = op_tensor_create(dtypes[_i], 3, result, OP_ROW_MAJOR); /* rows that are neighbours */
    if (!rnl_device_is_cpu(op_device())) {
        op_expect(RNL_UNIMPLEMENTED,
                  rnl_op_gather_loose(op_list(), 0, &job.data->view, &job.indices->view, &job.dst->view));
        return;
    }
    op_expect(RNL_OK, rnl_op_gather_loose(op_list(), 0, &job.data->view, &job.indices->view, &job.dst->view));
    op_run();
    op_check(job.dst, reference, &job, (op_bound){0, 0});
}
END_TEST

START_TEST(nothing_and_refusals)
{
    const int64_t shape[] = {3, 4}, none[] = {3, 0}, count[] = {2}, result[] = {3, 2};
    rnl_view data = rnl_view_row_major(0, RNL_F32, 2, shape), indices = rnl_view_row_major(1, RNL_I64, 1, count);
    rnl_view dst = rnl_view_row_major(2, RNL_F32, 2, result), whole = rnl_view_row_major(2, RNL_I32, 2, result);
    rnl_view empty = rnl_view_row_major(0, RNL_F32, 2, none), no_indices = rnl_view_row_major(1, RNL_I64, 1, none + 1);
    rnl_view wrong = rnl_view_row_major(1, RNL_F32, 1, count);
    op_expect(RNL_OK, rnl_op_gather(op_list(), 1, &data, &no_indices, &empty));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gather(op_list(), 1, &empty, &indices, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gather(op_list(), 1, &data, &indices, &whole));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gather(op_list(), 2, &data, &indices, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gather(op_list(), 0, &data, &indices, &dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gather(op_list(), 1, &data, &wrong, &dst));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    op_add_loop(tests, types, 0, 26);
    op_add_loop(tests, shapes_and_strides, 0, FORMS * OP_LAYOUT_COUNT);
    tcase_add_test(tests, out_of_range);
    tcase_add_test(tests, long_indices);
    op_add_loop(tests, loose, 0, 4);
}

int main(void)
{
    Suite *suite = suite_create("gather");
    TCase *tests = op_case(suite, "gather");
    add_tests(tests);
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    tcase_add_test(tests, nothing_and_refusals);
    return op_main(suite);
}
