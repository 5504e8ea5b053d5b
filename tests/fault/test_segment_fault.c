/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run in several plans, with a loop between them: each OpenCL call and each allocation fails once. The failure comes
 * back as a status, nothing leaks, and the same session's next run works.
 */
#include "base/memory.h"
#include "base/status.h"
#include "device/device.h"
#include "support/proto_onnx.h"
#include "support/test_device.h"
#include <runnel/runnel.h>

#include <string.h>

enum { FLOAT32 = 1, INT64 = 7, BOOL8 = 9, OPSET = 13, TRIPS = 3, COUNT = 4 };

static rnl_device *device;
static rnl_graph *graph;
static rnl_model *model;
static rnl_session *session;
static proto bytes;

/* The state doubles; each iteration's is kept. */
static proto loop_body(void)
{
    proto body = {0};
    onnx_node(&body, "Add", "twice", "s s", "t", NULL);
    onnx_node(&body, "Identity", "on", "go", "on", NULL);
    onnx_node(&body, "Identity", "kept", "t", "k", NULL);
    onnx_value(&body, GRAPH_INPUT, "i", INT64, 0, NULL);
    onnx_value(&body, GRAPH_INPUT, "go", BOOL8, 0, NULL);
    onnx_value(&body, GRAPH_INPUT, "s", FLOAT32, SIZE_MAX, NULL);
    onnx_value(&body, GRAPH_OUTPUT, "on", BOOL8, 0, NULL);
    onnx_value(&body, GRAPH_OUTPUT, "t", FLOAT32, SIZE_MAX, NULL);
    onnx_value(&body, GRAPH_OUTPUT, "k", FLOAT32, SIZE_MAX, NULL);
    return body;
}

/* Where x is positive, as numbers, doubled three times: z holds what the loop kept. */
static proto segment_model(void)
{
    const int64_t trips = TRIPS;
    const unsigned char yes = 1;
    proto message = {0}, attribute = {0}, attributes = {0}, to = {0}, body = loop_body();
    proto count = onnx_tensor_raw("n", INT64, 0, NULL, &trips, sizeof trips);
    proto first = onnx_tensor_raw("c", BOOL8, 0, NULL, &yes, sizeof yes);
    proto_text(&attribute, ATTR_NAME, "body");
    proto_message(&attribute, ATTR_G, &body);
    proto_int(&attribute, ATTR_TYPE, 5);
    proto_message(&attributes, NODE_ATTRIBUTE, &attribute);
    onnx_attribute_int(&to, "to", FLOAT32);
    proto_message(&message, GRAPH_INITIALIZER, &count);
    proto_message(&message, GRAPH_INITIALIZER, &first);
    onnx_node(&message, "Relu", "relu", "x", "r", NULL);
    onnx_node(&message, "NonZero", "where", "r", "w", NULL);
    onnx_node(&message, "Cast", "cast", "w", "f", &to);
    onnx_node(&message, "Loop", "loop", "n c f", "y k", &attributes);
    onnx_node(&message, "Neg", "neg", "k", "z", NULL);
    onnx_value(&message, GRAPH_INPUT, "x", FLOAT32, 1, (int64_t[]){-1});
    onnx_value(&message, GRAPH_OUTPUT, "z", FLOAT32, SIZE_MAX, NULL);
    return onnx_model(&message, OPSET);
}

static void setup(void)
{
    device = test_open_device();
    bytes = segment_model();
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

static void fill(float *x, int zero)
{
    for (int i = 0; i < COUNT; i++)
        x[i] = i == zero ? 0 : (float)(i + 1);
}

static rnl_status run_on(const rnl_tensor *input, float *out_numbers)
{
    rnl_tensor target = {.data = out_numbers, .size_bytes = sizeof(float) * TRIPS * COUNT};
    rnl_status status = rnl_session_run(session, input, 1, &target, 1);
    if (status == RNL_OK) {
        ck_assert_uint_eq(target.rank, 3);
        ck_assert(target.shape[0] == TRIPS && target.shape[1] == 1 && target.shape[2] == COUNT - 1);
    }
    return status;
}

/* Other places each time, so that a result that stayed from the run before is seen. */
static rnl_status run(int zero, float *out_numbers)
{
    float x[COUNT];
    const rnl_tensor input = {.dtype = RNL_F32, .rank = 1, .shape = {COUNT}, .data = x, .size_bytes = sizeof x};
    fill(x, zero);
    return run_on(&input, out_numbers);
}

static void check_numbers(int zero, const float *numbers)
{
    for (int i = 0; i < TRIPS; i++)
        for (int k = 0; k < COUNT - 1; k++)
            ck_assert_float_eq(numbers[i * (COUNT - 1) + k], (float)(-(2 << i) * (k + (k >= zero))));
}

/* False when the last fault was never met. */
static bool run_with_fault(void (*arm)(uint64_t), uint64_t n, uint64_t *survived)
{
    const int zero = (int)(n % COUNT);
    float numbers[TRIPS * COUNT] = {0};
    arm(n);
    rnl_status status = run(zero, numbers);
    rnl_error error = *rnl_last_error();
    rnl_alloc_fail_at(0);
    rnl_cl_fail_at(0, CL_SUCCESS);
    if (status == RNL_OK) {
        check_numbers(zero, numbers);
        return ++*survived < 20;
    }
    ck_assert_int_eq(error.status, status);
    ck_assert_uint_gt(strlen(error.message), 10);
    test_ok(run((zero + 1) % COUNT, numbers));
    check_numbers((zero + 1) % COUNT, numbers);
    return true;
}

static void fail_call(uint64_t n)
{
    rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
}

static size_t bytes_in_use(void)
{
    rnl_device_stats stats;
    rnl_device_get_stats(device, &stats);
    return stats.pool_in_use_bytes;
}

static void sweep(void (*arm)(uint64_t))
{
    uint64_t n = 1, survived = 0;
    float numbers[TRIPS * COUNT];
    test_ok(run(0, numbers));
    const size_t before = bytes_in_use();
    while (run_with_fault(arm, n, &survived))
        n++;
    ck_assert_uint_gt(n, 50 + survived);
    test_ok(run(0, numbers));
    ck_assert_uint_eq(bytes_in_use(), before);
}

START_TEST(test_every_call)
{
    sweep(fail_call);
}
END_TEST

START_TEST(test_every_allocation)
{
    sweep(rnl_alloc_fail_at);
}
END_TEST

/* As pinned memory is on most GPUs, with a side of the device's: past its limit, or it would be one memory here. */
START_TEST(input_with_two_sides)
{
    rnl_buffer *buffer = NULL;
    device->maps_in_place = device->info.unified_memory = false;
    atomic_store(&device->pinned_limit_bytes, 1);
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, sizeof(float) * COUNT, &buffer));
    const rnl_tensor input = {
        .dtype = RNL_F32, .rank = 1, .shape = {COUNT}, .buffer = buffer, .size_bytes = sizeof(float) * COUNT};
    for (int zero = 0; zero < COUNT; zero++) {
        float numbers[TRIPS * COUNT] = {0};
        fill(rnl_buffer_host(buffer), zero);
        test_ok(run_on(&input, numbers));
        check_numbers(zero, numbers);
    }
    rnl_buffer_release(buffer);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("segment_fault");
    TCase *tcase = tcase_create("fault");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 200);
    tcase_add_test(tcase, test_every_call);
    tcase_add_test(tcase, test_every_allocation);
    tcase_add_test(tcase, input_with_two_sides);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
