/* SPDX-License-Identifier: Apache-2.0 */
/* What a spec says about a share, and which units that is. */
#include "device/share.h"
#include "support/test_device.h"

START_TEST(shares_are_read)
{
    static const struct {
        const char *spec;
        size_t length;
        rnl_share share;
    } rows[] = {{"", 0, {0}},
                {"0:0", 3, {0}},
                {"0:0/2", 3, {RNL_SHARE_UNITS, 2, RNL_SHARE_ANY}},
                {"gpu/4.3", 3, {RNL_SHARE_UNITS, 4, 3}},
                {"/1", 0, {RNL_SHARE_UNITS, 1, RNL_SHARE_ANY}},
                {"a/b/2.0", 3, {RNL_SHARE_UNITS, 2, 0}},
                {"cpu/numa", 3, {RNL_SHARE_NUMA, 0, RNL_SHARE_ANY}},
                {"cpu/NUMA12", 3, {RNL_SHARE_NUMA, 0, 12}},
                {"0:0/007.006", 3, {RNL_SHARE_UNITS, 7, 6}},
                {"0:0/4294967296", 3, {RNL_SHARE_UNITS, UINT32_MAX - 1, RNL_SHARE_ANY}},
                {"0:0/99999999999999999999999999", 3, {RNL_SHARE_UNITS, UINT32_MAX - 1, RNL_SHARE_ANY}},
                {"0:0/numa18446744073709551616", 3, {RNL_SHARE_NUMA, 0, UINT32_MAX - 1}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rnl_share share;
        size_t length = 99;
        test_ok(rnl_share_parse(rows[i].spec, &length, &share));
        ck_assert_uint_eq(length, rows[i].length);
        ck_assert_int_eq(share.kind, rows[i].share.kind);
        ck_assert_uint_eq(share.count, rows[i].share.count);
        ck_assert_uint_eq(share.at, rows[i].share.at);
    }
}
END_TEST

START_TEST(what_is_no_share_is_refused)
{
    static const char *const specs[] = {"0:0/",
                                        "0:0/x",
                                        "0:0/0",
                                        "0:0/0.0",
                                        "0:0/-1",
                                        "0:0/+2",
                                        "0:0/2 ",
                                        "0:0/ 2",
                                        "0:0/2.",
                                        "0:0/.1",
                                        "0:0/2.-1",
                                        "0:0/2.x",
                                        "0:0/2.1.1",
                                        "0:0/0.5",
                                        "0:0/1e3",
                                        "0:0/numa-1",
                                        "0:0/num",
                                        "0:0/numa ",
                                        "/",
                                        "0:0/2.2",
                                        "/nan",
                                        "0:0/0x2",
                                        "0:0/2.99999999999999999999"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        rnl_share share = {RNL_SHARE_UNITS, 7, 7};
        size_t length;
        test_fails(RNL_INVALID_ARGUMENT, specs[i], rnl_share_parse(specs[i], &length, &share));
        ck_assert_int_eq(share.kind, RNL_SHARE_NONE);
    }
}
END_TEST

START_TEST(shares_cover_all_units_once)
{
    static const uint32_t units[] = {1, 2, 3, 7, 8, 64, 1000, UINT32_MAX};
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        for (uint32_t count = 1; count <= 70 && count <= units[u]; count++) {
            uint32_t next = 0;
            for (uint32_t at = 0; at < count; at++) {
                uint32_t first, size;
                rnl_share_range(units[u], count, at, &first, &size);
                ck_assert_uint_eq(first, next);
                ck_assert(size == units[u] / count || size == units[u] / count + 1);
                next += size;
            }
            ck_assert_uint_eq(next, units[u]);
        }
}
END_TEST

int main(void)
{
    TCase *test_case = tcase_create("shares");
    tcase_add_test(test_case, shares_are_read);
    tcase_add_test(test_case, what_is_no_share_is_refused);
    tcase_add_test(test_case, shares_cover_all_units_once);
    Suite *suite = suite_create("share");
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
