/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices with little: work-groups of one work-item, no local memory, narrow vectors. Each operator family then finds a
 * kernel that can run there, and its results stay right. Matrix products and convolutions are compared with float64
 * references, the others with what the device computes when nothing is held back.
 */
#include "ops/map.h"
#include "ops/pool.h"
#include "ops/reduce.h"
#include "ops/resize.h"
#include "support/conv_case.h"
#include "support/gemm_case.h"
#include <math.h>
#include <stdlib.h>

static const op_limits poor[] = {
    {.gpu = false, .vector_width = 4, .work_items = 1, .local_bytes = 0},
    {.gpu = true, .vector_width = 4, .work_items = 1, .local_bytes = 0},
    {.gpu = true, .vector_width = 4, .work_items = 32, .local_bytes = 1024},
    {.gpu = false, .vector_width = 8, .work_items = 16, .local_bytes = 256},
    {.gpu = true, .vector_width = 4, .work_items = 64, .local_bytes = 10240},
};
#define LIMITS (sizeof poor / sizeof *poor)

static void tell_the_truth(void)
{
    op_pretend(NULL);
    unsetenv("RUNNEL_GEMM");
    unsetenv("RUNNEL_CONV");
}

static void force_tiles(bool force)
{
    tell_the_truth();
    /* Not a library's product, which compiles for seconds. */
    setenv("RUNNEL_GEMM", force ? "tiled" : "portable", 1);
    if (force)
        setenv("RUNNEL_CONV", "tiled", 1);
}

static void run_products(void)
{
    static const gemm_case tests[] = {
        {.m = 20, .n = 37, .k = 30, .c_rank = 1},
        {.m = 20, .n = 37, .k = 30, .b_transposed = true, .chain = true, .operands = 1},
        {.m = 20, .n = 37, .k = 30, .a_gaps = true, .b_gaps = true},
        {.m = 1, .n = 70, .k = 30},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i)
        gemm_case_run(&tests[i]);
    setenv("RUNNEL_GEMM", "panel", 1);
    gemm_case_run(&tests[1]);
}

static void run_convolutions(void)
{
    static const conv_case tests[] = {
        {.batch = 1, .channels = 5, .filters = 20, .size = {6, 9}, .taps = {3, 3}, .pad_begin = {1, 1}, .bias = true},
        {.batch = 1, .channels = 20, .filters = 20, .groups = 20, .size = {6, 9}, .taps = {3, 3}, .bias = true},
        {.batch = 2, .channels = 8, .filters = 20, .size = {6, 9}, .taps = {1, 1}, .chain = CONV_CHAIN_ALL},
        {.transposed = true, .batch = 1, .channels = 5, .filters = 7, .size = {4, 5}, .taps = {3, 3}, .stride = {2, 2}},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i)
        conv_case_run(&tests[i]);
}

START_TEST(products_and_convolutions)
{
    for (size_t i = 0; i < (op_small() ? 2 : LIMITS); ++i)
        for (int force = 0; force < 2; ++force) {
            force_tiles(force);
            op_pretend(&poor[i]);
            run_products();
            run_convolutions();
        }
}
END_TEST

static op_tensor *create(size_t rank, const int64_t *shape, op_layout layout)
{
    op_tensor *tensor = op_tensor_create(RNL_F32, rank, shape, layout);
    op_fill(tensor, OP_RANDOM, -2, 2);
    return tensor;
}

static op_tensor *add_rows(void)
{
    const int64_t shape[3] = {5, 7, 33}, row[3] = {5, 1, 33};
    const op_tensor *a = create(3, shape, OP_SHUFFLED), *b = create(3, row, OP_ROW_MAJOR);
    op_tensor *dst = create(3, shape, OP_ROW_MAJOR);
    op_expect(RNL_OK, rnl_op_map(op_list(), RNL_MAP_ADD, 0, 0, (const rnl_view[]){a->view, b->view}, 2, &dst->view));
    return dst;
}

static op_tensor *take_tanh(void)
{
    const int64_t count = 1003;
    const op_tensor *src = create(1, &count, OP_ROW_MAJOR);
    op_tensor *dst = create(1, &count, OP_ROW_MAJOR);
    op_expect(RNL_OK, rnl_op_map(op_list(), RNL_MAP_TANH, 0, 0, &src->view, 1, &dst->view));
    return dst;
}

static op_tensor *compare_integers(void)
{
    const int64_t count = 1003;
    op_tensor *a = op_tensor_create(RNL_I32, 1, &count, OP_ROW_MAJOR),
              *b = op_tensor_create(RNL_I32, 1, &count, OP_GAPS);
    op_tensor *dst = op_tensor_create(RNL_BOOL, 1, &count, OP_ROW_MAJOR);
    op_fill(a, OP_RANDOM, -5, 5);
    op_fill(b, OP_RANDOM, -5, 5);
    op_expect(RNL_OK, rnl_op_map(op_list(), RNL_MAP_LESS, 0, 0, (const rnl_view[]){a->view, b->view}, 2, &dst->view));
    return dst;
}

static op_tensor *transpose(void)
{
    const op_tensor *src = create(2, (const int64_t[]){70, 45}, OP_ROW_MAJOR);
    op_tensor *dst = create(2, (const int64_t[]){45, 70}, OP_ROW_MAJOR);
    rnl_view turned = src->view;
    for (size_t i = 0; i < 2; ++i) {
        turned.shape[i] = src->view.shape[1 - i];
        turned.stride[i] = src->view.stride[1 - i];
    }
    op_expect(RNL_OK, rnl_op_map(op_list(), RNL_MAP_COPY, 0, 0, &turned, 1, &dst->view));
    return dst;
}

static op_tensor *reduce(uint32_t axes, const int64_t *shape, const int64_t *reduced)
{
    const op_tensor *src = create(3, shape, OP_ROW_MAJOR);
    op_tensor *dst = create(3, reduced, OP_ROW_MAJOR);
    op_expect(RNL_OK, rnl_op_reduce(op_list(), RNL_REDUCE_LOG_SUM_EXP, axes, &src->view, &dst->view));
    return dst;
}

static op_tensor *reduce_rows(void)
{
    return reduce(4, (const int64_t[]){3, 5, 200}, (const int64_t[]){3, 5, 1});
}

static op_tensor *reduce_columns(void)
{
    return reduce(2, (const int64_t[]){3, 50, 20}, (const int64_t[]){3, 1, 20});
}

static op_tensor *softmax(int64_t rows, int64_t columns, size_t axis)
{
    const int64_t shape[2] = {rows, columns};
    const op_tensor *src = create(2, shape, OP_ROW_MAJOR);
    op_tensor *dst = create(2, shape, OP_ROW_MAJOR);
    op_expect(RNL_OK, rnl_op_softmax(op_list(), false, axis, axis, &src->view, &dst->view));
    return dst;
}

static op_tensor *softmax_rows(void)
{
    return softmax(6, 300, 1);
}

static op_tensor *softmax_columns(void)
{
    return softmax(40, 21, 0);
}

static op_tensor *pool(rnl_pool_op op)
{
    const rnl_pool_params params = {
        .spatial = 2, .kernel = {3, 3}, .stride = {2, 2}, .dilation = {1, 1}, .pad_begin = {1, 1}, .pad_end = {1, 1}};
    const op_tensor *src = create(4, (const int64_t[]){2, 19, 8, 8}, OP_CHANNELS_LAST);
    op_tensor *dst = create(4, (const int64_t[]){2, 19, 4, 4}, OP_CHANNELS_LAST);
    op_expect(RNL_OK, rnl_op_pool(op_list(), op, &params, &src->view, &dst->view, NULL));
    return dst;
}

static op_tensor *pool_highest(void)
{
    return pool(RNL_POOL_MAX);
}

static op_tensor *pool_average(void)
{
    return pool(RNL_POOL_AVERAGE);
}

static op_tensor *normalize_channels(void)
{
    const rnl_lrn_params params = {.size = 5, .alpha = 0.1f, .beta = 0.75f, .bias = 1};
    const int64_t shape[4] = {2, 19, 4, 5};
    const op_tensor *src = create(4, shape, OP_CHANNELS_LAST);
    op_tensor *dst = create(4, shape, OP_CHANNELS_LAST);
    op_expect(RNL_OK, rnl_op_lrn(op_list(), &params, &src->view, &dst->view));
    return dst;
}

static op_tensor *resize(void)
{
    const rnl_resize_params params = {.mode = RNL_RESIZE_LINEAR, .scale = {1, 1, 2, 3}};
    const op_tensor *src = create(4, (const int64_t[]){1, 19, 5, 6}, OP_CHANNELS_LAST);
    op_tensor *dst = create(4, (const int64_t[]){1, 19, 10, 18}, OP_CHANNELS_LAST);
    op_expect(RNL_OK, rnl_op_resize(op_list(), &params, &src->view, &dst->view));
    return dst;
}

static op_tensor *gather(void)
{
    const int64_t count = 9;
    const op_tensor *src = create(2, (const int64_t[]){7, 33}, OP_ROW_MAJOR);
    op_tensor *indices = op_tensor_create(RNL_I64, 1, &count, OP_ROW_MAJOR);
    op_tensor *dst = create(2, (const int64_t[]){9, 33}, OP_ROW_MAJOR);
    op_fill(indices, OP_RANDOM, 0, 6);
    op_expect(RNL_OK, rnl_op_gather(op_list(), 0, &src->view, &indices->view, &dst->view));
    return dst;
}

typedef op_tensor *(*scenario)(void);
static const struct {
    const char *name;
    scenario build;
} scenarios[] = {
    {"add", add_rows},           {"tanh", take_tanh},
    {"less", compare_integers},  {"transpose", transpose},
    {"rows", reduce_rows},       {"columns", reduce_columns},
    {"softmax", softmax_rows},   {"softmax of columns", softmax_columns},
    {"max pool", pool_highest},  {"average pool", pool_average},
    {"lrn", normalize_channels}, {"resize", resize},
    {"gather", gather},
};

/* The result's elements in order; the caller frees them. */
static double *compute(scenario build, const op_limits *limits, size_t *out_count)
{
    int64_t at[RNL_MAX_RANK];
    op_pretend(limits);
    op_reset();
    op_note("%d wide, %d work-items, %d bytes", limits ? (int)limits->vector_width : 0,
            limits ? (int)limits->work_items : 0, limits ? (int)limits->local_bytes : 0);
    const op_tensor *result = build();
    op_run();
    *out_count = (size_t)op_elements(result);
    double *values = malloc(*out_count * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (size_t i = 0; i < *out_count; ++i) {
        op_coordinates(result, (int64_t)i, at);
        values[i] = op_get(result, at).f;
    }
    return values;
}

START_TEST(other_families)
{
    for (size_t s = 0; s < sizeof scenarios / sizeof *scenarios; ++s) {
        size_t count = 0, poor_count = 0;
        double *expected = compute(scenarios[s].build, NULL, &count);
        for (size_t l = 0; l < (op_small() ? 2 : LIMITS); ++l) {
            double *got = compute(scenarios[s].build, &poor[l], &poor_count);
            ck_assert_uint_eq(poor_count, count);
            for (size_t i = 0; i < count; ++i)
                if (fabs(got[i] - expected[i]) > 2e-6 * (1 + fabs(expected[i])))
                    ck_abort_msg("%s, limits %zu: element %zu is %g, not %g", scenarios[s].name, l, i, got[i],
                                 expected[i]);
            free(got);
        }
        free(expected);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limits");
    TCase *tests = op_case(suite, "limits");
    tcase_add_checked_fixture(tests, tell_the_truth, tell_the_truth);
    tcase_add_test(tests, products_and_convolutions);
    tcase_add_test(tests, other_families);
    return op_main(suite);
}
