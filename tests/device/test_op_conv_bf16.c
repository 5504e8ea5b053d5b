/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of pairs of bfloat16 by the processor's own instruction, where there is one, against float64. */
#include "ops/instruction.h"
#include "support/conv_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool runs(void)
{
    return rnl_device_runs(op_device(), RNL_INSTRUCTION_BF16);
}

static void run(conv_case test)
{
    test.pairs = true;
    test.implementation = "conv:bf16";
    if (runs())
        conv_case_run(&test);
}
#define SIZE(h, w) .size = {h, w}, .spatial = 2

START_TEST(channel_counts)
{
    static const int64_t channels[] = {4, 6, 16, 34, 130}, filters[] = {1, 3, 16, 17, 33, 64, 70, 129};
    for (size_t i = 0; i < 5; ++i)
        for (size_t j = 0; j < 8; ++j)
            run((conv_case){.batch = 1,
                            .channels = channels[i],
                            .filters = filters[j],
                            SIZE(5, 9),
                            .taps = {1 + 2 * (j % 2), 1 + 2 * (j % 2)},
                            .pad_begin = {j % 2, j % 2},
                            .pad_end = {j % 2, j % 2},
                            .bias = (i + j) % 2});
}
END_TEST

START_TEST(windows)
{
    for (int64_t i = 0; i < 36; ++i)
        run((conv_case){.batch = 1 + i % 2,
                        .channels = 6,
                        .filters = 20,
                        SIZE(7 + i % 3, 11),
                        .taps = {1 + i % 3, 3 - i % 3},
                        .stride = {1 + i / 3 % 2, 1 + i / 6 % 2},
                        .dilation = {1 + i / 12 % 3, 1 + i / 18},
                        .pad_begin = {i % 2, i / 2 % 3},
                        .pad_end = {i / 4 % 2, i % 3},
                        .slices = i % 5 == 0});
}
END_TEST

START_TEST(dimensions)
{
    run((conv_case){.batch = 2, .channels = 8, .filters = 18, .spatial = 1, .size = {30}, .taps = {3}, .stride = {2}});
    run((conv_case){.batch = 2,
                    .channels = 8,
                    .filters = 18,
                    .spatial = 3,
                    .size = {3, 4, 5},
                    .taps = {2, 3, 2},
                    .pad_begin = {1, 1, 0},
                    .bias = true});
}
END_TEST

START_TEST(in_groups)
{
    for (int64_t groups = 2; groups < 6; ++groups)
        run((conv_case){.batch = 1,
                        .channels = groups * (2 + 2 * (groups % 3 + 1)),
                        .filters = groups * (1 + 8 * (groups % 4)),
                        .groups = groups,
                        SIZE(6, 5),
                        .taps = {3, 3},
                        .pad_begin = {1, 1},
                        .pad_end = {1, 1},
                        .bias = true});
}
END_TEST

/* More pixels than a work-item takes, and all kinds of tiles. */
START_TEST(many_pixels)
{
    static const int64_t filters[] = {16, 64, 256, 24, 33};
    for (size_t i = 0; i < 5; ++i)
        run((conv_case){.batch = 3, .channels = 32, .filters = filters[i], SIZE(19, 23), .taps = {1, 1}});
    run((conv_case){.batch = 5, .channels = 600, .filters = 400, SIZE(1, 1), .taps = {1, 1}, .bias = true});
}
END_TEST

START_TEST(chains)
{
    static const unsigned parts[] = {CONV_CHAIN_SCALE,  CONV_CHAIN_RESIDUAL, CONV_CHAIN_SCALAR,
                                     CONV_CHAIN_PIXELS, CONV_CHAIN_RELU,     CONV_CHAIN_ALL};
    for (size_t i = 0; i < 12; ++i)
        run((conv_case){.batch = 2,
                        .channels = 6,
                        .filters = 37,
                        SIZE(6, 9),
                        .taps = {1, 1},
                        .chain = parts[i % 6],
                        .dtype = i / 6 ? RNL_BF16 : RNL_F32,
                        .slices = i % 2});
}
END_TEST

START_TEST(wide_indices)
{
    run((conv_case){.batch = 1, .channels = 18, .filters = 18, SIZE(6, 9), .taps = {3, 3}, .bias = true, .wide = true});
}
END_TEST

/* Weights as a matrix K x N, factors, zeros behind the last filter, NaN and infinity, ties. */
START_TEST(packing)
{
    static const float rows[4][3] = {{1, 3, -2}, {1.00390625f, 1.01171875f, 0}, {NAN, INFINITY, 4}, {5, 6, -3.3e38f}};
    static const double factors[3] = {2, 1, 0.5};
    static const uint32_t expected[2][3] = {{0x40004000, 0x3f824040, 0xbf80}, {0x41207fc0, 0x40c07f80, 0xfef84000}};
    const int64_t shape[2] = {3, 4};
    rnl_view view;
    int64_t elements = 0;
    rnl_conv_pairs_layout(1, 7, 2, shape, &view, &elements);
    ck_assert_int_eq(view.slot, 7);
    ck_assert_int_eq(view.dtype, RNL_U32);
    uint32_t *packed = calloc((size_t)elements, sizeof *packed);
    ck_assert_ptr_nonnull(packed);
    memset(packed, 0xee, (size_t)elements * sizeof *packed);
    rnl_conv_pairs_pack(true, 1, 2, shape, rows, factors, packed);
    for (int64_t i = 0; i < elements; ++i) {
        const uint32_t wanted = i < 32 && i % 16 < 3 ? expected[i / 16][i % 16] : 0;
        ck_assert_msg(packed[i] == wanted, "element %d is %08x, expected %08x", (int)i, packed[i], wanted);
    }
    free(packed);
}
END_TEST

/* Of three channels the second pair has a zero, in each tap. */
START_TEST(odd_packing)
{
    const float weights[1][3][2] = {{{1, 2}, {3, 4}, {5, -6}}};
    static const uint32_t expected[4] = {0x40403f80, 0x40a0, 0x40804000, 0xc0c0};
    const int64_t shape[3] = {1, 3, 2};
    rnl_view view;
    int64_t elements = 0;
    rnl_conv_pairs_layout(1, 7, 3, shape, &view, &elements);
    ck_assert_int_eq(view.shape[1], 4);
    uint32_t *packed = calloc((size_t)elements, sizeof *packed);
    ck_assert_ptr_nonnull(packed);
    rnl_conv_pairs_pack(false, 1, 3, shape, weights, NULL, packed);
    for (size_t i = 0; i < 4; ++i)
        ck_assert_msg(packed[16 * i] == expected[i], "pair %zu is %08x", i, packed[16 * i]);
    free(packed);
}
END_TEST

/* Rows of taps that are one stretch: first layers. */
START_TEST(lines)
{
    static const int64_t widths[] = {9, 40, 61};
    for (int64_t i = 0; i < 12; ++i)
        run((conv_case){.batch = 1 + i % 2,
                        .channels = 4,
                        .filters = i % 4 < 2 ? 64 : 24,
                        SIZE(9, widths[i % 3]),
                        .taps = {3 + i % 2 * 4, 3 + i % 2 * 4},
                        .stride = {1 + i / 2 % 2, 1 + i / 2 % 2},
                        .pad_begin = {1 + i % 2 * 2, 1 + i % 2 * 2},
                        .pad_end = {1 + i % 2 * 2, 1},
                        .bias = i % 2,
                        .chain = i % 3 ? CONV_CHAIN_RELU : 0});
}
END_TEST

static op_value colour_at(void *user, const int64_t *coordinates)
{
    return coordinates[1] == 3 ? op_float(0) : op_get(user, coordinates);
}

/* Any device takes it; the fourth colour is zero. */
START_TEST(colours)
{
    static const int64_t sizes[][2] = {{1, 1}, {3, 5}, {4, 8}, {17, 31}, {40, 64}, {3, 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
        const int64_t batch = 1 + (int64_t)i % 3, height = sizes[i][0], width = sizes[i][1];
        op_tensor *src = op_tensor_create(RNL_F32, 4, (const int64_t[]){batch, 3, height, width}, OP_ROW_MAJOR);
        op_tensor *dst = op_tensor_create(RNL_BF16, 4, (const int64_t[]){batch, 4, height, width}, OP_CHANNELS_LAST);
        op_fill(src, OP_SPECIAL, -9, 9);
        dst->view.offset += dst->view.offset % 2; /* the guard before it is odd */
        op_expect(RNL_OK, rnl_op_conv_colours(op_list(), &src->view, &dst->view));
        op_run();
        op_check(dst, colour_at, src, (op_bound){0});
        op_reset();
    }
    op_tensor *grey = op_tensor_create(RNL_F32, 4, (const int64_t[]){1, 2, 3, 4}, OP_ROW_MAJOR);
    op_tensor *dst = op_tensor_create(RNL_BF16, 4, (const int64_t[]){1, 4, 3, 4}, OP_CHANNELS_LAST);
    op_expect(RNL_INVALID_ARGUMENT, rnl_op_conv_colours(op_list(), &grey->view, &dst->view));
    op_reset();
}
END_TEST

/* Where nothing multiplies pairs, and where channels are odd or few. */
START_TEST(preference)
{
    const rnl_conv_params params = {.spatial = 2, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1};
    rnl_view src = rnl_view_channels_last(0, RNL_BF16, 4, (const int64_t[]){1, 8, 5, 5});
    rnl_view weight = rnl_view_row_major(1, RNL_F32, 4, (const int64_t[]){3, 8, 1, 1});
    ck_assert(rnl_conv_prefers_pairs(op_device(), &params, &src, &weight) == runs());
    setenv("RUNNEL_INSTRUCTIONS", "off", 1);
    ck_assert(!rnl_conv_prefers_pairs(op_device(), &params, &src, &weight));
    unsetenv("RUNNEL_INSTRUCTIONS");
    src.offset = 1;
    ck_assert(!rnl_conv_prefers_pairs(op_device(), &params, &src, &weight));
    src.offset = 0;
    weight.shape[1] = 7;
    ck_assert(!rnl_conv_prefers_pairs(op_device(), &params, &src, &weight));
    weight.shape[1] = 2;
    ck_assert(!rnl_conv_prefers_pairs(op_device(), &params, &src, &weight));
}
END_TEST

static void restore(void)
{
    unsetenv("RUNNEL_INSTRUCTIONS");
}

int main(void)
{
    Suite *suite = suite_create("conv_bf16");
    TCase *tcase = op_case(suite, "bf16");
    tcase_add_checked_fixture(tcase, NULL, restore);
    tcase_add_test(tcase, channel_counts);
    tcase_add_test(tcase, windows);
    tcase_add_test(tcase, dimensions);
    tcase_add_test(tcase, in_groups);
    tcase_add_test(tcase, many_pixels);
    tcase_add_test(tcase, chains);
    tcase_add_test(tcase, wide_indices);
    tcase_add_test(tcase, packing);
    tcase_add_test(tcase, odd_packing);
    tcase_add_test(tcase, lines);
    tcase_add_test(tcase, colours);
    tcase_add_test(tcase, preference);
    return op_main(suite);
}
