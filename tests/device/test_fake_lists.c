/* SPDX-License-Identifier: Apache-2.0 */
/* On the fake driver: command lists whose commands come late or fail, and the failures of a caller's own commands. */
#include "base/status.h"
#include "support/fake_driver.h"
#include "support/test_device.h"
#include <runnel/command_list.h>
#include <runnel/interop.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 64
#define BYTES (COUNT * sizeof(int))
#define LATE_US 2000

static const char source[] = "__kernel void fake_add(__global int *x, int by) { x[get_global_id(0)] += by; }\n";
static const rnl_range whole = {.dimensions = 1, .global = {COUNT, 1, 1}, .local = {8, 1, 1}};
static const fake_control *control;
static size_t alive;

/* What a run holds. */
typedef struct objects {
    rnl_device *device;
    rnl_stream *stream;
    rnl_buffer *a, *b;
    rnl_kernel *kernel;
    rnl_command_list *list;
    int back[2][COUNT];
} objects;

#define STEP(call)                                                                                                     \
    do {                                                                                                               \
        rnl_status step_ = (call);                                                                                     \
        if (step_ != RNL_OK)                                                                                           \
            return step_;                                                                                              \
    } while (0)

static rnl_arg value_arg(const int *value)
{
    return (rnl_arg){.kind = RNL_ARG_VALUE, .size_bytes = sizeof *value, .value = value};
}

static rnl_arg buffer_arg(rnl_buffer *buffer)
{
    return (rnl_arg){.kind = RNL_ARG_BUFFER, .buffer = buffer};
}

static rnl_status append(objects *o, rnl_buffer *to, int by)
{
    const rnl_arg args[] = {buffer_arg(to), value_arg(&by)};
    return rnl_command_list_launch(o->list, o->kernel, &whole, args, 2, NULL);
}

/* b becomes 1, a += 1, a += 2 */
static rnl_status record(objects *o)
{
    STEP(rnl_device_open("0:0", NULL, &o->device));
    STEP(rnl_stream_create(o->device, &o->stream));
    STEP(rnl_buffer_create(o->device, RNL_MEMORY_DEVICE, BYTES, &o->a));
    STEP(rnl_buffer_create(o->device, RNL_MEMORY_DEVICE, BYTES, &o->b));
    STEP(rnl_kernel_create(o->device, source, NULL, "fake_add", &o->kernel));
    STEP(rnl_command_list_create(o->device, NULL, &o->list));
    STEP(rnl_command_list_fill(o->list, o->b, 0, "\1\0\0\0", 4, BYTES, NULL));
    STEP(append(o, o->a, 1));
    STEP(append(o, o->a, 2));
    return rnl_stream_fill(o->stream, o->a, 0, "\0\0\0\0", 4, BYTES);
}

/* Adds 3 + 12 to a, then 10 + 2 to b, which is 1, and reads both. */
static rnl_status replay(objects *o)
{
    int by = 10;
    const rnl_arg value = value_arg(&by), b = buffer_arg(o->b);
    STEP(rnl_stream_replay(o->stream, o->list));
    STEP(rnl_command_list_set_arg(o->list, 1, 1, &value));
    STEP(rnl_stream_replay(o->stream, o->list));
    STEP(rnl_stream_read(o->stream, o->back[0], o->a, 0, BYTES));
    STEP(rnl_command_list_set_arg(o->list, 1, 0, &b));
    STEP(rnl_command_list_set_arg(o->list, 2, 0, &b));
    by = 77; /* was copied */
    STEP(rnl_stream_replay(o->stream, o->list));
    STEP(rnl_stream_read(o->stream, o->back[1], o->b, 0, BYTES));
    return rnl_stream_synchronize(o->stream);
}

static void release(objects *o)
{
    rnl_status ended = o->stream ? rnl_stream_synchronize(o->stream) : RNL_OK;
    (void)ended;
    rnl_command_list_release(o->list);
    rnl_kernel_release(o->kernel);
    rnl_buffer_release(o->a);
    rnl_buffer_release(o->b);
    rnl_stream_release(o->stream);
    rnl_device_release(o->device);
}

static rnl_status run(void *unused)
{
    static objects o; /* copies may be under way when a run fails */
    (void)unused;
    o = (objects){0};
    rnl_status status = record(&o);
    if (status == RNL_OK)
        status = replay(&o);
    const rnl_error error = *rnl_last_error();
    for (int i = 0; status == RNL_OK && i < COUNT; i++) {
        ck_assert_int_eq(o.back[0][i], 3 + 12);
        ck_assert_int_eq(o.back[1][i], 1 + 12);
    }
    release(&o);
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

static void setup(void)
{
    control = fake_driver();
    control->reset();
    setenv("RUNNEL_CACHE", "off", 1);
    alive = fake_count_alive();
}

static void teardown(void)
{
    control->reset();
    fake_check_alive(alive);
}

START_TEST(replays_take_their_arguments_when_they_are_enqueued)
{
    control->delay(LATE_US);
    test_ok(run(NULL));
}
END_TEST

START_TEST(each_failing_call_is_told)
{
    const fake_sweep sweep = {.program = run,
                              .code = CL_OUT_OF_RESOURCES,
                              .code_text = "CL_OUT_OF_RESOURCES (-5)",
                              .from_then_on = _i == 1,
                              .may_be_not_found = true};
    ck_assert_uint_gt(fake_sweep_calls(&sweep), 20);
}
END_TEST

START_TEST(a_command_that_fails_leaves_the_list_usable)
{
    objects o = {0};
    rnl_stream *second;
    test_ok(record(&o));
    test_ok(rnl_stream_synchronize(o.stream));
    control->fail_command(2, CL_OUT_OF_RESOURCES);
    test_ok(rnl_stream_replay(o.stream, o.list));
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", rnl_stream_synchronize(o.stream));
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", rnl_stream_replay(o.stream, o.list));
    test_ok(rnl_stream_create(o.device, &second));
    test_ok(rnl_stream_fill(second, o.a, 0, "\0\0\0\0", 4, BYTES));
    test_ok(rnl_stream_replay(second, o.list));
    test_ok(rnl_stream_read(second, o.back[0], o.a, 0, BYTES));
    test_ok(rnl_stream_synchronize(second));
    ck_assert_int_eq(o.back[0][COUNT - 1], 3);
    rnl_stream_release(second);
    release(&o);
}
END_TEST

START_TEST(a_failure_of_the_callers_commands_shows_at_the_streams_end)
{
    objects o = {0};
    test_ok(record(&o));
    test_ok(rnl_stream_synchronize(o.stream));
    control->fail_command(1, CL_OUT_OF_RESOURCES);
    const int zero = 0;
    ck_assert_int_eq(clEnqueueFillBuffer(rnl_stream_get_cl_queue(o.stream), rnl_buffer_get_cl_mem(o.a), &zero,
                                         sizeof zero, 0, BYTES, 0, NULL, NULL),
                     CL_SUCCESS);
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", rnl_stream_synchronize(o.stream));
    release(&o);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_lists");
    TCase *test_case = tcase_create("fake_lists");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_test(test_case, replays_take_their_arguments_when_they_are_enqueued);
    tcase_add_loop_test(test_case, each_failing_call_is_told, 0, 2);
    tcase_add_test(test_case, a_command_that_fails_leaves_the_list_usable);
    tcase_add_test(test_case, a_failure_of_the_callers_commands_shows_at_the_streams_end);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
