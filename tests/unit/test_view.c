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

START_TEST(test_pieces)
{
    int64_t sizes[RNL_MAX_RANK];
    size_t count;
    rnl_view view = rnl_view_row_major(0, RNL_F32, 4, (int64_t[]){4, 1, 6, 5}), a, b;
    ck_assert(rnl_view_pieces(&view, 3, (int64_t[]){2, 12, 5}, &count, sizes));
    ck_assert_uint_eq(count, 4);
    ck_assert_mem_eq(sizes, ((int64_t[]){2, 2, 6, 5}), 4 * sizeof *sizes);
    rnl_view shuffled = rnl_view_permute(&view, (size_t[]){3, 2, 1, 0}); /* 5 x 6 x 1 x 4 */
    ck_assert(rnl_view_pieces(&shuffled, 2, (int64_t[]){10, 12}, &count, sizes));
    ck_assert(rnl_view_reshape(&shuffled, count, sizes, &a));
    check_same_elements(&shuffled, &a);
    view = rnl_view_row_major(0, RNL_F32, 2, (int64_t[]){10, 12});
    ck_assert(rnl_view_reshape(&view, count, sizes, &b));
    check_same_elements(&view, &b);
    ck_assert(rnl_view_pieces(&view, 1, (int64_t[]){120}, &count, sizes));
    ck_assert_uint_eq(count, 2);
    ck_assert(!rnl_view_pieces(&view, 2, (int64_t[]){12, 10}, &count, sizes));
    ck_assert(!rnl_view_pieces(&view, 2, (int64_t[]){10, 13}, &count, sizes));
    view = rnl_view_row_major(0, RNL_F32, 1, (int64_t[]){1});
    ck_assert(rnl_view_pieces(&view, 0, NULL, &count, sizes));
    ck_assert_uint_eq(count, 0);
    view = rnl_view_row_major(0, RNL_F32, 1, (int64_t[]){1024});
    ck_assert(!rnl_view_pieces(&view, 10, (int64_t[]){2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, &count, sizes));
}
END_TEST

START_TEST(test_same)
{
    rnl_view whole = rnl_view_channels_last(3, RNL_F32, 4, (int64_t[]){2, 6, 4, 1}), a = whole, b = whole;
    b.stride[3] = 77; /* of one column */
    ck_assert(rnl_view_is_same(&a, &b));
    rnl_view_slice(&a, 1, 2, 3, 1);
    ck_assert(!rnl_view_is_same(&a, &b));
    rnl_view_slice(&b, 1, 0, 3, 1);
    ck_assert(!rnl_view_is_same(&a, &b));
    b = whole;
    b.slot = 4;
    ck_assert(!rnl_view_is_same(&whole, &b));
    b = rnl_view_row_major(3, RNL_F32, 4, whole.shape);
    ck_assert(!rnl_view_is_same(&whole, &b));
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
    tcase_add_test(tcase, test_pieces);
    tcase_add_test(tcase, test_same);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
