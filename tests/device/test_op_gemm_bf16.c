/* SPDX-License-Identifier: Apache-2.0 */
/* Products of bfloat16 by the processor's own instruction, where there is one; compared in float64. */
#include "ops/instruction.h"
#include "support/gemm_case.h"
#include <math.h>
#include <stdlib.h>

static bool runs(void)
{
    return rnl_device_runs(op_device(), RNL_INSTRUCTION_BF16);
}

/* Both ways: b packed beforehand, and copied into scratch. */
static void run(gemm_case test)
{
    for (int packed = 0; packed < 2; ++packed) {
        gemm_run r = {.test = test};
        r.test.dtype = RNL_BF16;
        r.test.packs_b = packed;
        gemm_case_defaults(&r.test);
        gemm_case_create(&r);
        gemm_case_enqueue(&r);
        if (runs() && test.k > 0)
            ck_assert_str_eq(op_list()->steps[op_list()->step_count - 1].implementation, "gemm:bf16");
        gemm_case_check(&r);
        op_reset();
    }
}

START_TEST(sides)
{
    static const int64_t sizes[] = {1, 2, 3, 5, 8, 9, 17, 33, 70};
    for (size_t m = 0; m < 9; m += 2)
        for (size_t n = 0; n < 9; ++n)
            for (size_t k = 0; runs() && k < 9; k += 2)
                run((gemm_case){.m = sizes[m], .n = sizes[n], .k = sizes[k], .b_transposed = (m + k) / 2 % 2});
}
END_TEST

START_TEST(deep)
{
    for (unsigned form = 0; runs() && form < 4; ++form)
        run((gemm_case){.m = 40, .n = 70, .k = 1023 + form % 2, .a_transposed = form & 2});
}
END_TEST

START_TEST(layouts)
{
    for (unsigned form = 0; runs() && form < 64; ++form)
        run((gemm_case){.m = 10,
                        .n = 37,
                        .k = 21,
                        .a_transposed = form & 1,
                        .b_transposed = form & 2,
                        .dst_transposed = form & 4,
                        .a_gaps = form & 8,
                        .b_gaps = form & 16,
                        .dst_gaps = form & 32,
                        .alpha = 0.5f,
                        .beta = 2,
                        .c_rank = 1 + form % 2});
}
END_TEST

/* Tiles whose sums need nothing at the end, and each that they may need alone. */
START_TEST(whole_tiles)
{
    static const gemm_case tests[] = {
        {.alpha = 1},
        {.alpha = 0.5f},
        {.beta = 2, .alpha = 1, .c_rank = 2},
        {.dst_transposed = true},
    };
    for (size_t i = 0; runs() && i < sizeof tests / sizeof *tests; ++i) {
        gemm_case test = tests[i];
        test.m = 17, test.n = 70, test.k = 24;
        run(test);
    }
}
END_TEST

START_TEST(batches)
{
    static const gemm_case tests[] = {
        {.m = 4, .n = 5, .k = 6, .batch_rank = 1, .batch = {3}},
        {.m = 4, .n = 40, .k = 7, .batch_rank = 2, .batch = {3, 2}, .b_less = 2, .c_rank = 1},
        {.m = 1, .n = 17, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_ones = 1, .c_rank = 4},
        {.m = 4, .n = 5, .k = 6, .batch_rank = 3, .batch = {2, 3, 2}, .a_ones = 2, .b_ones = 5},
        {.m = 2, .n = 9, .k = 3, .batch_rank = 6, .batch = {2, 2, 2, 3, 2, 2}, .a_gaps = true, .c_rank = 8},
        {.m = 9, .n = 9, .k = 0, .batch_rank = 2, .batch = {2, 3}, .c_rank = 1},
    };
    for (size_t i = 0; runs() && i < sizeof tests / sizeof *tests; ++i)
        run(tests[i]);
}
END_TEST

START_TEST(chains)
{
    for (unsigned form = 0; runs() && form < 8; ++form)
        run((gemm_case){.m = 9,
                        .n = form & 1 ? 64 : 37,
                        .k = 20,
                        .chain = true,
                        .operands = form & 2 ? 2 : 0,
                        .operand_ones = {2},
                        .operand_types = {RNL_F32, RNL_BF16},
                        .dst_transposed = form & 4});
}
END_TEST

/* One NaN or infinity reaches its row or column and nothing else, also through the pair that has one element. */
START_TEST(special_values)
{
    for (int packed = 0; runs() && packed < 2; ++packed) {
        gemm_run r = {.test = {.dtype = RNL_BF16, .m = 9, .n = 33, .k = 21, .packs_b = packed}};
        gemm_case_defaults(&r.test);
        gemm_case_create(&r);
        op_put(r.a, (const int64_t[]){4, 20}, op_float(NAN));
        op_put(r.a, (const int64_t[]){7, 20}, op_float(-INFINITY));
        op_put(r.b, (const int64_t[]){3, 32}, op_float(INFINITY));
        gemm_case_enqueue(&r);
        gemm_case_check(&r);
        op_reset();
    }
}
END_TEST

/* A stride that nothing uses makes the kernels index in 64 bits. */
START_TEST(wide_indices)
{
    for (int packed = 0; runs() && packed < 2; ++packed) {
        gemm_run r = {.test = {.dtype = RNL_BF16, .m = 9, .n = 34, .k = 19, .batch_rank = 1, .batch = {1}}};
        r.test.packs_b = packed;
        gemm_case_defaults(&r.test);
        gemm_case_create(&r);
        r.a->view.stride[0] = INT64_C(1) << 40;
        gemm_case_enqueue(&r);
        gemm_case_check(&r);
        op_reset();
    }
}
END_TEST

/* Without the instruction, or where another implementation is asked for, the others take over, packed or not. */
START_TEST(without)
{
    static const char *const names[2] = {"RUNNEL_INSTRUCTIONS", "RUNNEL_GEMM"};
    static const char *const values[2] = {"off", "panel"};
    for (int i = 0; i < 4; ++i) {
        gemm_run r = {.test = {.dtype = RNL_BF16, .m = 9, .n = 34, .k = 19, .packs_b = i / 2}};
        setenv(names[i % 2], values[i % 2], 1);
        gemm_case_defaults(&r.test);
        gemm_case_create(&r);
        gemm_case_enqueue(&r);
        ck_assert_str_ne(op_list()->steps[op_list()->step_count - 1].implementation, "gemm:bf16");
        unsetenv(names[i % 2]);
        gemm_case_check(&r);
        op_reset();
    }
}
END_TEST

static void force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
    unsetenv("RUNNEL_INSTRUCTIONS");
}

static void force_bf16(void)
{
    setenv("RUNNEL_GEMM", "bf16", 1);
}

int main(void)
{
    Suite *suite = suite_create("gemm_bf16");
    TCase *tests = op_case(suite, "bf16"), *others = op_case(suite, "others");
    tcase_add_checked_fixture(tests, force_bf16, force_nothing);
    tcase_add_test(tests, sides);
    tcase_add_test(tests, deep);
    tcase_add_test(tests, layouts);
    tcase_add_test(tests, whole_tiles);
    tcase_add_test(tests, batches);
    tcase_add_test(tests, chains);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, wide_indices);
    tcase_add_checked_fixture(others, force_nothing, force_nothing);
    tcase_add_test(others, without);
    return op_main(suite);
}
