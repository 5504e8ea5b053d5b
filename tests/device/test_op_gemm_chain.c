/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products whose results go through a chain of elementwise operators before they are stored. */
#include "support/gemm_case.h"
#include <math.h>
#include <stdlib.h>

static void run_all(const gemm_case *tests, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        gemm_case_run(&tests[i]);
}
#define RUN_ALL(tests) run_all(tests, sizeof(tests) / sizeof *(tests))

/* 9 x 37: vectors of all widths with an end that is moved back; transposed b: DOT; gaps: ANY. */
START_TEST(kinds)
{
    for (unsigned form = 0; form < 16; ++form) {
        gemm_case_run(&(gemm_case){.m = 9,
                                   .n = form & 1 ? 37 : 3,
                                   .k = 21,
                                   .b_transposed = form & 2,
                                   .a_gaps = form & 4,
                                   .dst_transposed = form & 8,
                                   .chain = true,
                                   .operands = 2,
                                   .operand_ones = {2, 1}});
        if (op_small() && form == 3)
            break;
    }
}
END_TEST

START_TEST(operands)
{
    static const gemm_case tests[] = {
        {.m = 5, .n = 34, .k = 7, .chain = true},
        {.m = 5, .n = 34, .k = 7, .chain = true, .operands = 1, .operand_ones = {3}},
        {.m = 5,
         .n = 34,
         .k = 7,
         .chain = true,
         .operands = 4,
         .operand_ones = {2, 0, 1, 2},
         .operand_types = {RNL_F16, RNL_BF16, RNL_F32, RNL_F32}},
        {.m = 5, .n = 34, .k = 7, .chain = true, .operands = 1, .operand_layouts = {OP_GAPS}},
        {.m = 5, .n = 34, .k = 7, .chain = true, .operands = 1, .operand_layouts = {OP_REVERSED}},
        {.m = 5, .n = 34, .k = 7, .alpha = 2, .beta = -1, .c_rank = 2, .c_ones = 2, .chain = true, .operands = 1},
        {.m = 5, .n = 34, .k = 0, .c_rank = 1, .chain = true, .operands = 1},
        {.m = 5, .n = 34, .k = 7, .dst_gaps = true, .chain = true, .operands = 1, .operand_ones = {2}},
    };
    RUN_ALL(tests);
}
END_TEST

START_TEST(storage_types)
{
    static const rnl_dtype types[] = {RNL_F16, RNL_BF16};
    for (size_t t = 0; t < 2; ++t)
        gemm_case_run(&(gemm_case){.dtype = types[t],
                                   .m = 9,
                                   .n = 37,
                                   .k = 21,
                                   .chain = true,
                                   .operands = 2,
                                   .operand_ones = {0, 1},
                                   .operand_types = {types[t], RNL_F32}});
}
END_TEST

START_TEST(batches)
{
    static const gemm_case tests[] = {
        {.m = 4, .n = 18, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_less = 2, .chain = true, .operands = 1},
        {.m = 4,
         .n = 18,
         .k = 6,
         .batch_rank = 2,
         .batch = {3, 2},
         .b_less = 2,
         .chain = true,
         .operands = 2,
         .operand_ones = {8, 6}},
        {.m = 1,
         .n = 18,
         .k = 6,
         .batch_rank = 2,
         .batch = {3, 2},
         .b_less = 2,
         .chain = true,
         .operands = 2,
         .operand_ones = {4, 0}},
        {.m = 2,
         .n = 9,
         .k = 3,
         .batch_rank = 6,
         .batch = {2, 2, 2, 3, 2, 2},
         .a_ones = 21,
         .b_ones = 42,
         .chain = true,
         .operands = 3,
         .operand_ones = {0x54, 0xa9, 0}},
    };
    RUN_ALL(tests);
}
END_TEST

START_TEST(special_values)
{
    gemm_run run = {.test = {.m = 9, .n = 33, .k = 20, .chain = true, .operands = 1}};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    op_put(run.a, (const int64_t[]){4, 19}, op_float(NAN));
    op_put(run.operands[0], (const int64_t[]){7, 32}, op_float(NAN));
    op_put(run.operands[0], (const int64_t[]){8, 0}, op_float(INFINITY));
    gemm_case_enqueue(&run);
    gemm_case_check(&run);
}
END_TEST

START_TEST(wide_indices)
{
    gemm_run run = {.test = {.m = 5, .n = 34, .k = 19, .batch_rank = 1, .batch = {1}, .chain = true, .operands = 2}};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    run.chain.operands[1].stride[0] = INT64_C(1) << 40;
    gemm_case_enqueue(&run);
    gemm_case_check(&run);
}
END_TEST

static void refuse(rnl_dtype dtype, void (*spoil)(gemm_run *))
{
    gemm_run run = {.test = {.dtype = dtype, .m = 3, .n = 4, .k = 5, .chain = true, .operands = 1}};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    if (spoil)
        spoil(&run);
    const rnl_gemm_params params = gemm_case_params(&run);
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gemm(op_list(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view));
    ck_assert_uint_eq(op_list()->step_count, 0);
    op_reset();
}

static void wrong_operand(gemm_run *run)
{
    run->chain.operands[0].shape[1] += 1;
}

static void integer_operand(gemm_run *run)
{
    run->chain.operands[0].dtype = RNL_I32;
}

static void no_stage(gemm_run *run)
{
    run->chain.stage_count = 0;
}

static void later_stage(gemm_run *run)
{
    run->chain.stages[1].sources[0] = (rnl_chain_source){RNL_CHAIN_STAGE, 1};
}

START_TEST(wrong_arguments)
{
    refuse(RNL_I32, NULL);
    refuse(RNL_I64, NULL);
    if (op_info()->has_fp64)
        refuse(RNL_F64, NULL);
    refuse(RNL_F32, wrong_operand);
    refuse(RNL_F32, integer_operand);
    refuse(RNL_F32, no_stage);
    refuse(RNL_F32, later_stage);
}
END_TEST

/* A library's product cannot end with a chain: the work goes elsewhere, forced or not. */
START_TEST(without_clblast)
{
    setenv("RUNNEL_GEMM", "clblast", 1);
    gemm_run run = {.test = {.m = 3, .n = 20, .k = 5, .chain = true, .operands = 1}};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    gemm_case_enqueue(&run);
    unsetenv("RUNNEL_GEMM");
    ck_assert_str_ne(op_list()->steps[0].implementation, "gemm:clblast");
    gemm_case_check(&run);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm_chain");
    TCase *tests = op_case(suite, "chain");
    tcase_add_test(tests, kinds);
    tcase_add_test(tests, operands);
    tcase_add_test(tests, storage_types);
    tcase_add_test(tests, batches);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, wrong_arguments);
    tcase_add_test(tests, without_clblast);
    return op_main(suite);
}
