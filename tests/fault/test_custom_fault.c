/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model with an operator of the caller's, from registering it to a run: each allocation and each OpenCL call fails
 * once. The failure comes back as a status, `release` is called as often as operators were added, and the next try
 * works.
 */
#include "base/memory.h"
#include "device/device.h"
#include "support/fault.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"
#include <runnel/custom.h>

#include <string.h>

#define DOMAIN "com.example"
enum { OPSET = 17, F32 = 1, COUNT = 5 };

static rnl_device *device;
static proto bytes;
static int added, released;

static const char source[] = "kernel void half_of(global const float *x, long x_at, global float *t, long t_at)\n"
                             "{\n"
                             "    t[t_at / 4 + get_global_id(0)] = x[x_at + get_global_id(0)] / 2;\n"
                             "}\n"
                             "kernel void put(global const float *t, long t_at, global float *y, long y_at)\n"
                             "{\n"
                             "    y[y_at + get_global_id(0)] = t[t_at / 4 + get_global_id(0)];\n"
                             "}\n";

static rnl_status infer(const rnl_custom_call *call, rnl_tensor_desc *outputs)
{
    outputs[0] = call->inputs[0];
    return RNL_OK;
}

static rnl_status plan(const rnl_custom_call *call, const rnl_tensor_desc *outputs, rnl_custom_plan *planned)
{
    size_t scratch;
    (void)call;
    rnl_status status = rnl_custom_scratch(planned, sizeof(float) * COUNT, &scratch);
    const rnl_custom_arg first[] = {{RNL_CUSTOM_ARG_INPUT, 0, NULL, 0}, {RNL_CUSTOM_ARG_SCRATCH, scratch, NULL, 0}};
    const rnl_custom_arg second[] = {{RNL_CUSTOM_ARG_SCRATCH, scratch, NULL, 0}, {RNL_CUSTOM_ARG_OUTPUT, 0, NULL, 0}};
    rnl_custom_launch launch = RNL_CUSTOM_LAUNCH_INIT;
    launch.source = source;
    launch.kernel = "half_of";
    launch.args = first;
    launch.arg_count = 2;
    launch.range = (rnl_range){1, {(size_t)outputs[0].shape[0], 1, 1}, {1, 1, 1}};
    if (status == RNL_OK)
        status = rnl_custom_add_launch(planned, &launch);
    launch.kernel = "put";
    launch.args = second;
    return status == RNL_OK ? rnl_custom_add_launch(planned, &launch) : status;
}

static rnl_status compute(const rnl_custom_call *call, const rnl_tensor_desc *outputs, void *const *results)
{
    memcpy(results[0], call->inputs[0].host, sizeof(float) * (size_t)outputs[0].shape[0]);
    return RNL_OK;
}

static void note_release(void *user)
{
    (void)user;
    released++;
}

static void setup(void)
{
    proto graph = {0};
    device = test_open_device();
    onnx_node_of(&graph, DOMAIN, "Half", "half", "x", "h", NULL);
    onnx_node_of(&graph, DOMAIN, "Same", "same", "h", "y", NULL);
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 1, (int64_t[]){COUNT});
    onnx_value(&graph, GRAPH_OUTPUT, "y", F32, 1, (int64_t[]){COUNT});
    bytes = onnx_model(&graph, OPSET);
    onnx_import(&bytes, DOMAIN, 1);
}

static void teardown(void)
{
    rnl_alloc_fail_at(0);
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_device_release(device);
    proto_free(&bytes);
}

static rnl_status add(rnl_registry *registry, const char *op_type, bool on_host)
{
    rnl_custom_operator op = RNL_CUSTOM_OPERATOR_INIT;
    op.domain = DOMAIN;
    op.op_type = op_type;
    op.infer = infer;
    op.release = note_release;
    if (on_host)
        op.compute = compute;
    else
        op.plan = plan;
    const rnl_status status = rnl_registry_add(registry, &op);
    added += status == RNL_OK;
    return status;
}

static rnl_status run(rnl_graph *graph)
{
    float x[COUNT] = {2, 4, 6, 8, 10}, y[COUNT] = {0};
    const rnl_tensor input = {.dtype = RNL_F32, .rank = 1, .shape = {COUNT}, .data = x, .size_bytes = sizeof x};
    rnl_tensor output = {.data = y, .size_bytes = sizeof y};
    rnl_model *model = NULL;
    rnl_session *session = NULL;
    rnl_status status = rnl_model_open(graph, device, NULL, &model);
    if (status == RNL_OK)
        status = rnl_session_create(model, &session);
    if (status == RNL_OK)
        status = rnl_session_run(session, &input, 1, &output, 1);
    for (int i = 0; status == RNL_OK && i < COUNT; i++)
        ck_assert_float_eq(y[i], (float)(i + 1));
    rnl_session_release(session);
    rnl_model_release(model);
    return status;
}

/* From nothing to a result. */
static rnl_status run_all(void)
{
    rnl_registry *registry = NULL;
    rnl_graph *graph = NULL;
    added = released = 0;
    rnl_status status = rnl_registry_create(&registry);
    if (status == RNL_OK)
        status = add(registry, "Half", false);
    if (status == RNL_OK)
        status = add(registry, "Same", true);
    if (status == RNL_OK)
        status = rnl_graph_load_memory_with(bytes.data, bytes.size, registry, &graph);
    rnl_registry_release(registry);
    if (status == RNL_OK)
        status = run(graph);
    rnl_graph_release(graph);
    ck_assert_int_eq(added, released);
    return status;
}

static void fail_call(uint64_t n)
{
    rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
}

/* Some failures are survived: of a cache, of freeing what could stay. */
static void sweep(void (*arm)(uint64_t), bool (*is_left)(void))
{
    unsigned failures = 0;
    test_ok(run_all());
    for (uint64_t n = 1; n < 5000; n++) {
        arm(n);
        const rnl_status status = run_all();
        const rnl_error error = *rnl_last_error();
        const bool over = is_left();
        if (status != RNL_OK) {
            ck_assert_int_eq(error.status, status);
            ck_assert_uint_gt(strlen(error.message), 10);
            failures++;
        }
        if (over)
            break;
    }
    ck_assert_uint_gt(failures, 5);
    test_ok(run_all());
}

START_TEST(test_each_allocation)
{
    sweep(rnl_alloc_fail_at, test_alloc_fault_left);
}
END_TEST

START_TEST(test_each_call)
{
    sweep(fail_call, test_cl_fault_left);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("custom_fault");
    TCase *tests = tcase_create("fault");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, test_each_allocation);
    tcase_add_test(tests, test_each_call);
    suite_add_tcase(suite, tests);
    return test_run(suite, false);
}
