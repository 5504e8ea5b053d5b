/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by matrix tiles, of a model of them in plain C and, where there are some, by the processor's, against
 * float64. */
#include "ops/conv_amx.h"
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "support/conv_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool can_run(void)
{
    return rnl_device_is_cpu(op_device());
}

/* In three parts and in one; by the model, and by tiles. */
static void run(conv_case test)
{
    for (int i = 0; can_run() && i < (op_small() ? 2 : 4); i++) {
        const bool model = i % 2 == 0;
        if (!model && !rnl_device_runs(op_device(), RNL_INSTRUCTION_AMX_BF16))
            continue;
        test.amx = i < 2 ? 3 : 1;
        test.mixed = test.amx == 1;
        test.implementation = "conv:amx";
        setenv("RUNNEL_AMX", model ? "model" : "on", 1);
        conv_case_run(&test);
    }
    unsetenv("RUNNEL_AMX");
}
#define SIZE(h, w) .size = {h, w}, .spatial = 2

START_TEST(channel_counts)
{
    static const int64_t channels[] = {32, 3, 16, 17, 31, 70}, filters[] = {32, 1, 15, 17, 33, 70};
    for (size_t i = 0; i < (op_small() ? 2 : 6); ++i)
        for (size_t j = 0; j < (op_small() ? 1 : 6); ++j)
            run((conv_case){.batch = 1,
                            .channels = channels[i],
                            .filters = filters[(i + j) % 6],
                            SIZE(3, 7),
                            .taps = {1, 1},
                            .bias = (i + j) % 2});
}
END_TEST

/* Lines of fewer pixels than a tile has, of whole tiles, and of tiles that are moved back. */
START_TEST(pixel_counts)
{
    for (int64_t pixels = 1; pixels < (op_small() ? 3 : 40); ++pixels)
        run((conv_case){
            .batch = 1, .channels = 8, .filters = 20, SIZE(1, pixels), .taps = {1, 1}, .slices = pixels % 2});
    for (int64_t width = 1; width < (op_small() ? 1 : 20); ++width)
        run((conv_case){.batch = 2,
                        .channels = 5,
                        .filters = 9,
                        SIZE(4, width),
                        .taps = {3, 3},
                        .pad_begin = {1, 1},
                        .pad_end = {1, 1},
                        .bias = width % 2});
}
END_TEST

START_TEST(windows)
{
    for (int64_t i = 0; i < (op_small() ? 2 : 36); ++i)
        run((conv_case){.batch = 1 + i % 2,
                        .channels = 6,
                        .filters = 20,
                        SIZE((op_small() ? 2 : 7) + i % 3, op_small() ? 5 : 11),
                        .taps = {1 + i % 3, 3 - i % 3},
                        .stride = {1 + i / 3 % 2, 1 + i / 6 % 2},
                        .dilation = {1 + i / 12 % 3, 1 + i / 18},
                        .pad_begin = {i % 2, i / 2 % 3},
                        .pad_end = {i / 4 % 2, i % 3},
                        .slices = i % 5 == 0});
}
END_TEST

/* Few channels of a row of taps are a step. */
START_TEST(lines)
{
    for (int64_t i = 0; i < (op_small() ? 2 : 28); ++i)
        run((conv_case){.batch = 1 + i % 2,
                        .channels = 3 - (i % 4 == 3 ? i / 4 % 3 : 0) + (i % 8 == 5),
                        .filters = 20 + i,
                        SIZE((op_small() ? 2 : 8) + i % 3, 9 + 3 * (i % 7)),
                        .taps = {1 + i % 4, 2 + i % 7},
                        .stride = {1 + i % 2, 1 + i % 3},
                        .dilation = {1 + i / 12 % 2, 1},
                        .pad_begin = {i % 2, i / 2 % 4},
                        .pad_end = {i / 4 % 2, i % 5},
                        .slices = i % 5 == 0});
}
END_TEST

START_TEST(dimensions)
{
    run((conv_case){.batch = 2,
                    .channels = 8,
                    .filters = 18,
                    .spatial = 1,
                    .size = {op_small() ? 9 : 30},
                    .taps = {3},
                    .stride = {2}});
    run((conv_case){.batch = 2,
                    .channels = 2,
                    .filters = 18,
                    .spatial = 1,
                    .size = {op_small() ? 9 : 30},
                    .taps = {5},
                    .stride = {2}});
}
END_TEST

START_TEST(chains)
{
    static const unsigned parts[] = {CONV_CHAIN_RESIDUAL, CONV_CHAIN_PIXELS, CONV_CHAIN_ALL};
    for (size_t i = op_small() ? 2 : 0; i < sizeof parts / sizeof *parts; ++i)
        run((conv_case){.batch = 2,
                        .channels = 32,
                        .filters = 37,
                        SIZE(op_small() ? 1 : 4, 5),
                        .taps = {1, 1},
                        .chain = parts[i],
                        .bias = true,
                        .slices = i % 2});
}
END_TEST

/* Single pixels, whose channels are steps of 32 or fewer, or not; strides; images that windows do not reach the end of,
 * or reach beyond. Tiles of whole bands, and of a last one that is narrower than a tile. */
START_TEST(single_pixels)
{
    static const int64_t channels[] = {24, 144, 64, 34, 2};
    for (int64_t i = 0; i < (op_small() ? 2 : 20); ++i)
        run((conv_case){.batch = 1 + i % 2,
                        .channels = channels[i % 5],
                        .filters = 24 + 10 * (i % 3),
                        SIZE(op_small() ? 2 : 3 + i % 4, 5 + 7 * (i % 4)),
                        .taps = {1, 1},
                        .stride = {1 + i % 2, 1 + i / 2 % 3},
                        .pad_begin = {0, i % 7 == 6},
                        .pad_end = {i % 7 == 5, 0},
                        .chain = i % 4 == 3 ? CONV_CHAIN_ALL : 0,
                        .bias = i % 3,
                        .slices = i % 5 == 2});
    for (int64_t width = 98; !op_small() && width < 400; width += 29)
        run((conv_case){.batch = 1, .channels = 48, .filters = 40, SIZE(1, width), .taps = {1, 1}});
}
END_TEST

/* Several bands and blocks for each work-item, pictures that do not fit a cache. */
START_TEST(many_bands)
{
    if (op_small())
        return;
    run((conv_case){.batch = 2,
                    .channels = 96,
                    .filters = 64,
                    SIZE(30, 34),
                    .taps = {3, 3},
                    .pad_begin = {1, 1},
                    .pad_end = {1, 1}});
    run((conv_case){
        .batch = 3, .channels = 64, .filters = 64, SIZE(7, 7), .taps = {3, 3}, .pad_begin = {1, 1}, .pad_end = {1, 1}});
    run((conv_case){.batch = 1, .channels = 1500, .filters = 40, SIZE(1, 77), .taps = {1, 1}, .bias = true});
    run((conv_case){.batch = 1, .channels = 64, .filters = 70, SIZE(1, 900), .taps = {1, 1}, .chain = CONV_CHAIN_RELU});
}
END_TEST

START_TEST(wide_indices)
{
    run((conv_case){.batch = 1,
                    .channels = 32,
                    .filters = 50,
                    SIZE(op_small() ? 1 : 4, 9),
                    .taps = {1, 1},
                    .bias = true,
                    .wide = true});
}
END_TEST

START_TEST(stored_as_bf16)
{
    for (int64_t taps = 1; taps <= 3; taps += 2) {
        const conv_case test = {.batch = 1,
                                .channels = 40,
                                .filters = 40,
                                SIZE(op_small() ? 3 : 5, 6),
                                .taps = {taps, taps},
                                .chain = taps == 1 ? CONV_CHAIN_ALL : 0,
                                .dtype = RNL_BF16,
                                .amx = 1,
                                .implementation = "conv:amx"};
        setenv("RUNNEL_AMX", "model", 1);
        if (can_run())
            conv_case_run(&test);
        setenv("RUNNEL_AMX", "on", 1);
        if (can_run() && rnl_device_runs(op_device(), RNL_INSTRUCTION_AMX_BF16))
            conv_case_run(&test);
        unsetenv("RUNNEL_AMX");
    }
}
END_TEST

/* K x N and N x K, with factors, are the same weights; the parts' sum is the weight. */
START_TEST(packing)
{
    enum { CHANNELS = 40, FILTERS = 45 };
    static float matrix[CHANNELS * FILTERS], turned[CHANNELS * FILTERS];
    double factors[FILTERS];
    const int64_t shape[] = {CHANNELS, FILTERS}, other[] = {FILTERS, CHANNELS};
    rnl_view view;
    int64_t elements = 0;
    for (size_t i = 0; i < CHANNELS * FILTERS; ++i) {
        matrix[i] = (float)i * 0.37F - (float)(i % 11);
        turned[i % FILTERS * CHANNELS + i / FILTERS] = matrix[i];
    }
    for (size_t i = 0; i < FILTERS; ++i)
        factors[i] = 1.0 + (double)i / 7;
    rnl_conv_amx_layout(3, true, 3, 2, shape, &view, &elements);
    ck_assert_int_eq(elements, 2 * 2 * 3 * 512);
    ck_assert_int_eq(view.shape[1], FILTERS);
    op_tensor *first = op_tensor_create(RNL_U32, 1, &elements, OP_ROW_MAJOR),
              *second = op_tensor_create(RNL_U32, 1, &elements, OP_ROW_MAJOR);
    uint32_t *a = (uint32_t *)(void *)first->data + first->view.offset,
             *b = (uint32_t *)(void *)second->data + second->view.offset;
    rnl_conv_amx_pack(3, true, 2, shape, matrix, factors, a);
    rnl_conv_amx_pack(3, false, 2, other, turned, factors, b);
    ck_assert_int_eq(memcmp(a, b, (size_t)elements * sizeof *a), 0);
    /* Channel 3, filter 18: of the second half's second pair the upper part. */
    double sum = 0;
    for (size_t part = 0; part < 3; ++part) {
        const uint32_t bits = a[part * 512 + 256 + 16 + 2] & 0xffff0000U;
        float value;
        memcpy(&value, &bits, sizeof value);
        sum += value;
    }
    ck_assert_double_eq(sum, (double)(float)(matrix[3 * FILTERS + 18] * factors[18]));
    op_reset();
}
END_TEST

START_TEST(shapes_that_it_is_not_for)
{
    const int64_t four[] = {32, 32, 3, 3};
    ck_assert(rnl_conv_amx_takes(3, 4, four, 1));
    ck_assert(rnl_conv_amx_takes(1, 2, four, 1));
    ck_assert(!rnl_conv_amx_takes(2, 4, four, 1));
    ck_assert(!rnl_conv_amx_takes(3, 5, four, 1));
    ck_assert(!rnl_conv_amx_takes(3, 4, four, 2));
}
END_TEST

static void add_tests(TCase *tests)
{
    if (!tests)
        return;
    tcase_add_test(tests, channel_counts);
    tcase_add_test(tests, pixel_counts);
    tcase_add_test(tests, windows);
    tcase_add_test(tests, lines);
    tcase_add_test(tests, dimensions);
    tcase_add_test(tests, chains);
    tcase_add_test(tests, single_pixels);
    tcase_add_test(tests, many_bands);
    tcase_add_test(tests, wide_indices);
    tcase_add_test(tests, stored_as_bf16);
    tcase_add_test(tests, packing);
    tcase_add_test(tests, shapes_that_it_is_not_for);
}

int main(void)
{
    Suite *suite = suite_create("conv_amx");
    add_tests(op_case(suite, "conv_amx"));
    add_tests(op_case_as_cpu(suite, "as a CPU"));
    return op_main(suite);
}
