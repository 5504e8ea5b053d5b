/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products by warpgroups. Where there is no such instruction the kernel runs with a model of it, and of what brings its
 * factors, in plain C, written from the vendor's manual.
 */
#include "device/device.h"
#include "device/enumerate.h"
#include "ops/gemm_matrix.h"
#include "support/matrix_case.h"

static void force_model(void)
{
    matrix_force("wgmma", RNL_MATRIX_WGMMA | RNL_MATRIX_MODEL);
}

/* The instruction itself, which has to be found where it is; nothing is run elsewhere. */
static void force_instruction(void)
{
    rnl_matrix_find(op_device());
    const int found = op_device()->matrix_instruction;
    ck_assert(rnl_device_compute_capability(op_device()) != 90 || found == RNL_MATRIX_WGMMA);
    matrix_force("wgmma", found == RNL_MATRIX_WGMMA ? found : RNL_MATRIX_NONE);
}

static bool is_model(void)
{
    return op_device()->matrix_instruction == (RNL_MATRIX_WGMMA | RNL_MATRIX_MODEL);
}

/* Whole tiles, cut ones and several, in lines that the copy engine takes and in others. */
START_TEST(tiles)
{
    static const int64_t sizes[][3] = {{33, 65, 40}, {64, 64, 64}, {1, 1, 1}, {72, 136, 200}, {130, 70, 33}};
    const bool model = is_model();
    for (size_t i = 0; i < (op_small() ? 1 : 5); ++i)
        for (int t = 0; t < (op_small() ? 1 : model ? 2 : 8); ++t)
            matrix_run(&(gemm_case){.dtype = t % 2 ? RNL_BF16 : RNL_F16,
                                    .m = sizes[i][0],
                                    .n = sizes[i][1],
                                    .k = sizes[i][2],
                                    .a_transposed = (model ? t : t / 2) % 2,
                                    .b_transposed = model ? t : t / 4});
}
END_TEST

START_TEST(ends)
{
    if (!op_small()) /* the end of all products is in one file */
        matrix_run_ends();
}
END_TEST

START_TEST(chain)
{
    if (op_small())
        return;
    matrix_run(&(gemm_case){
        .dtype = RNL_F16, .m = 20, .n = 40, .k = 24, .chain = true, .operands = 2, .operand_ones = {2, 1}});
}
END_TEST

/* More tiles than multiprocessors: a work-group goes through its places several times. */
START_TEST(rounds)
{
    const uint32_t units = op_device()->info.compute_units;
    op_device()->info.compute_units = op_small() ? 1 : 2;
    if (op_small())
        matrix_run(&(gemm_case){.dtype = RNL_F16, .m = 70, .n = 8, .k = 8, .b_transposed = true});
    else
        matrix_run(&(gemm_case){.dtype = RNL_F16, .m = 130, .n = 136, .k = 72, .b_transposed = true});
    if (!is_model())
        matrix_run(&(gemm_case){.dtype = RNL_BF16, .m = 340, .n = 264, .k = 712, .batch_rank = 1, .batch = {2}});
    op_device()->info.compute_units = units;
}
END_TEST

static void add(Suite *suite, const char *name, SFun force_it)
{
    TCase *tests = op_case(suite, name);
    tcase_add_checked_fixture(tests, force_it, matrix_force_nothing);
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
