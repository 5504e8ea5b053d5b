/* SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>

static rnl_difference find(rnl_dtype dtype, const void *got, const void *expected, int64_t count)
{
    rnl_tensor a = {.dtype = dtype, .rank = 1, .shape = {count}, .data = (void *)(uintptr_t)got};
    rnl_tensor b = {.dtype = dtype, .rank = 1, .shape = {count}, .data = (void *)(uintptr_t)expected};
    rnl_difference found;
    rnl_difference_find(&a, &b, &found);
    return found;
}

START_TEST(test_floats)
{
    const float expected[] = {1, -2, 0, NAN, INFINITY}, near[] = {1.0005F, -2, 0, NAN, INFINITY};
    rnl_difference found = find(RNL_F32, near, expected, 5);
    ck_assert(found.is_there && found.same_shape);
    ck_assert_uint_eq(found.count, 5);
    ck_assert_uint_eq(found.wrong, 0);
    ck_assert_double_eq_tol(found.absolute, 5e-4, 1e-7);
    ck_assert_double_eq_tol(found.relative, 5e-4, 1e-7);
    ck_assert_double_eq_tol(found.nmse, 2.5e-7 / 5, 1e-11);
    ck_assert_double_eq_tol(found.excess, 5e-4 / 1.1e-3, 1e-3);
    const float far[] = {1, -2.01F, 1e-3F, NAN, INFINITY};
    ck_assert_uint_eq(find(RNL_F32, far, expected, 5).wrong, 2);
    const float lost[] = {1, -2, 0, 3, -INFINITY};
    found = find(RNL_F32, lost, expected, 5);
    ck_assert_uint_eq(found.wrong, 2);
    ck_assert(isinf(found.excess) && isinf(found.absolute));
}
END_TEST

START_TEST(test_whole_numbers)
{
    const int64_t expected[] = {INT64_MAX, -5, 0}, got[] = {INT64_MAX - 1, -5, 0};
    rnl_difference found = find(RNL_I64, got, expected, 3);
    ck_assert_uint_eq(found.wrong, 1);
    ck_assert_double_eq(found.absolute, 1);
    ck_assert(isinf(found.excess));
    ck_assert_double_eq(find(RNL_I64, expected, expected, 3).excess, 0);
}
END_TEST

START_TEST(test_what_cannot_be_compared)
{
    const float x[] = {1, 2};
    rnl_tensor a = {.dtype = RNL_F32, .rank = 1, .shape = {2}, .data = (void *)(uintptr_t)x}, b = a;
    rnl_difference found;
    b.data = NULL;
    rnl_difference_find(&a, &b, &found);
    ck_assert(!found.is_there && found.excess == 0);
    b = a;
    b.shape[0] = 1;
    rnl_difference_find(&a, &b, &found);
    ck_assert(found.is_there && !found.same_shape && isinf(found.excess));
    b = a;
    b.dtype = RNL_I32;
    rnl_difference_find(&a, &b, &found);
    ck_assert(found.is_there && !found.same_shape);
    ck_assert_double_eq(find(RNL_F32, x, x, 0).excess, 0);
}
END_TEST

START_TEST(test_bounds)
{
    ck_assert_double_eq(rnl_difference_bound(RNL_F32, -2), 1e-4 + 2e-3);
    ck_assert_double_eq(rnl_difference_bound(RNL_F16, 1), 1e-4 + 4 * 0x1p-11);
    ck_assert_double_eq(rnl_difference_bound(RNL_BF16, 1), 1e-4 + 4 * 0x1p-8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("difference");
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, test_floats);
    tcase_add_test(tests, test_whole_numbers);
    tcase_add_test(tests, test_what_cannot_be_compared);
    tcase_add_test(tests, test_bounds);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
