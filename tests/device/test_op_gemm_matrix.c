/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with the matrix instructions of GPUs. Where there are none the kernels run with a model of each instruction
 * in plain C, written from the vendors' manuals.
 */
#include "device/device.h"
#include "ops/gemm_matrix.h"
#include "support/matrix_case.h"

static const int instructions[] = {RNL_MATRIX_MFMA, RNL_MATRIX_DPAS8, RNL_MATRIX_DPAS16, RNL_MATRIX_MMA,
                                   RNL_MATRIX_WGMMA};

static void force_matrix(int instruction)
{
    matrix_force("matrix", instruction | RNL_MATRIX_MODEL);
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

/* Whole tiles, cut ones and several. One form of the factors for each type, that of the probe but for bfloat16:
 * programs with the model compile slowly. */
START_TEST(tiles)
{
    static const int64_t sizes[][3] = {{33, 65, 40}, {1, 1, 1}, {16, 16, 16}, {50, 70, 33}, {64, 66, 100}};
    /* Of the models' tiles of 16 or 32 rows and 32 columns: whole ones beside cut ones both ways, and two steps of
     * terms. */
    static const int64_t small[3] = {33, 33, 40};
    static const rnl_dtype types[] = {RNL_F16, RNL_BF16, RNL_F32};
    const bool floats = op_device()->matrix_instruction == (RNL_MATRIX_MFMA | RNL_MATRIX_MODEL);
    for (size_t i = 0; i < (op_small() ? 1 : 5); ++i) {
        const int64_t *size = op_small() ? small : sizes[i];
        for (size_t t = 0; t < (op_small() ? 1 : floats ? 3 : 2); ++t)
            matrix_run(&(gemm_case){.dtype = types[t],
                                    .m = size[0],
                                    .n = size[1],
                                    .k = size[2],
                                    .a_transposed = t == 1,
                                    .b_transposed = t == 1});
    }
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
    matrix_run(&(gemm_case){
        .dtype = RNL_F16, .m = 20, .n = 37, .k = 21, .chain = true, .operands = 2, .operand_ones = {2, 1}});
}
END_TEST

/* The probe tells a right instruction from none: here the model, and what does not compile. */
START_TEST(probe)
{
    if (!matrix_has_room() ||
        op_small()) /* oclgrind runs the same kernels in the tests of each, in a fifth of the time */
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
    tcase_add_checked_fixture(tests, force, matrix_force_nothing);
    tcase_add_test(tests, tiles);
    tcase_add_test(tests, ends);
}

int main(void)
{
    Suite *suite = suite_create("gemm_matrix");
    TCase *tests = op_case(suite, "probe");
    tcase_add_test(tests, probe);
    TCase *chains = op_case(suite, "chain");
    tcase_add_checked_fixture(chains, force_mfma, matrix_force_nothing);
    tcase_add_test(chains, chain);
    add(suite, "mfma", force_mfma);
    add(suite, "dpas8", force_dpas8);
    add(suite, "dpas16", force_dpas16);
    add(suite, "mma", force_mma);
    return op_main(suite);
}
