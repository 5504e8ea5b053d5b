/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes that end in bytes, where the device has the instruction for them. */
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "support/qconv_case.h"
#include <stdlib.h>

/* Tiles of each number of pixels, less than one, parts of one, at equal distances and others; blocks of channels whole,
 * and parts of both vectors. */
static const qconv_case shapes[] = {
    {1, 4, 3, {2, 1}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {2, 8, 40, {5, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 12, 64, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {3, 20, 33, {9, 5}, {2, 3}, {2, 1}, {1, 2}, {1, 2}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 64, 96, {7, 7}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {2, 16, 16, {11, 13}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 4, 47, {3, 3}, {5, 5}, {1, 1}, {1, 1}, {4, 4}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {2, 8, 64, {9, 16}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 12, 96, {9, 9}, {3, 3}, {1, 1}, {1, 1}, {0, 0}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 8, 70, {16, 15}, {1, 1}, {2, 1}, {1, 1}, {0, 0}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 64, 64, {6, 16}, {3, 3}, {1, 1}, {1, 1}, {1, 0}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 64, 64, {2, 9}, {1, 1}, {1, 1}, {1, 1}, {1, 0}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 64, 32, {2, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, RNL_U8, QCONV_PLAIN, false, false, 16},
};
#define SHAPES ((int)(sizeof shapes / sizeof *shapes))

START_TEST(convolutions)
{
    qconv_case test = shapes[_i % SHAPES];
    test.dtype = _i / SHAPES & 1 ? RNL_I8 : RNL_U8;
    test.options = (qconv_options)(_i / SHAPES / 2);
    setenv("RUNNEL_AMX", "off", 1);
    qconv_case_run(&test, "qconv:panel");
    unsetenv("RUNNEL_AMX");
}
END_TEST

/* Tiles of as many pixels as other processors have. */
START_TEST(both_tiles)
{
    qconv_case test = shapes[_i % SHAPES];
    test.options = QCONV_SUM;
    setenv("RUNNEL_AMX", "off", 1);
    setenv("RUNNEL_PROCESSOR", _i < SHAPES ? "swift" : "slow", 1);
    qconv_case_run(&test, "qconv:panel");
    unsetenv("RUNNEL_PROCESSOR");
    unsetenv("RUNNEL_AMX");
}
END_TEST

/* Rows of pixels that are not all one row, of images that are parts of larger ones: each of them alone. */
START_TEST(parts_of_images)
{
    const qconv_case test = {.images = 2,
                             .channels = 8,
                             .filters = 40,
                             .size = {5, 7},
                             .kernel = {1, 1},
                             .stride = {1, 1},
                             .dilation = {1, 1},
                             .dtype = RNL_U8,
                             .options = QCONV_SUM,
                             .cropped = 1u << _i % 3 | (_i < 3 ? 0 : 8)};
    setenv("RUNNEL_AMX", "off", 1);
    qconv_case_run(&test, "qconv:panel");
    unsetenv("RUNNEL_AMX");
}
END_TEST

/* By vpmaddwd with half the products and without: runs whole and moved back, several that share weights, chunks of
 * channels that begin inside a tap. */
static const qconv_case long_shapes[] = {
    {1, 4, 3, {4, 3}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 8, 40, {7, 7}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {2, 300, 33, {9, 5}, {1, 3}, {2, 1}, {1, 1}, {0, 1}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 16, 290, {12, 13}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, RNL_U8, QCONV_PLAIN, false, false, 0},
    {1, 1028, 32, {4, 4}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, RNL_U8, QCONV_PLAIN, false, true, 0},
};
#define LONG_SHAPES ((int)(sizeof long_shapes / sizeof *long_shapes))

START_TEST(half_the_products)
{
    qconv_case test = long_shapes[_i % LONG_SHAPES];
    test.dtype = _i / LONG_SHAPES & 1 ? RNL_I8 : RNL_U8;
    test.options = (qconv_options)(_i % 3);
    if (rnl_device_multiplies_bytes(op_device()) != RNL_INSTRUCTION_MADD8)
        return;
    setenv("RUNNEL_AMX", "off", 1);
    setenv("RUNNEL_FIP", _i / LONG_SHAPES & 2 ? "off" : "on", 1);
    ck_assert(qconv_case_run(&test, "qconv:panel"));
    ck_assert(op_last_has("-DFIP") == !(_i / LONG_SHAPES & 2));
    unsetenv("RUNNEL_FIP");
    unsetenv("RUNNEL_AMX");
}
END_TEST

/* By products of fours of bytes on 8 lanes, in plain C where the device has none. */
START_TEST(fours)
{
    qconv_case test = _i & 1 ? shapes[3 + _i / 2] : long_shapes[_i / 2];
    test.dtype = _i / 2 & 1 ? RNL_I8 : RNL_U8;
    test.options = (qconv_options)(_i % 3);
    setenv("RUNNEL_AMX", "off", 1);
    setenv("RUNNEL_INSTRUCTIONS", "model", 1);
    const bool ran = qconv_case_run(&test, "qconv:panel");
    ck_assert(ran == rnl_device_is_cpu(op_device()));
    ck_assert(!ran || op_last_has("-DFOURS"));
    unsetenv("RUNNEL_INSTRUCTIONS");
    unsetenv("RUNNEL_AMX");
}
END_TEST

/* Other types, layouts, shapes and zero points are for other steps. */
START_TEST(refusals)
{
    qconv_case test = shapes[1];
    qconv_run j;
    rnl_view other;
    test.dtype = RNL_U8;
    qconv_case_create(&test, &j);
    const rnl_qconv_end end = qconv_case_end(&j);
    const rnl_view *src = &j.src->view, *weight = &j.weight->view, *dst = &j.dst->view;
    other = *src;
    other.stride[1] = 2;
    ck_assert(!rnl_qconv_panel_applies(op_device(), &j.params, &end, &other, weight, dst));
    other = *weight;
    other.dtype = RNL_U8;
    ck_assert(!rnl_qconv_panel_applies(op_device(), &j.params, &end, src, &other, dst));
    other = *dst;
    other.dtype = RNL_I32;
    ck_assert(!rnl_qconv_panel_applies(op_device(), &j.params, &end, src, weight, &other));
    rnl_qconv_params params = j.params;
    params.weight_zero_point = src;
    ck_assert(!rnl_qconv_panel_applies(op_device(), &params, &end, src, weight, dst));
    params = j.params;
    params.stride[0] = INT64_MAX;
    ck_assert(!rnl_qconv_panel_applies(op_device(), &params, &end, src, weight, dst));
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qconv_panel(op_list(), &params, &end, src, weight, NULL, dst));
    setenv("RUNNEL_QCONV", "columns", 1);
    ck_assert(!rnl_qconv_panel_applies(op_device(), &j.params, &end, src, weight, dst));
    unsetenv("RUNNEL_QCONV");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("integer convolutions in one step");
    TCase *tests = op_case(suite, "bytes into bytes");
    tcase_add_loop_test(tests, convolutions, 0, 6 * SHAPES);
    tcase_add_loop_test(tests, both_tiles, 0, 2 * SHAPES);
    tcase_add_loop_test(tests, parts_of_images, 0, 6);
    tcase_add_loop_test(tests, half_the_products, 0, 4 * LONG_SHAPES);
    tcase_add_loop_test(tests, fours, 0, 6);
    tcase_add_test(tests, refusals);
    return op_main(suite);
}
