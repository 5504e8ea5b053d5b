/* SPDX-License-Identifier: Apache-2.0 */
/* RUNNEL_SYNC: a failure names the launch or the copy. RUNNEL_GUARD: who writes behind a buffer is found and named. */
#include "device/cl_status.h"
#include "device/guard.h"
#include "support/fault.h"
#include "support/test_device.h"
#include <runnel/kernel.h>
#include <runnel/pool.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 100
#define VALUE(of)                                                                                                      \
    {                                                                                                                  \
        RNL_ARG_VALUE, sizeof(of), &(of), NULL                                                                         \
    }
#define BUFFER(of)                                                                                                     \
    {                                                                                                                  \
        RNL_ARG_BUFFER, 0, NULL, of                                                                                    \
    }

static rnl_device *device;
static rnl_stream *stream;
static rnl_buffer *buffer;
static rnl_kernel *kernel;

static const char source[] = "__kernel void fill(__global int *x, int first, float scale, int2 more)\n"
                             "{\n"
                             "    x[first + (int)get_global_id(0)] = (int)(scale * 3.0f) + more.s1;\n"
                             "}\n";

static void open_with(const char *variable)
{
    setenv(variable, "1", 1);
    device = test_open_device();
    test_ok(rnl_stream_create(device, &stream));
    unsetenv(variable);
    const rnl_buffer_options options = {.struct_size = sizeof options, .label = "victim"};
    test_ok(rnl_buffer_create_with(device, RNL_MEMORY_DEVICE, COUNT * sizeof(int), &options, &buffer));
    test_ok(rnl_kernel_create(device, source, NULL, "fill", &kernel));
}

static void close_all(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_kernel_release(kernel);
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    rnl_device_release(device);
    kernel = NULL;
    buffer = NULL;
}

static rnl_status launch(int first)
{
    const float scale = 0.5f;
    const int more[2] = {-7, 9};
    const rnl_range range = {1, {COUNT}, {1}};
    return rnl_stream_launch(stream, kernel, &range,
                             (const rnl_arg[]){BUFFER(buffer), VALUE(first), VALUE(scale), VALUE(more)}, 4);
}

static void says(const char *part)
{
    if (!strstr(rnl_last_error()->message, part))
        ck_abort_msg("no '%s' in: %s", part, rnl_last_error()->message);
}

/* Four arguments are set, the kernel is enqueued, and then the stream is finished. */
START_TEST(a_failure_names_the_launch)
{
    open_with("RUNNEL_SYNC");
    test_ok(launch(0));
    rnl_cl_fail_at(6, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clFinish: CL_OUT_OF_RESOURCES (-5)", launch(0));
    ck_assert(!test_cl_fault_left());
    says("kernel 'fill': fill of (source), 100 work-items in groups of 1; 0: 400 bytes labelled 'victim'; 1:");
    says("0.5");
    says("-7 9");
    test_fails(RNL_RESOURCE_EXHAUSTED, "kernel 'fill'", rnl_stream_synchronize(stream));
    close_all();
}
END_TEST

START_TEST(a_launch_that_is_refused_is_named_without_it)
{
    open_with("RUNNEL_NOTHING");
    test_ok(launch(0));
    rnl_cl_fail_at(5, CL_INVALID_WORK_GROUP_SIZE);
    test_fails(RNL_INVALID_ARGUMENT, "clEnqueueNDRangeKernel", launch(0));
    says("100 work-items in groups of 1; 0: 400 bytes labelled 'victim'");
    close_all();
}
END_TEST

START_TEST(a_failure_names_the_copy)
{
    static int numbers[COUNT]; /* who waits for the last read fails, and it may still be under way at the end */
    open_with("RUNNEL_SYNC");
    test_ok(launch(0));
    test_ok(rnl_stream_read(stream, numbers, buffer, 0, sizeof numbers));
    ck_assert_int_eq(numbers[COUNT - 1], 10); /* it is there without another wait */
    rnl_cl_fail_at(2, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "read: 8 bytes at 4 of a buffer of 400",
               rnl_stream_read(stream, numbers, buffer, 4, 8));
    close_all();
}
END_TEST

START_TEST(a_write_behind_a_buffer_is_found_at_once)
{
    open_with("RUNNEL_GUARD");
    test_ok(launch(0));
    test_ok(rnl_stream_synchronize(stream));
    test_fails(RNL_INTERNAL, "bytes 0 to 3 behind the end of a buffer of 400 bytes labelled 'victim'", launch(1));
    says("kernel 'fill'");
    close_all();
}
END_TEST

/* By the host through a stream of another program part; the release is where it shows. */
START_TEST(a_write_behind_a_released_buffer_is_told_once)
{
    rnl_buffer *other;
    open_with("RUNNEL_GUARD");
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 40, &other));
    rnl_stream *unwatched;
    test_ok(rnl_stream_create(device, &unwatched)); /* the variable is not set any more */
    const int first = 2;
    const float scale = 1;
    const int more[2] = {0, 0};
    const rnl_range range = {1, {10}, {1}};
    test_ok(rnl_stream_launch(unwatched, kernel, &range,
                              (const rnl_arg[]){BUFFER(other), VALUE(first), VALUE(scale), VALUE(more)}, 4));
    test_ok(rnl_buffer_release_after(other, unwatched));
    test_fails(RNL_INTERNAL, "bytes 0 to 7 behind the end of a buffer of 40 bytes", rnl_stream_synchronize(unwatched));
    test_ok(rnl_stream_synchronize(stream)); /* told once */
    rnl_stream_release(unwatched);
    close_all();
}
END_TEST

START_TEST(guards_come_with_each_size)
{
    open_with("RUNNEL_GUARD");
    for (size_t bytes = 1; bytes < 1 << 20; bytes = bytes * 3 + 1) {
        rnl_buffer *one;
        unsigned char *all = malloc(bytes), *back = malloc(bytes);
        ck_assert(all && back);
        test_fill(all, bytes, (unsigned)bytes);
        test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, bytes, &one));
        ck_assert_uint_eq(rnl_buffer_size(one), bytes);
        test_ok(rnl_stream_write(stream, one, 0, all, bytes));
        test_ok(rnl_stream_read(stream, back, one, 0, bytes));
        test_ok(rnl_stream_synchronize(stream));
        ck_assert_mem_eq(back, all, bytes);
        rnl_buffer_release(one);
        free(all);
        free(back);
    }
    close_all();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("debug");
    TCase *test_case = tcase_create("debug");
    unsetenv("RUNNEL_GUARD");
    tcase_add_test(test_case, a_failure_names_the_launch);
    tcase_add_test(test_case, a_launch_that_is_refused_is_named_without_it);
    tcase_add_test(test_case, a_failure_names_the_copy);
    tcase_add_test(test_case, a_write_behind_a_buffer_is_found_at_once);
    tcase_add_test(test_case, a_write_behind_a_released_buffer_is_told_once);
    tcase_add_test(test_case, guards_come_with_each_size);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
