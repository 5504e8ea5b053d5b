/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products whose second factor is copied into panels first. */
#include "ops/tuning.h"
#include "support/gemm_suite.h"
#include <stdlib.h>
#include <string.h>

static void force_panel(void)
{
    setenv("RUNNEL_GEMM", "panel", 1);
}

static void force_nothing(void)
{
    unsetenv("RUNNEL_GEMM");
}

START_TEST(sides)
{
    static const int64_t sizes[] = {1, 3, 4, 5, 8, 9, 17, 33, 70};
    const size_t count = op_small() ? 4 : 9;
    for (size_t m = 0; m < count; m += 2)
        for (size_t n = 0; n < count; ++n)
            for (size_t k = 0; k < count; k += 2)
                gemm_case_run(
                    &(gemm_case){.m = sizes[m], .n = sizes[n], .k = sizes[k], .b_transposed = (m + k) / 2 % 2});
}
END_TEST

/* Longer than what one work-item copies. */
START_TEST(deep)
{
    for (unsigned form = 0; form < (op_small() ? 0 : 8); ++form)
        gemm_case_run(&(gemm_case){.m = 9,
                                   .n = 50,
                                   .k = form & 4 ? 128 : 275,
                                   .b_transposed = form & 1,
                                   .b_gaps = form & 2,
                                   .a_transposed = form & 4});
}
END_TEST

/* Terms in blocks, the last one shorter, as processors that it gains on take them. */
START_TEST(deep_blocks)
{
    if (op_small())
        return;
    setenv("RUNNEL_PROCESSOR", _i ? "swift" : "slow", 1);
    gemm_case_run(&(gemm_case){.m = 260, .n = 70, .k = 2052, .packs_b = true});
    unsetenv("RUNNEL_PROCESSOR");
}
END_TEST

START_TEST(packed_before)
{
    for (int64_t m = 1; m <= (op_small() ? 9 : 40); m += op_small() ? 4 : 1)
        gemm_case_run(&(gemm_case){.m = m, .n = 37, .k = 21, .packs_b = true, .b_transposed = m & 1, .c_rank = m & 1});
    static const gemm_case tests[] = {
        {.m = 9, .n = 37, .k = 0, .packs_b = true},
        {.m = 9, .n = 3, .k = 5, .packs_b = true},
        {.m = 9, .n = 37, .k = 20, .packs_b = true, .batch_rank = 2, .batch = {3, 2}, .b_ones = 2, .a_less = 1},
        {.m = 9, .n = 37, .k = 20, .packs_b = true, .batch_rank = 2, .batch = {3, 2}, .b_less = 1, .b_gaps = true},
        {.m = 9, .n = 37, .k = 20, .packs_b = true, .batch_rank = 2, .batch = {3, 2}, .b_less = 2},
        {.dtype = RNL_F16, .m = 9, .n = 37, .k = 20, .packs_b = true, .chain = true},
        {.dtype = RNL_BF16, .m = 9, .n = 37, .k = 20, .packs_b = true, .b_transposed = true},
    };
    GEMM_RUN_ALL(tests);
}
END_TEST

static rnl_status multiply(const gemm_run *run, const rnl_view *packed)
{
    rnl_gemm_params params = {.alpha = 1, .packed_b = packed};
    return rnl_op_gemm(op_list(), &params, &run->a->view, &run->b->view, NULL, &run->dst->view);
}

START_TEST(wrong_packed)
{
    gemm_run run = {.test = {.m = 9, .n = 33, .k = 20}};
    int64_t floats = 0;
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    op_expect(RNL_OK, rnl_gemm_packed(op_device(), &run.b->view, &floats));
    ck_assert_int_ge(floats, 33 * 20);
    const int64_t fewer = floats - 1;
    const rnl_view *cut = &op_tensor_create(RNL_F32, 1, &fewer, OP_ROW_MAJOR)->view;
    const rnl_view *other = &op_tensor_create(RNL_I32, 1, &floats, OP_ROW_MAJOR)->view;
    const rnl_view *packed = &op_tensor_create(RNL_F32, 1, &floats, OP_ROW_MAJOR)->view;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gemm_pack(op_list(), &run.b->view, cut));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gemm_pack(op_list(), &run.b->view, other));
    op_expect(RNL_INVALID_ARGUMENT, multiply(&run, cut));
    op_expect(RNL_INVALID_ARGUMENT, multiply(&run, other));
    ck_assert_uint_eq(op_list()->step_count, 0);
    op_expect(RNL_OK, multiply(&run, packed));
    ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:panel");
    run.b->view.dtype = RNL_I32;
    op_expect(RNL_OK, rnl_gemm_packed(op_device(), &run.b->view, &floats));
    ck_assert_int_eq(floats, 0);
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_gemm_pack(op_list(), &run.b->view, packed));
}
END_TEST

/* Without memory of its own, or of less than it asks for, or for types that it does not take. */
START_TEST(does_not_apply)
{
    gemm_run run = {.test = {.m = 9, .n = 33, .k = 20, .b_transposed = true}};
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    const int64_t few = 100;
    rnl_gemm_params params = gemm_case_params(&run);
    op_expect(RNL_OK, rnl_op_gemm(op_list(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view));
    ck_assert_str_ne(op_list()->steps[0].implementation, "gemm:panel");
    params.scratch = &op_tensor_create(RNL_F32, 1, &few, OP_ROW_MAJOR)->view;
    op_expect(RNL_OK, rnl_op_gemm(op_list(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view));
    ck_assert_str_ne(op_list()->steps[1].implementation, "gemm:panel");
    op_reset();
    gemm_case_run(&(gemm_case){.dtype = RNL_I32, .m = 9, .n = 33, .k = 20});
    gemm_case_run(&(gemm_case){.m = 9, .n = 33, .k = 0});
    if (op_info()->has_fp64)
        gemm_case_run(&(gemm_case){.dtype = RNL_F64, .m = 9, .n = 33, .k = 20});
}
END_TEST

START_TEST(wrong_arguments)
{
    gemm_run run = {.test = {.m = 9, .n = 33, .k = 20}};
    int64_t floats = 1;
    gemm_case_defaults(&run.test);
    gemm_case_create(&run);
    const rnl_gemm_params params = gemm_case_params(&run);
    run.b->view.shape[0] += 1;
    op_expect(RNL_INVALID_ARGUMENT,
              rnl_gemm_scratch(op_device(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view, &floats));
    ck_assert_int_eq(floats, 0);
    run.b->view.shape[0] -= 1;
    run.a->view.shape[0] = run.dst->view.shape[0] = 0;
    op_expect(RNL_OK,
              rnl_gemm_scratch(op_device(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view, &floats));
    ck_assert_int_eq(floats, 0);
}
END_TEST

/* Rows are read where they lie without memory too, and by strides. */
START_TEST(without_memory)
{
    for (unsigned form = 0; form < 8; ++form) {
        gemm_run run = {.test = {.dtype = form & 4 ? RNL_F16 : RNL_F32,
                                 .m = form & 2 ? 1 : 9,
                                 .n = 37,
                                 .k = 300,
                                 .a_transposed = form & 1}};
        gemm_case_defaults(&run.test);
        gemm_case_create(&run);
        const rnl_gemm_params params = gemm_case_params(&run);
        op_expect(RNL_OK, rnl_op_gemm(op_list(), &params, &run.a->view, &run.b->view, NULL, &run.dst->view));
        ck_assert_str_eq(op_list()->steps[0].implementation, "gemm:panel");
        ck_assert_uint_eq(op_list()->step_count, 1);
        gemm_case_check(&run);
        op_reset();
    }
}
END_TEST

/* As if measured: each tile, with b copied, packed before, and read where it lies. */
static void run_variants(int64_t m, int64_t n)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < count; ++i) {
        for (unsigned form = 0; form < (i ? 1 : 2); ++form) {
            gemm_run run = {.test = {.m = m, .n = n, .k = 11, .packs_b = form, .c_rank = 1}};
            gemm_case_defaults(&run.test);
            op_expect(RNL_OK, rnl_tuning_force(op_device(), i));
            gemm_case_create(&run);
            gemm_case_enqueue(&run);
            const rnl_step *last = &op_list()->steps[op_list()->step_count - 1];
            count = last->variants > count ? last->variants : count;
            gemm_case_check(&run);
            op_reset();
        }
    }
    op_expect(RNL_OK, rnl_tuning_force(op_device(), RNL_TUNING_NONE));
    ck_assert_uint_ge(count, 8);
}

START_TEST(variants)
{
    run_variants(op_small() ? 5 : 19, op_small() ? 21 : 147);
}
END_TEST

/* What other processors are given. */
START_TEST(widths)
{
    for (uint32_t width = 4; width <= (op_small() ? 0 : 8); width *= 2) {
        op_pretend(&(op_limits){.vector_width = width,
                                .work_items = op_info()->max_work_group_size,
                                .local_bytes = op_info()->local_memory_bytes});
        for (int64_t m = 1; m <= 11; m += 5)
            gemm_case_run(&(gemm_case){.m = m, .n = 5 * m, .k = 19, .a_transposed = m & 1, .b_transposed = m & 2});
        op_pretend(NULL);
    }
}
END_TEST

/* Terms block by block, and several slabs of rows to a work-item. */
START_TEST(blocks)
{
    for (unsigned form = 0; form < (op_small() ? 0 : 4); ++form)
        gemm_case_run(&(gemm_case){.m = form & 1 ? 9 : 3,
                                   .n = 260,
                                   .k = 4100,
                                   .a_transposed = form & 2,
                                   .c_rank = 1,
                                   .alpha = 0.5f,
                                   .beta = 2});
    for (unsigned form = 0; form < (op_small() ? 0 : 4); ++form)
        gemm_case_run(
            &(gemm_case){.m = 1900, .n = form & 1 ? 20 : 70, .k = 5, .a_transposed = form & 2, .packs_b = form & 1});
}
END_TEST

/* On registers of 8 floats many rows of many terms are taken block by block from panels, too. */
START_TEST(blocks_of_panels)
{
    op_pretend(&(op_limits){
        .vector_width = 8, .work_items = op_info()->max_work_group_size, .local_bytes = op_info()->local_memory_bytes});
    for (unsigned form = 0; form < (op_small() ? 0 : 4); ++form)
        gemm_case_run(&(gemm_case){.m = 259,
                                   .n = form & 1 ? 45 : 160,
                                   .k = 2083,
                                   .packs_b = form & 1,
                                   .a_transposed = form & 2,
                                   .c_rank = form & 1,
                                   .alpha = 0.5f,
                                   .beta = form & 1 ? 2.0f : 0.0f});
    op_pretend(NULL);
}
END_TEST

/* There each work-item copies its panels of b: all terms, or some at a time for few rows; columns or rows are shared.
 */
START_TEST(panels_inside)
{
    static const int64_t sizes[][3] = {{13, 611, 1030}, {150, 170, 320}, {1300, 20, 310}};
    op_pretend(&(op_limits){
        .vector_width = 8, .work_items = op_info()->max_work_group_size, .local_bytes = op_info()->local_memory_bytes});
    run_variants(op_small() ? 5 : 19, op_small() ? 21 : 147);
    for (unsigned i = 0; i < (op_small() ? 0 : 6); ++i)
        gemm_case_run(&(gemm_case){.m = sizes[i / 2][0],
                                   .n = sizes[i / 2][1],
                                   .k = sizes[i / 2][2],
                                   .a_transposed = i & 1,
                                   .c_rank = i & 1,
                                   .alpha = 0.5f,
                                   .beta = i & 1 ? 2.0f : 0.0f});
    op_pretend(NULL);
}
END_TEST

/* What a CPU's own driver chooses: copies where memory would be read across its grain. */
START_TEST(choice)
{
    if (op_info()->type != RNL_DEVICE_CPU || op_info()->emulated)
        return;
    unsetenv("RUNNEL_GEMM");
    for (unsigned form = 0; form < 2; ++form) {
        gemm_run run = {.test = {.m = 40, .n = 40, .k = 30, .b_transposed = form}};
        gemm_case_defaults(&run.test);
        gemm_case_create(&run);
        gemm_case_enqueue(&run);
        ck_assert_uint_eq(op_list()->step_count, form + 1);
        ck_assert_str_eq(op_list()->steps[form].implementation, "gemm:panel");
        op_reset();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("gemm_panel");
    TCase *tests = op_case(suite, "panel");
    tcase_add_checked_fixture(tests, force_panel, force_nothing);
    tcase_add_test(tests, sides);
    tcase_add_test(tests, deep);
    tcase_add_loop_test(tests, deep_blocks, 0, 2);
    tcase_add_test(tests, packed_before);
    tcase_add_test(tests, wrong_packed);
    gemm_suite_add(tests, "gemm:panel", true);
    tcase_add_test(tests, without_memory);
    tcase_add_test(tests, variants);
    tcase_add_test(tests, widths);
    tcase_add_test(tests, blocks);
    tcase_add_test(tests, blocks_of_panels);
    tcase_add_test(tests, panels_inside);
    tcase_add_test(tests, does_not_apply);
    tcase_add_test(tests, wrong_arguments);
    tcase_add_test(tests, choice);
    return op_main(suite);
}
