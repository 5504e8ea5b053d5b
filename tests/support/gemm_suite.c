/* SPDX-License-Identifier: Apache-2.0 */
#include "support/gemm_suite.h"
#include <math.h>

static const char *expected;
static bool expected_of_emulated;

void gemm_case_run_all(const gemm_case *tests, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        gemm_case_run(&tests[i]);
}

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
    GEMM_RUN_ALL(tests);
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
    GEMM_RUN_ALL(tests);
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
    if (expected_of_emulated || !op_info()->emulated)
        ck_assert_str_eq(op_list()->steps[0].implementation, expected);
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

void gemm_suite_add(TCase *tests, const char *implementation, bool runs_emulated)
{
    expected = implementation;
    expected_of_emulated = runs_emulated;
    tcase_add_test(tests, forms);
    tcase_add_test(tests, batches);
    tcase_add_test(tests, storage_types);
    tcase_add_test(tests, chains);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, special_values);
}
