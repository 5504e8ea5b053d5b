/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the caller's that are wrong: registrations, answers, kernels, signals. Each is named. */
#include "support/proto_onnx.h"
#include "support/test_device.h"
#include <runnel/custom.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DOMAIN "com.example"
#define NAMED "com.example.Odd 'culprit'"
enum { OPSET = 17, F32 = 1, COUNT = 6 };

/* ---- What the operator does, picked by `user` ------------------------------------------------------------------ */

typedef struct behaviour {
    rnl_status (*infer)(rnl_tensor_desc *outputs);
    const char *source, *kernel;
    size_t tensors, value_bytes, local;
    int plan; /* what the plan callback does beside that */
} behaviour;
enum { ONE_LAUNCH, NO_LAUNCH, OTHER_INPUT, FAILURE, SILENT_FAILURE, IGNORES_FAILURE };

static rnl_status infer(const rnl_custom_call *call, rnl_tensor_desc *outputs)
{
    const behaviour *does = call->user;
    outputs[0] = call->inputs[0];
    return does->infer ? does->infer(outputs) : RNL_OK;
}

static rnl_status launch_one(const behaviour *does, const rnl_tensor_desc *outputs, rnl_custom_plan *plan)
{
    const int64_t count = outputs[0].shape[0];
    const rnl_custom_arg args[] = {{RNL_CUSTOM_ARG_INPUT, does->plan == OTHER_INPUT ? 3 : 0, NULL, 0},
                                   {RNL_CUSTOM_ARG_OUTPUT, 0, NULL, 0},
                                   {RNL_CUSTOM_ARG_VALUE, 0, &count, does->value_bytes}};
    rnl_custom_launch launch = RNL_CUSTOM_LAUNCH_INIT;
    launch.source = does->source;
    launch.kernel = does->kernel;
    launch.args = args;
    launch.arg_count = does->tensors;
    launch.range = (rnl_range){1, {(size_t)count, 1, 1}, {does->local, 1, 1}};
    if (does->local == 0)
        launch.range = (rnl_range){2, {(size_t)count, 1, 1}, {1, 0, 1}};
    return rnl_custom_add_launch(plan, &launch);
}

static rnl_status plan(const rnl_custom_call *call, const rnl_tensor_desc *outputs, rnl_custom_plan *plan)
{
    const behaviour *does = call->user;
    if (does->plan == FAILURE)
        return rnl_custom_fail(RNL_UNIMPLEMENTED, "there is no kernel for %s", rnl_custom_device(plan) ? "this" : "");
    if (does->plan == SILENT_FAILURE)
        return RNL_UNAVAILABLE;
    if (does->plan == NO_LAUNCH)
        return RNL_OK;
    const rnl_status status = launch_one(does, outputs, plan);
    return does->plan == IGNORES_FAILURE ? RNL_OK : status;
}

/* ---- Running it ------------------------------------------------------------------------------------------------ */

typedef struct model {
    rnl_device *device;
    rnl_graph *graph;
    rnl_model *model;
    rnl_session *session;
    proto bytes;
} model;

static rnl_custom_operator operator_of(behaviour *does)
{
    rnl_custom_operator op = RNL_CUSTOM_OPERATOR_INIT;
    op.domain = DOMAIN;
    op.op_type = "Odd";
    op.infer = infer;
    op.plan = plan;
    op.user = does;
    return op;
}

static proto bytes_of(void)
{
    proto graph = {0};
    onnx_node(&graph, "Neg", "before", "x", "a", NULL);
    onnx_node_of(&graph, DOMAIN, "Odd", "culprit", "a", "y", NULL);
    onnx_value(&graph, GRAPH_INPUT, "x", F32, 1, (int64_t[]){-1});
    onnx_value(&graph, GRAPH_OUTPUT, "y", F32, 1, (int64_t[]){COUNT});
    proto bytes = onnx_model(&graph, OPSET);
    onnx_import(&bytes, DOMAIN, 1);
    return bytes;
}

static model open_operator(const rnl_custom_operator *op)
{
    model made = {.device = test_open_device(), .bytes = bytes_of()};
    rnl_registry *registry;
    test_ok(rnl_registry_create(&registry));
    test_ok(rnl_registry_add(registry, op));
    test_ok(rnl_graph_load_memory_with(made.bytes.data, made.bytes.size, registry, &made.graph));
    rnl_registry_release(registry);
    test_ok(rnl_model_open(made.graph, made.device, NULL, &made.model));
    test_ok(rnl_session_create(made.model, &made.session));
    return made;
}

static void close_model(model *made)
{
    rnl_session_release(made->session);
    rnl_model_release(made->model);
    rnl_graph_release(made->graph);
    rnl_device_release(made->device);
    proto_free(&made->bytes);
}

static rnl_status run(model *made, float *results)
{
    float x[COUNT] = {1, 2, 3, 4, 5, 6};
    rnl_tensor input = {.dtype = RNL_F32, .rank = 1, .shape = {COUNT}, .data = x, .size_bytes = sizeof x};
    rnl_tensor output = {.data = results, .size_bytes = results ? sizeof x : 0};
    return rnl_session_run(made->session, &input, 1, &output, 1);
}

static void fails(behaviour does, rnl_status status, const char *part)
{
    const rnl_custom_operator op = operator_of(&does);
    model made = open_operator(&op);
    for (int round = 0; round < 2; round++) {
        test_fails(status, part, run(&made, NULL));
        ck_assert_msg(strstr(rnl_last_error()->message, NAMED) != NULL, "%s", rnl_last_error()->message);
    }
    close_model(&made);
}

/* ---- Registrations ---------------------------------------------------------------------------------------------- */

static void refused(rnl_registry *registry, rnl_custom_operator op, const char *part)
{
    test_fails(RNL_INVALID_ARGUMENT, part, rnl_registry_add(registry, &op));
}

START_TEST(test_registrations)
{
    static behaviour does;
    const rnl_custom_operator good = operator_of(&does);
    rnl_custom_operator op = good;
    rnl_registry *registry;
    test_ok(rnl_registry_create(&registry));
    test_fails(RNL_INVALID_ARGUMENT, "registry is NULL", rnl_registry_add(NULL, &op));
    test_fails(RNL_INVALID_ARGUMENT, "operator to be added is NULL", rnl_registry_add(registry, NULL));
#define REFUSED(part, ...) op = good, __VA_ARGS__, refused(registry, op, part)
    REFUSED("RNL_CUSTOM_OPERATOR_INIT", op.struct_size = 0);
    REFUSED("ai.onnx", op.domain = NULL);
    REFUSED("ai.onnx", op.domain = "");
    REFUSED("ai.onnx", op.domain = "ai.onnx");
    REFUSED("needs a name", op.op_type = NULL);
    REFUSED("needs a name", op.op_type = "");
    REFUSED("control characters", op.op_type = "a\nb");
    REFUSED("com.microsoft.BiasGelu is one that runnel has", (op.domain = "com.microsoft", op.op_type = "BiasGelu"));
    REFUSED("cannot be of version 0", op.since_version = 0);
    REFUSED("cannot have 2 to 1 inputs", op.min_inputs = 2);
    REFUSED("0 to 1 outputs", op.min_outputs = 0);
    REFUSED("has no infer callback", op.infer = NULL);
    REFUSED("has neither", op.plan = NULL);
    test_ok(rnl_registry_add(registry, &good));
    REFUSED("of version 1 is in the registry already", op.user = NULL);
#undef REFUSED
    rnl_registry_release(rnl_registry_retain(registry));
    rnl_registry_release(registry);
    rnl_registry_release(NULL);
}
END_TEST

/* ---- Infer ------------------------------------------------------------------------------------------------------ */

static rnl_status says_why(rnl_tensor_desc *outputs)
{
    (void)outputs;
    return rnl_custom_fail(RNL_UNIMPLEMENTED, "it takes %s", "nothing");
}

static rnl_status says_nothing(rnl_tensor_desc *outputs)
{
    (void)outputs;
    return RNL_DATA_LOSS;
}

static rnl_status is_no_status(rnl_tensor_desc *outputs)
{
    (void)outputs;
    return (rnl_status)1234;
}

static rnl_status negative(rnl_tensor_desc *outputs)
{
    outputs[0].shape[0] = -2;
    return RNL_OK;
}

static rnl_status too_many(rnl_tensor_desc *outputs)
{
    outputs[0].rank = RNL_MAX_RANK + 1;
    return RNL_OK;
}

static rnl_status no_type(rnl_tensor_desc *outputs)
{
    outputs[0].dtype = (rnl_dtype)99;
    return RNL_OK;
}

static rnl_status overflows(rnl_tensor_desc *outputs)
{
    outputs[0].rank = 2;
    outputs[0].shape[0] = outputs[0].shape[1] = (int64_t)1 << 40;
    return RNL_OK;
}

static rnl_status too_large(rnl_tensor_desc *outputs)
{
    outputs[0].shape[0] = INT64_MAX;
    return RNL_OK;
}

static rnl_status other_size(rnl_tensor_desc *outputs)
{
    outputs[0].shape[0] = COUNT + 1;
    return RNL_OK;
}

static rnl_status other_type(rnl_tensor_desc *outputs)
{
    outputs[0].dtype = RNL_I32;
    return RNL_OK;
}

START_TEST(test_answers_of_infer)
{
    fails((behaviour){.infer = says_why}, RNL_UNIMPLEMENTED, "it takes nothing");
    fails((behaviour){.infer = says_nothing}, RNL_DATA_LOSS, "it returned DATA_LOSS and gave no reason");
    fails((behaviour){.infer = is_no_status}, RNL_INTERNAL, "it returned 1234, which is no status");
    fails((behaviour){.infer = negative}, RNL_INVALID_ARGUMENT, "the impossible shape -2");
    fails((behaviour){.infer = too_many}, RNL_INVALID_ARGUMENT, "gave output 0 9 dimensions");
    fails((behaviour){.infer = no_type}, RNL_INVALID_ARGUMENT, "the unknown type 99");
    fails((behaviour){.infer = overflows}, RNL_INVALID_ARGUMENT, "the impossible shape");
    fails((behaviour){.infer = too_large}, RNL_INVALID_ARGUMENT, "the impossible shape");
    fails((behaviour){.infer = other_size}, RNL_INVALID_ARGUMENT, "as float32 7, and the file declares float32 6");
    fails((behaviour){.infer = other_type}, RNL_INVALID_ARGUMENT, "as int32 6, and the file declares float32 6");
}
END_TEST

/* ---- Plan and kernels ------------------------------------------------------------------------------------------- */

static const char copy_source[] =
    "kernel void copy(global const float *x, long x_at, global float *y, long y_at, long n)\n"
    "{\n"
    "    const long i = get_global_id(0);\n"
    "    if (i < n)\n"
    "        y[y_at + i] = x[x_at + i] + DEEPER;\n"
    "}\n";
static const char outside_source[] =
    "kernel void copy(global const float *x, long x_at, global float *y, long y_at, long n)\n"
    "{\n"
    "    const long i = get_global_id(0);\n"
    "    y[y_at + i] = x[x_at + (i < n ? i : 0)];\n"
    "}\n";

START_TEST(test_answers_of_plan)
{
    const behaviour good = {NULL, outside_source, "copy", 3, 8, 1, ONE_LAUNCH};
    behaviour does = good;
#define FAILS(status, part, ...) does = good, __VA_ARGS__, fails(does, status, part)
    FAILS(RNL_UNIMPLEMENTED, "there is no kernel for this", does.plan = FAILURE);
    FAILS(RNL_UNAVAILABLE, "it returned UNAVAILABLE and gave no reason", does.plan = SILENT_FAILURE);
    FAILS(RNL_INVALID_ARGUMENT, "added no launch that has output 0", does.plan = NO_LAUNCH);
    FAILS(RNL_INVALID_ARGUMENT, "argument 0 is input 3, and the node has 1", does.plan = OTHER_INPUT);
    FAILS(RNL_INVALID_ARGUMENT, "DEEPER", does.source = copy_source);
    FAILS(RNL_INVALID_ARGUMENT, "DEEPER", (does.source = copy_source, does.plan = IGNORES_FAILURE));
    FAILS(RNL_NOT_FOUND, "other", does.kernel = "other");
    FAILS(RNL_INVALID_ARGUMENT, "source or its path", does.source = NULL);
    FAILS(RNL_INVALID_ARGUMENT, "it takes 5 arguments, and 4 are given", does.tensors = 2);
    FAILS(RNL_INVALID_ARGUMENT, "a value of 200 bytes", does.value_bytes = 200);
    FAILS(RNL_INVALID_ARGUMENT, "cannot have 0 work-items", does.local = 0);
    FAILS(RNL_INVALID_ARGUMENT, "allows work-groups of at most", does.local = 1 << 30);
#undef FAILS
}
END_TEST

START_TEST(test_a_kernel_that_makes_nan)
{
    static const char source[] =
        "kernel void make(global const float *x, long x_at, global float *y, long y_at, long n)\n"
        "{\n"
        "    y[y_at + get_global_id(0)] = sqrt(x[x_at + get_global_id(0)] + n - n);\n"
        "}\n";
    setenv("RUNNEL_CHECK_NAN", "1", 1);
    fails((behaviour){NULL, source, "make", 3, 8, 1, ONE_LAUNCH}, RNL_FAILED_PRECONDITION,
          "NaN came of step 1 (custom:com.example.Odd)");
    unsetenv("RUNNEL_CHECK_NAN");
}
END_TEST

START_TEST(test_a_kernel_that_writes_outside)
{
    behaviour right = {NULL, outside_source, "copy", 3, 8, 1, ONE_LAUNCH};
    behaviour wrong = right;
    float results[COUNT] = {0};
    rnl_custom_operator op = operator_of(&right);
    setenv("RUNNEL_GUARD", "1", 1);
    model made = open_operator(&op);
    test_ok(run(&made, results));
    ck_assert_float_eq(results[COUNT - 1], -COUNT);
    if (strcmp(rnl_device_get_info(made.device)->platform, "Oclgrind") != 0) {
        wrong.local = COUNT + 1; /* the range is rounded up, and the kernel does not guard */
        op = operator_of(&wrong);
        close_model(&made);
        made = open_operator(&op);
        test_fails(RNL_INTERNAL, "bytes 0 to 3 behind the end of a buffer", run(&made, results));
        ck_assert_msg(strstr(rnl_last_error()->message, NAMED) != NULL, "%s", rnl_last_error()->message);
    }
    unsetenv("RUNNEL_GUARD");
    close_model(&made);
}
END_TEST

/* ---- Signals: this program again, as a process of its own ------------------------------------------------------ */

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGSEGV, "SIGSEGV"}, {SIGFPE, "SIGFPE"}, {SIGBUS, "SIGBUS"}, {SIGILL, "SIGILL"}, {SIGABRT, "SIGABRT"}};
#define SIGNAL_COUNT (sizeof signals / sizeof *signals)

static rnl_status raises(rnl_tensor_desc *outputs)
{
    const char *name = getenv("TEST_CUSTOM_SIGNAL");
    volatile int *nowhere = (volatile int *)(uintptr_t)4096;
    (void)outputs;
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (strcmp(name, signals[i].name) == 0 && signals[i].number != SIGSEGV)
            raise(signals[i].number);
    if (strcmp(name, "SIGSEGV") == 0)
        *nowhere = 1;
    return RNL_OK;
}

static void handler_of_the_program(int number)
{
    static const char text[] = "the program's own handler\n";
    (void)number;
    (void)!write(STDERR_FILENO, text, sizeof text - 1);
    _exit(7);
}

/* Called in the process that is to end. */
static int crash(bool has_handler)
{
    behaviour does = {.infer = raises};
    const rnl_custom_operator op = operator_of(&does);
    model made = open_operator(&op);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) /* drivers and sanitizers have handlers */
        signal(signals[i].number, has_handler ? handler_of_the_program : SIG_DFL);
    (void)!run(&made, NULL);
    return 0;
}

static int run_again(const char *signal_name, const char *how, char *text, size_t room)
{
    int ends[2], status;
    size_t length = 0;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        setenv("TEST_CUSTOM_SIGNAL", signal_name, 1);
        execl("/proc/self/exe", "test_custom_wrong", how, (char *)NULL);
        _exit(99);
    }
    close(ends[1]);
    for (ssize_t got; length + 1 < room && (got = read(ends[0], text + length, room - 1 - length)) > 0;)
        length += (size_t)got;
    text[length] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    return status;
}

START_TEST(test_a_signal_is_named)
{
    char text[1 << 16], wanted[128];
    const char *name = signals[_i].name;
    snprintf(wanted, sizeof wanted, "runnel: %s in the infer callback of operator com.example.Odd, node 'culprit'\n",
             name);
    int status = run_again(name, "--crash", text, sizeof text);
    ck_assert_msg(strstr(text, wanted) != NULL, "%s", text);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == signals[_i].number);
    status = run_again(name, "--crash-handled", text, sizeof text);
    ck_assert_msg(strstr(text, wanted) != NULL && strstr(text, "the program's own handler\n") != NULL, "%s", text);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}
END_TEST

START_TEST(test_handlers_are_put_back)
{
    behaviour right = {NULL, outside_source, "copy", 3, 8, 1, ONE_LAUNCH};
    const rnl_custom_operator op = operator_of(&right);
    model made = open_operator(&op);
    struct sigaction before, after;
    float results[COUNT];
    ck_assert_int_eq(sigaction(SIGFPE, NULL, &before), 0);
    test_ok(run(&made, results));
    ck_assert_int_eq(sigaction(SIGFPE, NULL, &after), 0);
    ck_assert(before.sa_handler == after.sa_handler && before.sa_flags == after.sa_flags);
    close_model(&made);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc > 1)
        return crash(strcmp(argv[1], "--crash-handled") == 0);
    Suite *suite = suite_create("custom_wrong");
    TCase *tests = tcase_create("wrong");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, test_registrations);
    tcase_add_test(tests, test_answers_of_infer);
    tcase_add_test(tests, test_answers_of_plan);
    tcase_add_test(tests, test_a_kernel_that_makes_nan);
    tcase_add_test(tests, test_a_kernel_that_writes_outside);
    tcase_add_test(tests, test_handlers_are_put_back);
    tcase_add_loop_test(tests, test_a_signal_is_named, 0, SIGNAL_COUNT);
    suite_add_tcase(suite, tests);
    return test_run(suite, false);
}
