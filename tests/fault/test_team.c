/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs by a team of threads: the same bits as without; several sessions and devices of the same threads at once; calls
 * that fail. Where the device has no team everything runs the usual way, and must do as well.
 */
#include "base/clock.h"
#include "device/cl_status.h"
#include "kernel/team.h"
#include "support/fault.h"
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/runnel.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SIDE 48
#define ROWS 37
#define LAYERS 9
#define FEW_LAYERS 3
#define RUNS 150
#define MOST_CALLS 4000
#define QUICK_NS 250000

typedef struct place {
    rnl_device *device;
    rnl_model *model;
    rnl_session *session;
    float *expected; /* borrowed */
    int failed;
} place;

static rnl_graph *graph;
static proto bytes;
static float rows[ROWS * SIDE];

static void setup(void)
{
    setenv("RUNNEL_TEAM", "on", 1);
    bytes = small_layers(SIDE, LAYERS);
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    for (size_t i = 0; i < ROWS * SIDE; i++)
        rows[i] = (float)((int)(i * 31 % 17) - 8) * 0.125f;
}

static void teardown(void)
{
    rnl_graph_release(graph);
    proto_free(&bytes);
}

static place open_graph(rnl_device *device, rnl_graph *of)
{
    place made = {.device = device};
    test_ok(rnl_model_open(of, device, NULL, &made.model));
    test_ok(rnl_session_create(made.model, &made.session));
    return made;
}

static place open_place(rnl_device *device)
{
    return open_graph(device, graph);
}

static void close_place(place *it)
{
    rnl_session_release(it->session);
    rnl_model_release(it->model);
}

static rnl_status run(rnl_session *session, float result[ROWS * SIDE])
{
    rnl_tensor x = {.name = "x",
                    .dtype = RNL_F32,
                    .rank = 2,
                    .shape = {ROWS, SIDE},
                    .data = rows,
                    .size_bytes = sizeof rows},
               y = {.name = "y"};
    const rnl_status status = rnl_session_run(session, &x, 1, &y, 1);
    if (status == RNL_OK)
        memcpy(result, y.data, sizeof rows);
    return status;
}

static void check_layers(const float got[ROWS * SIDE], int layers)
{
    static double expected[ROWS * SIDE];
    small_layers_compute(SIDE, layers, rows, ROWS, expected);
    for (size_t i = 0; i < ROWS * SIDE; i++)
        ck_assert_double_eq_tol((double)got[i], expected[i], 1e-4);
}

static void check(const float got[ROWS * SIDE])
{
    check_layers(got, LAYERS);
}

START_TEST(test_same_bits)
{
    static float with[ROWS * SIDE], without[ROWS * SIDE];
    rnl_device *device = test_open_device();
    place it = open_place(device);
    for (int i = 0; i < 20; i++) {
        setenv("RUNNEL_TEAM", "on", 1);
        test_ok(run(it.session, with));
        const uint64_t before = rnl_device_team_launches(device);
        setenv("RUNNEL_TEAM", "off", 1);
        test_ok(run(it.session, without));
        ck_assert_uint_eq(rnl_device_team_launches(device), before);
        ck_assert_mem_eq(with, without, sizeof with);
    }
    check(with);
    ck_assert(rnl_device_has_team(device) || !test_must_have_team(device));
    if (rnl_device_has_team(device))
        ck_assert_uint_ge(rnl_device_team_launches(device), 19 * LAYERS); /* the first run is not all of it */
    if (test_must_have_team(device))
        ck_assert_uint_ge(rnl_device_team_calls(device), 18 * LAYERS);
    close_place(&it);
    rnl_device_release(device);
}
END_TEST

/* One that the driver sees each launch of. */
START_TEST(test_without_calls)
{
    static float with[ROWS * SIDE], without[ROWS * SIDE];
    rnl_device *devices[2];
    for (int i = 0; i < 2; i++) {
        setenv("RUNNEL_TEAM_CALLS", i ? "off" : "on", 1);
        devices[i] = test_open_device();
        place it = open_place(devices[i]);
        for (int j = 0; j < 5; j++)
            test_ok(run(it.session, i ? without : with));
        close_place(&it);
    }
    unsetenv("RUNNEL_TEAM_CALLS");
    check(with);
    ck_assert_mem_eq(with, without, sizeof with);
    ck_assert_uint_eq(rnl_device_team_calls(devices[1]), 0);
    ck_assert(rnl_device_has_team(devices[1]) || !test_must_have_team(devices[1]));
    rnl_device_release(devices[0]);
    rnl_device_release(devices[1]);
}
END_TEST

/* Calls of OpenCL in a run. */
static uint64_t count_calls(rnl_session *session, float got[ROWS * SIDE])
{
    uint64_t calls = MOST_CALLS;
    rnl_cl_fail_at(MOST_CALLS, CL_OUT_OF_RESOURCES);
    test_ok(run(session, got));
    while (!rnl_cl_fault_pending())
        calls--;
    return calls - 1;
}

static int by_count(const void *a, const void *b)
{
    const uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

/* The same, of a run that comes when all threads have left: most of five, since one that is late needs another call. */
static uint64_t count_usual_calls(rnl_session *session, float got[ROWS * SIDE])
{
    static const struct timespec pause = {.tv_nsec = 20000000};
    uint64_t counts[5];
    for (int i = 0; i < 5; i++) {
        nanosleep(&pause, NULL);
        counts[i] = count_calls(session, got);
    }
    qsort(counts, 5, sizeof *counts, by_count);
    return counts[2];
}

typedef struct narrow_run {
    rnl_session *session;
    float *got;
    uint64_t calls;
} narrow_run;

static void *run_narrow(void *argument)
{
    narrow_run *it = argument;
    it->calls = count_usual_calls(it->session, it->got);
    return NULL;
}

static void check_helped(rnl_device *device, int layers)
{
    static float with[ROWS * SIDE], without[ROWS * SIDE], narrow[ROWS * SIDE];
    rnl_graph *of_layers;
    proto model = small_layers(SIDE, layers);
    test_ok(rnl_graph_load_memory(model.data, model.size, &of_layers));
    place it = open_graph(device, of_layers);
    pthread_attr_t small;
    pthread_t thread;
    narrow_run in_small = {.session = it.session, .got = narrow};
    pthread_attr_init(&small);
    ck_assert_int_eq(pthread_attr_setstacksize(&small, 512 << 10), 0);
    for (int i = 0; i < 5; i++)
        test_ok(run(it.session, with));
    const uint64_t few = count_usual_calls(it.session, with);
    ck_assert_int_eq(pthread_create(&thread, &small, run_narrow, &in_small), 0);
    pthread_join(thread, NULL);
    setenv("RUNNEL_TEAM_HELP", "off", 1);
    const uint64_t many = count_usual_calls(it.session, without);
    unsetenv("RUNNEL_TEAM_HELP");
    check_layers(with, layers);
    ck_assert_mem_eq(with, without, sizeof with);
    ck_assert_mem_eq(with, narrow, sizeof with);
    if (test_must_have_team(device)) {
        ck_assert_uint_lt(few, many);
        ck_assert_uint_eq(in_small.calls, many);
    }
    pthread_attr_destroy(&small);
    close_place(&it);
    rnl_graph_release(of_layers);
    proto_free(&model);
}

/* The caller's thread does the first thread's part, and needs no driver for it; but for one with little stack. */
START_TEST(test_helped)
{
    rnl_device *device = test_open_device();
    check_helped(device, FEW_LAYERS);
    check_helped(device, LAYERS);
    rnl_device_release(device);
}
END_TEST

/* Whether a run that comes at once needs fewer calls than one that comes when all have left; how long that takes
 * depends on who else is there. */
static bool stays(rnl_session *session, int attempt)
{
    static float got[ROWS * SIDE];
    const struct timespec pause = {.tv_nsec = 20000000 << (attempt < 4 ? attempt : 4)};
    test_ok(run(session, got));
    test_ok(run(session, got));
    const uint64_t soon = count_calls(session, got);
    nanosleep(&pause, NULL);
    return soon < count_calls(session, got);
}

/* With a sanitizer a run takes so long between its launches that none follows another soon. */
static bool is_quick(rnl_session *session)
{
    static float got[ROWS * SIDE];
    uint64_t shortest_ns = UINT64_MAX;
    for (int i = 0; i < 50; i++) {
        const uint64_t start_ns = rnl_clock_ns();
        test_ok(run(session, got));
        const uint64_t took_ns = rnl_clock_ns() - start_ns;
        shortest_ns = took_ns < shortest_ns ? took_ns : shortest_ns;
    }
    return shortest_ns < QUICK_NS;
}

/* Between runs the other threads look for more for a while, and leave: the next run comes before, after and meanwhile.
 */
START_TEST(test_comes_and_goes)
{
    static float got[ROWS * SIDE], expected[ROWS * SIDE];
    rnl_device *device = test_open_device();
    place it = open_place(device);
    test_ok(run(it.session, expected));
    check(expected);
    bool has_stayed = !test_must_have_team(device) || !is_quick(it.session);
    for (int i = 0; i < 30 && !has_stayed; i++)
        has_stayed = stays(it.session, i);
    ck_assert(has_stayed);
    for (int i = 0; i < 4 * RUNS; i++) {
        const struct timespec pause = {.tv_nsec = i * 7919 % 500 * 1000};
        nanosleep(&pause, NULL);
        test_ok(run(it.session, got));
        ck_assert_mem_eq(got, expected, sizeof got);
    }
    close_place(&it);
    rnl_device_release(device);
}
END_TEST

/* Which way is the faster one is found out meanwhile. */
START_TEST(test_measured)
{
    static float got[ROWS * SIDE];
    unsetenv("RUNNEL_TEAM");
    rnl_device *device = test_open_device();
    place it = open_place(device);
    for (int i = 0; i < 300; i++)
        test_ok(run(it.session, got));
    check(got);
    if (rnl_device_has_team(device))
        ck_assert_uint_gt(rnl_device_team_launches(device), 0);
    close_place(&it);
    rnl_device_release(device);
}
END_TEST

static void *run_many(void *argument)
{
    place *it = argument;
    float *got = malloc(sizeof rows);
    for (int i = 0; i < RUNS && got; i++)
        it->failed += run(it->session, got) != RNL_OK || memcmp(got, it->expected, sizeof rows) != 0;
    it->failed += !got;
    free(got);
    return NULL;
}

static void run_both(place places[2])
{
    static float expected[ROWS * SIDE];
    pthread_t threads[2];
    test_ok(run(places[0].session, expected));
    check(expected);
    for (int i = 0; i < 2; i++) {
        places[i].expected = expected;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_many, &places[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(places[i].failed, 0);
    }
}

START_TEST(test_two_sessions)
{
    rnl_device *device = test_open_device();
    place places[2] = {open_place(device), open_place(device)};
    run_both(places);
    for (int i = 0; i < 2; i++)
        close_place(&places[i]);
    rnl_device_release(device);
}
END_TEST

/* Two teams of the same threads: only one of them works at a time. */
START_TEST(test_two_devices)
{
    place places[2] = {open_place(test_open_device()), open_place(test_open_device())};
    run_both(places);
    for (int i = 0; i < 2; i++) {
        rnl_device *device = places[i].device;
        close_place(&places[i]);
        rnl_device_release(device);
    }
}
END_TEST

/* The n-th call of a run fails: a message, nothing hangs, and the next run is right. */
START_TEST(test_every_call)
{
    static float got[ROWS * SIDE];
    rnl_device *device = test_open_device();
    place it = open_place(device);
    bool more = true;
    test_ok(run(it.session, got));
    for (uint64_t n = 1; more && n < MOST_CALLS; n++) {
        rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        const rnl_status status = run(it.session, got);
        more = !test_cl_fault_left();
        if (status != RNL_OK)
            ck_assert_uint_gt(strlen(rnl_last_error()->message), 10);
        else
            check(got);
        test_ok(run(it.session, got));
        check(got);
    }
    ck_assert(!more);
    close_place(&it);
    rnl_device_release(device);
}
END_TEST

int main(void)
{
    setenv("POCL_MAX_PTHREAD_COUNT", "4", 0); /* more than two can meet in more ways */
    Suite *suite = suite_create("team");
    TCase *tcase = tcase_create("team");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 0);
    tcase_add_test(tcase, test_same_bits);
    tcase_add_test(tcase, test_without_calls);
    tcase_add_test(tcase, test_helped);
    tcase_add_test(tcase, test_comes_and_goes);
    tcase_add_test(tcase, test_measured);
    tcase_add_test(tcase, test_two_sessions);
    tcase_add_test(tcase, test_two_devices);
    tcase_add_test(tcase, test_every_call);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
