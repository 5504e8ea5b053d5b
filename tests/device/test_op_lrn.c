/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/pool.h"
#include "support/op_bench.h"
#include <math.h>

typedef struct lrn_run {
    rnl_lrn_params params;
    op_tensor *src, *dst;
} lrn_run;

/* ONNX: the neighbours are c - floor((size - 1) / 2) … c + ceil((size - 1) / 2), where there are such. */
static op_value reference(void *user, const int64_t *at)
{
    const lrn_run *run = user;
    const rnl_lrn_params *params = &run->params;
    int64_t near[RNL_MAX_RANK];
    double sum = 0;
    for (size_t i = 0; i < RNL_MAX_RANK; ++i)
        near[i] = i < run->src->view.rank ? at[i] : 0;
    for (int64_t i = 0; i < params->size; ++i) {
        near[1] = at[1] - (params->size - 1) / 2 + i;
        if (near[1] < 0 || near[1] >= run->src->view.shape[1])
            continue;
        const double x = op_get(run->src, near).f;
        sum += x * x;
    }
    const double scale = (double)params->bias + (double)params->alpha / (double)params->size * sum;
    return op_float(op_get(run->src, at).f / pow(scale, (double)params->beta));
}

static void run_case(rnl_dtype dtype, size_t rank, const int64_t *shape, int64_t size, op_layout src_layout,
                     op_layout dst_layout)
{
    lrn_run run = {.params = {.size = size, .alpha = 0.2f, .beta = size % 2 ? 0.75f : 0.6f, .bias = 1.5f}};
    op_note("%s rank %zu size %d layouts %d %d", rnl_dtype_name(dtype), rank, (int)size, src_layout, dst_layout);
    run.src = op_tensor_create(dtype, rank, shape, src_layout);
    run.dst = op_tensor_create(dtype, rank, shape, dst_layout);
    op_fill(run.src, OP_RANDOM, -3, 3);
    op_expect(RNL_OK, rnl_op_lrn(op_list(), &run.params, &run.src->view, &run.dst->view));
    op_run();
    op_check(run.dst, reference, &run, op_tolerance(dtype));
    op_reset();
}

START_TEST(sizes_and_layouts)
{
    for (int64_t size = 1; size <= 7; ++size)
        for (int layout = 0; layout < OP_LAYOUT_COUNT; ++layout)
            run_case(RNL_F32, 4, (const int64_t[]){2, 6, 3, 5}, size, (op_layout)layout,
                     size % 2 ? OP_CHANNELS_LAST : (op_layout)layout);
}
END_TEST

START_TEST(ranks_and_types)
{
    static const int64_t shape[5] = {2, 5, 3, 2, 4};
    static const rnl_dtype types[] = {RNL_F32, RNL_F16, RNL_BF16};
    for (size_t t = 0; t < 3; ++t)
        for (size_t rank = 2; rank <= 5; ++rank)
            run_case(types[t], rank, shape, 4, OP_ROW_MAJOR, OP_CHANNELS_LAST);
    run_case(RNL_F32, 4, (const int64_t[]){1, 1, 2, 2}, 5, OP_ROW_MAJOR, OP_ROW_MAJOR);
    run_case(RNL_F32, 3, (const int64_t[]){1, 70, 9}, 1000, OP_CHANNELS_LAST, OP_CHANNELS_LAST);
}
END_TEST

/* Whole vectors, their ends, and pixels between which other channels lie. */
START_TEST(many_channels)
{
    static const int64_t channels[] = {16, 17, 31, 48, 70};
    for (size_t i = 0; i < sizeof channels / sizeof *channels; ++i)
        for (int64_t size = 1; size <= 9; size += 2)
            run_case(RNL_F32, 4, (const int64_t[]){2, channels[i], 2, 3}, size, OP_CHANNELS_LAST, OP_CHANNELS_LAST);
    run_case(RNL_F16, 4, (const int64_t[]){1, 37, 2, 3}, 5, OP_CHANNELS_LAST, OP_CHANNELS_LAST);
    run_case(RNL_BF16, 3, (const int64_t[]){1, 37, 3}, 5, OP_CHANNELS_LAST, OP_CHANNELS_LAST);
}
END_TEST

/* A stride that nothing uses makes the kernel index in 64 bits. */
START_TEST(wide_indices)
{
    lrn_run run = {.params = {.size = 3, .alpha = 1, .beta = 0.75f, .bias = 1}};
    const int64_t shape[3] = {1, 9, 4};
    run.src = op_tensor_create(RNL_F32, 3, shape, OP_CHANNELS_LAST);
    run.dst = op_tensor_create(RNL_F32, 3, shape, OP_ROW_MAJOR);
    run.src->view.stride[0] = INT64_C(1) << 40;
    op_fill(run.src, OP_RANDOM, -3, 3);
    op_expect(RNL_OK, rnl_op_lrn(op_list(), &run.params, &run.src->view, &run.dst->view));
    op_run();
    op_check(run.dst, reference, &run, op_tolerance(RNL_F32));
}
END_TEST

static void check_special_values(float beta)
{
    lrn_run run = {.params = {.size = 3, .alpha = 1, .beta = beta, .bias = 1}};
    const int64_t shape[3] = {1, 9, 4};
    run.src = op_tensor_create(RNL_F32, 3, shape, OP_CHANNELS_LAST);
    run.dst = op_tensor_create(RNL_F32, 3, shape, OP_CHANNELS_LAST);
    op_fill(run.src, OP_RANDOM, -3, 3);
    op_put(run.src, (const int64_t[]){0, 3, 1}, op_float(NAN));
    op_put(run.src, (const int64_t[]){0, 5, 2}, op_float(INFINITY));
    op_expect(RNL_OK, rnl_op_lrn(op_list(), &run.params, &run.src->view, &run.dst->view));
    op_run();
    op_check(run.dst, reference, &run, op_tolerance(RNL_F32));
}

START_TEST(special_values)
{
    check_special_values(0.5f);
    op_reset();
    check_special_values(0.75f);
}
END_TEST

START_TEST(wrong_arguments)
{
    const int64_t shape[6] = {1, 2, 3, 1, 1, 1}, other[3] = {1, 3, 3}, none[3] = {0, 3, 3};
    op_tensor *src = op_tensor_create(RNL_F32, 3, shape, OP_ROW_MAJOR);
    op_tensor *dst = op_tensor_create(RNL_F32, 3, other, OP_ROW_MAJOR);
    op_tensor *integers = op_tensor_create(RNL_I32, 3, shape, OP_ROW_MAJOR);
    op_tensor *high = op_tensor_create(RNL_F32, 6, shape, OP_ROW_MAJOR);
    op_tensor *empty = op_tensor_create(RNL_F32, 3, none, OP_ROW_MAJOR);
    const rnl_lrn_params right = {.size = 3, .alpha = 1, .beta = 1, .bias = 1}, zero = {.alpha = 1, .bias = 1};
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_lrn(op_list(), &right, &src->view, &dst->view));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_lrn(op_list(), &right, &integers->view, &integers->view));
    op_expect(RNL_UNIMPLEMENTED, rnl_op_lrn(op_list(), &right, &high->view, &high->view));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_lrn(op_list(), &zero, &src->view, &src->view));
    op_expect(RNL_OK, rnl_op_lrn(op_list(), &right, &empty->view, &empty->view));
    ck_assert_uint_eq(op_list()->step_count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lrn");
    TCase *tests = op_case(suite, "lrn");
    tcase_add_test(tests, sizes_and_layouts);
    tcase_add_test(tests, ranks_and_types);
    tcase_add_test(tests, many_channels);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, wrong_arguments);
    return op_main(suite);
}
