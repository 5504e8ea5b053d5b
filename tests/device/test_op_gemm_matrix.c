/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with the matrix instructions of GPUs. Where there are none the kernels run with a model of each instruction
 * in plain C, written from the vendors' manuals.
 */
#include "device/device.h"
#include "ops/gemm_matrix.h"
#include "support/gemm_suite.h"
#include <stdlib.h>

static const int instructions[] = {RNL_MATRIX_MFMA, RNL_MATRIX_DPAS8, RNL_MATRIX_DPAS16, RNL_MATRIX_MMA,
                                   RNL_MATRIX_WGMMA};
static int before;

static void force_matrix(int instruction)
{
    setenv("RUNNEL_GEMM", "matrix", 1);
    before = op_device()->matrix_instruction;
    op_device()->matrix_instruction = instruction | RNL_MATRIX_MODEL;
}

static void force_mfma(void)
{
    force_matrix(RNL_MATRIX_MFMA);
}

static void force_dpas8(void)
{
    force_matrix(RNL_MATRIX_DPAS8);
}

static void force_dpas16(void)
{
    force_matrix(RNL_MATRIX_DPAS16);
}

static void force_mma(void)
{
    force_matrix(RNL_MATRIX_MMA);
}

static void force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
    op_device()->matrix_instruction = before;
}

/* The model's memory: not every device has enough. */
static bool has_room(void)
{
    return op_info()->local_memory_bytes >= 32768 && op_info()->max_work_group_size >= 128;
}

static void run_as_matrix(const gemm_case *test)
{
    if (!op_chosen())
        return;
    gemm_run run = {.test = *test};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    gemm_case_enqueue(&run);
    if (has_room() &&
        (test->dtype != RNL_F32 || op_device()->matrix_instruction == (RNL_MATRIX_MFMA | RNL_MATRIX_MODEL)))
        ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:matrix");
    gemm_case_check(&run);
    op_reset();
}

/* Whole tiles, cut ones and several. One form of the factors for each type, that of the probe but for bfloat16:
 * programs with the model compile slowly. */
START_TEST(tiles)
{
    static const int64_t sizes[][3] = {{33, 65, 40}, {1, 1, 1}, {16, 16, 16}, {50, 70, 33}, {64, 66, 100}};
    static const rnl_dtype types[] = {RNL_F16, RNL_BF16, RNL_F32};
    const bool floats = op_device()->matrix_instruction == (RNL_MATRIX_MFMA | RNL_MATRIX_MODEL);
    for (size_t i = 0; i < (op_small() ? 1 : 5); ++i)
        for (size_t t = 0; t < (op_small() ? 1 : floats ? 3 : 2); ++t)
            run_as_matrix(&(gemm_case){.dtype = types[t],
                                       .m = sizes[i][0],
                                       .n = sizes[i][1],
                                       .k = sizes[i][2],
                                       .a_transposed = t == 1,
                                       .b_transposed = t == 1});
}
END_TEST

START_TEST(ends)
{
    static const gemm_case tests[] = {
        {.dtype = RNL_F16, .m = 20, .n = 37, .k = 21, .alpha = 0.5f, .beta = 2, .c_rank = 1},
        {.dtype = RNL_BF16,
         .m = 20,
         .n = 37,
         .k = 21,
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
    run_as_matrix(&(gemm_case){
        .dtype = RNL_F16, .m = 20, .n = 37, .k = 21, .chain = true, .operands = 2, .operand_ones = {2, 1}});
}
END_TEST

/* The probe tells a right instruction from none: here the model, and what does not compile. */
START_TEST(probe)
{
    if (!has_room() || op_small()) /* oclgrind runs the same kernels in the tests of each, in a fifth of the time */
        return;
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; ++i)
        ck_assert(rnl_matrix_works(op_device(), instructions[i] | RNL_MATRIX_MODEL));
    op_device()->matrix_instruction = RNL_MATRIX_UNKNOWN;
    rnl_matrix_find(op_device());
    if (op_info()->type == RNL_DEVICE_CPU)
        ck_assert_int_eq(op_device()->matrix_instruction, RNL_MATRIX_NONE);
    else if (op_device()->matrix_instruction > 0)
        ck_assert(rnl_matrix_works(op_device(), op_device()->matrix_instruction));
}
END_TEST

static void add(Suite *suite, const char *name, SFun force)
{
    TCase *tests = op_case(suite, name);
    tcase_add_checked_fixture(tests, force, force_nothing);
    tcase_add_test(tests, tiles);
    tcase_add_test(tests, ends);
}

int main(void)
{
    Suite *suite = suite_create("gemm_matrix");
    TCase *tests = op_case(suite, "probe");
    tcase_add_test(tests, probe);
    TCase *chains = op_case(suite, "chain");
    tcase_add_checked_fixture(chains, force_mfma, force_nothing);
    tcase_add_test(chains, chain);
    add(suite, "mfma", force_mfma);
    add(suite, "dpas8", force_dpas8);
    add(suite, "dpas16", force_dpas16);
    add(suite, "mma", force_mma);
    return op_main(suite);
}
