/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the caller's that fail on several devices: which of these failures are a device's. */
#include "support/proto_onnx.h"
#include "support/test_device.h"
#include <runnel/custom.h>
#include <runnel/multi.h>

#include <stdatomic.h>
#include <string.h>

#define DOMAIN "com.example"
enum { OPSET = 17, F32 = 1, ROWS = 8, FAILURES = 7 /* more than a device may have in a row */ };

static rnl_device *devices[2];
static rnl_graph *graph;
static rnl_multi *multi;
static proto bytes;
static atomic_int failure, calls; /* what `compute` returns where the input begins below zero */

static rnl_status infer(const rnl_custom_call *call, rnl_tensor_desc *outputs)
{
    outputs[0] = call->inputs[0];
    outputs[0].host = NULL;
    return call->inputs[0].host ? RNL_OK : RNL_FAILED_PRECONDITION;
}

static rnl_status compute(const rnl_custom_call *call, const rnl_tensor_desc *outputs, void *const *results)
{
    float first;
    (void)outputs;
    memcpy(&first, call->inputs[0].host, sizeof first);
    atomic_fetch_add(&calls, 1);
    if (first < 0)
        return rnl_custom_fail((rnl_status)atomic_load(&failure), "it begins below zero");
    memcpy(results[0], call->inputs[0].host, (size_t)call->inputs[0].shape[0] * sizeof first);
    return RNL_OK;
}

static void setup(void)
{
    rnl_custom_operator op = RNL_CUSTOM_OPERATOR_INIT;
    rnl_registry *registry;
    proto nodes = {0};
    op.domain = DOMAIN;
    op.op_type = "Picky";
    op.infer = infer;
    op.compute = compute;
    devices[0] = test_open_device();
    devices[1] = test_open_other_device(devices[0]);
    onnx_node(&nodes, "Neg", "before", "x", "a", NULL);
    onnx_node_of(&nodes, DOMAIN, "Picky", "culprit", "a", "b", NULL);
    onnx_node(&nodes, "Neg", "after", "b", "y", NULL);
    onnx_value(&nodes, GRAPH_INPUT, "x", F32, 1, (int64_t[]){-1});
    onnx_value(&nodes, GRAPH_OUTPUT, "y", F32, 1, (int64_t[]){-1});
    bytes = onnx_model(&nodes, OPSET);
    onnx_import(&bytes, DOMAIN, 1);
    test_ok(rnl_registry_create(&registry));
    test_ok(rnl_registry_add(registry, &op));
    test_ok(rnl_graph_load_memory_with(bytes.data, bytes.size, registry, &graph));
    rnl_registry_release(registry);
    test_ok(rnl_multi_open(graph, devices, 2, NULL, &multi));
    atomic_store(&calls, 0);
}

static void teardown(void)
{
    rnl_multi_release(multi);
    rnl_graph_release(graph);
    rnl_device_release(devices[0]);
    rnl_device_release(devices[1]);
    proto_free(&bytes);
}

/* The whole or by rows. The operator sees the negative of `value`. */
static rnl_status run(float value, bool is_split)
{
    float x[ROWS], y[ROWS];
    for (int i = 0; i < ROWS; i++)
        x[i] = value;
    rnl_tensor input = {.name = "x", .dtype = RNL_F32, .rank = 1, .shape = {ROWS}, .data = x, .size_bytes = sizeof x};
    rnl_tensor output = {.name = "y", .data = y, .size_bytes = sizeof y};
    const rnl_status status = (is_split ? rnl_multi_run_split : rnl_multi_run)(multi, &input, 1, &output, 1);
    for (int i = 0; i < ROWS && status == RNL_OK; i++)
        ck_assert(y[i] == value);
    return status;
}

static uint64_t check_devices(void)
{
    rnl_multi_device seen[2];
    ck_assert_uint_eq(rnl_multi_get_devices(multi, seen, 2), 2);
    ck_assert(!seen[0].is_lost && !seen[1].is_lost);
    return seen[0].failures + seen[1].failures;
}

static void check_message(void)
{
    ck_assert_msg(strstr(rnl_last_error()->message, DOMAIN ".Picky 'culprit'") != NULL, "%s",
                  rnl_last_error()->message);
    ck_assert_ptr_null(strstr(rnl_last_error()->message, "after failing on"));
}

/* Before and after the devices have been measured. */
START_TEST(a_callbacks_failure_is_no_devices)
{
    atomic_store(&failure, RNL_INTERNAL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < FAILURES; i++) {
            atomic_store(&calls, 0);
            test_fails(RNL_INTERNAL, "it begins below zero", run(1, _i));
            check_message();
            ck_assert_int_ge(atomic_load(&calls), 1);
            ck_assert_int_le(atomic_load(&calls), round && _i ? 2 : 1); /* a batch has two parts */
        }
        ck_assert_uint_eq(check_devices(), 0);
        test_ok(run(-1, _i));
    }
    ck_assert_uint_eq(check_devices(), 0);
}
END_TEST

START_TEST(what_a_callback_says_of_the_device_is_tried_elsewhere)
{
    test_ok(run(-1, false));
    atomic_store(&failure, RNL_RESOURCE_EXHAUSTED);
    atomic_store(&calls, 0);
    test_fails(RNL_RESOURCE_EXHAUSTED, "after failing on", run(1, false));
    ck_assert_int_eq(atomic_load(&calls), 2);
    ck_assert_uint_eq(check_devices(), 2);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("custom several");
    TCase *tcase = tcase_create("custom several");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, a_callbacks_failure_is_no_devices, 0, 2);
    tcase_add_test(tcase, what_a_callback_says_of_the_device_is_tried_elsewhere);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
