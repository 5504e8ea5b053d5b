/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several devices on the fake driver: devices that are lost, and commands that fail, at any moment. Its kernels compute
 * nothing, so answers are not looked at; who did what, and that all goes on, is.
 */
#include "base/memory.h"
#include "base/status.h"
#include "device/device.h"
#include "device/pool.h"
#include "support/fake_driver.h"
#include "support/fault.h"
#include "support/small_model.h"
#include "support/test_device.h"
#include <pthread.h>
#include <runnel/multi.h>
#include <runnel/trace.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 3
#define ROWS 8
#define THREADS 4

static rnl_device *devices[DEVICES];
static rnl_graph *graph;
static rnl_multi *multi;
static proto bytes;
static size_t alive;
static float input[ROWS * SMALL_INPUTS];
static const double even[DEVICES] = {1, 1, 1};
static unsigned warnings;
static bool is_traced;

static void count_warning(void *user, rnl_log_level level, const char *line)
{
    (void)user;
    warnings += level == RNL_LOG_WARNING && strstr(line, "left out from now on") != NULL;
}

static void setup(void)
{
    size_t count;
    fake_driver()->reset();
    setenv("RUNNEL_CACHE", "off", 1);
    alive = fake_count_alive();
    bytes = small_model();
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_ok(rnl_multi_open_devices("0:0,0:1,1:0", NULL, devices, DEVICES, &count));
    warnings = 0;
    rnl_log_set(count_warning, NULL, RNL_LOG_WARNING);
}

static void open_multi(void)
{
    rnl_multi_options options = RNL_MULTI_OPTIONS_INIT;
    options.shares = even;
    options.in_flight = 2;
    test_ok(rnl_multi_open(graph, devices, DEVICES, &options, &multi));
}

static void teardown(void)
{
    fake_driver()->reset();
    rnl_log_set(NULL, NULL, RNL_LOG_ERROR);
    rnl_multi_release(multi);
    multi = NULL;
    rnl_graph_release(graph);
    for (size_t i = 0; i < DEVICES; i++)
        rnl_device_release(devices[i]);
    proto_free(&bytes);
    fake_check_alive(alive);
}

static rnl_tensor input_tensor(void)
{
    return (rnl_tensor){.name = "x",
                        .dtype = RNL_F32,
                        .rank = 2,
                        .shape = {ROWS, SMALL_INPUTS},
                        .data = input,
                        .size_bytes = sizeof input};
}

typedef rnl_status (*run_fn)(rnl_multi *, const rnl_tensor *, size_t, rnl_tensor *, size_t);
static const run_fn runs[] = {rnl_multi_run, rnl_multi_run_split};

static rnl_status run(run_fn function)
{
    rnl_tensor x = input_tensor(), y = {.name = "y"};
    const rnl_status status = function(multi, &x, 1, &y, 1);
    ck_assert((status == RNL_OK) == (y.data != NULL));
    rnl_output_release(y.data);
    return status;
}

static void run_both(void)
{
    test_ok(run(rnl_multi_run));
    test_ok(run(rnl_multi_run_split));
}

static size_t count_lost(void)
{
    rnl_multi_device state[DEVICES];
    size_t lost = 0;
    rnl_multi_get_devices(multi, state, DEVICES);
    for (size_t i = 0; i < DEVICES; i++)
        lost += state[i].is_lost;
    return lost;
}

START_TEST(shares_are_as_given)
{
    rnl_multi_device state[DEVICES];
    open_multi();
    run_both();
    test_ok(run(rnl_multi_run_split));
    rnl_multi_get_devices(multi, state, DEVICES);
    ck_assert_uint_eq(state[0].share + state[1].share + state[2].share, ROWS);
    for (size_t i = 0; i < DEVICES; i++)
        ck_assert(state[i].share == 2 || state[i].share == 3);
}
END_TEST

/* In the lower half of the loop whole requests, in the upper one batches. Another device does it, and the lost one is
 * out. */
START_TEST(a_device_is_lost_at_any_moment)
{
    const unsigned device = (unsigned)_i % DEVICES;
    fake_stats stats = {.failed_calls = 1};
    for (uint64_t n = 1; stats.failed_calls > 0; n++) {
        open_multi();
        run_both();
        warnings = 0;
        fake_driver()->reset();
        fake_driver()->lose_device(device, n, CL_OUT_OF_RESOURCES);
        for (int i = 0; i < 3; i++)
            test_ok(run(runs[_i / DEVICES]));
        fake_driver()->get_stats(&stats);
        ck_assert_uint_eq(count_lost(), stats.failed_calls > 0);
        ck_assert_uint_eq(warnings, stats.failed_calls > 0);
        fake_driver()->lose_device(device, 0, CL_SUCCESS);
        run_both();
        rnl_multi_release(multi);
        multi = NULL;
        if (n > 200)
            break; /* a whole request may go elsewhere */
    }
}
END_TEST

START_TEST(all_devices_are_lost)
{
    open_multi();
    run_both();
    for (unsigned i = 0; i < DEVICES; i++)
        fake_driver()->lose_device(i, 1, CL_OUT_OF_RESOURCES);
    for (int i = 0; i < 4; i++)
        ck_assert_int_ne(run(runs[(i + _i) % 2]), RNL_OK);
    ck_assert_uint_eq(count_lost(), DEVICES);
    ck_assert_uint_eq(warnings, DEVICES);
    test_fails(RNL_UNAVAILABLE, "lost", run(runs[_i]));
}
END_TEST

/* One command that fails is done again elsewhere, and costs no device. */
START_TEST(each_command_fails_once)
{
    fake_stats stats = {.failed_calls = 1};
    open_multi();
    run_both();
    for (uint64_t n = 1; stats.failed_calls > 0 && n < 200; n++) {
        fake_driver()->reset();
        fake_driver()->fail_command(n, CL_OUT_OF_RESOURCES);
        test_ok(run(runs[_i]));
        fake_driver()->get_stats(&stats);
        ck_assert_uint_eq(count_lost(), 0);
        test_ok(run(rnl_multi_run_split)); /* who fails five times in a row is left out */
    }
    ck_assert_uint_eq(stats.failed_calls, 0);
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

/* With nobody to help, the error names the device. */
START_TEST(a_device_alone_fails)
{
    test_ok(rnl_multi_open(graph, devices, 1, NULL, &multi));
    run_both();
    fake_driver()->fail_command(1, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "(0:0), and there is no other device", run(runs[_i]));
    run_both();
}
END_TEST

/* The failure of each call, from opening to releasing; what is not told has been put right. */
static rnl_status open_run_release(void *data)
{
    rnl_multi_options options = RNL_MULTI_OPTIONS_INIT;
    rnl_multi *own = NULL;
    (void)data;
    options.shares = even;
    rnl_status status = is_traced ? rnl_trace_create(NULL, &options.trace) : RNL_OK;
    if (status == RNL_OK)
        status = rnl_multi_open(graph, devices, 2, &options, &own);
    for (size_t i = 0; i < 4 && status == RNL_OK; i++) {
        rnl_tensor x = input_tensor(), y = {.name = "y"};
        status = runs[i % 2](own, &x, 1, &y, 1);
        rnl_output_release(y.data);
    }
    const rnl_error error = *rnl_last_error();
    rnl_multi_release(own);
    rnl_trace_release(options.trace);
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

static void trim(void *data)
{
    (void)data;
    for (size_t i = 0; i < DEVICES; i++)
        rnl_pool_trim(devices[i]->pool);
}

START_TEST(each_call_fails)
{
    const fake_sweep wish = {.program = open_run_release,
                             .settle = trim,
                             .code = CL_OUT_OF_RESOURCES,
                             .code_text = "CL_OUT_OF_RESOURCES (-5)",
                             .step = _i ? 7 : 3};
    is_traced = _i;
    (void)fake_sweep_calls(&wish);
}
END_TEST

START_TEST(each_allocation_fails)
{
    bool left = false;
    is_traced = _i;
    for (uint64_t n = 1; !left; n++) {
        rnl_alloc_fail_at(n);
        const rnl_status status = open_run_release(NULL);
        left = test_alloc_fault_left();
        if (status != RNL_OK)
            ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
    }
    ck_assert_int_eq(open_run_release(NULL), RNL_OK);
}
END_TEST

/* From request to request; what was recorded stays. */
START_TEST(what_is_recorded_can_change)
{
    rnl_trace *first, *second;
    rnl_trace_stats stats;
    open_multi();
    test_ok(rnl_trace_create(NULL, &first));
    test_ok(rnl_trace_create(NULL, &second));
    rnl_multi_trace(multi, first);
    run_both();
    rnl_multi_trace(multi, second);
    rnl_trace_get_stats(first, &stats);
    const uint64_t commands = stats.commands, spans = stats.spans;
    ck_assert_uint_gt(commands, 0);
    rnl_trace_set_interval(second, 2);
    for (int i = 0; i < 8; i++)
        run_both();
    rnl_trace_get_stats(first, &stats);
    ck_assert_uint_eq(stats.commands, commands);
    ck_assert_uint_eq(stats.spans, spans);
    rnl_multi_trace(multi, NULL);
    rnl_trace_get_stats(second, &stats);
    const uint64_t until = stats.commands;
    ck_assert_uint_gt(until, 0);
    run_both();
    rnl_trace_get_stats(second, &stats);
    ck_assert_uint_eq(stats.commands, until);
    rnl_trace_release(first);
    rnl_trace_release(second);
}
END_TEST

/* ---- Threads -------------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t under_way;

static void complete(void *user, const rnl_error *error)
{
    rnl_tensor *y = user;
    if (!error)
        rnl_output_release(y->data);
    pthread_mutex_lock(&lock);
    under_way--;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void *call_often(void *argument)
{
    const size_t number = *(const size_t *)argument;
    rnl_trace *trace = NULL;
    if (number == 3)
        (void)!rnl_trace_create(NULL, &trace);
    rnl_tensor x = input_tensor(), y[10];
    for (size_t i = 0; i < 10; i++) {
        y[i] = (rnl_tensor){.name = "y"};
        pthread_mutex_lock(&lock);
        under_way++;
        pthread_mutex_unlock(&lock);
        if (rnl_multi_submit(multi, &x, 1, &y[i], 1, complete, &y[i], NULL) != RNL_OK)
            complete(&y[i], rnl_last_error());
        (void)!run(runs[(i + number) % 2]);
        if (number == 0 && i == 4)
            fake_driver()->lose_device(1, 3, CL_OUT_OF_RESOURCES);
        if (number == 1 && i % 4 == 1)
            fake_driver()->fail_command(5, CL_OUT_OF_RESOURCES);
        if (number == 2 && i == 7)
            rnl_multi_cancel(multi, 0);
        if (number == 3)
            rnl_multi_trace(multi, i % 4 == 3 ? NULL : trace);
    }
    pthread_mutex_lock(&lock);
    while (under_way > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    rnl_trace_release(trace);
    return NULL;
}

/* A device that fails a request, and then what it is asked whether it is there, is left out: two of the three commands
 * that fail. So one of the devices that are not lost is there at the end. */
START_TEST(many_callers_meet_faults)
{
    pthread_t threads[THREADS];
    size_t numbers[THREADS];
    open_multi();
    for (size_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, call_often, &numbers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    fake_driver()->reset();
    run_both();
    ck_assert_uint_lt(count_lost(), DEVICES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_multi");
    TCase *tcase = tcase_create("fake_multi");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, shares_are_as_given);
    tcase_add_loop_test(tcase, a_device_is_lost_at_any_moment, 0, 2 * DEVICES);
    tcase_add_loop_test(tcase, all_devices_are_lost, 0, 2);
    tcase_add_loop_test(tcase, each_command_fails_once, 0, 2);
    tcase_add_loop_test(tcase, a_device_alone_fails, 0, 2);
    tcase_add_loop_test(tcase, each_call_fails, 0, 2); /* the second time it is recorded */
    tcase_add_loop_test(tcase, each_allocation_fails, 0, 2);
    tcase_add_test(tcase, what_is_recorded_can_change);
    tcase_add_test(tcase, many_callers_meet_faults);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
