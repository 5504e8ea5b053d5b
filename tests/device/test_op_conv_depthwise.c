/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions with as many groups as channels. */
#include "support/conv_case.h"
#include "support/op_bench.h"

START_TEST(depthwise)
{
    static const conv_case tests[] = {
        {.batch = 1, .channels = 1, .filters = 1, .groups = 1, .size = {7, 7}, .taps = {3, 3}, .pad_begin = {1, 1}},
        {.batch = 2, .channels = 3, .filters = 3, .groups = 3, .size = {7, 7}, .taps = {3, 3}, .bias = true},
        {.batch = 1, .channels = 7, .filters = 7, .groups = 7, .size = {9, 7}, .taps = {3, 3}, .slices = true},
        {.batch = 1, .channels = 17, .filters = 17, .groups = 17, .size = {9, 15}, .taps = {5, 3}, .stride = {2, 2}},
        {.batch = 1,
         .channels = 33,
         .filters = 33,
         .groups = 33,
         .size = {9, 6},
         .taps = {3, 3},
         .dilation = {2, 2},
         .pad_begin = {2, 2},
         .pad_end = {1, 2},
         .bias = true},
        {.batch = 1,
         .channels = 24,
         .filters = 24,
         .groups = 24,
         .size = {9, 3},
         .taps = {3, 3},
         .pad_end = {1, 1},
         .dtype = RNL_F16,
         .bias = true},
        {.batch = 1, .channels = 5, .filters = 10, .groups = 5, .size = {7, 7}, .taps = {3, 3}, .bias = true},
        {.batch = 1, .channels = 19, .filters = 57, .groups = 19, .size = {4, 8}, .taps = {3, 3}, .pad_begin = {1, 1}},
        {.spatial = 1,
         .batch = 2,
         .channels = 20,
         .filters = 20,
         .groups = 20,
         .size = {30},
         .taps = {7},
         .pad_begin = {3},
         .pad_end = {3},
         .dtype = RNL_BF16},
        {.spatial = 3,
         .batch = 2,
         .channels = 18,
         .filters = 18,
         .groups = 18,
         .size = {4, 3, 5},
         .taps = {3, 2, 3},
         .pad_begin = {1, 0, 1},
         .pad_end = {1, 1, 0},
         .stride = {1, 1, 2},
         .bias = true},
    };
    CONV_RUN_ALL(tests);
}
END_TEST

/* Rows of a few tiles, inside of the image and at its sides. */
START_TEST(depthwise_rows)
{
    static const conv_case tests[] = {
        {.batch = 2,
         .channels = 17,
         .filters = 17,
         .groups = 17,
         .size = {6, 29},
         .taps = {5, 5},
         .pad_begin = {2, 2},
         .pad_end = {2, 1},
         .bias = true},
        {.batch = 1,
         .channels = 24,
         .filters = 24,
         .groups = 24,
         .size = {7, 40},
         .taps = {3, 3},
         .stride = {2, 2},
         .pad_begin = {1, 1},
         .slices = true},
        {.batch = 1,
         .channels = 9,
         .filters = 9,
         .groups = 9,
         .size = {5, 57},
         .taps = {3, 5},
         .stride = {1, 2},
         .pad_begin = {1, 4},
         .pad_end = {1, 3}},
        {.batch = 1, .channels = 40, .filters = 40, .groups = 40, .size = {8, 27}, .taps = {5, 3}, .stride = {2, 1}},
    };
    if (!op_small())
        CONV_RUN_ALL(tests);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv_depthwise");
    TCase *tests = op_case(suite, "depthwise");
    tcase_add_test(tests, depthwise);
    tcase_add_test(tests, depthwise_rows);
    return op_main(suite);
}
