/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On the fake driver: pipelines whose OpenCL calls and commands fail, whose devices are lost, whose commands come late.
 * Its kernels compute nothing, so answers are not looked at: each batch ends once and in order, failures name their
 * stage and device, nothing hangs, nothing stays.
 */
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "support/fake_driver.h"
#include "support/small_model.h"
#include "support/test_device.h"
#include <runnel/pipeline.h>
#include <runnel/pool.h>
#include <runnel/trace.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE 8
#define NODES 6
#define BATCHES 9
#define LATE_US 300

static rnl_device *devices[3];
static const fake_control *control;
static char *folder;
static proto bytes;
static size_t alive;
static rnl_trace *trace; /* of the pipelines that are created; or NULL */
static bool is_traced;

static void setup(void)
{
    control = fake_driver();
    control->reset();
    alive = fake_count_alive();
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    bytes = small_chain(SIZE, NODES);
    test_ok(rnl_device_open("0:0", NULL, &devices[0])); /* with memory of its own */
    test_ok(rnl_device_open("1:0", NULL, &devices[1])); /* which shares the host's */
    test_ok(rnl_device_open("0:1", NULL, &devices[2]));
}

static void teardown(void)
{
    control->reset();
    is_traced = false;
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(test_pool_in_use(devices[i]), 0);
        rnl_device_release(devices[i]);
    }
    proto_free(&bytes);
    test_folder_remove(folder);
    fake_check_alive(alive);
}

/* What became of the batches. */
typedef struct course {
    float x[SIZE * SIZE];
    rnl_tensor input;
    rnl_tensor outputs[BATCHES];
    struct batch {
        struct course *of;
        size_t index;
        rnl_error error;
    } batches[BATCHES];
    size_t ended; /* written by `complete`, one at a time, and read behind a wait */
} course;

static void complete(void *user, const rnl_error *error)
{
    struct batch *batch = user;
    ck_assert_uint_eq(batch->index, batch->of->ended);
    batch->of->ended++;
    batch->error = error ? *error : (rnl_error){0};
}

static void init_course(course *c)
{
    *c = (course){.x = {1}};
    c->input =
        (rnl_tensor){.dtype = RNL_F32, .rank = 2, .shape = {SIZE, SIZE}, .data = c->x, .size_bytes = sizeof c->x};
}

static rnl_status create(const size_t *which, size_t count, rnl_pipeline **out_pipeline)
{
    rnl_pipeline_options options = RNL_PIPELINE_OPTIONS_INIT;
    rnl_device *chosen[3];
    rnl_graph *graph;
    *out_pipeline = NULL;
    options.estimate = true;
    options.trace = trace;
    for (size_t i = 0; i < count; i++)
        chosen[i] = devices[which[i]];
    rnl_status status = rnl_graph_load_memory(bytes.data, bytes.size, &graph);
    if (status == RNL_OK)
        status = rnl_pipeline_create(graph, chosen, count, &options, out_pipeline);
    rnl_graph_release(graph);
    return status;
}

/* All of them; the first failure, if any. Each that was taken ends. */
static rnl_status run_batches(rnl_pipeline *pipeline, course *c)
{
    rnl_error first = {0};
    size_t taken = 0;
    for (size_t i = 0; i < BATCHES; i++) {
        c->batches[taken].of = c;
        c->batches[taken].index = taken;
        if (rnl_pipeline_submit(pipeline, &c->input, 1, &c->outputs[taken], 1, complete, &c->batches[taken]) == RNL_OK)
            taken++;
        else if (first.status == RNL_OK)
            first = *rnl_last_error();
    }
    rnl_pipeline_wait(pipeline);
    ck_assert_uint_eq(c->ended, taken);
    for (size_t i = 0; i < taken; i++) {
        const rnl_error *error = &c->batches[i].error;
        if (error->status != RNL_OK) {
            ck_assert_ptr_null(c->outputs[i].data);
            ck_assert(strstr(error->message, "stage ") && strstr(error->message, " of "));
            first = i == 0 || first.status == RNL_OK || first.status == RNL_UNAVAILABLE ? *error : first;
        }
        rnl_output_release(c->outputs[i].data);
    }
    return first.status == RNL_OK ? RNL_OK : rnl_error_restore(&first);
}

static bool works_again;

/* What the pools keep for the next run. */
static void trim(void *data)
{
    (void)data;
    for (int i = 0; i < 3; i++)
        rnl_device_pool_trim(devices[i]);
}

static rnl_status create_run_release(void *data)
{
    const size_t *which = data;
    rnl_pipeline *pipeline;
    course c;
    init_course(&c);
    rnl_status status = is_traced ? rnl_trace_create(NULL, &trace) : RNL_OK;
    pipeline = NULL;
    if (status == RNL_OK)
        status = create(which, 2, &pipeline);
    if (status == RNL_OK)
        status = run_batches(pipeline, &c);
    rnl_error error = *rnl_last_error();
    if (pipeline && status != RNL_OK && works_again && status != RNL_UNAVAILABLE) {
        init_course(&c);
        test_ok(run_batches(pipeline, &c));
    }
    rnl_pipeline_release(pipeline);
    rnl_trace_release(trace);
    trace = NULL;
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

/* From one kind of memory to the other, and between two devices with memory of their own. */
static const size_t pairs[][2] = {{0, 1}, {1, 0}, {0, 2}};

START_TEST(each_call_fails)
{
    const fake_sweep wish = {.program = create_run_release,
                             .settle = trim,
                             .data = (void *)(uintptr_t)pairs[_i % 3],
                             .code = CL_OUT_OF_RESOURCES,
                             .code_text = "CL_OUT_OF_RESOURCES (-5)",
                             .from_then_on = _i >= 3,
                             .step = 29};
    works_again = _i < 3;
    ck_assert_uint_gt(fake_sweep_calls(&wish), 10);
}
END_TEST

START_TEST(each_command_fails)
{
    fake_stats stats = {.failed_calls = 1};
    uint64_t told = 0, n;
    works_again = true;
    test_ok(create_run_release((void *)(uintptr_t)pairs[_i]));
    trim(NULL);
    const size_t before = fake_count_alive();
    for (n = 1; stats.failed_calls > 0; n += 7) {
        control->reset();
        control->fail_command(n, CL_OUT_OF_RESOURCES);
        rnl_status status = create_run_release((void *)(uintptr_t)pairs[_i]);
        control->get_stats(&stats);
        if (status != RNL_OK)
            test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", status);
        told += status != RNL_OK;
        control->reset();
        trim(NULL);
        fake_check_alive(before);
    }
    ck_assert_uint_gt(told, 3);
}
END_TEST

START_TEST(each_call_fails_while_it_is_recorded)
{
    const fake_sweep wish = {.program = create_run_release,
                             .settle = trim,
                             .data = (void *)(uintptr_t)pairs[0],
                             .code = CL_OUT_OF_RESOURCES,
                             .code_text = "CL_OUT_OF_RESOURCES (-5)",
                             .step = 13};
    works_again = is_traced = true;
    ck_assert_uint_gt(fake_sweep_calls(&wish), 10);
}
END_TEST

/* Host memory that is not there, at any moment; threads take some, too. */
START_TEST(each_allocation_fails)
{
    size_t failed = 0, last = 0;
    works_again = true;
    is_traced = _i == 0;
    test_ok(create_run_release((void *)(uintptr_t)pairs[_i]));
    trim(NULL);
    const size_t before = fake_count_alive();
    for (uint64_t n = 1; n < 20000 && last < 20; n += 11) {
        rnl_alloc_fail_at(n);
        rnl_status status = create_run_release((void *)(uintptr_t)pairs[_i]);
        rnl_alloc_fail_at(0);
        if (status != RNL_OK)
            ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
        failed += status != RNL_OK;
        last = status == RNL_OK ? last + 1 : 0;
        trim(NULL);
        fake_check_alive(before);
    }
    ck_assert_uint_gt(failed, 20);
    ck_assert_uint_eq(last, 20);
}
END_TEST

static size_t count_text(const char *in, const char *text)
{
    size_t count = 0;
    for (const char *at = strstr(in, text); at; at = strstr(at + 1, text))
        count++;
    return count;
}

/* Between devices with memory of their own, each batch is written, read, written and read. */
START_TEST(copies_between_stages_are_recorded)
{
    static const size_t twice[2] = {0, 0};
    char path[512], name[32];
    void *text;
    size_t size;
    rnl_pipeline *pipeline;
    course c;
    init_course(&c);
    snprintf(path, sizeof path, "%s/trace.json", folder);
    test_ok(rnl_trace_create(NULL, &trace));
    rnl_trace_set_interval(trace, _i ? 3 : 1);
    test_ok(create(twice, 2, &pipeline));
    test_ok(run_batches(pipeline, &c));
    test_ok(rnl_trace_write(trace, path));
    test_ok(rnl_file_read(path, (size_t)1 << 24, &text, &size));
    ck_assert_ptr_nonnull(strstr(text, "\"stage 0 on 0:0"));
    ck_assert_ptr_nonnull(strstr(text, "\"stage 1 on 0:0"));
    ck_assert_uint_eq(count_text(text, "\"name\":\"read\""), 2 * (_i ? 3 : BATCHES));
    ck_assert_uint_eq(count_text(text, "\"name\":\"write\""), 2 * (_i ? 3 : BATCHES));
    for (unsigned i = 1; i <= BATCHES; i++) {
        snprintf(name, sizeof name, "\"batch %u in stage 1\"", i);
        ck_assert_uint_eq(count_text(text, name), _i == 0 || i % 3 == 1);
    }
    rnl_free(text);
    rnl_pipeline_release(pipeline);
    rnl_trace_release(trace);
    trace = NULL;
}
END_TEST

/* From batch to batch; what was recorded stays. */
START_TEST(what_is_recorded_can_change)
{
    static const size_t twice[2] = {0, 0};
    rnl_trace *first, *second;
    rnl_trace_stats stats;
    rnl_pipeline *pipeline;
    uint64_t recorded;
    course c;
    init_course(&c);
    test_ok(rnl_trace_create(NULL, &first));
    test_ok(rnl_trace_create(NULL, &second));
    test_ok(create(twice, 2, &pipeline));
    test_ok(run_batches(pipeline, &c));
    rnl_pipeline_trace(pipeline, first);
    init_course(&c);
    test_ok(run_batches(pipeline, &c));
    ck_assert_uint_eq(rnl_trace_get_runs(first, &recorded), BATCHES);
    rnl_pipeline_trace(pipeline, second);
    rnl_trace_get_stats(first, &stats);
    const uint64_t commands = stats.commands, spans = stats.spans;
    ck_assert_uint_gt(commands, 0);
    rnl_trace_set_interval(second, 2);
    init_course(&c);
    test_ok(run_batches(pipeline, &c));
    ck_assert_uint_eq(rnl_trace_get_runs(second, &recorded), BATCHES);
    ck_assert_uint_eq(recorded, (BATCHES + 1) / 2);
    rnl_pipeline_trace(pipeline, NULL);
    rnl_trace_release(second);
    init_course(&c);
    test_ok(run_batches(pipeline, &c));
    rnl_trace_get_stats(first, &stats);
    ck_assert_uint_eq(stats.commands, commands);
    ck_assert_uint_eq(stats.spans, spans);
    rnl_trace_release(first);
    rnl_pipeline_release(pipeline);
}
END_TEST

/* Who was built before there were traces gives shorter options, with anything behind them. */
START_TEST(options_without_a_trace)
{
    rnl_pipeline_options options = RNL_PIPELINE_OPTIONS_INIT;
    rnl_pipeline *pipeline;
    rnl_graph *graph;
    options.struct_size = offsetof(rnl_pipeline_options, trace);
    options.trace = (rnl_trace *)1;
    options.estimate = true;
    test_ok(rnl_graph_load_memory(bytes.data, bytes.size, &graph));
    test_ok(rnl_pipeline_create(graph, devices, 2, &options, &pipeline));
    rnl_pipeline_release(pipeline);
    rnl_graph_release(graph);
}
END_TEST

/* In the middle of the batches: those that had got through are good, the others say which device has gone, and so does
 * the pipeline from then on. */
START_TEST(a_device_is_lost)
{
    static const unsigned indices[] = {0, 2, 1}; /* of the driver's devices */
    const size_t *which = pairs[_i % 3];
    const size_t stage = (size_t)_i / 3;
    for (uint64_t n = 1; n < 60; n += 11) {
        rnl_pipeline *pipeline;
        course c;
        init_course(&c);
        control->reset();
        test_ok(create(which, 2, &pipeline));
        control->lose_device(indices[which[stage]], n, CL_OUT_OF_RESOURCES);
        rnl_status status = run_batches(pipeline, &c);
        if (status != RNL_OK) {
            char name[32];
            snprintf(name, sizeof name, "stage %zu of 2", stage);
            ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, name));
            ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "CL_OUT_OF_RESOURCES (-5)"));
            test_fails(RNL_UNAVAILABLE, "the pipeline has lost the device of stage ",
                       rnl_pipeline_run(pipeline, &c.input, 1, NULL, 0));
        }
        rnl_pipeline_release(pipeline);
    }
}
END_TEST

START_TEST(late_commands_and_a_close_in_the_middle)
{
    rnl_pipeline *pipeline;
    course c;
    control->delay(LATE_US);
    test_ok(create(pairs[_i], 2, &pipeline));
    init_course(&c);
    test_ok(run_batches(pipeline, &c));
    init_course(&c);
    for (size_t i = 0; i < 4; i++) { /* as many as it takes without waiting */
        c.batches[i].of = &c;
        c.batches[i].index = i;
        test_ok(rnl_pipeline_submit(pipeline, &c.input, 1, &c.outputs[i], 1, complete, &c.batches[i]));
    }
    rnl_pipeline_release(pipeline);
    ck_assert_uint_eq(c.ended, 4);
    for (size_t i = 0; i < 4; i++) {
        const rnl_status status = c.batches[i].error.status;
        ck_assert(status == RNL_OK || status == RNL_CANCELLED);
        ck_assert((status == RNL_OK) == (c.outputs[i].data != NULL));
        rnl_output_release(c.outputs[i].data);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_pipeline");
    TCase *test_case = tcase_create("fake_pipeline");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_loop_test(test_case, each_call_fails, 0, 6);
    tcase_add_test(test_case, each_call_fails_while_it_is_recorded);
    tcase_add_loop_test(test_case, each_command_fails, 0, 3);
    tcase_add_loop_test(test_case, each_allocation_fails, 0, 3);
    tcase_add_loop_test(test_case, copies_between_stages_are_recorded, 0, 2);
    tcase_add_test(test_case, what_is_recorded_can_change);
    tcase_add_test(test_case, options_without_a_trace);
    tcase_add_loop_test(test_case, a_device_is_lost, 0, 6);
    tcase_add_loop_test(test_case, late_commands_and_a_close_in_the_middle, 0, 3);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
