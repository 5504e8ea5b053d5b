/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's OpenCL objects wrapped, and runnel's handed out. */
#include "device/cl_status.h"
#include "support/test_device.h"
#include <runnel/interop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 64
#define BYTES (COUNT * sizeof(int))

/* The fake driver knows it by its name. */
static const char source[] = "__kernel void fake_add(__global int *x, int by) { x[get_global_id(0)] += by; }\n";

static char *folder;
static rnl_device *device, *wrapped;
static cl_device_id id;
static cl_context context;
static cl_command_queue queue;
static cl_mem memory;
static rnl_stream *stream;
static rnl_buffer *buffer;
static rnl_kernel *kernel;
static int back[COUNT];

static void cl_ok(cl_int code)
{
    if (code != CL_SUCCESS)
        ck_abort_msg("%s (%d)", rnl_cl_code_name(code), (int)code);
}

static cl_context make_context(void)
{
    cl_int code;
    cl_context made = clCreateContext(NULL, 1, &id, NULL, NULL, &code);
    cl_ok(code);
    return made;
}

static cl_command_queue make_queue(cl_context in, cl_command_queue_properties properties)
{
    cl_int code;
    cl_command_queue made = clCreateCommandQueue(in, id, properties, &code);
    cl_ok(code);
    return made;
}

static cl_mem make_memory(cl_context in)
{
    cl_int code;
    cl_mem made = clCreateBuffer(in, CL_MEM_READ_WRITE, BYTES, NULL, &code);
    cl_ok(code);
    return made;
}

static void open_all(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    device = test_open_device();
    id = rnl_device_get_cl_device(device);
    context = make_context();
    queue = make_queue(context, 0);
    memory = make_memory(context);
    test_ok(rnl_device_wrap(context, id, NULL, &wrapped));
}

static void release_ours(void)
{
    rnl_kernel_release(kernel);
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    rnl_device_release(wrapped);
    kernel = NULL;
    buffer = NULL;
    stream = NULL;
    wrapped = NULL;
}

static void close_all(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    release_ours();
    clReleaseMemObject(memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    rnl_device_release(device);
    test_folder_remove(folder);
}

static cl_uint references_of_context(void)
{
    cl_uint count = 0;
    cl_ok(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, NULL));
    return count;
}

static cl_uint references_of_queue(void)
{
    cl_uint count = 0;
    cl_ok(clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, NULL));
    return count;
}

static cl_uint references_of_memory(void)
{
    cl_uint count = 0;
    cl_ok(clGetMemObjectInfo(memory, CL_MEM_REFERENCE_COUNT, sizeof count, &count, NULL));
    return count;
}

static void wrap_rest(void)
{
    test_ok(rnl_stream_wrap(wrapped, queue, &stream));
    test_ok(rnl_buffer_wrap(wrapped, memory, &buffer));
    test_ok(rnl_kernel_create(wrapped, source, NULL, "fake_add", &kernel));
}

static void add(int by)
{
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = buffer},
                            {.kind = RNL_ARG_VALUE, .size_bytes = sizeof by, .value = &by}};
    const rnl_range range = {.dimensions = 1, .global = {COUNT, 1, 1}, .local = {8, 1, 1}};
    test_ok(rnl_stream_launch(stream, kernel, &range, args, 2));
}

static void check_back(int expected)
{
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(back[i], expected);
}

START_TEST(callers_and_runnels_commands_run_in_order)
{
    int value = 5;
    wrap_rest();
    ck_assert_uint_eq(rnl_buffer_size(buffer), BYTES);
    ck_assert_ptr_null(rnl_buffer_host(buffer));
    ck_assert_ptr_eq(rnl_buffer_get_cl_mem(buffer), memory);
    ck_assert_ptr_eq(rnl_stream_get_cl_queue(stream), queue);
    ck_assert_ptr_eq(rnl_device_get_cl_context(wrapped), context);
    cl_ok(clEnqueueFillBuffer(queue, memory, &value, sizeof value, 0, BYTES, 0, NULL, NULL));
    add(3);
    cl_ok(clEnqueueReadBuffer(queue, memory, CL_FALSE, 0, BYTES, back, 0, NULL, NULL));
    test_ok(rnl_stream_synchronize(stream));
    check_back(8);
    test_ok(rnl_stream_fill(stream, buffer, 0, "\1\0\0\0", 4, BYTES));
    add(-4);
    cl_ok(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, BYTES, back, 0, NULL, NULL));
    check_back(-3);
}
END_TEST

START_TEST(what_is_wrapped_is_retained_and_released)
{
    const cl_uint of_queue = references_of_queue(), of_memory = references_of_memory();
    test_ok(rnl_stream_wrap(wrapped, queue, &stream));
    test_ok(rnl_buffer_wrap(wrapped, memory, &buffer));
    ck_assert_uint_eq(references_of_queue(), of_queue + 1);
    ck_assert_uint_eq(references_of_memory(), of_memory + 1);
    release_ours();
    ck_assert_uint_eq(references_of_queue(), of_queue);
    ck_assert_uint_eq(references_of_memory(), of_memory);
    const cl_uint of_context = references_of_context();
    test_ok(rnl_device_wrap(context, id, NULL, &wrapped));
    ck_assert_uint_gt(references_of_context(), of_context);
    release_ours();
    ck_assert_uint_eq(references_of_context(), of_context);
}
END_TEST

START_TEST(the_caller_may_release_first)
{
    wrap_rest();
    clReleaseMemObject(memory);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
    test_ok(rnl_stream_fill(stream, buffer, 0, "\1\0\0\0", 4, BYTES));
    add(1);
    test_ok(rnl_stream_read(stream, back, buffer, 0, BYTES));
    test_ok(rnl_stream_synchronize(stream));
    check_back(2);
    release_ours();
    context = make_context();
    queue = make_queue(context, 0);
    memory = make_memory(context);
}
END_TEST

START_TEST(a_wrapped_device_has_a_pool_of_its_own)
{
    rnl_device_stats stats;
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    release_ours();
    options.memory_limit_bytes = 1 << 20;
    options.compute_units = rnl_device_get_info(device)->compute_units;
    test_ok(rnl_device_wrap(context, id, &options, &wrapped));
    rnl_device_get_stats(wrapped, &stats);
    ck_assert_uint_eq(stats.pool_budget_bytes, 1 << 20);
    ck_assert_str_eq(rnl_device_get_info(wrapped)->name, rnl_device_get_info(device)->name);
    test_fails(RNL_RESOURCE_EXHAUSTED, NULL, rnl_buffer_create(wrapped, RNL_MEMORY_DEVICE, 1 << 21, &buffer));
    test_ok(rnl_buffer_create(wrapped, RNL_MEMORY_DEVICE, BYTES, &buffer));
    test_ok(rnl_stream_create(wrapped, &stream));
    test_ok(rnl_kernel_create(wrapped, source, NULL, "fake_add", &kernel));
    test_ok(rnl_stream_fill(stream, buffer, 0, "\1\0\0\0", 4, BYTES));
    add(6);
    /* Both on one context: the caller's queue copies from the pool's buffer. */
    cl_event ready = NULL;
    cl_ok(clEnqueueMarkerWithWaitList(rnl_stream_get_cl_queue(stream), 0, NULL, &ready));
    cl_ok(clFlush(rnl_stream_get_cl_queue(stream)));
    cl_ok(clEnqueueCopyBuffer(queue, rnl_buffer_get_cl_mem(buffer), memory, 0, 0, BYTES, 1, &ready, NULL));
    cl_ok(clEnqueueReadBuffer(queue, memory, CL_TRUE, 0, BYTES, back, 0, NULL, NULL));
    clReleaseEvent(ready);
    check_back(7);
}
END_TEST

START_TEST(events_go_both_ways)
{
    rnl_event *event;
    cl_event theirs;
    rnl_buffer_release(buffer);
    wrap_rest();
    rnl_stream *own;
    test_ok(rnl_stream_create(wrapped, &own));
    for (int i = 0; i < 10; i++) {
        test_ok(rnl_stream_fill(own, buffer, 0, &i, sizeof i, BYTES));
        test_ok(rnl_stream_record(own, &event));
        cl_event ready = rnl_event_get_cl_event(event);
        cl_ok(clEnqueueReadBuffer(queue, memory, CL_FALSE, 0, BYTES, back, 1, &ready, &theirs));
        cl_ok(clFlush(queue));
        rnl_event_release(event);
        test_ok(rnl_stream_wait_cl_event(own, theirs));
        clReleaseEvent(theirs);
        test_ok(rnl_stream_fill(own, buffer, 0, "\0\0\0\0", 4, BYTES));
        test_ok(rnl_stream_synchronize(own));
        check_back(i);
    }
    rnl_stream_release(own);
}
END_TEST

START_TEST(a_sub_buffer_is_a_buffer)
{
    const size_t align = rnl_device_get_info(device)->base_align_bytes, half = (BYTES + align - 1) / align * align;
    const cl_buffer_region region = {.origin = half, .size = BYTES};
    cl_int code;
    cl_mem whole = clCreateBuffer(context, CL_MEM_READ_WRITE, half * 2 + BYTES, NULL, &code);
    cl_ok(code);
    cl_mem part = clCreateSubBuffer(whole, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
    cl_ok(code);
    test_ok(rnl_stream_wrap(wrapped, queue, &stream));
    test_ok(rnl_buffer_wrap(wrapped, part, &buffer));
    clReleaseMemObject(part);
    ck_assert_uint_eq(rnl_buffer_size(buffer), BYTES);
    test_ok(rnl_kernel_create(wrapped, source, NULL, "fake_add", &kernel));
    cl_ok(clEnqueueFillBuffer(queue, whole, "\2\0\0\0", 4, 0, half * 2 + BYTES, 0, NULL, NULL));
    add(9);
    test_fails(RNL_INVALID_ARGUMENT, "lie", rnl_stream_read(stream, back, buffer, 4, BYTES));
    cl_ok(clEnqueueReadBuffer(queue, whole, CL_TRUE, half, BYTES, back, 0, NULL, NULL));
    check_back(11);
    cl_ok(clEnqueueReadBuffer(queue, whole, CL_TRUE, half - 4, 4, back, 0, NULL, NULL));
    ck_assert_int_eq(back[0], 2);
    test_ok(rnl_stream_synchronize(stream));
    clReleaseMemObject(whole);
}
END_TEST

START_TEST(what_does_not_belong_is_refused)
{
    cl_int code;
    cl_context foreign = make_context();
    cl_command_queue their_queue = make_queue(foreign, 0);
    cl_mem their_memory = make_memory(foreign);
    cl_event their_event = clCreateUserEvent(foreign, &code);
    cl_ok(code);
    cl_ok(clSetUserEventStatus(their_event, CL_COMPLETE));
    test_fails(RNL_INVALID_ARGUMENT, "another context", rnl_stream_wrap(wrapped, their_queue, &stream));
    test_fails(RNL_INVALID_ARGUMENT, "another context", rnl_buffer_wrap(wrapped, their_memory, &buffer));
    ck_assert(!stream && !buffer);
    test_ok(rnl_stream_wrap(wrapped, queue, &stream));
    test_fails(RNL_INVALID_ARGUMENT, "another context", rnl_stream_wait_cl_event(stream, their_event));
    test_fails(RNL_INVALID_ARGUMENT, "no event", rnl_stream_wait_cl_event(stream, NULL));
    test_ok(rnl_stream_synchronize(stream));
    clReleaseEvent(their_event);
    clReleaseMemObject(their_memory);
    clReleaseCommandQueue(their_queue);
    clReleaseContext(foreign);
}
END_TEST

START_TEST(what_cannot_be_wrapped_is_refused)
{
    cl_int code;
    rnl_device *none = wrapped;
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    test_fails(RNL_INVALID_ARGUMENT, "NULL", rnl_device_wrap(NULL, id, NULL, &none));
    ck_assert_ptr_null(none);
    test_fails(RNL_INVALID_ARGUMENT, "NULL", rnl_device_wrap(context, NULL, NULL, &none));
    options.compute_units = rnl_device_get_info(device)->compute_units + 1;
    test_fails(RNL_INVALID_ARGUMENT, "compute units", rnl_device_wrap(context, id, &options, &none));
    options.struct_size = 1;
    test_fails(RNL_INVALID_ARGUMENT, "INIT", rnl_device_wrap(context, id, &options, &none));
    test_fails(RNL_INVALID_ARGUMENT, "no queue", rnl_stream_wrap(wrapped, NULL, &stream));
    test_fails(RNL_INVALID_ARGUMENT, "no memory", rnl_buffer_wrap(wrapped, NULL, &buffer));
    cl_command_queue loose = clCreateCommandQueue(context, id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &code);
    if (code == CL_SUCCESS) {
        test_fails(RNL_INVALID_ARGUMENT, "out of order", rnl_stream_wrap(wrapped, loose, &stream));
        clReleaseCommandQueue(loose);
    }
    const cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT8};
    const cl_image_desc desc = {.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4};
    cl_mem image = rnl_device_get_info(device)->has_images
                       ? clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &code)
                       : NULL;
    if (image) {
        test_fails(RNL_INVALID_ARGUMENT, "not a buffer", rnl_buffer_wrap(wrapped, image, &buffer));
        clReleaseMemObject(image);
    }
    ck_assert(!stream && !buffer);
}
END_TEST

START_TEST(another_devices_context_is_refused)
{
    rnl_device_info infos[8];
    size_t count;
    rnl_device *other, *none = wrapped;
    char spec[32];
    test_ok(rnl_device_list(infos, 8, &count));
    for (size_t i = 0; i < count && i < 8; i++) {
        snprintf(spec, sizeof spec, "%u:%u", infos[i].platform_index, infos[i].device_index);
        test_ok(rnl_device_open(spec, NULL, &other));
        cl_device_id other_id = rnl_device_get_cl_device(other);
        if (other_id != id)
            test_fails(RNL_INVALID_ARGUMENT, "does not hold", rnl_device_wrap(context, other_id, NULL, &none));
        rnl_device_release(other);
    }
}
END_TEST

START_TEST(a_part_of_a_device_is_wrapped)
{
    const rnl_device_info *info = rnl_device_get_info(device);
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    rnl_device *part_device;
    char spec[32];
    cl_device_id whole = id;
    snprintf(spec, sizeof spec, "%u:%u", info->platform_index, info->device_index);
    options.compute_units = 1;
    if (rnl_device_open(spec, &options, &part_device) != RNL_OK)
        return; /* it cannot be divided */
    cl_device_id part = rnl_device_get_cl_device(part_device);
    release_ours();
    id = part;
    cl_context own = make_context();
    test_ok(rnl_device_wrap(own, part, NULL, &wrapped));
    ck_assert_uint_eq(rnl_device_get_info(wrapped)->compute_units, 1);
    clReleaseContext(own);
    rnl_device_release(part_device); /* the part lives on */
    test_ok(rnl_stream_create(wrapped, &stream));
    test_ok(rnl_buffer_create(wrapped, RNL_MEMORY_DEVICE, BYTES, &buffer));
    test_ok(rnl_kernel_create(wrapped, source, NULL, "fake_add", &kernel));
    test_ok(rnl_stream_fill(stream, buffer, 0, "\1\0\0\0", 4, BYTES));
    add(1);
    test_ok(rnl_stream_read(stream, back, buffer, 0, BYTES));
    test_ok(rnl_stream_synchronize(stream));
    check_back(2);
    id = whole;
}
END_TEST

START_TEST(programs_of_a_shared_context_are_not_asked_for_on_pocl)
{
    rnl_device_stats stats;
    const bool pocl = strstr(rnl_device_get_info(device)->platform, "Portable") != NULL;
    wrap_rest();
    release_ours(); /* saves what it may */
    test_ok(rnl_kernel_create(device, source, NULL, "fake_add", &kernel));
    rnl_device_get_stats(device, &stats);
    if (!getenv("RUNNEL_CACHE"))
        ck_assert_uint_eq(stats.programs_compiled, pocl ? 1 : 0);
}
END_TEST

static rnl_status wrap_all(void)
{
    rnl_status status = rnl_device_wrap(context, id, NULL, &wrapped);
    if (status == RNL_OK)
        status = rnl_stream_wrap(wrapped, queue, &stream);
    if (status == RNL_OK)
        status = rnl_buffer_wrap(wrapped, memory, &buffer);
    return status;
}

START_TEST(each_failing_call_leaves_the_callers_objects)
{
    unsigned failed = 0;
    bool left = false;
    release_ours();
    const cl_uint of_context = references_of_context();
    const cl_uint of_queue = references_of_queue(), of_memory = references_of_memory();
    for (uint64_t n = 1; n < 1000 && !left; n++) {
        rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        const rnl_status status = wrap_all();
        rnl_cl_fail_at(0, CL_SUCCESS);
        release_ours();
        ck_assert_uint_eq(references_of_context(), of_context);
        ck_assert_uint_eq(references_of_queue(), of_queue);
        ck_assert_uint_eq(references_of_memory(), of_memory);
        failed += status != RNL_OK;
        left = status == RNL_OK && n > 60;
    }
    ck_assert_uint_gt(failed, 5);
    test_ok(wrap_all());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("interop");
    TCase *test_case = tcase_create("interop");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, callers_and_runnels_commands_run_in_order);
    tcase_add_test(test_case, what_is_wrapped_is_retained_and_released);
    tcase_add_test(test_case, the_caller_may_release_first);
    tcase_add_test(test_case, a_wrapped_device_has_a_pool_of_its_own);
    tcase_add_test(test_case, events_go_both_ways);
    tcase_add_test(test_case, a_sub_buffer_is_a_buffer);
    tcase_add_test(test_case, what_does_not_belong_is_refused);
    tcase_add_test(test_case, what_cannot_be_wrapped_is_refused);
    tcase_add_test(test_case, another_devices_context_is_refused);
    tcase_add_test(test_case, a_part_of_a_device_is_wrapped);
    tcase_add_test(test_case, programs_of_a_shared_context_are_not_asked_for_on_pocl);
    tcase_add_test(test_case, each_failing_call_leaves_the_callers_objects);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
