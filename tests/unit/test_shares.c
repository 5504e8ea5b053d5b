/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a batch, against all ways to share it out. */
#include "multi/shares.h"
#include "support/test_device.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static double longest(const rnl_line *lines, size_t count, const size_t *rows)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, rnl_line_at(&lines[i], rows[i]));
    return most;
}

/* The least that any shares of `left` rows among the lines from `at` on take. */
static double least_of_all(const rnl_line *lines, size_t count, size_t at, size_t left)
{
    if (at + 1 == count)
        return lines[at].is_out && left ? HUGE_VAL : rnl_line_at(&lines[at], left);
    double least = HUGE_VAL;
    for (size_t rows = 0; rows <= left && (rows == 0 || !lines[at].is_out); rows++)
        least = fmin(least, fmax(rnl_line_at(&lines[at], rows), least_of_all(lines, count, at + 1, left - rows)));
    return least;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

START_TEST(test_no_other_shares_end_sooner)
{
    uint32_t state = 7;
    for (int round = 0; round < 2000; round++) {
        rnl_line lines[3];
        size_t rows[3], all = next_random(&state) % 14, count = 1 + next_random(&state) % 3, sum = 0;
        for (size_t i = 0; i < count; i++)
            lines[i] = (rnl_line){.fixed_ns = next_random(&state) % 4 * 50.0,
                                  .row_ns = 1 + next_random(&state) % 100,
                                  .is_out = i > 0 && next_random(&state) % 8 == 0};
        const double ns = rnl_shares_find(lines, count, all, rows);
        for (size_t i = 0; i < count; i++) {
            sum += rows[i];
            ck_assert(!lines[i].is_out || rows[i] == 0);
        }
        ck_assert_uint_eq(sum, all);
        ck_assert_double_eq_tol(ns, longest(lines, count, rows), 1e-9);
        ck_assert_double_le(ns, least_of_all(lines, count, 0, all) * (1 + 1e-12));
    }
}
END_TEST

START_TEST(test_edges)
{
    const rnl_line lines[2] = {{0, 1, false}, {1e6, 1, false}}, nobody[1] = {{0, 1, true}};
    size_t rows[2];
    ck_assert_double_eq(rnl_shares_find(lines, 2, 1000, rows),
                        1000); /* the other would begin later than this one ends */
    ck_assert_uint_eq(rows[0], 1000);
    ck_assert_double_eq(rnl_shares_find(nobody, 1, 5, rows), 0);
    ck_assert_uint_eq(rows[0], 0);
    const rnl_line line = rnl_line_through(1, 110, 11, 210), falling = rnl_line_through(1, 300, 10, 200);
    ck_assert_double_eq_tol(line.fixed_ns, 100, 1e-9);
    ck_assert_double_eq_tol(line.row_ns, 10, 1e-9);
    ck_assert_double_eq_tol(rnl_line_at(&falling, 10), 200, 1e-9);
    ck_assert_double_eq(rnl_line_at(&line, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shares");
    TCase *tcase = tcase_create("shares");
    tcase_add_test(tcase, test_no_other_shares_end_sooner);
    tcase_add_test(tcase, test_edges);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
