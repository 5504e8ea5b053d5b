/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every OpenCL call and every allocation of a small program is made to fail, one after the other: the program then
 * ends with the right status, holds nothing (the leak checker looks), and works when it is run again.
 */
#include "base/memory.h"
#include "device/buffer.h"
#include "kernel/program.h"
#include "support/fault.h"
#include "support/test_device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 64
#define MOST_FAULTS 2000

static char *folder;
static rnl_device *device;

static void open_all(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    unsetenv("RUNNEL_CACHE");
    device = test_open_device();
}

static void close_all(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_alloc_fail_at(0);
    rnl_device_release(device);
    test_folder_remove(folder);
}

/* The fake driver knows it by its name. */
static const char source[] =
    "__kernel void fake_scale(__global const int *a, __global int *b, int by, __local int *t)\n"
    "{\n"
    "    int i = get_local_id(0);\n"
    "    t[i] = a[get_global_id(0)] * by;\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    b[get_global_id(0)] = t[i];\n"
    "}\n";

/* What a run holds. */
typedef struct objects {
    rnl_stream *streams[2];
    rnl_buffer *device_memory, *pinned;
    rnl_kernel *kernel;
    rnl_event *event;
    int back[COUNT]; /* copies are still under way when a run fails: it lives until the streams have ended */
} objects;

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

#define STEP(call)                                                                                                     \
    do {                                                                                                               \
        rnl_status step_ = (call);                                                                                     \
        if (step_ != RNL_OK)                                                                                           \
            return step_;                                                                                              \
    } while (0)

static rnl_status create(rnl_device *on, objects *o)
{
    size_t bytes = sizeof o->back;
    STEP(rnl_stream_create(on, &o->streams[0]));
    STEP(rnl_stream_create(on, &o->streams[1]));
    STEP(rnl_buffer_create(on, RNL_MEMORY_DEVICE, bytes, &o->device_memory));
    STEP(rnl_buffer_create(on, RNL_MEMORY_PINNED, bytes, &o->pinned));
    STEP(rnl_kernel_create(on, source, NULL, "fake_scale", &o->kernel));
    for (int i = 0; i < COUNT; i++)
        ((int *)rnl_buffer_host(o->pinned))[i] = i - 9;
    return RNL_OK;
}

static rnl_status compute(objects *o)
{
    STEP(rnl_stream_fill(o->streams[0], o->device_memory, 0, "\0\0\0\0", 4, sizeof o->back));
    STEP(launch(o));
    STEP(rnl_stream_record(o->streams[0], &o->event));
    STEP(rnl_stream_wait(o->streams[1], o->event));
    STEP(rnl_stream_copy(o->streams[1], o->pinned, 0, o->device_memory, 0, sizeof o->back));
    STEP(rnl_stream_read(o->streams[1], o->back, o->pinned, 0, sizeof o->back));
    STEP(rnl_stream_write(o->streams[1], o->device_memory, 0, o->back, 0));
    STEP(rnl_stream_flush(o->streams[1]));
    STEP(rnl_event_synchronize(o->event));
    return rnl_stream_synchronize(o->streams[1]);
}

static void release(objects *o)
{
    for (int i = 0; i < 2; i++) {
        rnl_status ended = o->streams[i] ? rnl_stream_synchronize(o->streams[i]) : RNL_OK;
        (void)ended; /* memory may be released after it, whatever it says */
        rnl_stream_release(o->streams[i]);
    }
    rnl_event_release(o->event);
    rnl_kernel_release(o->kernel);
    rnl_buffer_release(o->pinned);
    rnl_buffer_release(o->device_memory);
}

static rnl_status run(rnl_device *on)
{
    objects o = {0};
    rnl_status status = create(on, &o);
    if (status == RNL_OK)
        status = compute(&o);
    rnl_error error = *rnl_last_error();
    if (status == RNL_OK)
        for (int i = 0; i < COUNT; i++)
            ck_assert_int_eq(o.back[i], 3 * (i - 9));
    release(&o);
    if (status == RNL_OK)
        rnl_device_save_programs(on);
    rnl_device_finish_saving(on); /* a fault is to come at the same call each time */
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

static rnl_status open_and_run(rnl_device *unused)
{
    (void)unused;
    rnl_device *own;
    STEP(rnl_device_open(getenv("RUNNEL_TEST_DEVICE"), NULL, &own));
    rnl_status status = run(own);
    rnl_device_release(own);
    return status;
}

static rnl_status list(rnl_device *unused)
{
    (void)unused;
    rnl_device_info infos[4];
    size_t count;
    return rnl_device_list(infos, 4, &count);
}

static void check_idle(rnl_device *of)
{
    rnl_device_stats stats;
    rnl_device_get_stats(of, &stats);
    ck_assert_uint_eq(stats.pool_in_use_bytes, 0);
}

/* A fault in an OpenCL call: what the call says, or the right answer where there is another way. */
static void fail_each_call(rnl_status (*program)(rnl_device *), bool may_lose_devices)
{
    size_t failed = 0;
    for (uint64_t n = 1; n < MOST_FAULTS; n++) {
        rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        rnl_status status = program(device);
        bool left = test_cl_fault_left();
        check_idle(device);
        if (left) {
            ck_assert_int_eq(status, RNL_OK);
            ck_assert_uint_gt(failed, 0);
            return;
        }
        if (status == RNL_NOT_FOUND && may_lose_devices)
            continue; /* the device, or its whole platform, was left out */
        if (status != RNL_OK) {
            ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
            ck_assert_int_eq(rnl_last_error()->native_code, CL_OUT_OF_RESOURCES);
            ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "CL_OUT_OF_RESOURCES (-5)"));
            failed++;
        }
        test_ok(program(device));
    }
    ck_abort_msg("the fault never stopped coming");
}

static void fail_each_allocation(rnl_status (*program)(rnl_device *))
{
    size_t failed = 0;
    for (uint64_t n = 1; n < MOST_FAULTS; n++) {
        rnl_alloc_fail_at(n);
        rnl_status status = program(device);
        bool left = test_alloc_fault_left();
        check_idle(device);
        if (left) {
            ck_assert_int_eq(status, RNL_OK);
            ck_assert_uint_gt(failed, 0);
            return;
        }
        if (status != RNL_OK) {
            ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
            ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "out of memory"));
            failed++;
        }
        test_ok(program(device));
    }
    ck_abort_msg("the fault never stopped coming");
}

START_TEST(each_call_of_a_run_fails)
{
    fail_each_call(run, false);
}
END_TEST

START_TEST(each_call_of_a_run_on_a_gpu_fails)
{
    device->maps_in_place = false; /* pinned memory has two sides there */
    fail_each_call(run, false);
}
END_TEST

START_TEST(each_call_of_opening_and_running_fails)
{
    fail_each_call(open_and_run, true);
}
END_TEST

START_TEST(each_call_of_listing_fails)
{
    rnl_status (*program)(rnl_device *) = list;
    for (uint64_t n = 1; n < MOST_FAULTS; n++) {
        rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        rnl_status status = program(device);
        bool left = test_cl_fault_left();
        ck_assert(status == RNL_OK || status == RNL_NOT_FOUND || status == RNL_RESOURCE_EXHAUSTED);
        test_ok(program(device));
        if (left)
            return;
    }
}
END_TEST

START_TEST(each_allocation_of_a_run_fails)
{
    fail_each_allocation(run);
}
END_TEST

START_TEST(each_allocation_of_opening_and_running_fails)
{
    fail_each_allocation(open_and_run);
}
END_TEST

START_TEST(each_allocation_of_listing_fails)
{
    fail_each_allocation(list);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fault");
    TCase *test_case = tcase_create("fault");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, each_call_of_a_run_fails);
    tcase_add_test(test_case, each_call_of_a_run_on_a_gpu_fails);
    tcase_add_test(test_case, each_call_of_opening_and_running_fails);
    tcase_add_test(test_case, each_call_of_listing_fails);
    tcase_add_test(test_case, each_allocation_of_a_run_fails);
    tcase_add_test(test_case, each_allocation_of_opening_and_running_fails);
    tcase_add_test(test_case, each_allocation_of_listing_fails);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
