/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every OpenCL call and every allocation between opening a model and its first answer is made to fail once: the failure
 * comes back as a status, nothing leaks, and the same calls work afterwards.
 */
#include "base/memory.h"
#include "base/status.h"
#include "device/device.h"
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/runnel.h>

#include <stdlib.h>
#include <string.h>

static rnl_device *device;
static proto bytes;

static void setup(void)
{
    device = test_open_device();
    bytes = small_model();
}

static void teardown(void)
{
    rnl_alloc_fail_at(0);
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_device_release(device);
    proto_free(&bytes);
}

/* The model and the session that saw a failure are as good as new. */
static void check_next_run(rnl_session *session, rnl_status status)
{
    float x[SMALL_INPUTS] = {1, 2, 3};
    rnl_tensor input = {.dtype = RNL_F32, .rank = 2, .shape = {1, SMALL_INPUTS}, .data = x, .size_bytes = sizeof x};
    rnl_tensor target = {0};
    if (status == RNL_OK)
        return;
    rnl_error error = *rnl_last_error();
    rnl_alloc_fail_at(0);
    rnl_cl_fail_at(0, CL_SUCCESS);
    test_ok(rnl_session_run(session, &input, 1, &target, 1));
    ck_assert_float_eq_tol(*(float *)target.data, 5.5f, 1e-6f);
    rnl_error_restore(&error);
}

static rnl_status open_and_run(float *result)
{
    rnl_graph *graph = NULL;
    rnl_model *model = NULL;
    rnl_session *session = NULL;
    float x[SMALL_INPUTS] = {1, 2, 3}, y[SMALL_OUTPUTS] = {0};
    rnl_tensor input = {.dtype = RNL_F32, .rank = 2, .shape = {1, SMALL_INPUTS}, .data = x, .size_bytes = sizeof x};
    rnl_tensor target = {.data = y, .size_bytes = sizeof y};
    rnl_status status = rnl_graph_load_memory(bytes.data, bytes.size, &graph);
    if (status == RNL_OK)
        status = rnl_model_open(graph, device, NULL, &model);
    if (status == RNL_OK)
        status = rnl_session_create(model, &session);
    if (status == RNL_OK) {
        status = rnl_session_run(session, &input, 1, &target, 1);
        check_next_run(session, status);
    }
    *result = y[0];
    rnl_session_release(session);
    rnl_model_release(model);
    rnl_graph_release(graph);
    return status;
}

static void check_recovers(rnl_status failed)
{
    float result;
    ck_assert_int_ne(failed, RNL_OK);
    ck_assert_int_eq(rnl_last_error()->status, failed);
    ck_assert_uint_gt(strlen(rnl_last_error()->message), 10);
    rnl_alloc_fail_at(0);
    rnl_cl_fail_at(0, CL_SUCCESS);
    test_ok(open_and_run(&result));
    ck_assert_float_eq_tol(result, 1 - 2 + 6 + 0.5f, 1e-6f);
}

/* A failure that the library survives by itself (a cache that cannot be written) leaves a right result. */
static bool run_with_fault(void (*arm)(uint64_t), uint64_t n, uint64_t *survived)
{
    float result = 0;
    arm(n);
    rnl_status status = open_and_run(&result);
    if (status != RNL_OK) {
        check_recovers(status);
        return true;
    }
    ck_assert_float_eq_tol(result, 5.5f, 1e-6f);
    return ++*survived < 40;
}

static void fail_call(uint64_t n)
{
    rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
}

/* In place as the device would have it, or (`_i` is 1) through staging. */
static void choose_way(bool staging)
{
    device->maps_in_place = device->maps_in_place && !staging;
}

/* With each launch the driver's, or as it is chosen: where the caller's thread runs the step, there are fewer calls. */
START_TEST(test_every_call)
{
    const bool by_driver = _i < 2;
    uint64_t n = 1, survived = 0;
    choose_way(_i % 2);
    if (by_driver)
        setenv("RUNNEL_TEAM", "off", 1);
    while (run_with_fault(fail_call, n, &survived))
        n++;
    unsetenv("RUNNEL_TEAM");
    ck_assert_uint_gt(n, (by_driver ? 30 : 10) + survived);
}
END_TEST

START_TEST(test_every_allocation)
{
    uint64_t n = 1, survived = 0;
    choose_way(_i);
    while (run_with_fault(rnl_alloc_fail_at, n, &survived))
        n++;
    ck_assert_uint_gt(n, 30 + survived);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("model_fault");
    TCase *tcase = tcase_create("fault");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 200);
    tcase_add_loop_test(tcase, test_every_call, 0, 4);
    tcase_add_loop_test(tcase, test_every_allocation, 0, 2);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
