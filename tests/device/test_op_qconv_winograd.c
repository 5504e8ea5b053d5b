/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes by Winograd's way in integers, of vpmaddwd where there is one and of plain C elsewhere. */
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "ops/qconv_winograd.h"
#include "support/qconv_case.h"
#include <stdlib.h>
#include <string.h>

/* Of bytes without and with signs, with all that a convolution may end in, in this form. */
static void run_form(qconv_case test, int64_t form)
{
    for (int i = 0; rnl_device_is_cpu(op_device()) && i < 6; i++) {
        if ((op_small() && i != 1 && i != 4) || !op_chosen())
            continue;
        test.dtype = i % 2 ? RNL_I8 : RNL_U8;
        test.options = (qconv_options)(i / 2);
        test.winograd = form;
        ck_assert(qconv_case_run(&test, "qconv:winograd"));
        const char *half = getenv("RUNNEL_FIP");
        ck_assert(op_last_has("-DWIDE") == (form > 1) && op_last_has("-DSIDE=4") == (form == 2 || form == 4));
        ck_assert(!half || form > 1 || op_last_has("-DFIP") == (strcmp(half, "on") == 0));
        op_reset();
    }
}

/* The wide ones take channels by 32, and tiles of 4x4 pixels up to 224. */
static void run(qconv_case test)
{
    run_form(test, 1);
    for (int64_t form = 2; test.channels % 32 == 0 && form <= RNL_QCONV_WINOGRAD_FORMS; form++)
        if (form == 3 || test.channels <= 224)
            run_form(test, form);
}
#define WINDOWS .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}

/* Pieces of 32 channels, whole and in parts; blocks of 16 filters likewise. */
START_TEST(channel_counts)
{
    static const int64_t channels[] = {16, 48, 32, 64, 112}, filters[] = {17, 1, 16, 31, 40};
    for (size_t i = 0; i < (op_small() ? 2 : 5); ++i)
        for (size_t j = 0; j < (op_small() ? 1 : 3); ++j)
            run((qconv_case){.images = 1,
                             .channels = channels[i],
                             .filters = filters[(i + j) % 5],
                             .size = {5, 4},
                             .pad = {1, 1},
                             WINDOWS});
}
END_TEST

/* Tiles and groups of them, whole and in parts, over rows and images. */
START_TEST(image_sizes)
{
    for (int64_t height = op_small() ? 5 : 3; height < 6; ++height)
        for (int64_t width = 3; width < (op_small() ? 4 : 17); width += 1 + width / 7)
            run((qconv_case){.images = 1 + width % 3,
                             .channels = 16,
                             .filters = 20,
                             .size = {height, width},
                             .pad = {0, 0},
                             WINDOWS});
}
END_TEST

START_TEST(pads)
{
    for (int64_t i = op_small() ? 8 : 0; i < 9; ++i)
        run((qconv_case){.images = 2, .channels = 16, .filters = 16, .size = {4, 3}, .pad = {i % 3, i / 3}, WINDOWS});
}
END_TEST

/* Several passes of groups, work-items and blocks. */
START_TEST(many_tiles)
{
    if (op_small())
        return;
    run((qconv_case){.images = 2, .channels = 64, .filters = 80, .size = {30, 34}, .pad = {1, 1}, WINDOWS});
    run((qconv_case){.images = 3, .channels = 512, .filters = 40, .size = {7, 7}, .pad = {1, 1}, WINDOWS});
}
END_TEST

/* What is multiplied by 4 on the way, or by 576, leaves all of a sum. */
START_TEST(largest_sums)
{
    for (int sign = -1; sign < 2; sign += 2)
        run((qconv_case){.images = 1,
                         .channels = op_small() ? 32 : 224,
                         .filters = 3,
                         .size = {3, 3},
                         .pad = {1, 1},
                         .extreme = sign,
                         WINDOWS});
    run((qconv_case){.images = 1,
                     .channels = op_small() ? 32 : 1024,
                     .filters = 3,
                     .size = {3, 3},
                     .pad = {1, 1},
                     .extreme = 1,
                     WINDOWS});
}
END_TEST

/* With half the products, of 32 channels and more: own products of both factors, whole groups and parts. */
START_TEST(half_the_products)
{
    const int64_t channels = op_small() ? 32 : 64 << _i;
    if (op_small() && _i > 0)
        return;
    setenv("RUNNEL_FIP", _i == 2 ? "off" : "on", 1);
    run((qconv_case){.images = 1, .channels = channels, .filters = 20, .size = {8, 9}, .pad = {1, 1}, WINDOWS});
    run((qconv_case){.images = 1,
                     .channels = op_small() ? 32 : 1024,
                     .filters = 3,
                     .size = {7, 6},
                     .pad = {1, 1},
                     .extreme = 1,
                     WINDOWS});
    unsetenv("RUNNEL_FIP");
}
END_TEST

START_TEST(choice)
{
    qconv_case test = {.images = 1, .channels = 32, .filters = 8, .size = {4, 4}, WINDOWS, .dtype = RNL_U8};
    qconv_run j;
    qconv_case_create(&test, &j);
    const rnl_qconv_end end = qconv_case_end(&j);
    const rnl_view *src = &j.src->view, *weight = &j.weight->view, *dst = &j.dst->view;
    setenv("RUNNEL_QCONV", "winograd", 1);
    const bool is_cpu = rnl_device_is_cpu(op_device());
    ck_assert((rnl_qconv_winograd_form(op_device(), &j.params, &end, src, weight, dst) > 0) == is_cpu);
    for (j.params.winograd = -1; j.params.winograd < 5; j.params.winograd += 5)
        op_expect(RNL_INVALID_ARGUMENT, rnl_op_qconv_panel(op_list(), &j.params, &end, src, weight, src, dst));
    j.params.winograd = 1;
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_qconv_panel(op_list(), &j.params, &end, src, weight, src, dst));
    rnl_qconv_params other = j.params;
    other.stride[1] = 2;
    ck_assert_int_eq(rnl_qconv_winograd_form(op_device(), &other, &end, src, weight, dst), 0);
    other = j.params;
    other.dilation[0] = 2;
    ck_assert_int_eq(rnl_qconv_winograd_form(op_device(), &other, &end, src, weight, dst), 0);
    unsetenv("RUNNEL_QCONV");
    setenv("RUNNEL_AMX", "model", 1); /* matrix tiles come first */
    ck_assert_int_eq(rnl_qconv_winograd_form(op_device(), &j.params, &end, src, weight, dst), 0);
    unsetenv("RUNNEL_AMX");
    const int64_t shapes[4][4] = {
        {8, 2048, 3, 3}, {INT64_MAX / 16, 1024, 3, 3}, {8, 256, 3, 3}, {INT64_MAX / 16, 224, 3, 3}};
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(rnl_qconv_winograd_bytes(1 + (int64_t)i / 2, shapes[i]), INT64_MAX);
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    tcase_add_test(tests, channel_counts);
    tcase_add_test(tests, image_sizes);
    tcase_add_test(tests, pads);
    tcase_add_test(tests, many_tiles);
    tcase_add_test(tests, largest_sums);
    tcase_add_loop_test(tests, half_the_products, 0, 3);
    tcase_add_test(tests, choice);
}

int main(void)
{
    Suite *suite = suite_create("integer convolutions by Winograd's way");
    add_tests(op_case(suite, "qconv_winograd"));
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    return op_main(suite);
}
