// SPDX-License-Identifier: Apache-2.0
// An operator of one's own, com.example.Shrink, with a kernel from a file, in a model that has it between two of
// ONNX's. custom_operator.onnx and custom_operator.cl lie beside this source, or in the folder that is given.
#include <math.h>
#include <runnel/custom.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[2048];

static void check(rnl_status status)
{
    if (status != RNL_OK) {
        fprintf(stderr, "%s\n", rnl_last_error()->message);
        exit(1);
    }
}

// What the output is: here as the input. Called while planning, for each set of shapes.
static rnl_status infer(const rnl_custom_call *call, rnl_tensor_desc *outputs)
{
    if (call->inputs[0].dtype != RNL_F32)
        return rnl_custom_fail(RNL_UNIMPLEMENTED, "it takes float32, not %s", rnl_dtype_name(call->inputs[0].dtype));
    outputs[0] = call->inputs[0];
    return RNL_OK;
}

// Which kernel makes it, with which arguments, over how many work-items.
static rnl_status plan(const rnl_custom_call *call, const rnl_tensor_desc *outputs, rnl_custom_plan *plan)
{
    const char *path = call->user, *defines[] = {"TYPE=float"};
    const float limit = rnl_custom_float(call, "limit", 0.5F);
    int64_t count = 1;
    for (size_t i = 0; i < outputs[0].rank; i++)
        count *= outputs[0].shape[i];
    const rnl_custom_arg args[] = {{.kind = RNL_CUSTOM_ARG_INPUT, .index = 0},
                                   {.kind = RNL_CUSTOM_ARG_OUTPUT, .index = 0},
                                   {.kind = RNL_CUSTOM_ARG_VALUE, .value = &limit, .size_bytes = sizeof limit},
                                   {.kind = RNL_CUSTOM_ARG_VALUE, .value = &count, .size_bytes = sizeof count}};
    rnl_kernel_options options = RNL_KERNEL_OPTIONS_INIT;
    options.defines = defines;
    options.define_count = 1;
    rnl_custom_launch launch = RNL_CUSTOM_LAUNCH_INIT;
    launch.path = path;
    launch.kernel = "shrink";
    launch.options = &options;
    launch.args = args;
    launch.arg_count = 4;
    launch.range = (rnl_range){1, {(size_t)count, 1, 1}, {16, 1, 1}};
    return rnl_custom_add_launch(plan, &launch);
}

static rnl_registry *make_registry(char *kernel_path)
{
    rnl_registry *registry;
    rnl_custom_operator op = RNL_CUSTOM_OPERATOR_INIT;
    op.domain = "com.example";
    op.op_type = "Shrink";
    op.infer = infer;
    op.plan = plan;
    op.user = kernel_path;
    check(rnl_registry_create(&registry));
    check(rnl_registry_add(registry, &op));
    return registry;
}

int main(int argc, char **argv)
{
    static float x[] = {1.25F, 0.25F, 2.5F, -1.5F, -3, -5};
    static const float wanted[] = {0.25F, 0, 1.5F, -0.5F, -2, -4};
    const char *slash = strrchr(__FILE__, '/');
    char kernel_path[4096], model_path[4096];
    rnl_device *device;
    rnl_graph *graph;
    rnl_model *model;
    rnl_session *session;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - __FILE__) : 1, slash ? __FILE__ : ".");
    if (argc > 1)
        snprintf(folder, sizeof folder, "%s", argv[1]);
    snprintf(kernel_path, sizeof kernel_path, "%s/custom_operator.cl", folder);
    snprintf(model_path, sizeof model_path, "%s/custom_operator.onnx", folder);

    rnl_registry *registry = make_registry(kernel_path);
    check(rnl_device_open(NULL, NULL, &device));
    check(rnl_graph_load_with(model_path, registry, &graph)); // which holds the registry from here on
    rnl_registry_release(registry);
    check(rnl_model_open(graph, device, NULL, &model));
    check(rnl_session_create(model, &session));
    rnl_tensor input = {.name = "x", .dtype = RNL_F32, .rank = 2, .shape = {2, 3}, .data = x, .size_bytes = sizeof x};
    rnl_tensor output = {.name = "y"};
    check(rnl_session_run(session, &input, 1, &output, 1));
    const float *y = output.data;
    int wrong = 0;
    printf("y =");
    for (int i = 0; i < 6; i++) {
        printf(" %g", fabs((double)y[i]) > 0 ? (double)y[i] : 0); // Neg makes -0 of 0
        wrong += y[i] != wanted[i];
    }
    printf("\n");
    rnl_session_release(session);
    rnl_model_release(model);
    rnl_graph_release(graph);
    rnl_device_release(device);
    return wrong > 0;
}
