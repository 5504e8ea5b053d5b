/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/gemm_clblast.h"
#include "support/gemm_case.h"
#include <math.h>
#include <stdlib.h>

static void run_all(const gemm_case *tests, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        gemm_case_run(&tests[i]);
}
#define RUN_ALL(tests) run_all(tests, sizeof(tests) / sizeof *(tests))

/* CLBlast compiles for seconds, and far longer where the device is emulated. */
static void force_clblast(void)
{
    setenv("RUNNEL_GEMM", "clblast", 1);
}

static void force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
}

START_TEST(forms)
{
    for (unsigned form = 0; form < 32 && !op_small(); ++form)
        gemm_case_run(&(gemm_case){.m = form & 1 ? 33 : 1,
                                   .n = form & 2 ? 70 : 3,
                                   .k = form & 4 ? 20 : 1,
                                   .a_transposed = form & 8,
                                   .b_transposed = form & 16,
                                   .alpha = 0.5f,
                                   .beta = form % 3 ? 2.0f : 1.0f,
                                   .c_rank = form % 3,
                                   .c_ones = form % 2});
}
END_TEST

START_TEST(batches)
{
    static const gemm_case tests[] = {
        {.m = 4, .n = 5, .k = 6, .batch_rank = 1, .batch = {3}, .c_rank = 2},
        {.m = 17, .n = 34, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_less = 2},
        {.m = 17, .n = 34, .k = 6, .batch_rank = 2, .batch = {3, 2}, .a_less = 2, .c_rank = 1},
        {.m = 17, .n = 34, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_transposed = true, .alpha = 3, .beta = 0},
        {.m = 130, .n = 140, .k = 150, .c_rank = 1, .c_ones = 1, .alpha = 1, .beta = 1},
    };
    if (!op_small())
        RUN_ALL(tests);
}
END_TEST

START_TEST(special_values)
{
    gemm_run run = {.test = {.dtype = RNL_F32, .m = 9, .n = 33, .k = 20}};
    if (op_small())
        return;
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    op_put(run.a, (const int64_t[]){4, 19}, op_float(NAN));
    op_put(run.b, (const int64_t[]){3, 32}, op_float(INFINITY));
    op_fill(run.dst, OP_SPECIAL, 0, 0); /* without an addend, nothing of it may stay */
    gemm_case_enqueue(&run);
    ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:clblast");
    gemm_case_check(&run);
}
END_TEST

START_TEST(warming)
{
    rnl_stream *stream = NULL;
    const rnl_clblast_gemm right = {
        .m = 3, .n = 4, .k = 5, .a_ld = 5, .b_ld = 4, .c_ld = 4, .batch = 1, .alpha = 1, .dtype = RNL_F32};
    rnl_clblast_gemm wrong = right;
    if (op_small())
        return;
    op_expect(RNL_OK, rnl_stream_create(op_device(), &stream));
    op_expect(RNL_OK, rnl_clblast_warm(stream, &right));
    wrong.a_ld = 4;
    op_expect(RNL_INTERNAL, rnl_clblast_warm(stream, &wrong));
    wrong = right;
    wrong.m = SIZE_MAX / 4;
    op_expect(RNL_RESOURCE_EXHAUSTED, rnl_clblast_warm(stream, &wrong));
    op_expect(RNL_OK, rnl_clblast_warm(stream, &right));
    rnl_stream_release(stream);
}
END_TEST

/* What CLBlast cannot take goes to the portable one, forced or not. */
START_TEST(does_not_apply)
{
    gemm_run run = {.test = {.dtype = RNL_F32, .m = 3, .n = 4, .k = 0}};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    gemm_case_enqueue(&run);
    ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:portable");
    gemm_case_run(&(gemm_case){.m = 3, .n = 4, .k = 5, .a_gaps = true});
    gemm_case_run(&(gemm_case){.m = 3, .n = 4, .k = 5, .dst_transposed = true});
    gemm_case_run(&(gemm_case){.dtype = RNL_F16, .m = 3, .n = 4, .k = 5});
}
END_TEST

/* CLBlast takes every set, products with others than its own are right, and its own come back. */
START_TEST(parameters)
{
    static const gemm_case product = {.m = 33, .n = 70, .k = 20};
    uint32_t sets[RNL_CLBLAST_KERNELS] = {0};
    if (op_small())
        return;
    for (int kernel = 0; kernel < RNL_CLBLAST_KERNELS; ++kernel)
        for (uint32_t set = rnl_clblast_sets((rnl_clblast_kernel)kernel); set-- > 0;) {
            sets[kernel] = set;
            op_expect(RNL_OK, rnl_clblast_use(op_device(), sets));
        }
    op_expect(RNL_OK, rnl_clblast_use(op_device(), (const uint32_t[]){3, 1}));
    gemm_case_run(&product);
    op_expect(RNL_OK, rnl_clblast_use(op_device(), sets));
    gemm_case_run(&product);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm_clblast");
    TCase *tests = op_case(suite, "clblast");
    tcase_add_checked_fixture(tests, force_clblast, force_nothing);
    tcase_add_test(tests, forms);
    tcase_add_test(tests, batches);
    tcase_add_test(tests, special_values);
    tcase_add_test(tests, warming);
    tcase_add_test(tests, parameters);
    tcase_add_test(tests, does_not_apply);
    return op_main(suite);
}
