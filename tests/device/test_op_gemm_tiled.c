/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by work-groups, through local memory. */
#include "support/gemm_suite.h"
#include <stdlib.h>
#include <string.h>

static void force_tiled(void)
{
    setenv("RUNNEL_GEMM", "tiled", 1);
}

static void force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
}

START_TEST(sides)
{
    static const int64_t sizes[] = {1, 4, 9, 33, 70};
    const size_t count = op_small() ? 3 : 5;
    for (size_t m = 0; m < count; ++m)
        for (size_t n = 0; n < count; ++n)
            for (size_t k = 0; k < count; k += 2)
                gemm_case_run(&(gemm_case){.m = sizes[m], .n = sizes[n], .k = sizes[k], .b_transposed = (m + k) % 2});
}
END_TEST

/* Several tiles of each size in each direction, some cut; few tiles and many terms, which are summed in parts. */
START_TEST(tiles)
{
    static const gemm_case tests[] = {
        {.m = 70, .n = 40, .k = 33},
        {.m = 140, .n = 131, .k = 20},
        {.m = 260, .n = 270, .k = 19, .b_transposed = true},
        {.m = 260, .n = 270, .k = 19, .a_transposed = true, .c_rank = 1},
        {.m = 10, .n = 21, .k = 600},
        {.m = 10, .n = 21, .k = 600, .c_rank = 1, .batch_rank = 1, .batch = {3}, .alpha = 2, .beta = 3},
        {.m = 10, .n = 21, .k = 600, .dst_gaps = true, .chain = true, .operands = 1},
        {.m = 37, .n = 45, .k = 1000, .chain = true, .operands = 2, .operand_ones = {2, 0}},
    };
    if (!op_small())
        GEMM_RUN_ALL(tests);
}
END_TEST

static const char *chosen(const gemm_run *run, const rnl_view *scratch)
{
    const rnl_gemm_params params = {.alpha = 1, .beta = 1, .scratch = scratch};
    op_expect(RNL_OK, rnl_op_gemm(op_list(), &params, &run->a->view, &run->b->view, NULL, &run->dst->view));
    return op_list()->steps[op_list()->step_count - 1].implementation;
}

/* Without memory for parts it sums in one. */
START_TEST(without_scratch)
{
    gemm_run run = {.test = {.m = 10, .n = 21, .k = 600}};
    const int64_t few = 100;
    if (op_info()->emulated)
        return;
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    ck_assert_str_eq(chosen(&run, NULL), "gemm:tiled");
    ck_assert_uint_eq(op_list()->step_count, 1);
    gemm_case_check(&run);
    ck_assert_str_eq(chosen(&run, &op_tensor_create(RNL_F32, 1, &few, OP_ROW_MAJOR)->view), "gemm:tiled");
    ck_assert_uint_eq(op_list()->step_count, 2);
}
END_TEST

START_TEST(does_not_apply)
{
    gemm_case_run(&(gemm_case){.dtype = RNL_I32, .m = 9, .n = 33, .k = 20});
    gemm_case_run(&(gemm_case){.m = 9, .n = 33, .k = 0});
    if (op_info()->has_fp64)
        gemm_case_run(&(gemm_case){.dtype = RNL_F64, .m = 9, .n = 33, .k = 20});
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm_tiled");
    TCase *tests = op_case(suite, "tiled");
    tcase_add_checked_fixture(tests, force_tiled, force_nothing);
    tcase_add_test(tests, sides);
    tcase_add_test(tests, tiles);
    gemm_suite_add(tests, "gemm:tiled", false);
    tcase_add_test(tests, without_scratch);
    tcase_add_test(tests, does_not_apply);
    return op_main(suite);
}
