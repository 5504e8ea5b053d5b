/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the caller's: kernels, functions of the host, versions, shapes that follow from contents, threads. */
#include "support/proto_onnx.h"
#include "support/test_device.h"
#include <runnel/custom.h>
#include <runnel/multi.h>
#include <runnel/pipeline.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define DOMAIN "com.example"
enum { OPSET = 17, F32 = 1, I64 = 7 };

static rnl_device *device;

/* ---- y = x * factor + bias, with a kernel --------------------------------------------------------------------- */

static const char scale_source[] =
    "kernel void scale(global const float *x, long x_at, global const float *bias, long bias_at, global float *y,\n"
    "                  long y_at, float factor, int bias_count, long count)\n"
    "{\n"
    "    const long i = get_global_id(0);\n"
    "    if (i < count)\n"
    "        y[y_at + i] = x[x_at + i] * factor + (bias_count > 0 ? bias[bias_at + i % bias_count] : 0.0f);\n"
    "}\n";

static rnl_status infer_like(const rnl_custom_call *call, rnl_tensor_desc *outputs)
{
    outputs[0] = call->inputs[0];
    return RNL_OK;
}

static int64_t count_of(const rnl_tensor_desc *tensor)
{
    int64_t count = 1;
    for (size_t i = 0; i < tensor->rank; i++)
        count *= tensor->shape[i];
    return count;
}

static rnl_status plan_scale(const rnl_custom_call *call, const rnl_tensor_desc *outputs, rnl_custom_plan *plan)
{
    const bool has_bias = call->input_count > 1 && call->inputs[1].dtype == RNL_F32;
    const float factor = rnl_custom_float(call, "factor", 1);
    const int32_t bias_count = has_bias ? (int32_t)count_of(&call->inputs[1]) : 0;
    const int64_t count = count_of(&outputs[0]);
    const rnl_custom_arg args[] = {{RNL_CUSTOM_ARG_INPUT, 0, NULL, 0},
                                   {RNL_CUSTOM_ARG_INPUT, 1, NULL, 0},
                                   {RNL_CUSTOM_ARG_OUTPUT, 0, NULL, 0},
                                   {RNL_CUSTOM_ARG_VALUE, 0, &factor, sizeof factor},
                                   {RNL_CUSTOM_ARG_VALUE, 0, &bias_count, sizeof bias_count},
                                   {RNL_CUSTOM_ARG_VALUE, 0, &count, sizeof count}};
    rnl_custom_launch launch = RNL_CUSTOM_LAUNCH_INIT;
    launch.source = scale_source;
    launch.kernel = "scale";
    launch.args = args;
    launch.arg_count = sizeof args / sizeof *args;
    launch.range = (rnl_range){1, {(size_t)count, 1, 1}, {has_bias ? 4 : 0, 1, 1}};
    atomic_fetch_add((atomic_int *)call->user, 1);
    return rnl_custom_add_launch(plan, &launch);
}

static rnl_registry *registry;
static atomic_int plans, releases;

static void note_release(void *user)
{
    (void)user;
    atomic_fetch_add(&releases, 1);
}

static rnl_custom_operator scale_operator(void)
{
    rnl_custom_operator op = RNL_CUSTOM_OPERATOR_INIT;
    op.domain = DOMAIN;
    op.op_type = "Concat"; /* a name that ONNX has, too */
    op.max_inputs = 2;
    op.infer = infer_like;
    op.plan = plan_scale;
    op.user = &plans;
    op.release = note_release;
    return op;
}

/* ---- On the host: what is above a limit, of a size that depends on it ----------------------------------------- */

static size_t count_above(const rnl_tensor_desc *x, float limit, float *results)
{
    size_t found = 0;
    for (int64_t i = 0; i < count_of(x); i++) {
        float value;
        memcpy(&value, (const char *)x->host + (size_t)i * sizeof value, sizeof value);
        if (value > limit && results)
            results[found] = value;
        found += value > limit;
    }
    return found;
}

static rnl_status infer_above(const rnl_custom_call *call, rnl_tensor_desc *outputs)
{
    ck_assert_str_eq(rnl_custom_attribute_name(call, 0), "limit");
    ck_assert_ptr_null(rnl_custom_attribute_name(call, 1));
    if (!call->inputs[0].host && count_of(&call->inputs[0]) > 0)
        return RNL_FAILED_PRECONDITION;
    outputs[0].dtype = RNL_F32;
    outputs[0].rank = 1;
    outputs[0].shape[0] = (int64_t)count_above(&call->inputs[0], rnl_custom_float(call, "limit", 0), NULL);
    return RNL_OK;
}

static rnl_status compute_above(const rnl_custom_call *call, const rnl_tensor_desc *outputs, void *const *results)
{
    (void)outputs;
    (void)count_above(&call->inputs[0], rnl_custom_float(call, "limit", 0), results[0]);
    return RNL_OK;
}

/* ---- The first rows, as many as an input says ------------------------------------------------------------------ */

static rnl_status infer_first(const rnl_custom_call *call, rnl_tensor_desc *outputs)
{
    int64_t rows;
    ck_assert_ptr_nonnull(call->inputs[1].host);
    memcpy(&rows, call->inputs[1].host, sizeof rows);
    if (rows < 0 || rows > call->inputs[0].shape[0])
        return rnl_custom_fail(RNL_INVALID_ARGUMENT, "there are no %lld rows", (long long)rows);
    outputs[0] = call->inputs[0];
    outputs[0].shape[0] = rows;
    return RNL_OK;
}

static void add(const char *op_type, rnl_custom_operator op)
{
    op.domain = DOMAIN;
    op.op_type = op_type;
    test_ok(rnl_registry_add(registry, &op));
}

static void setup(void)
{
    rnl_custom_operator op = scale_operator(), plain = RNL_CUSTOM_OPERATOR_INIT;
    device = test_open_device();
    test_ok(rnl_registry_create(&registry));
    atomic_store(&plans, 0);
    test_ok(rnl_registry_add(registry, &op));
    op.min_inputs = op.max_inputs = 2;
    op.contents = 2;
    op.infer = infer_first;
    add("First", op);
    plain.infer = infer_above;
    plain.compute = compute_above;
    add("Above", plain);
}

static void teardown(void)
{
    rnl_registry_release(registry);
    rnl_device_release(device);
}

/* ---- Running -------------------------------------------------------------------------------------------------- */

typedef struct runner {
    proto bytes;
    rnl_graph *graph;
    rnl_model *model;
    rnl_session *session;
} runner;

static runner open_graph(rnl_device *on, proto *graph)
{
    runner made = {.bytes = onnx_model(graph, OPSET)};
    onnx_import(&made.bytes, DOMAIN, 2);
    test_ok(rnl_graph_load_memory_with(made.bytes.data, made.bytes.size, registry, &made.graph));
    test_ok(rnl_model_open(made.graph, on, NULL, &made.model));
    test_ok(rnl_session_create(made.model, &made.session));
    return made;
}

static void close_graph(runner *made)
{
    rnl_session_release(made->session);
    rnl_model_release(made->model);
    rnl_graph_release(made->graph);
    proto_free(&made->bytes);
}

static rnl_tensor matrix(const char *name, float *data, int64_t rows, int64_t columns)
{
    return (rnl_tensor){.name = name,
                        .dtype = RNL_F32,
                        .rank = 2,
                        .shape = {rows, columns},
                        .data = data,
                        .size_bytes = (size_t)(rows * columns) * sizeof *data};
}

static void scaled_node(proto *graph, const char *name, const char *inputs, const char *outputs, float factor)
{
    proto attributes = {0};
    onnx_attribute_float(&attributes, "factor", factor);
    onnx_node_of(graph, DOMAIN, "Concat", name, inputs, outputs, &attributes);
}

/* Relu, Transpose, the operator twice, with a bias and without, and both joined to parts of one value. */
static proto scale_graph(void)
{
    static const float bias[] = {0.5f, -1, 2};
    proto graph = {0};
    proto constant = onnx_tensor_raw("bias", F32, 1, (int64_t[]){3}, bias, sizeof bias);
    proto attributes = {0};
    proto_message(&graph, GRAPH_INITIALIZER, &constant);
    onnx_node(&graph, "Relu", "relu", "x", "r", NULL);
    onnx_node(&graph, "Transpose", "turn", "r", "t", NULL);
    scaled_node(&graph, "one", "t bias", "a", 2);
    scaled_node(&graph, "two", "t", "b", -3);
    onnx_attribute_int(&attributes, "axis", 1);
    onnx_node(&graph, "Concat", "join", "a b", "c", &attributes);
    onnx_node(&graph, "Neg", "neg", "c", "y", NULL);
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 2, (int64_t[]){3, -1});
    onnx_value(&graph, GRAPH_OUTPUT, "y", F32, 2, (int64_t[]){-1, 6});
    return graph;
}

static void run_scale(rnl_session *session, int64_t columns)
{
    static const float bias[] = {0.5f, -1, 2};
    float x[3 * 16];
    for (int64_t i = 0; i < 3 * columns; i++)
        x[i] = (float)((i * 7) % 11 - 4) * 0.25f;
    rnl_tensor input = matrix("x", x, 3, columns), output = {.name = "y"};
    test_ok(rnl_session_run(session, &input, 1, &output, 1));
    ck_assert_int_eq(output.shape[0], columns);
    ck_assert_int_eq(output.shape[1], 6);
    for (int64_t i = 0; i < columns; i++)
        for (int64_t j = 0; j < 6; j++) {
            const float value = x[(j % 3) * columns + i], relu = value > 0 ? value : 0;
            const double wanted = j < 3 ? -(2.0 * (double)relu + (double)bias[j]) : 3.0 * (double)relu;
            ck_assert_double_eq_tol((double)((float *)output.data)[i * 6 + j], wanted, 1e-6);
        }
}

START_TEST(test_a_kernel_stands_among_others)
{
    proto graph = scale_graph();
    runner made = open_graph(device, &graph);
    for (int64_t columns = 1; columns < 8; columns += 3)
        run_scale(made.session, columns);
    ck_assert_int_eq(atomic_load(&plans), 6); /* two nodes, three shapes */
    run_scale(made.session, 4);
    ck_assert_int_eq(atomic_load(&plans), 6);
    run_scale(made.session, 0);
    ck_assert_int_eq(atomic_load(&plans), 6); /* nothing to plan for */
    close_graph(&made);
}
END_TEST

START_TEST(test_steps_are_named)
{
    proto graph = scale_graph();
    runner made = open_graph(device, &graph);
    float x[6] = {0};
    rnl_tensor input = matrix("x", x, 3, 2);
    const rnl_step_profile *steps;
    size_t count, found = 0;
    test_ok(rnl_session_profile(made.session, &input, 1, &steps, &count));
    for (size_t i = 0; i < count; i++) {
        const bool is_one = strcmp(steps[i].node, "one") == 0;
        found += is_one && strcmp(steps[i].op_type, DOMAIN ".Concat") == 0 && strcmp(steps[i].kernel, "scale") == 0 &&
                 strcmp(steps[i].implementation, "custom:" DOMAIN ".Concat") == 0;
    }
    ck_assert_uint_eq(found, 1);
    close_graph(&made);
}
END_TEST

START_TEST(test_a_function_of_the_host)
{
    proto graph = {0}, attributes = {0};
    float x[] = {3, -1, 4, -1, 5, -9};
    const float wanted[] = {-3, -4, -5};
    onnx_node(&graph, "Neg", "first", "x", "a", NULL);
    onnx_node(&graph, "Neg", "second", "a", "b", NULL);
    onnx_attribute_float(&attributes, "limit", 2);
    onnx_node_of(&graph, DOMAIN, "Above", "above", "b", "c", &attributes);
    onnx_node(&graph, "Neg", "last", "c", "y", NULL);
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 2, (int64_t[]){-1, -1});
    onnx_value(&graph, GRAPH_OUTPUT, "y", F32, 1, (int64_t[]){-1});
    runner made = open_graph(device, &graph);
    for (int round = 0; round < 2; round++) {
        rnl_tensor input = matrix("x", x, 2, 3), output = {.name = "y"};
        test_ok(rnl_session_run(made.session, &input, 1, &output, 1));
        ck_assert_int_eq(output.shape[0], 3);
        ck_assert_mem_eq(output.data, wanted, sizeof wanted);
    }
    rnl_tensor input = matrix("x", x, 0, 3), output = {.name = "y"};
    test_ok(rnl_session_run(made.session, &input, 1, &output, 1));
    ck_assert_int_eq(output.shape[0], 0);
    close_graph(&made);
}
END_TEST

/* The number is a graph's input, or computed on the device. */
START_TEST(test_a_shape_from_contents)
{
    proto graph = {0};
    float x[] = {1, 2, 3, 4, 5, 6};
    int64_t rows = 2;
    onnx_node(&graph, "Neg", "neg", "n", "m", NULL);
    onnx_node(&graph, "Abs", "abs", "m", "k", NULL);
    onnx_node_of(&graph, DOMAIN, "First", "first", "x k", "y", NULL);
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 2, (int64_t[]){3, 2});
    onnx_value(&graph, GRAPH_INPUT, "n", I64, 0, NULL);
    onnx_value(&graph, GRAPH_OUTPUT, "y", F32, 2, (int64_t[]){-1, 2});
    runner made = open_graph(device, &graph);
    rnl_tensor inputs[] = {matrix("x", x, 3, 2),
                           {.name = "n", .dtype = RNL_I64, .data = &rows, .size_bytes = sizeof rows}};
    rnl_tensor output = {.name = "y"};
    for (rows = 0; rows <= 3; rows++) {
        test_ok(rnl_session_run(made.session, inputs, 2, &output, 1));
        ck_assert_int_eq(output.shape[0], rows);
        for (int64_t i = 0; i < rows * 2; i++) /* the number is no bias: its offset counts whole numbers */
            ck_assert_float_eq(((float *)output.data)[i], x[i]);
    }
    rows = 4;
    test_fails(RNL_INVALID_ARGUMENT, "there are no 4 rows", rnl_session_run(made.session, inputs, 2, &output, 1));
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, DOMAIN ".First 'first'"));
    close_graph(&made);
}
END_TEST

/* The newest that is not newer than what the model imports, which is version 2. */
START_TEST(test_versions)
{
    rnl_custom_operator op = scale_operator();
    proto graph = scale_graph();
    proto bytes = onnx_model(&graph, OPSET);
    rnl_graph *loaded;
    const rnl_operator_info *rows;
    size_t count;
    onnx_import(&bytes, DOMAIN, 2);
    op.since_version = 2;
    op.max_inputs = 1;
    test_ok(rnl_registry_add(registry, &op));
    op.since_version = 3;
    op.max_inputs = 2;
    test_ok(rnl_registry_add(registry, &op));
    test_ok(rnl_graph_load_memory_with(bytes.data, bytes.size, registry, &loaded));
    test_fails(RNL_UNIMPLEMENTED, "it has 2 inputs and needs 1", rnl_graph_check(loaded, &rows, &count));
    rnl_graph_release(loaded);
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &loaded));
    test_fails(RNL_UNIMPLEMENTED, "operators of the domain 'com.example' (opset 2) are not supported",
               rnl_graph_check(loaded, &rows, &count));
    rnl_graph_release(loaded);
    rnl_registry_release(registry);
    test_ok(rnl_registry_create(&registry));
    op.since_version = 3;
    test_ok(rnl_registry_add(registry, &op));
    test_ok(rnl_graph_load_memory_with(bytes.data, bytes.size, registry, &loaded));
    test_fails(RNL_UNIMPLEMENTED,
               "com.example.Concat is registered from version 3 of its domain on, and the model imports 2",
               rnl_graph_check(loaded, &rows, &count));
    rnl_graph_release(loaded);
    proto_free(&bytes);
}
END_TEST

START_TEST(test_the_graph_holds_the_registry)
{
    proto graph = scale_graph();
    runner made = open_graph(device, &graph);
    const int before = atomic_load(&releases);
    rnl_registry_release(registry);
    registry = NULL;
    rnl_graph_release(rnl_graph_retain(made.graph));
    run_scale(made.session, 2);
    ck_assert_int_eq(atomic_load(&releases), before);
    close_graph(&made);
    ck_assert_int_eq(atomic_load(&releases), before + 2); /* two of the operators ask for it */
}
END_TEST

START_TEST(test_two_devices)
{
    rnl_device *other = test_open_other_device(device);
    proto one = scale_graph(), two = scale_graph();
    runner here = open_graph(device, &one), there = open_graph(other, &two);
    for (int64_t columns = 1; columns < 4; columns++) {
        run_scale(here.session, columns);
        run_scale(there.session, columns);
    }
    close_graph(&here);
    close_graph(&there);
    rnl_device_release(other);
}
END_TEST

/* One graph on both devices, each of which plans for itself, and in stages. */
START_TEST(test_several_at_once)
{
    rnl_device *devices[] = {device, test_open_other_device(device)};
    proto graph = scale_graph();
    runner made = open_graph(device, &graph);
    float x[3 * 4] = {1, -1, 2, 4, 3, -3, 5, 0, 7, -7, 8, 6};
    rnl_tensor input = matrix("x", x, 3, 4), alone = {.name = "y"}, output = {.name = "y"};
    rnl_multi *multi;
    test_ok(rnl_session_run(made.session, &input, 1, &alone, 1));
    test_ok(rnl_multi_open(made.graph, devices, 2, NULL, &multi));
    for (int i = 0; i < 3; i++) {
        output.data = NULL;
        test_ok(rnl_multi_run(multi, &input, 1, &output, 1));
        ck_assert_mem_eq(output.data, alone.data, sizeof(float) * 24);
        rnl_output_release(output.data);
    }
    rnl_multi_release(multi);
    rnl_pipeline_options options = RNL_PIPELINE_OPTIONS_INIT;
    rnl_pipeline *pipeline;
    options.inputs = &input;
    options.input_count = 1;
    test_ok(rnl_pipeline_create(made.graph, devices, 2, &options, &pipeline));
    output.data = NULL;
    test_ok(rnl_pipeline_run(pipeline, &input, 1, &output, 1));
    ck_assert_mem_eq(output.data, alone.data, sizeof(float) * 24);
    rnl_output_release(output.data);
    rnl_pipeline_release(pipeline);
    close_graph(&made);
    rnl_device_release(devices[1]);
}
END_TEST

static void *run_many(void *model)
{
    rnl_session *session;
    test_ok(rnl_session_create(model, &session));
    for (int64_t columns = 1; columns < 9; columns++)
        run_scale(session, columns);
    rnl_session_release(session);
    return NULL;
}

START_TEST(test_threads)
{
    pthread_t threads[3];
    proto graph = scale_graph();
    runner made = open_graph(device, &graph);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, run_many, made.model), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    close_graph(&made);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("custom");
    TCase *tests = tcase_create("custom");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_a_kernel_stands_among_others);
    tcase_add_test(tests, test_steps_are_named);
    tcase_add_test(tests, test_a_function_of_the_host);
    tcase_add_test(tests, test_a_shape_from_contents);
    tcase_add_test(tests, test_versions);
    tcase_add_test(tests, test_the_graph_holds_the_registry);
    tcase_add_test(tests, test_two_devices);
    tcase_add_test(tests, test_several_at_once);
    tcase_add_test(tests, test_threads);
    suite_add_tcase(suite, tests);
    return test_run(suite, false);
}
