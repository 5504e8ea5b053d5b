/* SPDX-License-Identifier: Apache-2.0 */
/* Packing a convolution's weights on the host: every element where the layout says, factors, zeros elsewhere. */
#include "ops/conv.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

typedef struct pack_case {
    bool transposed;
    int64_t groups, shape[4];
} pack_case;

static const pack_case cases[] = {
    {false, 1, {64, 3, 7, 7}},   {false, 1, {16, 16, 1, 1}}, {false, 1, {33, 5, 3, 3}},  {false, 1, {1, 20, 1, 5}},
    {false, 3, {60, 9, 1, 1}},   {false, 2, {34, 40, 3, 2}}, {false, 40, {40, 1, 3, 3}}, {false, 4, {4, 1, 5, 5}},
    {false, 3, {3, 1, 3, 3}},    {false, 5, {10, 1, 3, 3}},  {true, 1, {64, 3, 7, 7}},   {true, 1, {20, 33, 1, 1}},
    {true, 4, {20, 17, 2, 3}},   {true, 8, {8, 1, 3, 3}},    {false, 1, {7, 1, 1, 1}},   {false, 1, {0, 3, 3, 3}},
    {false, 1, {48, 100, 3, 3}}, {true, 2, {200, 31, 2, 2}},
};

/* Where element (m, c, tap) of the source lies in packed memory; by hand, from the comment in conv.h. */
static int64_t place(const pack_case *test, int64_t m, int64_t c, int64_t tap, int64_t taps)
{
    const int64_t *shape = test->shape, groups = test->groups;
    const int64_t filters = (test->transposed ? shape[1] * groups : shape[0]) / groups;
    const int64_t channels = test->transposed ? shape[0] / groups : shape[1];
    if (!test->transposed && channels == 1 && filters == 1 && groups >= 4)
        return tap * ((groups + 15) / 16 * 16) + m;
    const int64_t group = m / filters, lane = m % filters % 16, panel = m % filters / 16;
    return (((group * ((filters + 15) / 16) + panel) * taps + tap) * channels + c) * 16 + lane;
}

static double value_at(size_t i)
{
    return 1 + (double)(i % 1021);
}

static void check_case(const pack_case *test, rnl_dtype dtype, const double *factors)
{
    const int64_t *shape = test->shape, taps = shape[2] * shape[3], groups = test->groups;
    const int64_t filters = test->transposed ? shape[1] * groups : shape[0];
    const int64_t channels = test->transposed ? shape[0] / groups : shape[1], group_filters = filters / groups;
    const size_t count = (size_t)(shape[0] * shape[1] * taps), bytes = rnl_dtype_bytes(dtype);
    rnl_view view;
    int64_t elements = 0;
    rnl_conv_weight_layout(test->transposed, groups, 7, dtype, 4, shape, &view, &elements);
    ck_assert_uint_eq(view.slot, 7);
    ck_assert_int_ge(elements, (int64_t)count + 64);
    unsigned char *source = malloc(count * bytes + 1), *target = malloc((size_t)elements * bytes + 1);
    float *expected = calloc((size_t)elements, sizeof *expected);
    for (size_t i = 0; i < count; i++) {
        const float value = (float)value_at(i);
        const uint16_t number = (uint16_t)value;
        memcpy(source + i * bytes, bytes == 4 ? (const void *)&value : &number, bytes);
    }
    memset(target, 0xEE, (size_t)elements * bytes + 1);
    for (int64_t m = 0; m < filters; m++)
        for (int64_t c = 0; c < channels; c++)
            for (int64_t tap = 0; tap < taps; tap++) {
                const int64_t group = m / group_filters;
                const int64_t from = test->transposed
                                         ? ((group * channels + c) * group_filters + m % group_filters) * taps + tap
                                         : (m * channels + c) * taps + tap;
                expected[place(test, m, c, tap, taps)] = (float)(value_at((size_t)from) * (factors ? factors[m] : 1));
            }
    rnl_conv_pack(test->transposed, groups, dtype, 4, shape, source, factors, target);
    for (int64_t i = 0; i < elements; i++) {
        float got = 0;
        uint16_t number = 0;
        memcpy(bytes == 4 ? (void *)&got : &number, target + (size_t)i * bytes, bytes);
        ck_assert_msg((bytes == 4 ? got : (float)number) == expected[i], "element %lld", (long long)i);
    }
    ck_assert_uint_eq(target[(size_t)elements * bytes], 0xEE);
    free(source);
    free(target);
    free(expected);
}

START_TEST(test_layout)
{
    check_case(&cases[_i], RNL_F32, NULL);
    check_case(&cases[_i], RNL_BF16, NULL);
}
END_TEST

START_TEST(test_factors)
{
    double factors[256];
    for (int i = 0; i < 256; i++)
        factors[i] = 0.5 + i;
    check_case(&cases[_i], RNL_F32, factors);
}
END_TEST

START_TEST(test_overflow)
{
    rnl_view view;
    int64_t elements = 0;
    rnl_conv_weight_layout(false, 1, 0, RNL_F32, 4, (const int64_t[]){INT64_MAX / 2, 3, 1 << 20, 1 << 20}, &view,
                           &elements);
    ck_assert_int_eq(elements, INT64_MAX);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv_pack");
    TCase *tests = tcase_create("conv_pack");
    tcase_add_loop_test(tests, test_layout, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(tests, test_factors, 0, sizeof cases / sizeof *cases);
    tcase_add_test(tests, test_overflow);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
