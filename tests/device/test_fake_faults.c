/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On the fake driver: every OpenCL call of a program, those that libraries and the ICD loader make for us too, is made
 * to fail, once and from then on, on each of its devices.
 */
#include "base/status.h"
#include "support/fake_driver.h"
#include "support/test_device.h"
#include <stdlib.h>
#include <string.h>

#define COUNT 64
#define LARGE_BYTES ((size_t)5 << 20) /* a CPU's would be in large pages */

static const char *const devices[] = {"0:0", "0:1", "1:0"};
static const char source[] =
    "__kernel void fake_scale(__global const int *a, __global int *b, int by, __local int *t)\n"
    "{\n"
    "    b[get_global_id(0)] = a[get_global_id(0)] * by;\n"
    "}\n";
static rnl_device *device;
static char *folder;
static size_t alive;

static void setup(void)
{
    fake_driver()->reset();
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    alive = fake_count_alive();
    test_ok(rnl_device_open(devices[0], NULL, &device));
}

static void teardown(void)
{
    fake_driver()->reset();
    rnl_device_release(device);
    device = NULL;
    test_folder_remove(folder);
    fake_check_alive(alive);
}

static void open_other(int at)
{
    rnl_device_release(device);
    device = NULL;
    test_ok(rnl_device_open(devices[at], NULL, &device));
}

#define STEP(call)                                                                                                     \
    do {                                                                                                               \
        rnl_status step_ = (call);                                                                                     \
        if (step_ != RNL_OK)                                                                                           \
            return step_;                                                                                              \
    } while (0)

/* What a run holds. */
typedef struct objects {
    rnl_stream *streams[2];
    rnl_buffer *device_memory, *pinned, *large;
    rnl_kernel *kernel;
    rnl_event *event;
    int back[COUNT];
} objects;

static rnl_status create(rnl_device *on, objects *o)
{
    STEP(rnl_stream_create(on, &o->streams[0]));
    STEP(rnl_stream_create(on, &o->streams[1]));
    STEP(rnl_buffer_create(on, RNL_MEMORY_DEVICE, sizeof o->back, &o->device_memory));
    STEP(rnl_buffer_create(on, RNL_MEMORY_PINNED, sizeof o->back, &o->pinned));
    STEP(rnl_buffer_create(on, RNL_MEMORY_DEVICE, LARGE_BYTES, &o->large));
    STEP(rnl_kernel_create(on, source, NULL, "fake_scale", &o->kernel));
    for (int i = 0; i < COUNT; i++)
        ((int *)rnl_buffer_host(o->pinned))[i] = i - 9;
    return RNL_OK;
}

static rnl_status launch(objects *o)
{
    int by = 3;
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = o->pinned},
                            {.kind = RNL_ARG_BUFFER, .buffer = o->device_memory},
                            {.kind = RNL_ARG_VALUE, .size_bytes = sizeof by, .value = &by},
                            {.kind = RNL_ARG_LOCAL, .size_bytes = 8 * sizeof(int)}};
    const rnl_range range = {.dimensions = 1, .global = {COUNT, 1, 1}, .local = {8, 1, 1}};
    return rnl_stream_launch(o->streams[0], o->kernel, &range, args, 4);
}

static rnl_status compute(objects *o)
{
    STEP(rnl_stream_fill(o->streams[0], o->device_memory, 0, "\0\0\0\0", 4, sizeof o->back));
    STEP(launch(o));
    STEP(rnl_stream_record(o->streams[0], &o->event));
    STEP(rnl_stream_wait(o->streams[1], o->event));
    STEP(rnl_stream_copy(o->streams[1], o->pinned, 0, o->device_memory, 0, sizeof o->back));
    STEP(rnl_stream_read(o->streams[1], o->back, o->pinned, 0, sizeof o->back));
    STEP(rnl_stream_flush(o->streams[1]));
    STEP(rnl_event_synchronize(o->event));
    return rnl_stream_synchronize(o->streams[1]);
}

/* Returns the first failure, whatever fails after it. */
static rnl_status finish(objects *o, rnl_status status, const rnl_error *error)
{
    for (int i = 0; i < 2; i++) {
        rnl_status ended = o->streams[i] ? rnl_stream_synchronize(o->streams[i]) : RNL_OK;
        (void)ended;
        rnl_stream_release(o->streams[i]);
    }
    rnl_event_release(o->event);
    rnl_kernel_release(o->kernel);
    rnl_buffer_release(o->pinned);
    rnl_buffer_release(o->device_memory);
    rnl_buffer_release(o->large);
    return status == RNL_OK ? status : rnl_error_restore(error);
}

static rnl_status run(void *on)
{
    objects o = {0};
    rnl_status status = create(on, &o);
    if (status == RNL_OK)
        status = compute(&o);
    if (status == RNL_OK)
        for (int i = 0; i < COUNT; i++)
            ck_assert_int_eq(o.back[i], 3 * (i - 9));
    rnl_error error = *rnl_last_error();
    return finish(&o, status, &error);
}

/* As it is in a new process: nothing of the program is there but what the disk has. */
static rnl_status open_and_run(void *spec)
{
    rnl_device *own;
    STEP(rnl_device_open(spec, NULL, &own));
    rnl_status status = run(own);
    rnl_error error = *rnl_last_error();
    rnl_device_release(own);
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

static rnl_status open_and_compile(void *spec)
{
    setenv("RUNNEL_CACHE", "off", 1);
    rnl_status status = open_and_run(spec);
    unsetenv("RUNNEL_CACHE");
    return status;
}

static void check_idle(void)
{
    rnl_device_stats stats;
    rnl_device_get_stats(device, &stats);
    ck_assert_uint_eq(stats.pool_in_use_bytes, 0);
}

static void sweep(rnl_status (*program)(void *), void *data, bool opens)
{
    for (int always = 0; always < 2; always++) {
        const fake_sweep wish = {.program = program,
                                 .data = data,
                                 .code = always ? CL_OUT_OF_HOST_MEMORY : CL_OUT_OF_RESOURCES,
                                 .code_text = always ? "CL_OUT_OF_HOST_MEMORY (-6)" : "CL_OUT_OF_RESOURCES (-5)",
                                 .from_then_on = always,
                                 .may_be_not_found = opens};
        ck_assert_uint_gt(fake_sweep_calls(&wish), 10);
    }
    check_idle();
}

START_TEST(each_call_of_a_run_fails)
{
    open_other(_i);
    sweep(run, device, false);
}
END_TEST

START_TEST(each_call_of_opening_and_running_fails)
{
    sweep(open_and_run, (void *)(uintptr_t)devices[_i], true);
}
END_TEST

START_TEST(each_call_of_compiling_fails)
{
    sweep(open_and_compile, (void *)(uintptr_t)devices[_i], true);
}
END_TEST

static rnl_status list(void *data)
{
    rnl_device_info infos[4];
    size_t count;
    (void)data;
    return rnl_device_list(infos, 4, &count);
}

START_TEST(each_call_of_listing_fails)
{
    for (int always = 0; always < 2; always++) {
        const fake_sweep wish = {.program = list,
                                 .code = CL_OUT_OF_RESOURCES,
                                 .code_text = "CL_OUT_OF_RESOURCES (-5)",
                                 .from_then_on = always,
                                 .may_be_not_found = true};
        fake_sweep_calls(&wish); /* a device that fails is left out: some are found */
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_faults");
    TCase *test_case = tcase_create("fake_faults");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_loop_test(test_case, each_call_of_a_run_fails, 0, 3);
    tcase_add_loop_test(test_case, each_call_of_opening_and_running_fails, 0, 3);
    tcase_add_loop_test(test_case, each_call_of_compiling_fails, 0, 3);
    tcase_add_test(test_case, each_call_of_listing_fails);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
