/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles from outside: what a step's record says, and that a session runs on as before. */
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/runnel.h>
#include <runnel/trace.h>

#include <stdlib.h>
#include <string.h>

#define SIDE 16
#define PRODUCTS 3

static rnl_device *device;
static rnl_graph *graph;
static rnl_model *model;
static rnl_session *session;
static proto bytes;
static float matrix[SIDE * SIDE];

static void setup(void)
{
    device = test_open_device();
    bytes = small_chain(SIDE, PRODUCTS);
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_ok(rnl_model_open(graph, device, NULL, &model));
    test_ok(rnl_session_create(model, &session));
    for (size_t i = 0; i < SIDE * SIDE; i++)
        matrix[i] = 1;
}

static void teardown(void)
{
    rnl_session_release(session);
    rnl_model_release(model);
    rnl_graph_release(graph);
    rnl_device_release(device);
    proto_free(&bytes);
}

static rnl_tensor input(void)
{
    return (rnl_tensor){
        .name = "x", .dtype = RNL_F32, .rank = 2, .shape = {SIDE, SIDE}, .data = matrix, .size_bytes = sizeof matrix};
}

static void run_and_check(void)
{
    rnl_tensor x = input(), y = {.name = "y"};
    test_ok(rnl_session_run(session, &x, 1, &y, 1));
    for (size_t i = 0; i < SIDE * SIDE; i++)
        ck_assert_float_eq_tol(((float *)y.data)[i], 1, 1e-5f);
}

static void check_product(const rnl_step_profile *step)
{
    ck_assert_uint_eq(step->flops, 2 * SIDE * SIDE * SIDE);
    ck_assert_uint_eq(step->bytes, 3 * SIDE * SIDE * sizeof(float));
    ck_assert_ptr_nonnull(strchr(step->implementation, ':'));
    ck_assert_uint_gt(strlen(step->node), 0);
    if (strcmp(step->implementation, "gemm:clblast") != 0) {
        ck_assert_ptr_nonnull(strstr(step->file, ".cl"));
        ck_assert_uint_gt(strlen(step->kernel), 0);
    }
}

static size_t profile_and_check(void)
{
    const rnl_step_profile *steps = NULL;
    size_t count = 0, products = 0;
    rnl_tensor x = input();
    test_ok(rnl_session_profile(session, &x, 1, &steps, &count));
    for (size_t i = 0; i < count; i++) {
        ck_assert_uint_gt(steps[i].time_ns, 0);
        ck_assert_uint_lt(steps[i].time_ns, UINT64_C(3600000000000));
        if (strcmp(steps[i].op_type, "MatMul") != 0)
            continue;
        check_product(&steps[i]);
        products++;
    }
    ck_assert_uint_eq(products, PRODUCTS);
    return count;
}

START_TEST(test_records)
{
    size_t count = profile_and_check();
    ck_assert_uint_eq(profile_and_check(), count);
    rnl_session_stats stats;
    rnl_session_get_stats(session, &stats);
    ck_assert_uint_eq(stats.step_count, count);
}
END_TEST

START_TEST(test_runs_before_and_after)
{
    run_and_check();
    profile_and_check();
    run_and_check();
    profile_and_check();
    run_and_check();
}
END_TEST

START_TEST(test_records_outlive_other_runs)
{
    const rnl_step_profile *steps = NULL;
    size_t count = 0;
    rnl_tensor x = input();
    test_ok(rnl_session_profile(session, &x, 1, &steps, &count));
    run_and_check();
    rnl_graph_release(graph);
    rnl_device_release(device);
    graph = NULL;
    device = NULL;
    ck_assert_uint_ge(count, PRODUCTS);
    ck_assert_str_eq(steps[count - 1].op_type, "MatMul");
}
END_TEST

START_TEST(test_wrong_calls)
{
    const rnl_step_profile *steps = NULL;
    size_t count = 7;
    rnl_tensor x = input();
    x.shape[0] = SIDE + 1;
    test_fails(RNL_INVALID_ARGUMENT, "the model expects", rnl_session_profile(session, &x, 1, &steps, &count));
    ck_assert_ptr_null(steps);
    ck_assert_uint_eq(count, 0);
    x = input();
    test_fails(RNL_INVALID_ARGUMENT, "missing", rnl_session_profile(session, NULL, 0, &steps, &count));
    test_fails(RNL_INVALID_ARGUMENT, "inputs is NULL", rnl_session_profile(session, NULL, 1, &steps, &count));
    test_fails(RNL_INVALID_ARGUMENT, "session is NULL", rnl_session_profile(NULL, &x, 1, &steps, &count));
    test_fails(RNL_INVALID_ARGUMENT, "out_steps is NULL", rnl_session_profile(session, &x, 1, NULL, &count));
    test_fails(RNL_INVALID_ARGUMENT, "out_count is NULL", rnl_session_profile(session, &x, 1, &steps, NULL));
    profile_and_check();
    run_and_check();
}
END_TEST

typedef struct counted {
    size_t calls, most, last, total;
} counted;

/* False after `most` calls. */
static bool count_call(void *user, size_t done, size_t total)
{
    counted *it = user;
    ck_assert_uint_gt(done, it->last);
    ck_assert_uint_le(done, total);
    it->last = done;
    it->total = total;
    return ++it->calls < it->most;
}

static void tune_with_options(const rnl_tensor *x)
{
    counted all = {.most = SIZE_MAX}, two = {.most = 2};
    rnl_tune_options options = RNL_TUNE_OPTIONS_INIT;
    size_t changed = 1;
    options.progress = count_call;
    options.user = &all;
    test_ok(rnl_model_tune(model, x, 1, &options, &changed));
    ck_assert_uint_eq(all.last, all.total);
    options.user = &two;
    test_fails(RNL_CANCELLED, "cancelled", rnl_model_tune(model, x, 1, &options, &changed));
    ck_assert_uint_eq(two.calls, 2);
    ck_assert_uint_eq(changed, 0);
    run_and_check();
    options.struct_size = sizeof options + 8;
    test_fails(RNL_INVALID_ARGUMENT, "struct_size", rnl_model_tune(model, x, 1, &options, &changed));
}

/* In a folder of its own: other tests count on the usual choices. */
START_TEST(tuning_changes_no_result)
{
    rnl_tensor x = input(), wrong = input();
    size_t changed = 1;
    const char *usual = getenv("RUNNEL_CACHE_DIR");
    char *kept = usual ? strdup(usual) : NULL, *folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    wrong.rank = 1;
    test_fails(RNL_INVALID_ARGUMENT, "x", rnl_model_tune(model, &wrong, 1, NULL, &changed));
    ck_assert_uint_eq(changed, 0);
    run_and_check();
    for (int i = 0; i < 2; i++) {
        test_ok(rnl_model_tune(model, &x, 1, NULL, &changed));
        ck_assert_uint_le(changed, PRODUCTS);
        run_and_check();
    }
    test_fails(RNL_INVALID_ARGUMENT, "NULL", rnl_model_tune(NULL, &x, 1, NULL, NULL));
    tune_with_options(&x);
    if (kept)
        setenv("RUNNEL_CACHE_DIR", kept, 1);
    else
        unsetenv("RUNNEL_CACHE_DIR");
    free(kept);
    test_folder_remove(folder);
}
END_TEST

START_TEST(test_a_trace_begins_and_ends_between_runs)
{
    rnl_trace *trace = NULL;
    rnl_trace_stats during, after;
    test_ok(rnl_trace_create(NULL, &trace));
    run_and_check();
    test_ok(rnl_session_trace(session, trace));
    run_and_check();
    run_and_check();
    rnl_trace_get_stats(trace, &during);
    ck_assert_uint_ge(during.commands, 2 * PRODUCTS);
    test_ok(rnl_session_trace(session, NULL));
    run_and_check();
    profile_and_check();
    rnl_trace_get_stats(trace, &after);
    ck_assert_uint_eq(after.commands, during.commands);
    ck_assert_uint_eq(after.spans, during.spans);
    test_ok(rnl_session_trace(session, trace));
    rnl_trace_release(trace); /* the session holds it */
    run_and_check();
    test_fails(RNL_INVALID_ARGUMENT, "session is NULL", rnl_session_trace(NULL, NULL));
}
END_TEST

/* On two streams in turns, and the same results. */
START_TEST(each_third_run_is_recorded)
{
    rnl_trace *trace = NULL;
    rnl_trace_stats stats;
    uint64_t commands = 0;
    test_ok(rnl_trace_create(NULL, &trace));
    rnl_trace_set_interval(trace, 3);
    test_ok(rnl_session_trace(session, trace));
    for (unsigned i = 0; i < 7; i++) {
        run_and_check();
        rnl_trace_get_stats(trace, &stats);
        ck_assert_uint_ge(stats.commands, commands + (i % 3 == 0 ? PRODUCTS : 0));
        ck_assert(i % 3 == 0 || stats.commands == commands);
        commands = stats.commands;
        if (i == 4)
            profile_and_check(); /* counts for nothing */
    }
    rnl_trace_set_interval(trace, 0);
    run_and_check();
    test_ok(rnl_session_trace(session, trace)); /* as it is */
    run_and_check();
    rnl_trace_get_stats(trace, &stats);
    ck_assert_uint_eq(stats.commands, commands);
    rnl_trace_set_interval(trace, 1);
    run_and_check();
    rnl_trace_get_stats(trace, &stats);
    ck_assert_uint_gt(stats.commands, commands);
    rnl_trace_release(trace);
}
END_TEST

/* Without an interval: all of a handful, and some of them, not all, in the long run. */
START_TEST(a_handful_of_runs_is_recorded)
{
    rnl_trace *trace = NULL;
    uint64_t recorded = 0;
    test_ok(rnl_trace_create(NULL, &trace));
    test_ok(rnl_session_trace(session, trace));
    for (uint64_t i = 1; i <= 20; i++) {
        run_and_check();
        ck_assert_uint_eq(rnl_trace_get_runs(trace, &recorded), i);
        ck_assert(i > 5 || recorded == i);
    }
    ck_assert_uint_ge(recorded, 10);
    ck_assert_uint_lt(recorded, 20);
    rnl_trace_release(trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile");
    TCase *tcase = tcase_create("profile");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 300);
    tcase_add_test(tcase, test_records);
    tcase_add_test(tcase, test_runs_before_and_after);
    tcase_add_test(tcase, test_records_outlive_other_runs);
    tcase_add_test(tcase, test_wrong_calls);
    tcase_add_test(tcase, test_a_trace_begins_and_ends_between_runs);
    tcase_add_test(tcase, each_third_run_is_recorded);
    tcase_add_test(tcase, a_handful_of_runs_is_recorded);
    tcase_add_test(tcase, tuning_changes_no_result);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
