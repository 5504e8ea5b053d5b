/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products by warpgroups. Where there is no such instruction the kernel runs with a model of it, and of what brings its
 * factors, in plain C, written from the vendor's manual.
 */
#include "device/device.h"
#include "ops/gemm_matrix.h"
#include "support/gemm_suite.h"
#include <stdlib.h>

static int before;

static void force(int instruction)
{
    setenv("RUNNEL_GEMM", "wgmma", 1);
    before = op_device()->matrix_instruction;
    op_device()->matrix_instruction = instruction;
}

static void force_model(void)
{
    force(RNL_MATRIX_WGMMA | RNL_MATRIX_MODEL);
}

/* The instruction itself, where it works. */
static void force_instruction(void)
{
    rnl_matrix_find(op_device());
    force(op_device()->matrix_instruction);
}

static void force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
    op_device()->matrix_instruction = before;
}

static void run_as_wgmma(const gemm_case *test)
{
    if (!op_chosen())
        return;
    gemm_run run = {.test = *test};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    gemm_case_enqueue(&run);
    if ((op_device()->matrix_instruction & ~RNL_MATRIX_MODEL) == RNL_MATRIX_WGMMA &&
        op_device()->matrix_instruction > 0)
        ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:wgmma");
    gemm_case_check(&run);
    op_reset();
}

/* Whole tiles, cut ones and several, in lines that the copy engine takes and in others. */
START_TEST(tiles)
{
    static const int64_t sizes[][3] = {{33, 65, 40}, {64, 64, 64}, {1, 1, 1}, {72, 136, 200}, {130, 70, 33}};
    const bool model = op_device()->matrix_instruction & RNL_MATRIX_MODEL;
    for (size_t i = 0; i < (op_small() ? 1 : 5); ++i)
        for (int t = 0; t < (op_small() ? 1 : model ? 2 : 8); ++t)
            run_as_wgmma(&(gemm_case){.dtype = t % 2 ? RNL_BF16 : RNL_F16,
                                      .m = sizes[i][0],
                                      .n = sizes[i][1],
                                      .k = sizes[i][2],
                                      .a_transposed = (model ? t : t / 2) % 2,
                                      .b_transposed = model ? t : t / 4});
}
END_TEST

START_TEST(ends)
{
    static const gemm_case tests[] = {
        {.dtype = RNL_F16, .m = 20, .n = 37, .k = 21, .b_transposed = true, .alpha = 0.5f, .beta = 2, .c_rank = 1},
        {.dtype = RNL_BF16,
         .m = 20,
         .n = 40,
         .k = 24,
         .a_transposed = true,
         .batch_rank = 1,
         .batch = {3},
         .dst_gaps = true},
        {.dtype = RNL_F16, .m = 20, .n = 37, .k = 0},
    };
    GEMM_RUN_ALL(tests);
}
END_TEST

START_TEST(chain)
{
    if (op_small()) /* the end of all products is in one file */
        return;
    run_as_wgmma(&(gemm_case){
        .dtype = RNL_F16, .m = 20, .n = 40, .k = 24, .chain = true, .operands = 2, .operand_ones = {2, 1}});
}
END_TEST

/* More tiles than multiprocessors: a work-group goes through its places several times. */
START_TEST(rounds)
{
    const uint32_t units = op_device()->info.compute_units;
    const bool model = op_device()->matrix_instruction & RNL_MATRIX_MODEL;
    op_device()->info.compute_units = op_small() ? 1 : 2;
    if (op_small())
        run_as_wgmma(&(gemm_case){.dtype = RNL_F16, .m = 70, .n = 8, .k = 8, .b_transposed = true});
    else
        run_as_wgmma(&(gemm_case){.dtype = RNL_F16, .m = 130, .n = 136, .k = 72, .b_transposed = true});
    if (!model && !op_small())
        run_as_wgmma(&(gemm_case){.dtype = RNL_BF16, .m = 340, .n = 264, .k = 712, .batch_rank = 1, .batch = {2}});
    op_device()->info.compute_units = units;
}
END_TEST

static void add(Suite *suite, const char *name, SFun force_it)
{
    TCase *tests = op_case(suite, name);
    tcase_add_checked_fixture(tests, force_it, force_nothing);
    tcase_add_test(tests, tiles);
    tcase_add_test(tests, ends);
    tcase_add_test(tests, chain);
    tcase_add_test(tests, rounds);
}

int main(void)
{
    Suite *suite = suite_create("gemm_wgmma");
    add(suite, "model", force_model);
    add(suite, "instruction", force_instruction);
    return op_main(suite);
}
