/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A single row's products alone and by a team, whose threads take stretches of the terms: against float64, and with the
 * same bits both ways.
 */
#include "kernel/team.h"
#include "support/test_device.h"
#include <runnel/gemm.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TURNS 10 /* of which each adds to what the one before left, where there is a beta */

typedef struct row_case {
    int64_t n, k, batch;
    float alpha, beta;
    bool bias, relu;
} row_case;

typedef struct row_run {
    rnl_stream *stream;
    rnl_gemm *gemm;
    rnl_buffer *a, *b, *c, *bias;
    float *a_values, *b_values, *c_values, *bias_values, *alone, *together;
} row_run;

static float *values_of(int64_t count, uint32_t seed)
{
    float *values = malloc((size_t)count * sizeof *values);
    ck_assert_ptr_nonnull(values);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = (float)(seed >> 8) / (float)(1 << 23) - 1.0f;
    }
    return values;
}

static rnl_buffer *put(rnl_device *device, rnl_stream *stream, const float *values, int64_t count)
{
    rnl_buffer *made;
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, (size_t)count * sizeof *values, &made));
    test_ok(rnl_stream_write(stream, made, 0, values, (size_t)count * sizeof *values));
    test_ok(rnl_stream_synchronize(stream));
    return made;
}

static row_run open_run(rnl_device *device, const row_case *it)
{
    rnl_gemm_desc desc = RNL_GEMM_DESC_INIT;
    row_run run = {.a_values = values_of(it->k * it->batch, 1),
                   .b_values = values_of(it->k * it->n * it->batch, 2),
                   .c_values = values_of(it->n * it->batch, 3),
                   .bias_values = values_of(it->n, 4),
                   .alone = values_of(it->n * it->batch, 5),
                   .together = values_of(it->n * it->batch, 6)};
    desc.m = 1, desc.n = it->n, desc.k = it->k, desc.batch = it->batch;
    desc.alpha = it->alpha, desc.beta = it->beta;
    desc.bias = it->bias ? RNL_GEMM_BIAS_COLUMNS : RNL_GEMM_BIAS_NONE;
    desc.activation = it->relu ? RNL_GEMM_RELU : RNL_GEMM_LINEAR;
    desc.implementation = "row";
    test_ok(rnl_stream_create(device, &run.stream));
    test_ok(rnl_gemm_create(device, &desc, &run.gemm));
    run.a = put(device, run.stream, run.a_values, it->k * it->batch);
    run.b = put(device, run.stream, run.b_values, it->k * it->n * it->batch);
    run.c = put(device, run.stream, run.c_values, it->n * it->batch);
    run.bias = put(device, run.stream, run.bias_values, it->n);
    return run;
}

static void close_run(row_run *run)
{
    rnl_gemm_release(run->gemm);
    rnl_stream_release(run->stream);
    rnl_buffer *const buffers[] = {run->a, run->b, run->c, run->bias};
    for (size_t i = 0; i < 4; i++)
        rnl_buffer_release(buffers[i]);
    float *const values[] = {run->a_values, run->b_values, run->c_values, run->alone, run->bias_values, run->together};
    for (size_t i = 0; i < 6; i++)
        free(values[i]);
}

static void multiply(row_run *run, const row_case *it, bool waits, float *out)
{
    rnl_gemm_operands operands = RNL_GEMM_OPERANDS_INIT;
    const size_t bytes = (size_t)(it->n * it->batch) * sizeof *out;
    operands.a = run->a, operands.b = run->b, operands.c = run->c, operands.bias = run->bias;
    test_ok(rnl_stream_write(run->stream, run->c, 0, run->c_values, bytes));
    test_ok(rnl_stream_synchronize(run->stream));
    for (int i = 0; i < TURNS; i++) {
        test_ok(rnl_stream_gemm(run->stream, run->gemm, &operands));
        if (waits)
            test_ok(rnl_stream_synchronize(run->stream));
    }
    test_ok(rnl_stream_read(run->stream, out, run->c, 0, bytes));
    test_ok(rnl_stream_synchronize(run->stream));
}

/* Errors of sums of k terms of at most 1. */
static void check_column(const row_run *run, const row_case *it, int64_t product, int64_t column)
{
    const float *a = run->a_values + product * it->k, *b = run->b_values + product * it->k * it->n;
    double sum = 0, value = (double)run->c_values[product * it->n + column];
    for (int64_t i = 0; i < it->k; i++)
        sum += (double)a[i] * (double)b[i * it->n + column];
    for (int i = 0; i < TURNS; i++) {
        value = (double)it->alpha * sum + (double)it->beta * value;
        value += it->bias ? (double)run->bias_values[column] : 0;
        value = it->relu && value < 0 ? 0 : value;
    }
    ck_assert_double_eq_tol((double)run->alone[product * it->n + column], value, 1e-6 * (double)(it->k + 10));
}

static void check(rnl_device *device, const row_case *it)
{
    row_run run = open_run(device, it);
    const uint64_t before = rnl_device_team_launches(device);
    multiply(&run, it, true, run.alone);
    ck_assert_uint_eq(rnl_device_team_launches(device), before);
    for (int64_t product = 0; product < it->batch; product++)
        for (int64_t column = 0; column < it->n; column++)
            check_column(&run, it, product, column);
    for (int i = 0; i < 3; i++) {
        multiply(&run, it, false, run.together);
        ck_assert_mem_eq(run.together, run.alone, (size_t)(it->n * it->batch) * sizeof(float));
    }
    if (rnl_device_has_team(device))
        ck_assert_uint_gt(rnl_device_team_launches(device), before);
    close_run(&run);
}

START_TEST(test_both_ways)
{
    static const row_case cases[] = {
        {.n = 384, .k = 384, .batch = 1, .alpha = 1},
        {.n = 1000, .k = 600, .batch = 1, .alpha = 1},
        {.n = 16, .k = 300, .batch = 1, .alpha = 1},                               /* fewer vectors than threads */
        {.n = 517, .k = 257, .batch = 1, .alpha = 0.5f, .beta = 0.5f},             /* no multiples of anything */
        {.n = 2047, .k = 72, .batch = 1, .alpha = 1, .beta = -0.5f, .bias = true}, /* nothing for the fourth */
        {.n = 2048, .k = 64, .batch = 1, .alpha = 1, .bias = true, .relu = true},
        {.n = 2100, .k = 64, .batch = 1, .alpha = 1}, /* too long for stretches */
        {.n = 133, .k = 129, .batch = 3, .alpha = 1, .beta = 0.5f, .relu = true},
    };
    rnl_device *device = test_open_device();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(device, &cases[i]);
    rnl_device_release(device);
}
END_TEST

/* The sums of one item are added in one order, in any batch. */
START_TEST(test_batches)
{
    const row_case many = {.n = 200, .k = 300, .batch = 5, .alpha = 1},
                   one = {.n = 200, .k = 300, .batch = 1, .alpha = 1};
    rnl_device *device = test_open_device();
    row_run all = open_run(device, &many), first = open_run(device, &one);
    for (int waits = 0; waits < 2; waits++) {
        multiply(&all, &many, waits, all.alone);
        multiply(&first, &one, waits, first.alone);
        test_ok(rnl_stream_write(first.stream, first.b, 0, all.b_values, sizeof(float) * 200 * 300));
        multiply(&first, &one, waits, first.together);
        ck_assert_mem_eq(all.alone, first.together, sizeof(float) * 200);
    }
    close_run(&all);
    close_run(&first);
    rnl_device_release(device);
}
END_TEST

int main(void)
{
    setenv("POCL_MAX_PTHREAD_COUNT", "4", 0); /* more than two can meet in more ways */
    setenv("RUNNEL_TEAM", "on", 1);
    Suite *suite = suite_create("gemm_row_team");
    TCase *tcase = tcase_create("gemm_row_team");
    tcase_set_timeout(tcase, 0);
    tcase_add_test(tcase, test_both_ways);
    tcase_add_test(tcase, test_batches);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
