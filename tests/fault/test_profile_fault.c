/* SPDX-License-Identifier: Apache-2.0 */
/* Every OpenCL call and every allocation of a profile is made to fail once: the next profile and the next run work. */
#include "base/memory.h"
#include "device/cl_status.h"
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/runnel.h>
#include <runnel/trace.h>

#include <string.h>

static rnl_device *device;
static rnl_graph *graph;
static rnl_model *model;
static rnl_session *session;
static proto bytes;
static float x[SMALL_INPUTS] = {1, 2, 3};
static rnl_tensor input = {.dtype = RNL_F32, .rank = 2, .shape = {1, SMALL_INPUTS}, .data = x, .size_bytes = sizeof x};

static void setup(void)
{
    device = test_open_device();
    bytes = small_model();
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_ok(rnl_model_open(graph, device, NULL, &model));
    test_ok(rnl_session_create(model, &session));
}

static void teardown(void)
{
    rnl_alloc_fail_at(0);
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_session_release(session);
    rnl_model_release(model);
    rnl_graph_release(graph);
    rnl_device_release(device);
    proto_free(&bytes);
}

static rnl_status profile(void)
{
    const rnl_step_profile *steps = NULL;
    size_t count = 0;
    rnl_status status = rnl_session_profile(session, &input, 1, &steps, &count);
    ck_assert(status == RNL_OK ? steps && count > 0 : !steps && count == 0);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_gt(steps[i].time_ns, 0);
    return status;
}

static void check_works(void)
{
    rnl_tensor output = {0};
    rnl_alloc_fail_at(0);
    rnl_cl_fail_at(0, CL_SUCCESS);
    test_ok(rnl_session_run(session, &input, 1, &output, 1));
    ck_assert_float_eq_tol(*(float *)output.data, 5.5f, 1e-6f);
    test_ok(profile());
}

static void fail_call(uint64_t n)
{
    rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
}

/* A new session each time, as only its first profile allocates. Ends when no call is left to fail. */
static uint64_t sweep(void (*arm)(uint64_t))
{
    uint64_t n = 1, survived = 0;
    for (; survived < 10; n++) {
        rnl_session_release(session);
        session = NULL;
        test_ok(rnl_session_create(model, &session));
        arm(n);
        rnl_status status = profile();
        survived = status == RNL_OK ? survived + 1 : 0;
        if (status != RNL_OK)
            ck_assert_uint_gt(strlen(rnl_last_error()->message), 10);
        check_works();
    }
    return n - survived;
}

START_TEST(test_every_call)
{
    ck_assert_uint_gt(sweep(fail_call), 10);
}
END_TEST

START_TEST(test_every_allocation)
{
    ck_assert_uint_gt(sweep(rnl_alloc_fail_at), 4);
}
END_TEST

/* Recorded from the session's first run on; whatever happens, it is not recorded any more afterwards. */
static rnl_status traced_run(void)
{
    rnl_trace *trace = NULL;
    rnl_tensor output = {0};
    rnl_status status = rnl_trace_create(NULL, &trace);
    if (status == RNL_OK)
        rnl_trace_set_interval(trace, 2);
    if (status == RNL_OK)
        status = rnl_session_trace(session, trace);
    if (status == RNL_OK)
        status = rnl_session_run(session, &input, 1, &output, 1);
    if (status == RNL_OK)
        status = rnl_session_run(session, &input, 1, &output, 1); /* by the interval, one that is not recorded */
    if (status == RNL_OK)
        ck_assert_float_eq_tol(*(float *)output.data, 5.5f, 1e-6f);
    rnl_alloc_fail_at(0);
    rnl_cl_fail_at(0, CL_SUCCESS);
    const rnl_error error = *rnl_last_error();
    test_ok(rnl_session_trace(session, NULL));
    rnl_trace_release(trace);
    ck_assert(status == RNL_OK || error.length > 10);
    return status;
}

static unsigned sweep_traced(void (*arm)(uint64_t), uint64_t most)
{
    unsigned failed = 0;
    for (uint64_t n = 1; n <= most; n++) {
        rnl_session_release(session);
        session = NULL;
        test_ok(rnl_session_create(model, &session));
        arm(n);
        failed += traced_run() != RNL_OK;
        if (n % 8 == 0)
            check_works();
    }
    return failed;
}

/* The first calls are the trace's own markers, which nobody misses. */
START_TEST(test_traced_runs)
{
    test_ok(traced_run());
    ck_assert_uint_gt(sweep_traced(fail_call, 72), 2);
    ck_assert_uint_gt(sweep_traced(rnl_alloc_fail_at, 64), 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("profile_fault");
    TCase *tcase = tcase_create("fault");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 200);
    tcase_add_test(tcase, test_every_call);
    tcase_add_test(tcase, test_every_allocation);
    tcase_add_test(tcase, test_traced_runs);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
