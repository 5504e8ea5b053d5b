/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes by matrix tiles, of a model of them in plain C and, where there are some, by the processor's.
 */
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "support/qconv_case.h"
#include <stdlib.h>

/* Of bytes without and with signs, with all that a convolution may end in; by the model, and by tiles. */
static void run(qconv_case test)
{
    for (int i = 0; rnl_device_is_cpu(op_device()) && i < (op_small() ? 2 : 12); i++) {
        const bool model = i % 2 == 0 || op_small();
        if (!op_chosen() || (!model && !rnl_device_runs(op_device(), RNL_INSTRUCTION_AMX_INT8)))
            continue;
        test.dtype = (op_small() ? i : i / 2) % 2 ? RNL_I8 : RNL_U8;
        test.options = op_small() ? (i ? QCONV_SUM : QCONV_ZEROS) : (qconv_options)(i / 4);
        setenv("RUNNEL_AMX", model ? "model" : "on", 1);
        ck_assert(qconv_case_run(&test, "qconv:amx"));
        op_reset();
    }
    unsetenv("RUNNEL_AMX");
}
#define ONE .stride = {1, 1}, .dilation = {1, 1}
#define PIXELS .kernel = {1, 1}, ONE
#define WINDOWS .kernel = {3, 3}, ONE

/* Chunks of 64 channels, whole and in parts; blocks of 32 filters likewise. */
START_TEST(channel_counts)
{
    static const int64_t channels[] = {64, 4, 12, 60, 68, 128, 192}, filters[] = {32, 1, 17, 31, 40, 64, 70};
    for (size_t i = 0; i < (op_small() ? 2 : 7); ++i)
        for (size_t j = 0; j < (op_small() ? 1 : 3); ++j)
            run((qconv_case){.images = 1,
                             .channels = channels[i],
                             .filters = filters[(i + j) % 7],
                             .size = {3, 5},
                             .pad = {1, 0},
                             .kernel = {1 + (int64_t)j, 2},
                             ONE});
}
END_TEST

/* Lines of fewer pixels than a tile has, of whole tiles, and of tiles that are moved back; of the image, and copied. */
START_TEST(pixel_counts)
{
    for (int64_t pixels = 1; pixels < (op_small() ? 2 : 36); pixels += pixels < 18 ? 1 : 5)
        run((qconv_case){
            .images = 1, .channels = pixels % 2 ? 64 : 8, .filters = 33, .size = {1, pixels}, .pad = {0, 0}, PIXELS});
    for (int64_t width = 1; width < (op_small() ? 2 : 20); width += 3)
        run((qconv_case){.images = 2, .channels = 64, .filters = 9, .size = {4, width}, .pad = {1, 1}, WINDOWS});
}
END_TEST

START_TEST(windows)
{
    for (int64_t i = 0; i < (op_small() ? 1 : 36); ++i)
        run((qconv_case){.images = 1 + i % 2,
                         .channels = i % 3 ? 8 : 64,
                         .filters = 20,
                         .size = {7 + i % 3, 11},
                         .kernel = {1 + i % 3, 3 - i % 3},
                         .stride = {1 + i / 3 % 2, 1 + i / 6 % 2},
                         .dilation = {1 + i / 12 % 3, 1 + i / 18},
                         .pad = {i % 2, i / 2 % 3}});
}
END_TEST

/* Of the image itself, whose pixels are not all read. */
START_TEST(strides)
{
    for (int64_t i = op_small() ? 5 : 1; i < 5; ++i)
        run((qconv_case){.images = 2,
                         .channels = 64,
                         .filters = 40,
                         .size = {9, 21},
                         .kernel = {1, 1},
                         .stride = {i, 1 + i % 3},
                         .dilation = {1, 1}});
}
END_TEST

/* Several bands and blocks for each work-item, pictures that do not fit a cache, long sums. */
START_TEST(many_bands)
{
    if (op_small())
        return;
    run((qconv_case){.images = 2, .channels = 64, .filters = 64, .size = {30, 34}, .pad = {1, 1}, WINDOWS});
    run((qconv_case){.images = 3, .channels = 256, .filters = 32, .size = {7, 7}, .pad = {1, 1}, WINDOWS});
    run((qconv_case){.images = 1, .channels = 2048, .filters = 40, .size = {7, 7}, PIXELS});
    run((qconv_case){.images = 2, .channels = 64, .filters = 96, .size = {25, 35}, PIXELS});
    run((qconv_case){.images = 1, .channels = 20, .filters = 64, .size = {1, 1500}, PIXELS});
}
END_TEST

/* Without memory there is another way, or none. */
START_TEST(scratch)
{
    qconv_case test = {
        .images = 1, .channels = 64, .filters = 8, .size = {2, 2}, PIXELS, .dtype = RNL_U8, .options = QCONV_PLAIN};
    qconv_run j;
    if (!rnl_device_is_cpu(op_device()))
        return;
    setenv("RUNNEL_AMX", "model", 1);
    qconv_case_create(&test, &j);
    const rnl_qconv_end end = qconv_case_end(&j);
    const rnl_view *src = &j.src->view, *weight = &j.weight->view, *dst = &j.dst->view;
    ck_assert(rnl_qconv_scratch(op_device(), &j.params, &end, src, weight, dst) > 0);
    const rnl_status wanted =
        rnl_device_multiplies_bytes(op_device()) == RNL_INSTRUCTION_COUNT ? RNL_INVALID_ARGUMENT : RNL_OK;
    op_expect(wanted, rnl_op_qconv_panel(op_list(), &j.params, &end, src, weight, src, dst));
    setenv("RUNNEL_AMX", "off", 1);
    ck_assert_int_eq(rnl_qconv_scratch(op_device(), &j.params, &end, src, weight, dst), 0);
    unsetenv("RUNNEL_AMX");
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    tcase_add_test(tests, channel_counts);
    tcase_add_test(tests, pixel_counts);
    tcase_add_test(tests, windows);
    tcase_add_test(tests, strides);
    tcase_add_test(tests, many_bands);
    tcase_add_test(tests, scratch);
}

int main(void)
{
    Suite *suite = suite_create("integer convolutions by matrix tiles");
    add_tests(op_case(suite, "qconv_amx"));
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    return op_main(suite);
}
