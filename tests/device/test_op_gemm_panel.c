/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products whose second factor is copied into panels first. */
#include "support/gemm_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void run_all(const gemm_case *tests, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        gemm_case_run(&tests[i]);
}
#define RUN_ALL(tests) run_all(tests, sizeof(tests) / sizeof *(tests))

static void force_panel(void)
{
    setenv("RUNNEL_GEMM", "panel", 1);
}

static void force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
}

START_TEST(sides)
{
    static const int64_t sizes[] = {1, 3, 4, 5, 8, 9, 17, 33, 70};
    const size_t count = op_small() ? 4 : 9;
    for (size_t m = 0; m < count; m += 2)
        for (size_t n = 0; n < count; ++n)
            for (size_t k = 0; k < count; k += 2)
                gemm_case_run(
                    &(gemm_case){.m = sizes[m], .n = sizes[n], .k = sizes[k], .b_transposed = (m + k) / 2 % 2});
}
END_TEST

/* Longer than what one work-item copies. */
START_TEST(deep)
{
    for (unsigned form = 0; form < (op_small() ? 0 : 8); ++form)
        gemm_case_run(&(gemm_case){.m = 9,
                                   .n = 50,
                                   .k = form & 4 ? 128 : 275,
                                   .b_transposed = form & 1,
                                   .b_gaps = form & 2,
                                   .a_transposed = form & 4});
}
END_TEST

START_TEST(forms)
{
    for (unsigned form = 0; form < (op_small() ? 4 : 32); ++form)
        gemm_case_run(&(gemm_case){.m = 9,
                                   .n = 37,
                                   .k = 21,
                                   .b_transposed = form & 1,
                                   .a_transposed = form & 2,
                                   .a_gaps = form & 4,
                                   .dst_gaps = form & 8,
                                   .dst_transposed = form & 16,
                                   .alpha = 0.5f,
                                   .beta = 2,
                                   .c_rank = form % 3,
                                   .c_ones = form & 4 ? 1 : 0});
}
END_TEST

START_TEST(batches)
{
    static const gemm_case tests[] = {
        {.m = 9, .n = 37, .k = 20, .batch_rank = 1, .batch = {3}, .b_transposed = true},
        {.m = 9, .n = 37, .k = 20, .batch_rank = 2, .batch = {3, 2}, .b_less = 1, .b_transposed = true},
        {.m = 9, .n = 37, .k = 20, .batch_rank = 2, .batch = {3, 2}, .b_ones = 2, .a_less = 1},
        {.dtype = RNL_F16, .m = 9, .n = 37, .k = 20, .batch_rank = 2, .batch = {3, 2}, .b_ones = 1, .a_less = 1},
        {.m = 2,
         .n = 9,
         .k = 3,
         .batch_rank = 6,
         .batch = {2, 2, 2, 3, 2, 2},
         .a_ones = 21,
         .b_ones = 42,
         .b_transposed = true,
         .a_gaps = true,
         .c_rank = 8,
         .c_ones = 52},
    };
    RUN_ALL(tests);
}
END_TEST

START_TEST(storage_types)
{
    static const rnl_dtype types[] = {RNL_F16, RNL_BF16};
    for (size_t t = 0; t < 2; ++t)
        for (unsigned form = 0; form < 4; ++form)
            gemm_case_run(&(gemm_case){.dtype = types[t],
                                       .m = 9,
                                       .n = 37,
                                       .k = 21,
                                       .a_transposed = form & 1,
                                       .b_transposed = form & 2,
                                       .c_rank = 1});
}
END_TEST

START_TEST(chains)
{
    static const gemm_case tests[] = {
        {.m = 9, .n = 37, .k = 21, .chain = true, .operands = 2, .operand_ones = {2, 1}},
        {.m = 9, .n = 37, .k = 21, .b_transposed = true, .c_rank = 2, .c_ones = 1, .chain = true, .operands = 1},
        {.m = 9, .n = 37, .k = 21, .dst_transposed = true, .chain = true, .operands = 1},
        {.m = 9, .n = 37, .k = 21, .chain = true, .operands = 1, .operand_layouts = {OP_GAPS}},
        {.dtype = RNL_BF16, .m = 9, .n = 3, .k = 21, .chain = true, .operands = 1, .operand_types = {RNL_F16}},
    };
    RUN_ALL(tests);
}
END_TEST

/* A stride that nothing uses makes the kernels index in 64 bits. */
START_TEST(wide_indices)
{
    gemm_run run = {.test = {.m = 5, .n = 34, .k = 19, .batch_rank = 1, .batch = {1}, .b_transposed = true}};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    run.a->view.stride[0] = INT64_C(1) << 40;
    gemm_case_enqueue(&run);
    ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:panel");
    gemm_case_check(&run);
}
END_TEST

START_TEST(special_values)
{
    gemm_run run = {.test = {.dtype = RNL_F32, .m = 9, .n = 33, .k = 20, .b_transposed = true}};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    op_put(run.a, (const int64_t[]){4, 19}, op_float(NAN));
    op_put(run.b, (const int64_t[]){3, 32}, op_float(INFINITY));
    gemm_case_enqueue(&run);
    gemm_case_check(&run);
}
END_TEST

/* Without memory of its own, or of less than it asks for, or for types that it does not take. */
START_TEST(does_not_apply)
{
    gemm_run run = {.test = {.m = 9, .n = 33, .k = 20}};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    const int64_t few = 100;
    rnl_gemm_params params = gemm_case_params(&run);
    op_expect(RNL_OK, rnl_op_gemm(op_list(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view));
    ck_assert_str_ne(op_list()->steps[0].implementation, "gemm:panel");
    params.scratch = &op_tensor_create(RNL_F32, 1, &few, OP_ROW_MAJOR)->view;
    op_expect(RNL_OK, rnl_op_gemm(op_list(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view));
    ck_assert_str_ne(op_list()->steps[1].implementation, "gemm:panel");
    op_reset();
    gemm_case_run(&(gemm_case){.dtype = RNL_I32, .m = 9, .n = 33, .k = 20});
    gemm_case_run(&(gemm_case){.m = 9, .n = 33, .k = 0});
    if (op_info()->has_fp64)
        gemm_case_run(&(gemm_case){.dtype = RNL_F64, .m = 9, .n = 33, .k = 20});
}
END_TEST

START_TEST(wrong_arguments)
{
    gemm_run run = {.test = {.m = 9, .n = 33, .k = 20}};
    int64_t floats = 1;
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    const rnl_gemm_params params = gemm_case_params(&run);
    run.b->view.shape[0] += 1;
    op_expect(RNL_INVALID_ARGUMENT,
              rnl_gemm_scratch(op_device(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view, &floats));
    ck_assert_int_eq(floats, 0);
    run.b->view.shape[0] -= 1;
    run.a->view.shape[0] = run.dst->view.shape[0] = 0;
    op_expect(RNL_OK,
              rnl_gemm_scratch(op_device(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view, &floats));
    ck_assert_int_eq(floats, 0);
}
END_TEST

/* What a CPU's own driver chooses: copies where memory would be read across its grain. */
START_TEST(choice)
{
    int64_t floats = 0;
    if (op_info()->type != RNL_DEVICE_CPU || op_info()->emulated)
        return;
    unsetenv("RUNNEL_GEMM");
    for (unsigned form = 0; form < 2; ++form) {
        gemm_run run = {.test = {.m = 12, .n = 40, .k = 30, .b_transposed = form}};
        gemm_case_defaults(&run.test);
        gemm_case_create(&run);
        const rnl_gemm_params params = gemm_case_params(&run);
        op_expect(RNL_OK,
                  rnl_gemm_scratch(op_device(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view, &floats));
        ck_assert_int_eq(floats > 0, form);
        op_reset();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm_panel");
    TCase *tests = op_case(suite, "panel");
    tcase_add_checked_fixture(tests, force_panel, force_nothing);
    tcase_add_test(tests, sides);
    tcase_add_test(tests, deep);
    tcase_add_test(tests, forms);
    tcase_add_test(tests, batches);
    tcase_add_test(tests, storage_types);
    tcase_add_test(tests, chains);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, does_not_apply);
    tcase_add_test(tests, wrong_arguments);
    tcase_add_test(tests, choice);
    return op_main(suite);
}
