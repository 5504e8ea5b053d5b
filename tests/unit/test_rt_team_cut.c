/* SPDX-License-Identifier: Apache-2.0 */
/* A range that is cut for several threads: each group is in one piece, and the threads' parts are alike. */
#include "kernel/team_cut.h"
#include "support/test_device.h"

#include <string.h>

#define MOST_GROUPS 4096
#define MOST_THREADS 8

static unsigned char seen[MOST_GROUPS];

/* The groups of a piece, as they are numbered over all dimensions; the dimensions that are not cut are whole. */
static size_t mark(const rnl_range *range, const rnl_team_cut *cut, const rnl_team_piece *piece)
{
    const size_t size[3] = {rnl_team_groups_along(range, 0), rnl_team_groups_along(range, 1),
                            rnl_team_groups_along(range, 2)};
    size_t first[3] = {0}, end[3], count = 0;
    memcpy(end, size, sizeof end);
    first[cut->outer] = piece->row, end[cut->outer] = piece->row + piece->rows;
    if (cut->columns > 1)
        first[cut->inner] = piece->column, end[cut->inner] = piece->column + piece->columns;
    for (size_t z = first[2]; z < end[2]; z++)
        for (size_t y = first[1]; y < end[1]; y++)
            for (size_t x = first[0]; x < end[0]; x++, count++)
                seen[(z * size[1] + y) * size[0] + x]++;
    return count;
}

static void check_as(const rnl_range *range, uint32_t threads, bool one_piece)
{
    const rnl_team_cut cut = rnl_team_choose_cut(range, threads, one_piece);
    const size_t all = rnl_team_groups(range);
    size_t total = 0, most = 0, wrong = 0; /* one check for many: there are millions */
    memset(seen, 0, sizeof seen);
    for (uint32_t thread = 0; thread < threads; thread++) {
        rnl_team_piece pieces[RNL_TEAM_MOST_PIECES];
        const uint32_t count = rnl_team_find_pieces(&cut, threads, thread, pieces);
        size_t own = 0;
        wrong += count > (one_piece ? 1 : RNL_TEAM_MOST_PIECES);
        for (uint32_t i = 0; i < count; i++) {
            wrong += rnl_team_groups_in(range, &cut, &pieces[i]) != mark(range, &cut, &pieces[i]);
            own += rnl_team_groups_in(range, &cut, &pieces[i]);
        }
        most = own > most ? own : most;
        total += own;
    }
    for (size_t i = 0; i < all; i++)
        wrong += seen[i] != 1;
    ck_assert_uint_eq(total, all);
    ck_assert_uint_eq(wrong, 0);
    if (one_piece)
        return;
    /* Dimension 1 stays whole where dimension 2 is longer than one, so that planes and columns alone are shared. */
    const size_t shared = rnl_team_groups_along(range, 2) > 1 ? all / rnl_team_groups_along(range, 1) : all;
    const size_t fair = (shared + threads - 1) / threads * (all / shared);
    ck_assert_double_le((double)most, 1.03 * (double)fair + 0.5);
}

static void check(const rnl_range *range, uint32_t threads)
{
    check_as(range, threads, false);
    check_as(range, threads, true);
}

START_TEST(test_rows_where_fair)
{
    const rnl_range range = {.dimensions = 2, .global = {4, 55, 1}, .local = {1, 1, 1}};
    const rnl_team_cut cut = rnl_team_choose_cut(&range, 2, false);
    ck_assert_uint_eq(cut.outer, 1);
    ck_assert_uint_eq(cut.rows, 55);
    ck_assert_uint_eq(cut.columns, 1);
}
END_TEST

START_TEST(test_all_groups_once)
{
    static const size_t sizes[] = {1, 2, 3, 5, 8, 13, 16};
    const size_t count = sizeof sizes / sizeof *sizes;
    for (uint32_t threads = 1; threads <= MOST_THREADS; threads++)
        for (size_t i = 0; i < count * count * count; i++) {
            const size_t groups[3] = {sizes[i % count], sizes[i / count % count], sizes[i / count / count]};
            rnl_range range = {.dimensions = 3, .local = {4, 2, 1}};
            for (int d = 0; d < 3; d++)
                range.global[d] = groups[d] * range.local[d];
            check(&range, threads);
        }
}
END_TEST

START_TEST(test_fewer_dimensions)
{
    for (uint32_t threads = 1; threads <= MOST_THREADS; threads++)
        for (size_t groups = 1; groups < 40; groups++) {
            check(&(rnl_range){.dimensions = 1, .global = {64 * groups}, .local = {64}}, threads);
            check(&(rnl_range){.dimensions = 2, .global = {7, groups}, .local = {1, 1}}, threads);
        }
}
END_TEST

START_TEST(test_what_cannot_be_cut)
{
    ck_assert(rnl_team_can_cut(&(rnl_range){.dimensions = 2, .global = {8, 9}, .local = {4, 1}}));
    ck_assert(!rnl_team_can_cut(&(rnl_range){.dimensions = 2, .global = {8, 9}, .local = {4, 3}}));
    ck_assert(!rnl_team_can_cut(&(rnl_range){.dimensions = 3, .global = {8, 9, 2}, .local = {4, 1, 2}}));
    ck_assert(!rnl_team_can_cut(&(rnl_range){.dimensions = 1, .global = {(size_t)1 << 31}, .local = {1}}));
    ck_assert(!rnl_team_can_cut(&(rnl_range){.dimensions = 1, .global = {(size_t)1 << 20}, .local = {1 << 17}}));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("team_cut");
    TCase *tcase = tcase_create("team_cut");
    tcase_add_test(tcase, test_rows_where_fair);
    tcase_add_test(tcase, test_all_groups_once);
    tcase_add_test(tcase, test_fewer_dimensions);
    tcase_add_test(tcase, test_what_cannot_be_cut);
    suite_add_tcase(suite, tcase);
    return test_run(suite, true);
}
