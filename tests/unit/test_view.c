/* SPDX-License-Identifier: Apache-2.0 */
#include "model/lower.h"
#include "support/test_device.h"

#include <string.h>

/* The memory position of the n-th element in row-major order of the view's shape. */
static int64_t position(const rnl_view *view, int64_t n)
{
    int64_t at = view->offset;
    for (size_t i = view->rank; i-- > 0;) {
        at += n % view->shape[i] * view->stride[i];
        n /= view->shape[i];
    }
    return at;
}

static void check_same_elements(const rnl_view *a, const rnl_view *b)
{
    ck_assert_int_eq(rnl_view_elements(a), rnl_view_elements(b));
    for (int64_t n = 0; n < rnl_view_elements(a); n++)
        ck_assert_int_eq(position(a, n), position(b, n));
}

START_TEST(test_reshape_row_major)
{
    rnl_view view = rnl_view_row_major(0, RNL_F32, 3, (int64_t[]){4, 6, 5}), shaped;
    ck_assert(rnl_view_reshape(&view, 2, (int64_t[]){8, 15}, &shaped));
    check_same_elements(&view, &shaped);
    ck_assert(rnl_view_reshape(&view, 5, (int64_t[]){2, 2, 1, 3, 10}, &shaped));
    check_same_elements(&view, &shaped);
}
END_TEST

START_TEST(test_reshape_channels_last)
{
    rnl_view view = rnl_view_channels_last(0, RNL_F32, 4, (int64_t[]){2, 6, 3, 5}), shaped;
    ck_assert(!rnl_view_reshape(&view, 2, (int64_t[]){2, 90}, &shaped));
    ck_assert(rnl_view_reshape(&view, 4, (int64_t[]){2, 6, 15, 1}, &shaped));
    check_same_elements(&view, &shaped);
    ck_assert(rnl_view_reshape(&view, 5, (int64_t[]){2, 2, 3, 3, 5}, &shaped));
    check_same_elements(&view, &shaped);
    view = rnl_view_channels_last(0, RNL_F32, 4, (int64_t[]){2, 6, 1, 1});
    ck_assert(rnl_view_reshape(&view, 2, (int64_t[]){2, 6}, &shaped));
    check_same_elements(&view, &shaped);
}
END_TEST

START_TEST(test_reshape_of_views)
{
    rnl_view view = rnl_view_row_major(0, RNL_F32, 2, (int64_t[]){6, 10}), shaped;
    rnl_view_slice(&view, 1, 2, 5, 1);
    ck_assert(!rnl_view_reshape(&view, 1, (int64_t[]){30}, &shaped));
    ck_assert(rnl_view_reshape(&view, 3, (int64_t[]){2, 3, 5}, &shaped));
    check_same_elements(&view, &shaped);
    view = rnl_view_row_major(0, RNL_F32, 1, (int64_t[]){12});
    rnl_view_slice(&view, 0, 11, 12, -1);
    ck_assert(rnl_view_reshape(&view, 2, (int64_t[]){3, 4}, &shaped));
    check_same_elements(&view, &shaped);
    rnl_view scalar = rnl_view_row_major(0, RNL_F32, 0, NULL);
    scalar = rnl_view_expand(&scalar, 2, (int64_t[]){3, 4});
    ck_assert(rnl_view_reshape(&scalar, 1, (int64_t[]){12}, &shaped));
    check_same_elements(&scalar, &shaped);
    view = rnl_view_row_major(0, RNL_F32, 2, (int64_t[]){0, 10});
    ck_assert(rnl_view_reshape(&view, 3, (int64_t[]){5, 0, 7}, &shaped));
    ck_assert_int_eq(rnl_view_elements(&shaped), 0);
}
END_TEST

START_TEST(test_slice_and_permute)
{
    rnl_view view = rnl_view_row_major(0, RNL_F32, 3, (int64_t[]){4, 6, 5});
    rnl_view_slice(&view, 1, 5, 3, -2);
    ck_assert_int_eq(position(&view, 0), 25);
    ck_assert_int_eq(position(&view, 5), 15); /* element (0, 1, 0) */
    rnl_view turned = rnl_view_permute(&view, (size_t[]){2, 0, 1});
    ck_assert_int_eq(turned.shape[0], 5);
    ck_assert_int_eq(turned.shape[1], 4);
    ck_assert_int_eq(turned.shape[2], 3);
    ck_assert_int_eq(position(&turned, 1), 15);  /* (0, 0, 1) is (0, 1, 0) of the slice */
    ck_assert_int_eq(position(&turned, 12), 26); /* (1, 0, 0) is (0, 0, 1) */
}
END_TEST

START_TEST(test_expand)
{
    rnl_view view = rnl_view_row_major(0, RNL_F32, 2, (int64_t[]){3, 1});
    rnl_view wide = rnl_view_expand(&view, 3, (int64_t[]){2, 3, 4});
    for (int64_t n = 0; n < 24; n++)
        ck_assert_int_eq(position(&wide, n), n / 4 % 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("view");
    TCase *tcase = tcase_create("views");
    tcase_add_test(tcase, test_reshape_row_major);
    tcase_add_test(tcase, test_reshape_channels_last);
    tcase_add_test(tcase, test_reshape_of_views);
    tcase_add_test(tcase, test_slice_and_permute);
    tcase_add_test(tcase, test_expand);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
