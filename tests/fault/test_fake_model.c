/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On the fake driver: every OpenCL call of loading, running and unloading a model is made to fail, once and from then
 * on. Its kernels compute nothing, so answers are not looked at; that all is as before, and works again, is.
 */
#include "base/status.h"
#include "device/pool.h"
#include "support/fake_driver.h"
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/runnel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAL_STEP 131 /* of its thousands of calls */

static const char *const specs[] = {"0:0", "0:1", "1:0"};
static rnl_device *device;
static char *folder;
static proto bytes;
static const char *path; /* of a model file, else `bytes` are it */
static size_t alive;
static bool comes_once; /* what fails */
static size_t budget;   /* for weights */

static void setup(void)
{
    fake_driver()->reset();
    alive = fake_count_alive();
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    bytes = small_model();
    path = NULL;
    budget = 0;
    comes_once = false;
}

static void teardown(void)
{
    fake_driver()->reset();
    rnl_device_release(device);
    device = NULL;
    proto_free(&bytes);
    test_folder_remove(folder);
    fake_check_alive(alive);
}

typedef struct objects {
    rnl_graph *graph;
    rnl_model *model;
    rnl_session *session;
} objects;

static rnl_status open_model(rnl_device *on, objects *o)
{
    rnl_status status =
        path ? rnl_graph_load(path, &o->graph) : rnl_graph_load_memory(bytes.data, bytes.size, &o->graph);
    rnl_model_options options = RNL_MODEL_OPTIONS_INIT;
    options.weight_budget_bytes = budget;
    if (status == RNL_OK)
        status = rnl_model_open(o->graph, on, &options, &o->model);
    return status == RNL_OK ? rnl_session_create(o->model, &o->session) : status;
}

/* Two runs: the second finds what the first one made. */
static rnl_status run_session(rnl_session *session, const rnl_tensor *input)
{
    rnl_tensor first = {0}, second = {0};
    rnl_status status = rnl_session_run(session, input, 1, &first, 1);
    return status == RNL_OK ? rnl_session_run(session, input, 1, &second, 1) : status;
}

static rnl_status run_model(rnl_session *session)
{
    static float picture[3 * 48 * 32];
    float x[2 * SMALL_INPUTS] = {1, 2, 3, 4, 5, 6};
    const rnl_tensor small = {
        .dtype = RNL_F32, .rank = 2, .shape = {2, SMALL_INPUTS}, .data = x, .size_bytes = sizeof x};
    const rnl_tensor large = {
        .dtype = RNL_F32, .rank = 4, .shape = {1, 3, 48, 32}, .data = picture, .size_bytes = sizeof picture};
    return run_session(session, path ? &large : &small);
}

/* What fails is run again while the model is there: it is as good as new. */
static rnl_status load_run_unload(rnl_device *on)
{
    objects o = {0};
    rnl_status status = open_model(on, &o);
    bool ran = status == RNL_OK;
    if (ran)
        status = run_model(o.session);
    rnl_error error = *rnl_last_error();
    if (ran && status != RNL_OK && comes_once)
        test_ok(run_model(o.session));
    rnl_session_release(o.session);
    rnl_model_release(o.model);
    rnl_graph_release(o.graph);
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

static rnl_status on_open_device(void *data)
{
    (void)data;
    return load_run_unload(device);
}

static rnl_status on_own_device(void *spec)
{
    rnl_device *own;
    rnl_status status = rnl_device_open(spec, NULL, &own);
    if (status != RNL_OK)
        return status;
    status = load_run_unload(own);
    rnl_error error = *rnl_last_error();
    rnl_device_release(own);
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

static void trim(void *data)
{
    (void)data;
    rnl_pool_trim(device->pool);
}

static void sweep(rnl_status (*program)(void *), const char *spec, bool always)
{
    const fake_sweep wish = {.program = program,
                             .settle = program == on_open_device ? trim : NULL,
                             .data = (void *)(uintptr_t)spec,
                             .code = CL_OUT_OF_RESOURCES,
                             .code_text = "CL_OUT_OF_RESOURCES (-5)",
                             .from_then_on = always,
                             .step = path ? REAL_STEP : 1,
                             .may_be_not_found = program == on_own_device};
    comes_once = !always;
    ck_assert_uint_gt(fake_sweep_calls(&wish), 10);
}

static void check_idle(void)
{
    rnl_device_stats stats;
    rnl_device_get_stats(device, &stats);
    ck_assert_uint_eq(stats.pool_in_use_bytes, 0);
}

/* The loops go over devices and, in the upper half, over failing from then on. */
START_TEST(each_call_of_load_run_and_unload_fails)
{
    test_ok(rnl_device_open(specs[_i % 3], NULL, &device));
    sweep(on_open_device, NULL, _i >= 3);
    check_idle();
}
END_TEST

/* Six layers through a ring for three, with copies that wait for steps and steps that wait for copies. */
START_TEST(each_call_with_a_ring_of_weights_fails)
{
    test_ok(rnl_device_open(specs[_i % 3], NULL, &device));
    proto_free(&bytes);
    bytes = small_layers(SMALL_INPUTS, 6);
    budget = 3 * 256;
    sweep(on_open_device, NULL, _i >= 3);
    check_idle();
}
END_TEST

START_TEST(each_call_with_a_new_device_fails)
{
    sweep(on_own_device, specs[_i % 3], _i >= 3);
}
END_TEST

START_TEST(each_call_of_a_real_model_fails)
{
    static char file[4096];
    const char *models = getenv("RUNNEL_MODELS");
    snprintf(file, sizeof file, "%s/ch_ppocr_mobile_v2.0_cls_infer.onnx", models ? models : "models");
    path = file;
    test_ok(rnl_device_open(specs[0], NULL, &device));
    sweep(on_open_device, NULL, _i == 1);
    check_idle();
}
END_TEST

/* A device that is lost at any use of it. */
START_TEST(a_device_is_lost_at_any_moment)
{
    fake_stats stats = {.failed_calls = 1};
    for (uint64_t n = 1; stats.failed_calls > 0; n++) {
        fake_driver()->reset();
        fake_driver()->lose_device((unsigned)_i, n, CL_OUT_OF_RESOURCES);
        rnl_status status = on_own_device((void *)(uintptr_t)specs[_i]);
        fake_driver()->get_stats(&stats);
        ck_assert((status == RNL_OK) >= (stats.failed_calls == 0));
        if (status != RNL_OK)
            ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "CL_OUT_OF_RESOURCES (-5)"));
        fake_check_alive(alive);
    }
}
END_TEST

/* Pinned memory can be done without, and nobody asks what a release's commands did: all others' failures are told. */
START_TEST(each_command_fails)
{
    fake_stats stats = {.failed_calls = 1};
    uint64_t told = 0, n;
    for (n = 1; stats.failed_calls > 0; n++) {
        fake_driver()->reset();
        fake_driver()->fail_command(n, CL_OUT_OF_RESOURCES);
        rnl_status status = on_own_device((void *)(uintptr_t)specs[_i]);
        fake_driver()->get_stats(&stats);
        if (status != RNL_OK)
            test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", status);
        told += status != RNL_OK;
        fake_check_alive(alive);
    }
    ck_assert_uint_gt(told, n / 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_model");
    TCase *test_case = tcase_create("fake_model");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_loop_test(test_case, each_call_of_load_run_and_unload_fails, 0, 6);
    tcase_add_loop_test(test_case, each_call_with_a_ring_of_weights_fails, 0, 6);
    tcase_add_loop_test(test_case, each_call_with_a_new_device_fails, 0, 6);
    tcase_add_loop_test(test_case, each_call_of_a_real_model_fails, 0, 2);
    tcase_add_loop_test(test_case, a_device_is_lost_at_any_moment, 0, 3);
    tcase_add_loop_test(test_case, each_command_fails, 0, 3);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
