/* SPDX-License-Identifier: Apache-2.0 */
/* Which runs are recorded automatically, by times that are made up. */
#include "device/trace.h"
#include "support/test_device.h"
#include <string.h>

static rnl_trace *trace;

static void setup(void)
{
    test_ok(rnl_trace_create(NULL, &trace));
}

static void teardown(void)
{
    rnl_trace_release(trace);
}

START_TEST(the_cost_stays_below_its_limit)
{
    ck_assert_uint_eq(rnl_trace_choose_interval(1.485), 49); /* 0.485 / 49 is 0.0099, 0.485 / 48 is 0.0101 */
    ck_assert_uint_eq(rnl_trace_choose_interval(1.145), 15);
    ck_assert_uint_eq(rnl_trace_choose_interval(1.045), 5);
    ck_assert_uint_eq(rnl_trace_choose_interval(1.005), 1);
    ck_assert_uint_eq(rnl_trace_choose_interval(0.9), 1);
    ck_assert_uint_eq(rnl_trace_choose_interval(10), 901);
    ck_assert_uint_eq(rnl_trace_choose_interval(100), 999);
    ck_assert_uint_eq(rnl_trace_choose_interval(-1), 1);
}
END_TEST

static void check_turns(uint32_t measured, const char *expected)
{
    char got[80] = "";
    rnl_trace_turn turn = {0};
    rnl_trace_set_interval(trace, RNL_TRACE_AUTOMATIC);
    for (size_t i = 0; i < strlen(expected); i++)
        got[i] = rnl_trace_takes(trace, &turn, measured) ? 'x' : '.';
    ck_assert_str_eq(got, expected);
}

START_TEST(five_runs_and_then_by_what_is_measured)
{
    uint64_t recorded;
    check_turns(0, "xxxxx..x..x..x");
    check_turns(1, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.xxxxxxxx");
    check_turns(3, "xxxxx..x..x");
    check_turns(21, "xxxxx..x....................x....................x");
    ck_assert_uint_eq(rnl_trace_get_runs(trace, &recorded), 14 + 41 + 11 + 50);
    ck_assert_uint_eq(recorded, 8 + 40 + 7 + 8);
}
END_TEST

/* Then each 101st run is. */
START_TEST(a_cost_that_is_never_known)
{
    rnl_trace_turn turn = {0};
    unsigned count = 0;
    for (unsigned i = 0; i < 60 + 10100; i++)
        count += rnl_trace_takes(trace, &turn, 0) && i >= 60;
    ck_assert_uint_ge(count, 99);
    ck_assert_uint_le(count, 101);
}
END_TEST

static void add_pair(rnl_trace_cost *cost, uint64_t kind, uint64_t plain_ns, uint64_t recorded_ns)
{
    rnl_trace_cost_add(cost, false, kind, plain_ns);
    rnl_trace_cost_add(cost, true, kind, recorded_ns);
}

START_TEST(medians_of_pairs)
{
    rnl_trace_cost cost = {0};
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(rnl_trace_cost_interval(&cost), 0);
        add_pair(&cost, 1, 1000, i == 2 ? 100000 : 1485); /* one waited for a compiler */
    }
    ck_assert_uint_eq(rnl_trace_cost_interval(&cost), 49);
    for (unsigned i = 0; i < 5; i++)
        add_pair(&cost, 1, 3550, 4047); /* 0.14 more */
    ck_assert_uint_eq(rnl_trace_cost_interval(&cost), 15);
}
END_TEST

/* Each of them 1.2 times as long or as short as the other. */
START_TEST(unrest_is_no_cost)
{
    static const uint64_t recorded[] = {1200, 833, 1200, 1200, 833, 1200, 833, 1200, 1200};
    rnl_trace_cost cost = {0};
    for (unsigned i = 0; i < 9; i++)
        add_pair(&cost, 1, 1000, recorded[i]);
    ck_assert_uint_eq(rnl_trace_cost_interval(&cost), 1);
}
END_TEST

START_TEST(kinds_of_runs_are_not_compared)
{
    rnl_trace_cost cost = {0};
    for (unsigned i = 0; i < 5; i++) {
        rnl_trace_cost_add(&cost, false, 1, 1000);
        rnl_trace_cost_add(&cost, false, 2, 8000);
        rnl_trace_cost_add(&cost, true, i % 2 + 1, i % 2 ? 8040 : 1005);
        rnl_trace_cost_add(&cost, true, 3, 500);
    }
    ck_assert_uint_eq(cost.count, 5);
    ck_assert_uint_eq(rnl_trace_cost_interval(&cost), 1);
    rnl_trace_cost_add(&cost, true, 2, 8040);
    ck_assert_uint_eq(cost.count, 6);
    rnl_trace_cost_add(&cost, true, 2, 8040); /* the one before it is in a pair */
    ck_assert_uint_eq(cost.count, 6);
    rnl_trace_cost_add(&cost, false, 2, 8000);
    for (uint64_t kind = 10; kind < 14; kind++)
        rnl_trace_cost_add(&cost, false, kind, 1);
    rnl_trace_cost_add(&cost, true, 2, 8040);
    ck_assert_uint_eq(cost.count, 6); /* as long ago as four others */
}
END_TEST

/* What so many runs take with it, of what they take without; two kinds take turns. */
static double simulate(double times, unsigned runs, rnl_trace_turn *turn, rnl_trace_cost *cost, unsigned *out_recorded)
{
    double with = 0, without = 0;
    *out_recorded = 0;
    for (unsigned i = 0; i < runs; i++) {
        const double plain = i % 2 ? 1e6 : 5e6;
        const bool takes = rnl_trace_takes(trace, turn, rnl_trace_cost_interval(cost));
        const double took = takes ? times * plain : plain;
        rnl_trace_cost_add(cost, takes, i % 2, (uint64_t)took);
        *out_recorded += takes;
        with += took;
        without += plain;
    }
    return with / without;
}

START_TEST(the_mean_cost_stays_small)
{
    static const double times[] = {1.0, 1.005, 1.14, 1.49, 3};
    for (unsigned i = 0; i < sizeof times / sizeof *times; i++) {
        rnl_trace_turn turn = {0};
        rnl_trace_cost cost = {0};
        unsigned recorded;
        (void)simulate(times[i], 100, &turn, &cost, &recorded);
        ck_assert_double_le(simulate(times[i], 100000, &turn, &cost, &recorded), 1.0105);
        ck_assert_uint_ge(recorded, i < 2 ? 96000 : (unsigned)(0.75 * 100000 * 0.01 / (times[i] - 1)));
        /* What it costs can change. */
        (void)simulate(1.0, 100000, &turn, &cost, &recorded);
        (void)simulate(1.0, 1000, &turn, &cost, &recorded);
        ck_assert_uint_ge(recorded, 960);
        (void)simulate(1.49, 1000, &turn, &cost, &recorded);
        (void)simulate(1.49, 1000, &turn, &cost, &recorded);
        ck_assert_uint_le(recorded, 22);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trace turn");
    TCase *tcase = tcase_create("trace turn");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_cost_stays_below_its_limit);
    tcase_add_test(tcase, five_runs_and_then_by_what_is_measured);
    tcase_add_test(tcase, a_cost_that_is_never_known);
    tcase_add_test(tcase, medians_of_pairs);
    tcase_add_test(tcase, unrest_is_no_cost);
    tcase_add_test(tcase, kinds_of_runs_are_not_compared);
    tcase_add_test(tcase, the_mean_cost_stays_small);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
