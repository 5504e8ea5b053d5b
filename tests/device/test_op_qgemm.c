/* SPDX-License-Identifier: Apache-2.0 */
/* Products of 8-bit integers, by each implementation that the device has. */
#include "ops/implementation.h"
#include "ops/instruction.h"
#include "support/qgemm_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const implementations[] = {"qgemm:vnni", "qgemm:madd", "qgemm:dot", "qgemm:panel", "qgemm:portable"};
#define COUNT 5
#define PORTABLE 4
static const rnl_dtype bytes[2] = {RNL_U8, RNL_I8};

static bool has(int which)
{
    const rnl_device *device = op_device();
    if (which == 0)
        return rnl_device_runs(device, RNL_INSTRUCTION_VNNI) || rnl_device_runs(device, RNL_INSTRUCTION_VNNI8) ||
               rnl_device_runs(device, RNL_INSTRUCTION_FOURS);
    if (which == 1)
        return rnl_device_runs(device, RNL_INSTRUCTION_MADD8) || rnl_device_runs(device, RNL_INSTRUCTION_MADD16);
    return which > 2 || rnl_device_runs(device, RNL_INSTRUCTION_DP4A) || rnl_device_runs(device, RNL_INSTRUCTION_DOT);
}

/* Forces an implementation; false where the device does not have it. */
static bool force(int which)
{
    setenv("RUNNEL_QGEMM", strchr(implementations[which], ':') + 1, 1);
    return has(which);
}

/* b packed beforehand for some, except for the one that cannot read it; every result is checked. */
static void run(int which, qgemm_case test)
{
    const bool can = which != PORTABLE && test.k > 0;
    test.packed = test.packed && which != PORTABLE;
    qgemm_case_run(&test, can ? implementations[which] : implementations[PORTABLE]);
}

START_TEST(sides)
{
    static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 14, 17, 31, 33, 70};
    const size_t count = op_small() ? 4 : 12;
    if (!force(_i))
        return;
    for (size_t m = 0; m < count; ++m)
        for (size_t n = 0; n < count; n += 1 + m % 2)
            for (size_t k = 0; k < count; k += 2)
                run(_i, (qgemm_case){.m = sizes[m],
                                     .n = sizes[n],
                                     .k = sizes[k],
                                     .packed = (m + n + k) % 2,
                                     .a_type = bytes[m / 2 % 2],
                                     .b_type = bytes[n / 2 % 2],
                                     .bias = k % 3 == 0});
}
END_TEST

/* What the program is compiled with, or not. */
static void run_with(const qgemm_case *test, const char *define, bool is_with)
{
    qgemm_run it = {.test = *test};
    qgemm_case_create(&it);
    qgemm_case_enqueue(&it);
    ck_assert(op_last_has(define) == is_with);
    qgemm_case_check(&it);
    op_reset();
}

/* By vpmaddwd with half the products and without: tiles of three rows whole and moved back, chunks, blocks of columns.
 */
START_TEST(half_the_products)
{
    static const qgemm_case tests[] = {
        {.m = 12, .n = 1, .k = 1, .packed = true},
        {.m = 13, .n = 33, .k = 3, .bias = QGEMM_EACH},
        {.m = 61, .n = 31, .k = 257, .za = QGEMM_ONE, .zb = QGEMM_EACH, .packed = true},
        {.m = 97, .n = 40, .k = 18, .za = QGEMM_EACH, .a_gaps = true, .packed = true},
        {.m = 26, .n = 300, .k = 64, .dst_type = RNL_F32, .a_scale = true, .chain = 2, .packed = true},
        {.m = 14,
         .n = 20,
         .k = 9,
         .batch_rank = 2,
         .batch = {3, 2},
         .a_transposed = true,
         .dst_type = RNL_U8,
         .zd = true},
        {.m = 15, .n = 32, .k = 600, .extremes = true, .packed = true},
    };
    if (!rnl_device_runs(op_device(), RNL_INSTRUCTION_MADD8) || !force(1))
        return;
    setenv("RUNNEL_FIP", _i & 1 ? "off" : "on", 1);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
        qgemm_case test = tests[i];
        test.a_type = bytes[_i >> 1 & 1];
        test.b_type = bytes[(i + (size_t)_i / 2) % 2];
        run_with(&test, "-DFIP", !(_i & 1));
    }
    unsetenv("RUNNEL_FIP");
}
END_TEST

/* By products of fours of bytes on 8 lanes, in plain C where the device has none. */
START_TEST(fours)
{
    static const qgemm_case tests[] = {
        {.m = 1, .n = 17, .k = 3, .packed = true},
        {.m = 7, .n = 33, .k = 70, .bias = QGEMM_EACH, .za = QGEMM_ONE, .zb = QGEMM_EACH},
        {.m = 13, .n = 100, .k = 261, .dst_type = RNL_F32, .a_scale = true, .chain = 2, .packed = true},
        {.m = 6, .n = 16, .k = 600, .extremes = true, .packed = true},
    };
    if (!rnl_device_is_cpu(op_device()))
        return;
    setenv("RUNNEL_INSTRUCTIONS", "model", 1);
    ck_assert(force(0));
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i) {
        qgemm_case test = tests[i];
        test.a_type = bytes[_i & 1];
        test.b_type = bytes[(i + (size_t)_i) % 2];
        run_with(&test, "-DFOURS", true);
    }
    unsetenv("RUNNEL_INSTRUCTIONS");
}
END_TEST

/* All types, all kinds of zero points. */
START_TEST(zero_points)
{
    if (!force(_i))
        return;
    for (unsigned form = 0; form < 64; form += op_small() ? 13 : 1)
        run(_i, (qgemm_case){.m = 9,
                             .n = 37,
                             .k = form & 16 ? 8 : 23,
                             .a_type = bytes[form & 1],
                             .b_type = bytes[form >> 1 & 1],
                             .za = form >> 2 & 3,
                             .zb = (form >> 3 & 3) ^ (form >> 5 & 1),
                             .extremes = form & 4,
                             .packed = form & 1});
}
END_TEST

/* Tiles whose sums need nothing at the end, and each that they may need alone. */
START_TEST(whole_tiles)
{
    if (!force(_i))
        return;
    for (unsigned form = 0; form < 32; ++form)
        run(_i, (qgemm_case){.m = op_small() ? 9 : 17,
                             .n = op_small() ? 33 : 70,
                             .k = 24,
                             .packed = true,
                             .a_type = bytes[form / 8 % 2],
                             .za = form & 1 ? QGEMM_EACH : QGEMM_ONE,
                             .zb = form & 2 ? QGEMM_ONE : QGEMM_NONE,
                             .bias = form & 4 ? QGEMM_EACH : QGEMM_NONE,
                             .dst_gaps = form & 16});
}
END_TEST

/* Several of them, one below the other in a work-item, and what is left behind them. */
START_TEST(whole_tiles_in_a_row)
{
    if (!force(_i) || op_small())
        return;
    for (unsigned form = 0; form < 8; ++form)
        run(_i, (qgemm_case){.m = 229,
                             .n = 70,
                             .k = 12,
                             .packed = true,
                             .a_type = bytes[form & 1],
                             .za = QGEMM_ONE,
                             .a_apart = form & 2,
                             .dst_gaps = form & 4});
}
END_TEST

/* Sums that do not fit in 16 bits, that leave 2^24, where float is no longer exact, and that wrap. */
START_TEST(extremes)
{
    const int64_t deep = op_small() ? 600 : 70001;
    if (!force(_i))
        return;
    for (unsigned form = 0; form < 4; ++form) {
        run(_i, (qgemm_case){.m = 2,
                             .n = 33,
                             .k = deep,
                             .a_type = bytes[form & 1],
                             .b_type = bytes[form >> 1],
                             .za = form == 2 ? QGEMM_EACH : QGEMM_NONE,
                             .extremes = true});
        run(_i, (qgemm_case){.m = 8,
                             .n = 32,
                             .k = 64,
                             .a_type = bytes[form & 1],
                             .b_type = bytes[form >> 1],
                             .extremes = true,
                             .zb = QGEMM_EACH});
    }
}
END_TEST

START_TEST(layouts)
{
    if (!force(_i))
        return;
    for (unsigned form = 0; form < 64; form += op_small() ? 13 : 1)
        run(_i, (qgemm_case){.m = 6,
                             .n = 35,
                             .k = 13,
                             .a_type = bytes[form & 1],
                             .b_type = RNL_U8,
                             .a_transposed = form & 1,
                             .b_transposed = form & 2,
                             .dst_transposed = form & 4,
                             .a_gaps = form & 8,
                             .b_gaps = form & 16,
                             .dst_gaps = form & 32,
                             .bias = QGEMM_EACH,
                             .za = QGEMM_EACH,
                             .packed = form & 16});
}
END_TEST

START_TEST(batches)
{
    static const qgemm_case tests[] = {
        {.m = 4, .n = 5, .k = 6, .batch_rank = 1, .batch = {3}, .za = QGEMM_EACH_BATCH, .zb = QGEMM_EACH_BATCH},
        {.m = 9, .n = 40, .k = 7, .batch_rank = 1, .batch = {3}, .b_less = 1, .za = QGEMM_EACH_BATCH, .packed = true},
        {.m = 1, .n = 17, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_less = 2, .za = QGEMM_EACH},
        {.m = 4, .n = 17, .k = 6, .batch_rank = 2, .batch = {3, 2}, .b_ones = 1, .packed = true},
        {.m = 4, .n = 5, .k = 6, .batch_rank = 2, .batch = {3, 2}, .a_less = 1, .b_type = RNL_U8},
        {.m = 4, .n = 5, .k = 6, .batch_rank = 3, .batch = {2, 3, 2}, .a_ones = 2, .b_ones = 5, .packed = true},
        {.m = 2, .n = 9, .k = 3, .batch_rank = 6, .batch = {2, 1, 2, 3, 2, 2}, .a_ones = 9, .b_ones = 36},
        {.m = 2, .n = 9, .k = 3, .batch_rank = 6, .batch = {2, 2, 2, 3, 2, 2}, .a_gaps = true, .zb = QGEMM_EACH_BATCH},
        {.m = 7, .n = 9, .k = 16, .batch_rank = 2, .batch = {2, 3}, .b_transposed = true, .a_gaps = true},
        {.m = 7, .n = 9, .k = 5, .batch_rank = 2, .batch = {2, 3}, .a_transposed = true, .b_gaps = true, .a_ones = 2},
        {.m = 7, .n = 9, .k = 0, .batch_rank = 2, .batch = {2, 3}, .bias = QGEMM_EACH},
    };
    if (!force(_i))
        return;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; ++i)
        run(_i, tests[i]);
}
END_TEST

/* To 8 bits and to floats, with every combination of scales. */
START_TEST(scales)
{
    static const rnl_dtype types[3] = {RNL_I8, RNL_U8, RNL_F32};
    if (!force(_i))
        return;
    for (unsigned form = 0; form < (op_small() ? 9 : 48); ++form) {
        const bool to_bytes = form % 3 < 2;
        run(_i, (qgemm_case){.dst_type = types[form % 3],
                             .m = 5,
                             .n = form & 2 ? 40 : 32,
                             .k = 12,
                             .a_type = bytes[form >> 2 & 1],
                             .a_scale = form & 1,
                             .b_scale = (form >> 1) % 3,
                             .dst_scale = to_bytes && (form & 8),
                             .zd = to_bytes && (form & 16),
                             .bias = QGEMM_ONE,
                             .dst_transposed = form % 7 == 0,
                             .zb = form & 32 ? QGEMM_ONE : QGEMM_NONE});
    }
}
END_TEST

START_TEST(chains)
{
    if (!force(_i))
        return;
    for (size_t chain = 1; chain <= 3; ++chain)
        for (unsigned form = 0; form < 4; ++form)
            run(_i, (qgemm_case){.dst_type = RNL_F32,
                                 .m = 9,
                                 .n = form & 1 ? 64 : 37,
                                 .k = 20,
                                 .chain = chain,
                                 .dst_transposed = form & 2,
                                 .batch_rank = form & 1,
                                 .batch = {2},
                                 .a_scale = true,
                                 .b_scale = QGEMM_EACH});
}
END_TEST

/* Halves round to even, and results saturate on both sides: sums are 0, 1, 2 … times a scale of a half. */
static void check_ties(rnl_dtype type, int zero)
{
    enum { SUMS = 256 };
    const int low = type == RNL_I8 ? -128 : 0;
    qgemm_run r = {
        .test = {.dst_type = type, .a_type = RNL_I8, .m = SUMS, .n = 34, .k = 3, .a_scale = true, .zd = true}};
    qgemm_case_create(&r);
    for (int i = 0; i < SUMS; ++i)
        for (int64_t k = 0; k < 3; ++k)
            op_put(r.a, (const int64_t[]){i, k}, op_int(k == 0 ? i - 128 : 0));
    for (int64_t i = 0; i < 3 * 34; ++i)
        op_put(r.b, (const int64_t[]){i / 34, i % 34}, op_int(i < 34 ? i : 99));
    op_put(r.a_scale, (const int64_t[]){0}, op_float(0.5));
    op_put(r.zd, (const int64_t[]){0}, op_int(zero));
    qgemm_case_enqueue(&r);
    op_run();
    for (int64_t i = 0; i < SUMS * 34; ++i) {
        const int64_t at[2] = {i / 34, i % 34}, sum = (at[0] - 128) * at[1];
        int64_t half = sum / 2;
        if (sum % 2 != 0) /* the even one of the two neighbours */
            half = half % 2 == 0 ? half : half + (sum > 0 ? 1 : -1);
        half += zero;
        half = half < low ? low : half > low + 255 ? low + 255 : half;
        ck_assert_msg(op_get(r.dst, at).i == half, "%lld halves and %d: got %lld, expected %lld", (long long)sum, zero,
                      (long long)op_get(r.dst, at).i, (long long)half);
    }
    op_reset();
}

START_TEST(ties)
{
    if (!force(_i))
        return;
    check_ties(RNL_I8, 0);
    check_ties(RNL_I8, -13);
    check_ties(RNL_U8, 0);
    check_ties(RNL_U8, 128);
}
END_TEST

/* A scale that is not a number gives the lowest value, an infinite one the ends. */
START_TEST(special_scales)
{
    static const double factors[] = {NAN, INFINITY, -INFINITY};
    if (!force(_i))
        return;
    for (size_t s = 0; s < 3; ++s) {
        qgemm_run r = {.test = {.dst_type = RNL_I8, .m = 3, .n = 33, .k = 2, .a_scale = true}};
        qgemm_case_create(&r);
        for (int64_t i = 0; i < 66; ++i) {
            op_put(r.a, (const int64_t[]){i % 3, i % 2}, op_int(1));
            op_put(r.b, (const int64_t[]){i % 2, i / 2}, op_int(i / 2 - 16));
        }
        op_put(r.a_scale, (const int64_t[]){0}, op_float(factors[s]));
        qgemm_case_enqueue(&r);
        op_run();
        for (int64_t n = 0; n < 33; ++n) {
            const bool high = s > 0 && n != 16 && (n > 16) == (s == 1);
            ck_assert_int_eq(op_get(r.dst, (const int64_t[]){1, n}).i, high ? 127 : -128);
        }
        op_reset();
    }
}
END_TEST

/* A stride that nothing uses makes the kernels index in 64 bits. */
START_TEST(wide_indices)
{
    if (!force(_i))
        return;
    for (unsigned packed = 0; packed < 2; ++packed) {
        qgemm_run r = {.test = {.m = 5,
                                .n = 34,
                                .k = 19,
                                .batch_rank = 1,
                                .batch = {1},
                                .packed = packed && _i != PORTABLE,
                                .za = QGEMM_EACH,
                                .bias = QGEMM_EACH}};
        qgemm_case_create(&r);
        r.a->view.stride[0] = INT64_C(1) << 40;
        qgemm_case_enqueue(&r);
        qgemm_case_check(&r);
        op_reset();
    }
}
END_TEST

static void force_nothing(void)
{
    unsetenv("RUNNEL_QGEMM");
}

int main(void)
{
    Suite *suite = suite_create("qgemm");
    TCase *tests = op_case(suite, "qgemm");
    tcase_add_checked_fixture(tests, force_nothing, force_nothing);
    /* What CPUs run, where the simulator can look at it. */
    TCase *as_cpu = op_case_as_cpu(suite, "as a CPU");
    if (as_cpu) {
        tcase_add_checked_fixture(as_cpu, force_nothing, force_nothing);
        op_add_loop(as_cpu, layouts, PORTABLE - 1, PORTABLE);
        op_add_loop(as_cpu, scales, PORTABLE - 1, PORTABLE);
        op_add_loop(as_cpu, extremes, PORTABLE - 1, PORTABLE);
    }
    /* All implementations: of their cases some are chosen. */
    tcase_add_loop_test(tests, sides, 0, COUNT);
    tcase_add_loop_test(tests, half_the_products, 0, 4);
    tcase_add_loop_test(tests, fours, 0, 2);
    tcase_add_loop_test(tests, zero_points, 0, COUNT);
    tcase_add_loop_test(tests, whole_tiles, 0, COUNT);
    tcase_add_loop_test(tests, whole_tiles_in_a_row, 0, COUNT);
    tcase_add_loop_test(tests, extremes, 0, COUNT);
    tcase_add_loop_test(tests, layouts, 0, COUNT);
    tcase_add_loop_test(tests, batches, 0, COUNT);
    tcase_add_loop_test(tests, scales, 0, COUNT);
    tcase_add_loop_test(tests, chains, 0, COUNT);
    tcase_add_loop_test(tests, ties, 0, COUNT);
    tcase_add_loop_test(tests, special_scales, 0, COUNT);
    tcase_add_loop_test(tests, wide_indices, 0, COUNT);
    return op_main(suite);
}
