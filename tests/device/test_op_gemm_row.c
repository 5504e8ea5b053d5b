/* SPDX-License-Identifier: Apache-2.0 */
/* One row times a matrix, read where it lies. */
#include "kernel/team.h"
#include "support/gemm_suite.h"
#include <stdlib.h>
#include <string.h>

static void force_row(void)
{
    setenv("RUNNEL_GEMM", "row", 1);
}

static void force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
}

/* Returns its work-items. */
static size_t expect(const gemm_case *test, bool row)
{
    gemm_run run = {.test = *test};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    gemm_case_enqueue(&run);
    const rnl_step *step = &op_list()->steps[op_list()->step_count - 1];
    const size_t items = step->range.global[0];
    ck_assert_int_eq(strcmp(step->implementation, "gemm:row") == 0, row);
    gemm_case_check(&run);
    op_reset();
    return items;
}

START_TEST(sides)
{
    static const int64_t columns[] = {16, 17, 31, 33, 64, 100, 259, 4099}, terms[] = {1, 7, 8, 9, 40};
    for (size_t n = 0; n < (op_small() ? 5 : 8); ++n)
        for (size_t k = 0; k < 5; ++k)
            expect(&(gemm_case){.m = 1, .n = columns[n], .k = terms[k]}, true);
}
END_TEST

/* Columns that are no whole vectors are no reason for another work-item, which would read most of them again. */
START_TEST(one_thread)
{
    static const int64_t columns[] = {17, 33, 100, 259};
    const uint32_t units = op_device()->info.compute_units;
    op_device()->info.compute_units = 1;
    for (size_t n = 0; n < sizeof columns / sizeof *columns; ++n)
        ck_assert_uint_eq(expect(&(gemm_case){.m = 1, .n = columns[n], .k = 9}, true), 1);
    ck_assert_uint_ge(expect(&(gemm_case){.m = 1, .n = 4099, .k = 9}, true), 3);
    op_device()->info.compute_units = units;
    const gemm_case batch = {.m = 1, .n = 67, .k = 40, .batch_rank = 2, .batch = {3, 2}};
    if (units <= 2 && rnl_team_define(op_device(), "gemm_row.cl")) /* a batch's matrices are whole work-items */
        ck_assert_uint_eq(expect(&batch, true), 1);
}
END_TEST

START_TEST(forms)
{
    static const gemm_case tests[] = {
        {.m = 1, .n = 37, .k = 21, .alpha = 0.5f, .beta = 2, .c_rank = 2},
        {.m = 1, .n = 37, .k = 21, .c_rank = 2, .c_ones = 1, .dst_transposed = true},
        {.m = 1, .n = 37, .k = 21, .a_gaps = true, .dst_gaps = true, .dst_transposed = true},
        {.m = 1, .n = 37, .k = 21, .chain = true, .operands = 2, .operand_ones = {2, 1}},
        {.m = 1, .n = 37, .k = 21, .chain = true, .operands = 1, .operand_layouts = {OP_GAPS}},
        {.m = 1, .n = 37, .k = 20, .batch_rank = 2, .batch = {3, 2}, .a_ones = 2},
        {.dtype = RNL_F16, .m = 1, .n = 37, .k = 21, .c_rank = 1},
        {.dtype = RNL_BF16, .m = 1, .n = 37, .k = 21, .chain = true},
        {.m = 2, .n = 37, .k = 21, .alpha = 0.5f, .a_gaps = true, .dst_gaps = true},
        {.m = 3, .n = 4099, .k = 1},
        {.m = 4, .n = 259, .k = 40, .a_transposed = true, .dst_transposed = true},
        {.m = 4, .n = 37, .k = 21, .chain = true, .operands = 2, .operand_ones = {2, 1}},
        {.m = 2, .n = 37, .k = 20, .batch_rank = 2, .batch = {3, 2}, .a_ones = 2},
        {.dtype = RNL_F16, .m = 3, .n = 37, .k = 21},
        {.dtype = RNL_BF16, .m = 2, .n = 37, .k = 21, .chain = true},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i)
        expect(&tests[i], true);
}
END_TEST

START_TEST(does_not_apply)
{
    static const gemm_case tests[] = {
        {.m = 5, .n = 37, .k = 21},
        {.m = 2, .n = 37, .k = 21, .c_rank = 2},
        {.m = 1, .n = 3, .k = 21},
        {.m = 1, .n = 37, .k = 0},
        {.m = 1, .n = 37, .k = 21, .b_transposed = true},
        {.dtype = RNL_I32, .m = 1, .n = 37, .k = 21},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i)
        expect(&tests[i], false);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm_row");
    TCase *tests = op_case(suite, "row");
    tcase_add_checked_fixture(tests, force_row, force_nothing);
    tcase_add_test(tests, sides);
    tcase_add_test(tests, one_thread);
    tcase_add_test(tests, forms);
    tcase_add_test(tests, does_not_apply);
    return op_main(suite);
}
