/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that are shared out among a team's threads: nobody has longer to do than before, counted row by row; and what
 * bands of a block of convolutions waste.
 */
#include "kernel/team.h"
#include "kernel/team_cut.h"
#include "ops/conv_block_plan.h"
#include "ops/gemm_problem.h"
#include "ops/shares.h"
#include "support/test_device.h"

#include <string.h>

static rnl_device device_of(uint32_t threads)
{
    return (rnl_device){.info = {.type = RNL_DEVICE_CPU, .compute_units = threads}};
}

/* Rows of the work-items that lie in a piece, each once for each of the others: item (i, j) has rows i * share on. */
static int64_t rows_of(const rnl_team_cut *cut, const rnl_team_piece *piece, int64_t count, int64_t share,
                       int64_t others, bool is_first)
{
    const int64_t items = (count + share - 1) / share;
    int64_t rows = 0;
    for (int64_t item = 0; item < items; item++)
        for (int64_t other = 0; other < others; other++) {
            const size_t at[2] = {(size_t)(is_first ? item : other), (size_t)(is_first ? other : item)};
            const size_t row = at[cut->outer], column = at[cut->inner];
            const bool is_in =
                row >= piece->row && row < piece->row + piece->rows &&
                (cut->columns == 1 || (column >= piece->column && column < piece->column + piece->columns));
            const int64_t left = count - item * share;
            rows += !is_in ? 0 : left < share ? left : share;
        }
    return rows;
}

static int64_t longest(uint32_t threads, int64_t count, int64_t share, int64_t others, bool is_first)
{
    const size_t items = (size_t)((count + share - 1) / share), in_other = (size_t)others;
    const rnl_range range = {
        .dimensions = 2, .global = {is_first ? items : in_other, is_first ? in_other : items, 1}, .local = {1, 1, 1}};
    const rnl_team_cut cut = rnl_team_choose_cut(&range, threads, false);
    int64_t most = 0, all = 0;
    for (uint32_t thread = 0; thread < threads; thread++) {
        rnl_team_piece pieces[RNL_TEAM_MOST_PIECES];
        const uint32_t found = rnl_team_find_pieces(&cut, threads, thread, pieces);
        int64_t rows = 0;
        for (uint32_t i = 0; i < found; i++)
            rows += rows_of(&cut, &pieces[i], count, share, others, is_first);
        all += rows;
        most = rows > most ? rows : most;
    }
    ck_assert_int_eq(all, count * others);
    return most;
}

START_TEST(test_never_longer)
{
    static const int64_t counts[] = {1, 2, 7, 22, 53, 109, 393}, shares[] = {1, 2, 3, 6, 13, 14, 40};
    static const int64_t several[] = {1, 2, 3, 21};
    for (uint32_t threads = 1; threads <= RNL_TEAM_MOST_THREADS + 1; threads++)
        for (size_t i = 0; i < 7 * 7 * 4 * 2; i++) {
            const rnl_device device = device_of(threads);
            const int64_t count = counts[i % 7], wish = shares[i / 7 % 7], others = several[i / 49 % 4];
            const int64_t items = (count + wish - 1) / wish, share = (count + items - 1) / items; /* even ones */
            const bool is_first = i / 196 == 1;
            const int64_t fair = rnl_fair_share(&device, count, wish, others, is_first);
            ck_assert_int_ge(fair, (share + 1) / 2);
            ck_assert_int_le(fair, share + share / 3);
            ck_assert_int_le(longest(threads, count, fair, others, is_first),
                             longest(threads, count, share, others, is_first));
        }
}
END_TEST

/* Nine work-items of 13 runs for two threads would be five for one of them; eight of three runs, of which the last has
 * one. */
START_TEST(test_two_threads)
{
    const rnl_device device = device_of(2);
    ck_assert_int_le(longest(2, 109, rnl_fair_share(&device, 109, 13, 1, false), 1, false), 56);
    ck_assert_int_le(longest(2, 22, rnl_fair_share(&device, 22, 3, 21, true), 21, true), 11 * 21 + 2);
}
END_TEST

START_TEST(test_left_alone)
{
    const rnl_device one = device_of(1), many = device_of(64), two = device_of(2);
    ck_assert_int_eq(rnl_fair_share(&one, 109, 13, 1, false), 13);
    ck_assert_int_eq(rnl_fair_share(&many, 109, 13, 1, false), 13);
    ck_assert_int_eq(rnl_fair_share(&two, 100001, 13, 1, false), 13); /* of thousands one more does not matter */
}
END_TEST

/* The team gives each thread a stretch of rows with all that is in them, and of equal length. */
START_TEST(test_stretches)
{
    static const int64_t counts[] = {1, 2, 5, 14, 56, 224, 393}, several[] = {1, 2, 3, 8};
    size_t found = 0;
    for (uint32_t threads = 1; threads <= RNL_TEAM_MOST_THREADS; threads++)
        for (size_t i = 0; i < 7 * 4 * 8; i++) {
            const rnl_device device = device_of(threads);
            const int64_t count = counts[i % 7], others = several[i / 7 % 4], parts = 1 + (int64_t)i / 28;
            const int64_t share = rnl_stretch_share(&device, count, parts),
                          items = share ? (count + share - 1) / share : 0;
            if (share == 0)
                continue;
            const rnl_range range = {.dimensions = 2, .global = {(size_t)others, (size_t)items, 1}, .local = {1, 1, 1}};
            const rnl_team_cut cut = rnl_team_choose_cut(&range, threads, false);
            ck_assert(cut.outer == 1 && cut.columns == 1);
            ck_assert_int_le(items, parts * threads);
            ck_assert_int_le(100 * threads * longest(threads, count, share, others, false), 103 * count * others);
            found++;
        }
    ck_assert_uint_ge(found, 7 * 4 * 8);
    const rnl_device one = device_of(1), two = device_of(2), three = device_of(3);
    ck_assert_int_eq(rnl_stretch_share(&one, 5, 3), 5);  /* in shares of 2 or 3 there would be 6 */
    ck_assert_int_eq(rnl_stretch_share(&two, 5, 4), 0);  /* 3 and 2 */
    ck_assert_int_eq(rnl_stretch_share(&two, 14, 4), 7); /* 7 items of 2, 5 of 3, and 8 and 6 in 4 of 4 */
    ck_assert_int_eq(rnl_stretch_share(&two, 56, 4), 7);
    ck_assert_int_eq(rnl_stretch_share(&three, 224, 2), 38); /* 76, 76 and 72: 228 is less than 3% more */
}
END_TEST

/* Rows of 8 and panels in threes: by hand, from who has which work-items of 25 x 3. */
START_TEST(test_longest_part)
{
    const rnl_extent rows = {25, 1, false}, threes = {64, 24, true}, even = {64, 22, true};
    /* The first thread has 38 of 75: all 25 of 16 panels (20), and 13 of 24 (22). */
    ck_assert_int_eq(rnl_longest_part(2, (rnl_extent[]){rows, threes}), 12 * 24 + 25 * 24);
    ck_assert_int_eq(rnl_longest_part(2, (rnl_extent[]){rows, even}), 12 * 22 + 25 * 22);
    ck_assert_int_eq(rnl_longest_part(1, (rnl_extent[]){rows, threes}), 25 * 64);
    /* 26 rows are 13 each, with all panels; and columns are shared where there are two. */
    ck_assert_int_eq(rnl_longest_part(2, (rnl_extent[]){{26, 1, false}, threes}), 13 * 64);
    ck_assert_int_eq(rnl_longest_part(2, (rnl_extent[]){rows, {64, 33, true}}), 25 * 33);
    ck_assert_int_eq(rnl_longest_part(2, (rnl_extent[]){rows, {64, 33, false}}), 25 * 33);
    /* Items of 4 rows, the last of one: four and three of seven. */
    ck_assert_int_eq(rnl_longest_part(2, (rnl_extent[]){{25, 4, false}, {5, 5, false}}), 16 * 5);
}
END_TEST

START_TEST(test_tiles)
{
    const rnl_device two = device_of(2), gpu = {.info = {.type = RNL_DEVICE_GPU, .compute_units = 2}};
    static const int64_t rows[][2] = {{1, 1},  {2, 2},  {3, 4},  {4, 4},  {5, 8},   {8, 8},   {9, 7},   {14, 7},
                                      {16, 8}, {49, 7}, {50, 7}, {98, 7}, {128, 8}, {196, 7}, {3136, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_int_eq(rnl_gemm_tile_rows_of_8(rows[i][0]), rows[i][1]);
    ck_assert_int_eq(rnl_tiles_of_item(&two, 448, 8, 64), 224); /* 2 * 8 items */
    ck_assert_int_eq(rnl_tiles_of_item(&two, 448, 8, 256), 56); /* 16,384 terms; 8 * 8 items, not 7 * 8 */
    ck_assert_int_eq(rnl_tiles_of_item(&two, 448, 8, 512), 32);
    ck_assert_int_eq(rnl_tiles_of_item(&two, 448, 8, 4096), 8);
    ck_assert_int_eq(rnl_tiles_of_item(&two, 448, 2, 64), 56);  /* 8 * 2 items */
    ck_assert_int_eq(rnl_tiles_of_item(&two, 25, 32, 256), 13); /* of 16; 13 and 12 */
    ck_assert_int_eq(rnl_tiles_of_item(&two, 7, 1, 64), 1);
    ck_assert_int_eq(rnl_tiles_of_item(&two, 7, 1, 0), 1);
    ck_assert_int_eq(rnl_tiles_of_item(&gpu, 448, 8, 64), 1);
    ck_assert(rnl_shares_evenly(&two, 448, 8) && rnl_shares_evenly(&two, 3136, 7 * 8));
    ck_assert(!rnl_shares_evenly(&two, 7, 2)); /* 4 and 3 */
    ck_assert(!rnl_shares_evenly(&two, 1, 1));
    ck_assert(rnl_shares_evenly(&two, 100, 3)); /* 51 and 49 */
}
END_TEST

/*
 * Of three rows one of two bands has two: 3 rows of 80 pixels copied and 2 * 80 pixels of 25 + 480 sums, 81,040, where
 * an equal part is 60,720. Six rows divide: 5 * 80 + 3 * 80 * 505 = 121,600 each, 320 more than the 242,880 of all at
 * once.
 */
START_TEST(test_uneven_bands)
{
    rnl_conv_block_shape shape = {.projects = true,
                                  .batch = 1,
                                  .channels = 480,
                                  .hidden = 480,
                                  .filters = 480,
                                  .src_size = {3, 80},
                                  .dst_size = {3, 80},
                                  .pad_begin = {2, 2},
                                  .taps = 5,
                                  .stride = 1};
    const rnl_conv_block_plan plan = {.vector = 16, .bands = 2};
    ck_assert_double_eq_tol(rnl_conv_block_waste(&shape, &plan), 81040.0 / 60720 - 1, 1e-9);
    shape.src_size[0] = shape.dst_size[0] = 6;
    ck_assert_double_eq_tol(rnl_conv_block_waste(&shape, &plan), 2 * 121600.0 / 242880 - 1, 1e-9);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shares");
    TCase *tcase = tcase_create("shares");
    tcase_add_test(tcase, test_never_longer);
    tcase_add_test(tcase, test_two_threads);
    tcase_add_test(tcase, test_left_alone);
    tcase_add_test(tcase, test_stretches);
    tcase_add_test(tcase, test_longest_part);
    tcase_add_test(tcase, test_tiles);
    tcase_add_test(tcase, test_uneven_bands);
    suite_add_tcase(suite, tcase);
    return test_run(suite, true);
}
