/* SPDX-License-Identifier: Apache-2.0 */
#include "support/conv_case.h"
#include "support/op_bench.h"
#include <stdlib.h>

START_TEST(strides_taps_and_dilations)
{
    for (int64_t stride = 1; stride <= 3; ++stride)
        for (int64_t taps = 1; taps <= 4; ++taps)
            for (int64_t dilation = 1; dilation <= 3; ++dilation)
                conv_case_run(&(conv_case){.transposed = true,
                                           .batch = 1,
                                           .channels = 3,
                                           .filters = 5,
                                           .size = {4, 7},
                                           .taps = {taps, 5 - taps},
                                           .stride = {stride, 4 - stride},
                                           .dilation = {dilation, 4 - dilation},
                                           .bias = taps % 2});
}
END_TEST

/* Output padding (a negative end) makes the image larger than the taps reach; pads cut it. */
static const conv_case size_cases[] = {
    {.transposed = true,
     .batch = 2,
     .channels = 17,
     .filters = 33,
     .size = {3, 5},
     .taps = {3, 3},
     .stride = {2, 2},
     .pad_begin = {1, 1},
     .pad_end = {1, 1},
     .bias = true},
    {.transposed = true,
     .batch = 1,
     .channels = 4,
     .filters = 7,
     .size = {3, 5},
     .taps = {3, 3},
     .stride = {2, 2},
     .pad_begin = {1, 1},
     .pad_end = {0, 0}},
    {.transposed = true,
     .batch = 1,
     .channels = 4,
     .filters = 7,
     .size = {3, 5},
     .taps = {2, 2},
     .stride = {4, 4},
     .pad_end = {-2, -3},
     .bias = true},
    {.transposed = true,
     .batch = 1,
     .channels = 5,
     .filters = 3,
     .size = {1, 1},
     .taps = {2, 2},
     .stride = {2, 2},
     .bias = true},
    {.transposed = true,
     .batch = 1,
     .channels = 64,
     .filters = 40,
     .size = {6, 20},
     .taps = {2, 2},
     .stride = {2, 2},
     .bias = true},
    {.transposed = true,
     .batch = 1,
     .channels = 3,
     .filters = 2,
     .size = {4, 4},
     .taps = {4, 4},
     .stride = {2, 2},
     .pad_begin = {3, 2},
     .pad_end = {2, 1},
     .slices = true},
    {.transposed = true, .batch = 2, .channels = 9, .filters = 18, .size = {4, 4}, .taps = {1, 1}, .bias = true},
};

START_TEST(sizes)
{
    CONV_RUN_ALL(size_cases);
}
END_TEST

static const conv_case group_cases[] = {
    {.transposed = true,
     .batch = 1,
     .channels = 4,
     .filters = 6,
     .groups = 2,
     .size = {4, 3},
     .taps = {3, 3},
     .stride = {2, 1},
     .bias = true},
    {.transposed = true,
     .batch = 1,
     .channels = 12,
     .filters = 12,
     .groups = 12,
     .size = {4, 3},
     .taps = {3, 3},
     .stride = {2, 2}},
    {.transposed = true, .batch = 1, .channels = 9, .filters = 57, .groups = 3, .size = {2, 9}, .taps = {2, 3}},
    {.transposed = true,
     .spatial = 1,
     .batch = 2,
     .channels = 6,
     .filters = 5,
     .size = {17},
     .taps = {4},
     .stride = {3},
     .dilation = {2},
     .pad_begin = {2}},
    {.transposed = true,
     .spatial = 3,
     .batch = 2,
     .channels = 3,
     .filters = 17,
     .size = {2, 3, 4},
     .taps = {3, 2, 3},
     .stride = {2, 3, 1},
     .dilation = {1, 1, 2},
     .pad_begin = {1, 0, 1},
     .pad_end = {0, 1, 2},
     .bias = true},
    {.transposed = true,
     .batch = 1,
     .channels = 7,
     .filters = 20,
     .size = {4, 5},
     .taps = {3, 3},
     .stride = {2, 2},
     .bias = true,
     .dtype = RNL_F16},
    {.transposed = true,
     .batch = 1,
     .channels = 7,
     .filters = 20,
     .size = {4, 5},
     .taps = {3, 3},
     .stride = {2, 2},
     .slices = true,
     .dtype = RNL_BF16},
    {.transposed = true,
     .batch = 1,
     .channels = 7,
     .filters = 20,
     .size = {4, 5},
     .taps = {3, 3},
     .stride = {2, 2},
     .bias = true,
     .wide = true},
};

START_TEST(groups_and_dimensions)
{
    CONV_RUN_ALL(group_cases);
}
END_TEST

START_TEST(random_shapes)
{
    for (int i = 0; i < (op_small() ? 12 : 300); ++i) {
        op_seed(5000 + (uint64_t)i);
        const conv_case test = conv_case_random(true);
        conv_case_run(&test);
    }
}
END_TEST

/* What devices other than CPUs take, and dilated ones. */
START_TEST(portable)
{
    setenv("RUNNEL_CONV", "portable", 1);
    CONV_RUN_ALL(size_cases);
    for (int i = 0; i < (op_small() ? 4 : 30); ++i) {
        op_seed(9000 + (uint64_t)i);
        const conv_case test = conv_case_random(true);
        conv_case_run(&test);
    }
    unsetenv("RUNNEL_CONV");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv_transpose");
    TCase *tests = op_case(suite, "conv_transpose");
    tcase_add_test(tests, strides_taps_and_dilations);
    tcase_add_test(tests, sizes);
    tcase_add_test(tests, groups_and_dimensions);
    tcase_add_test(tests, random_shapes);
    tcase_add_test(tests, portable);
    return op_main(suite);
}
