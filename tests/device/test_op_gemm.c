/* SPDX-License-Identifier: Apache-2.0 */
#include "support/gemm_case.h"
#include <math.h>
#include <stdlib.h>

static void run_all(const gemm_case *tests, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        gemm_case_run(&tests[i]);
}
#define RUN_ALL(tests) run_all(tests, sizeof(tests) / sizeof *(tests))

START_TEST(sides)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 15, 17, 31, 33, 70};
    const size_t count = op_small() ? 5 : 12;
    for (size_t m = 0; m < count; ++m)
        for (size_t n = 0; n < count; ++n)
            for (size_t k = 0; k < count; k += 2)
                gemm_case_run(&(gemm_case){.m = sizes[m], .n = sizes[n], .k = sizes[k]});
}
END_TEST

START_TEST(transposes)
{
    static const int64_t sizes[][3] = {{5, 6, 7}, {17, 33, 20}, {1, 9, 40}, {9, 1, 40}, {3, 2, 70}, {34, 19, 3}};
    for (size_t s = 0; s < (op_small() ? 2 : 6); ++s)
        for (unsigned form = 0; form < 64; ++form)
            gemm_case_run(&(gemm_case){.m = sizes[s][0],
                                       .n = sizes[s][1],
                                       .k = sizes[s][2],
                                       .a_transposed = form & 1,
                                       .b_transposed = form & 2,
                                       .dst_transposed = form & 4,
                                       .a_gaps = form & 8,
                                       .b_gaps = form & 16,
                                       .dst_gaps = form & 32});
}
END_TEST

START_TEST(addends)
{
    for (size_t rank = 0; rank <= 3; ++rank)
        for (uint32_t ones = 0; ones < 1u << rank; ++ones)
            gemm_case_run(&(gemm_case){.m = 5,
                                       .n = 18,
                                       .k = 7,
                                       .batch_rank = 1,
                                       .batch = {3},
                                       .b_less = ones & 1,
                                       .b_transposed = ones & 2,
                                       .alpha = 0.5f,
                                       .beta = ones & 1 ? -2.0f : 1.0f,
                                       .c_rank = rank,
                                       .c_ones = ones});
    static const gemm_case tests[] = {
        {.m = 3, .n = 20, .k = 0, .c_rank = 1},
        {.m = 3, .n = 20, .k = 0},
        {.m = 3, .n = 3, .k = 0, .alpha = 1, .beta = 3, .c_rank = 2, .b_transposed = true},
        {.m = 3, .n = 20, .k = 9, .alpha = -1.5f, .beta = 0, .c_rank = 1},
        {.m = 3, .n = 20, .k = 9, .alpha = 0, .beta = 2, .c_rank = 1},
        {.m = 3, .n = 20, .k = 9, .alpha = 2, .beta = 1, .c_rank = 2, .dst_gaps = true},
        {.m = 3, .n = 20, .k = 9, .alpha = 2, .beta = 1, .c_rank = 2, .dst_transposed = true},
    };
    RUN_ALL(tests);
}
END_TEST

START_TEST(batches)
{
    static const gemm_case tests[] = {
        {.m = 4, .n = 5, .k = 6, .batch_rank = 1, .batch = {3}},
        {.m = 4, .n = 17, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_less = 2},
        {.m = 1, .n = 17, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_less = 2, .c_rank = 1},
        {.m = 1, .n = 17, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_ones = 1, .c_rank = 4},
        {.m = 4, .n = 5, .k = 6, .batch_rank = 2, .batch = {3, 2}, .a_less = 1},
        {.m = 4,
         .n = 5,
         .k = 6,
         .batch_rank = 3,
         .batch = {2, 3, 2},
         .a_ones = 2,
         .b_ones = 5,
         .c_rank = 5,
         .c_ones = 8},
        {.m = 2, .n = 9, .k = 3, .batch_rank = 6, .batch = {2, 1, 2, 3, 2, 2}, .a_ones = 9, .b_ones = 36},
        {.m = 2,
         .n = 9,
         .k = 3,
         .batch_rank = 6,
         .batch = {2, 2, 2, 3, 2, 2},
         .a_ones = 21,
         .b_ones = 42,
         .a_gaps = true,
         .dst_gaps = true,
         .c_rank = 8,
         .c_ones = 52},
        {.m = 7, .n = 9, .k = 16, .batch_rank = 2, .batch = {2, 3}, .b_transposed = true, .a_gaps = true},
        {.m = 7, .n = 9, .k = 5, .batch_rank = 2, .batch = {2, 3}, .a_transposed = true, .b_gaps = true},
        {.m = 7, .n = 9, .k = 0, .batch_rank = 2, .batch = {2, 3}, .c_rank = 1},
    };
    RUN_ALL(tests);
}
END_TEST

START_TEST(float_types)
{
    static const rnl_dtype types[] = {RNL_F16, RNL_BF16, RNL_F64};
    for (size_t t = 0; t < (op_info()->has_fp64 ? 3 : 2); ++t)
        for (unsigned form = 0; form < 4; ++form) {
            gemm_case_run(&(gemm_case){.dtype = types[t],
                                       .m = 9,
                                       .n = 37,
                                       .k = 21,
                                       .a_transposed = form & 1,
                                       .b_transposed = form & 2,
                                       .c_rank = 1});
            gemm_case_run(&(gemm_case){.dtype = types[t],
                                       .m = 3,
                                       .n = 3,
                                       .k = 3,
                                       .a_gaps = form & 1,
                                       .b_gaps = form & 2,
                                       .alpha = 2,
                                       .beta = -1,
                                       .c_rank = 2});
        }
}
END_TEST

static void run_integers(rnl_dtype dtype, double limit)
{
    gemm_run run = {.test = {.dtype = dtype, .m = 5, .n = 6, .k = 9, .alpha = -3, .beta = 2, .c_rank = 1}};
    gemm_case_create(&run);
    op_fill(run.a, OP_SPECIAL, 0, limit);
    op_fill(run.b, OP_SPECIAL, 0, limit);
    op_fill(run.c, OP_SPECIAL, 0, limit);
    gemm_case_enqueue(&run);
    op_run();
    op_check(run.dst, gemm_case_reference, &run, (op_bound){0, 0});
    op_reset();
}

/* A stride that nothing uses makes the kernels index in 64 bits. */
START_TEST(wide_indices)
{
    for (unsigned form = 0; form < 3; ++form) {
        gemm_run run = {.test = {.m = 5,
                                 .n = 34,
                                 .k = 19,
                                 .batch_rank = 1,
                                 .batch = {1},
                                 .a_gaps = form == 2,
                                 .b_transposed = form > 0,
                                 .c_rank = 1}};
        gemm_case_defaults(&run.test);
        gemm_case_create(&run);
        run.a->view.stride[0] = INT64_C(1) << 40;
        gemm_case_enqueue(&run);
        gemm_case_check(&run);
        op_reset();
    }
}
END_TEST

START_TEST(integers_wrap)
{
    run_integers(RNL_I32, 0x1p31 - 1);
    run_integers(RNL_U32, 0x1p31);
    run_integers(RNL_I64, 0x1p60);
    run_integers(RNL_U64, 0x1p60);
}
END_TEST

/* One NaN or infinity reaches its row or column, and nothing else. */
START_TEST(special_values)
{
    for (int transposed = 0; transposed < 2; ++transposed) {
        gemm_run run = {.test = {.dtype = RNL_F32, .m = 9, .n = 33, .k = 20, .b_transposed = transposed}};
        gemm_case_defaults(&run.test);
        gemm_case_create(&run);
        op_put(run.a, (const int64_t[]){4, 19}, op_float(NAN));
        op_put(run.b, (const int64_t[]){3, 32}, op_float(INFINITY));
        gemm_case_enqueue(&run);
        gemm_case_check(&run);
        op_reset();
    }
}
END_TEST

/* What is in dst before counts only through c. */
START_TEST(in_place_addend)
{
    gemm_run run = {.test = {.dtype = RNL_F32, .m = 6, .n = 20, .k = 8, .alpha = 1, .beta = 2}};
    gemm_case_create(&run);
    run.c = op_tensor_create(RNL_F32, 2, (const int64_t[]){6, 20}, OP_ROW_MAJOR);
    op_fill(run.c, OP_RANDOM, -1, 1);
    op_fill(run.dst, OP_RANDOM, -1, 1);
    for (int64_t i = 0; i < 120; ++i) {
        const int64_t at[2] = {i / 20, i % 20};
        op_put(run.dst, at, op_get(run.c, at));
    }
    const rnl_gemm_params params = {.alpha = 1, .beta = 2};
    op_expect(RNL_OK, rnl_op_gemm(op_list(), &params, &run.a->view, &run.b->view, &run.dst->view, &run.dst->view));
    gemm_case_check(&run);
}
END_TEST

static void expect(rnl_status expected, const gemm_case *test, void (*spoil)(gemm_run *))
{
    gemm_run run = {.test = *test};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    spoil(&run);
    const rnl_gemm_params params = {.alpha = run.test.alpha, .beta = run.test.beta};
    op_expect(expected,
              rnl_op_gemm(op_list(), &params, &run.a->view, &run.b->view, run.c ? &run.c->view : NULL, &run.dst->view));
    ck_assert_uint_eq(op_list()->step_count, 0);
    op_reset();
}

static void other_type(gemm_run *run)
{
    run->b->view.dtype = RNL_F16;
}

static void no_type(gemm_run *run)
{
    run->a->view.dtype = run->b->view.dtype = run->dst->view.dtype = RNL_I8;
}

static void wrong_depth(gemm_run *run)
{
    run->b->view.shape[0] += 1;
}

static void vector(gemm_run *run)
{
    run->a->view.rank = 1;
}

static void wrong_addend(gemm_run *run)
{
    run->c->view.shape[0] += 1;
}

static void no_rows(gemm_run *run)
{
    run->a->view.shape[0] = run->dst->view.shape[0] = 0;
}

static void nothing(gemm_run *run)
{
    (void)run;
}

START_TEST(wrong_arguments)
{
    const gemm_case test = {.m = 3, .n = 4, .k = 5, .c_rank = 1};
    expect(RNL_INVALID_ARGUMENT, &test, other_type);
    expect(RNL_UNIMPLEMENTED, &(gemm_case){.m = 3, .n = 4, .k = 5}, no_type);
    expect(RNL_INVALID_ARGUMENT, &test, wrong_depth);
    expect(RNL_INVALID_ARGUMENT, &test, vector);
    expect(RNL_INVALID_ARGUMENT, &test, wrong_addend);
    expect(RNL_OK, &test, no_rows);
    expect(RNL_UNIMPLEMENTED, &(gemm_case){.dtype = RNL_I32, .m = 3, .n = 4, .k = 5, .alpha = 0.5f}, nothing);
}
END_TEST

START_TEST(costs_and_names)
{
    gemm_run run = {.test = {.dtype = RNL_I32, .m = 3, .n = 4, .k = 5, .batch_rank = 1, .batch = {2}, .b_less = 1}};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    gemm_case_enqueue(&run);
    ck_assert_uint_eq(op_list()->step_count, 1);
    ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:portable");
    ck_assert_uint_eq(op_list()->steps[0].flops, 2u * 2 * 3 * 4 * 5);
    ck_assert_uint_eq(op_list()->steps[0].bytes, 4u * (30 + 20 + 24));
}
END_TEST

static void force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
}

int main(void)
{
    Suite *suite = suite_create("gemm");
    TCase *tests = op_case(suite, "gemm");
    tcase_add_checked_fixture(tests, force_nothing, force_nothing);
    tcase_add_test(tests, sides);
    tcase_add_test(tests, transposes);
    tcase_add_test(tests, addends);
    tcase_add_test(tests, batches);
    tcase_add_test(tests, float_types);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, integers_wrap);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, in_place_addend);
    tcase_add_test(tests, wrong_arguments);
    tcase_add_test(tests, costs_and_names);
    return op_main(suite);
}
