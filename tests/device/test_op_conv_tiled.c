/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions by work-groups, through local memory. */
#include "support/conv_case.h"
#include <stdlib.h>

#define TILED "conv:tiled"

static void force_tiled(void)
{
    setenv("RUNNEL_CONV", "tiled", 1);
}

static void force_nothing(void)
{
    unsetenv("RUNNEL_CONV");
}

START_TEST(channel_counts)
{
    static const int64_t counts[] = {1, 3, 4, 8, 17, 36, 70};
    const size_t n = op_small() ? 4 : 7;
    for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j)
            conv_case_run(&(conv_case){.batch = 1,
                                       .channels = counts[i],
                                       .filters = counts[j],
                                       .size = {4, 9},
                                       .taps = {3, 3},
                                       .pad_begin = {1, 1},
                                       .pad_end = {1, 1},
                                       .bias = (i + j) % 2,
                                       .implementation = TILED});
}
END_TEST

START_TEST(windows)
{
    for (int64_t stride = 1; stride <= 3; ++stride)
        for (int64_t dilation = 1; dilation <= (op_small() ? 1 : 3); ++dilation)
            for (int64_t channels = 3; channels <= 4; ++channels)
                conv_case_run(&(conv_case){.batch = 2,
                                           .channels = channels,
                                           .filters = 7,
                                           .size = {8, 11},
                                           .taps = {2, 3},
                                           .stride = {stride, 4 - stride},
                                           .dilation = {dilation, 4 - dilation},
                                           .pad_begin = {0, 4},
                                           .pad_end = {3, 1},
                                           .bias = true,
                                           .implementation = TILED});
}
END_TEST

START_TEST(forms)
{
    static const conv_case tests[] = {
        {.batch = 1, .channels = 33, .filters = 20, .size = {5, 7}, .taps = {1, 1}, .bias = true},
        {.batch = 3, .channels = 8, .filters = 35, .size = {3, 3}, .taps = {1, 1}, .slices = true},
        {.batch = 2, .channels = 6, .filters = 5, .size = {5, 7}, .taps = {1, 1}, .stride = {2, 3}},
        {.batch = 2, .channels = 6, .filters = 40, .size = {1, 1}, .taps = {1, 1}},
        {.batch = 1, .channels = 4, .filters = 6, .groups = 2, .size = {5, 5}, .taps = {3, 3}, .bias = true},
        {.batch = 1, .channels = 24, .filters = 36, .groups = 3, .size = {5, 5}, .taps = {3, 3}, .bias = true},
        {.batch = 2, .spatial = 1, .channels = 5, .filters = 9, .size = {20}, .taps = {4}, .pad_begin = {2}},
        {.batch = 1,
         .spatial = 3,
         .channels = 4,
         .filters = 9,
         .size = {3, 4, 5},
         .taps = {2, 2, 3},
         .pad_end = {1, 1, 2}},
        {.batch = 1, .channels = 4, .filters = 9, .size = {5, 6}, .taps = {3, 3}, .wide = true},
        {.batch = 2, .channels = 8, .filters = 9, .size = {5, 6}, .taps = {3, 3}, .dtype = RNL_F16, .bias = true},
        {.batch = 2, .channels = 5, .filters = 9, .size = {5, 6}, .taps = {3, 3}, .dtype = RNL_BF16, .bias = true},
    };
    CONV_RUN_ALL(tests);
}
END_TEST

START_TEST(chains)
{
    static const conv_case tests[] = {
        {.batch = 2, .channels = 8, .filters = 9, .size = {5, 6}, .taps = {3, 3}, .chain = CONV_CHAIN_ALL},
        {.batch = 2,
         .channels = 8,
         .filters = 20,
         .size = {5, 6},
         .taps = {1, 1},
         .chain = CONV_CHAIN_ALL,
         .bias = true},
        {.batch = 2,
         .channels = 8,
         .filters = 9,
         .size = {5, 6},
         .taps = {3, 3},
         .chain = CONV_CHAIN_RESIDUAL | CONV_CHAIN_RELU,
         .slices = true},
    };
    CONV_RUN_ALL(tests);
}
END_TEST

/* Several tiles of each size in each direction, some cut; few tiles and many terms, which are summed in parts. */
START_TEST(tiles)
{
    static const conv_case tests[] = {
        {.batch = 1, .channels = 8, .filters = 70, .size = {9, 9}, .taps = {3, 3}, .implementation = TILED},
        {.batch = 1, .channels = 4, .filters = 140, .size = {20, 33}, .taps = {2, 2}, .implementation = TILED},
        {.batch = 1,
         .channels = 70,
         .filters = 21,
         .size = {4, 4},
         .taps = {3, 3},
         .bias = true,
         .implementation = TILED},
        {.batch = 1,
         .channels = 140,
         .filters = 42,
         .groups = 2,
         .size = {4, 4},
         .taps = {3, 3},
         .bias = true,
         .chain = CONV_CHAIN_ALL,
         .implementation = TILED},
        {.batch = 1, .channels = 75, .filters = 21, .size = {4, 4}, .taps = {3, 3}, .implementation = TILED},
    };
    if (!op_small())
        CONV_RUN_ALL(tests);
}
END_TEST

START_TEST(random_cases)
{
    for (int i = 0; i < (op_small() ? 3 : 40); ++i) {
        const conv_case test = conv_case_random(false);
        conv_case_run(&test);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv_tiled");
    TCase *tests = op_case(suite, "tiled");
    tcase_add_checked_fixture(tests, force_tiled, force_nothing);
    tcase_add_test(tests, channel_counts);
    tcase_add_test(tests, windows);
    tcase_add_test(tests, forms);
    tcase_add_test(tests, chains);
    tcase_add_test(tests, tiles);
    tcase_add_test(tests, random_cases);
    return op_main(suite);
}
