/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events: order, and failures that stay. */
#include "device/cl_status.h"
#include "device/stream.h"
#include "support/test_device.h"
#include <stdlib.h>
#include <string.h>

#define BYTES ((size_t)1 << 20)

static rnl_device *device;
static rnl_stream *first, *second;
static rnl_buffer *a, *b;
static rnl_event *event;
static unsigned char back[BYTES];

static void open_all(void)
{
    device = test_open_device();
    test_ok(rnl_stream_create(device, &first));
    test_ok(rnl_stream_create(device, &second));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &a));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &b));
}

static void close_all(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_event_release(event);
    event = NULL;
    rnl_buffer_release(a);
    rnl_buffer_release(b);
    rnl_stream_release(first);
    rnl_stream_release(second);
    rnl_device_release(device);
}

static void check_bytes(unsigned char value)
{
    for (size_t i = 0; i < BYTES; i++)
        if (back[i] != value)
            ck_abort_msg("byte %zu is %u, not %u", i, back[i], value);
}

START_TEST(a_stream_runs_in_order)
{
    for (unsigned round = 1; round < 20; round++) {
        unsigned char value = (unsigned char)round;
        test_ok(rnl_stream_fill(first, a, 0, &value, 1, BYTES));
        test_ok(rnl_stream_copy(first, b, 0, a, 0, BYTES));
        test_ok(rnl_stream_read(first, back, b, 0, BYTES));
        test_ok(rnl_stream_flush(first));
        test_ok(rnl_stream_synchronize(first));
        check_bytes(value);
    }
}
END_TEST

START_TEST(a_stream_waits_for_another)
{
    for (unsigned round = 1; round < 20; round++) {
        unsigned char value = (unsigned char)(round * 3);
        test_ok(rnl_stream_fill(first, a, 0, &value, 1, BYTES));
        test_ok(rnl_stream_record(first, &event));
        test_ok(rnl_stream_wait(second, event));
        rnl_event_release(event); /* before it has happened, perhaps */
        event = NULL;
        test_ok(rnl_stream_copy(second, b, 0, a, 0, BYTES));
        test_ok(rnl_stream_read(second, back, b, 0, BYTES));
        test_ok(rnl_stream_synchronize(second));
        check_bytes(value);
    }
}
END_TEST

START_TEST(an_event_waits_for_what_came_before)
{
    unsigned char value = 77;
    test_ok(rnl_stream_fill(first, a, 0, &value, 1, BYTES));
    test_ok(rnl_stream_read(first, back, a, 0, BYTES));
    test_ok(rnl_stream_record(first, &event));
    test_ok(rnl_stream_wait(first, event)); /* its own: nothing to wait for */
    ck_assert_ptr_eq(rnl_event_retain(event), event);
    rnl_event_release(event);
    test_ok(rnl_event_synchronize(event));
    check_bytes(value);
    test_ok(rnl_event_synchronize(event));
    rnl_event_release(NULL);
    rnl_stream_release(NULL);
}
END_TEST

START_TEST(an_empty_stream_synchronises)
{
    test_ok(rnl_stream_synchronize(first));
    test_ok(rnl_stream_flush(first));
    test_ok(rnl_stream_record(first, &event));
    test_ok(rnl_event_synchronize(event));
}
END_TEST

START_TEST(the_first_failure_stays)
{
    rnl_event *none = event;
    rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueCopyBuffer: CL_OUT_OF_RESOURCES (-5)",
               rnl_stream_copy(first, b, 0, a, 0, 16));
    ck_assert_int_eq(rnl_last_error()->native_code, -5);
    rnl_cl_fail_at(1, CL_INVALID_VALUE);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueCopyBuffer", rnl_stream_fill(first, a, 0, "", 1, 16));
    rnl_cl_fail_at(0, CL_SUCCESS);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueCopyBuffer", rnl_stream_write(first, a, 0, back, 16));
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueCopyBuffer", rnl_stream_read(first, back, a, 0, 16));
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueCopyBuffer", rnl_stream_flush(first));
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueCopyBuffer", rnl_stream_record(first, &none));
    ck_assert_ptr_null(none);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueCopyBuffer", rnl_stream_synchronize(first));
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueCopyBuffer", rnl_stream_synchronize(first));
    test_ok(rnl_stream_fill(second, a, 0, "", 1, 16));
    test_ok(rnl_stream_synchronize(second));
}
END_TEST

START_TEST(a_failure_goes_to_the_stream_that_waits)
{
    test_ok(rnl_stream_record(first, &event));
    rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_fill(first, a, 0, "", 1, 16));
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_event_synchronize(event));
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_wait(second, event));
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_synchronize(second));
}
END_TEST

static void *use_a_stream(void *argument)
{
    unsigned char value = *(unsigned char *)argument;
    unsigned char *mine = malloc(4096);
    rnl_stream *stream = NULL;
    rnl_buffer *buffer = NULL;
    bool right = mine && rnl_stream_create(device, &stream) == RNL_OK &&
                 rnl_buffer_create(device, RNL_MEMORY_DEVICE, 4096, &buffer) == RNL_OK;
    for (int i = 0; i < 200 && right; i++) {
        right = rnl_stream_fill(stream, buffer, 0, &value, 1, 4096) == RNL_OK &&
                rnl_stream_read(stream, mine, buffer, 0, 4096) == RNL_OK && rnl_stream_synchronize(stream) == RNL_OK &&
                mine[0] == value && mine[4095] == value;
    }
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    free(mine);
    return right ? argument : NULL;
}

START_TEST(threads_have_streams_of_their_own)
{
    pthread_t threads[4];
    unsigned char values[4] = {1, 2, 3, 4};
    if (strstr(rnl_device_get_info(device)->platform, "Oclgrind"))
        return; /* which crashes when two threads call it */
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_a_stream, &values[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        ck_assert_ptr_eq(result, &values[i]);
    }
}
END_TEST

START_TEST(each_code_has_a_name_and_a_status)
{
    ck_assert_str_eq(rnl_cl_code_name(-61), "CL_INVALID_BUFFER_SIZE");
    ck_assert_str_eq(rnl_cl_code_name(-9999), "unknown code");
    test_fails(RNL_INTERNAL, "clFoo: unknown code (-9999)", rnl_cl_status(-9999, "clFoo(bar, 3)"));
    test_fails(RNL_NOT_FOUND, "clFoo: CL_PLATFORM_NOT_FOUND_KHR (-1001)", rnl_cl_status(-1001, "clFoo"));
    test_ok(rnl_cl_status(CL_SUCCESS, "clFoo"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stream");
    TCase *test_case = tcase_create("stream");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, a_stream_runs_in_order);
    tcase_add_test(test_case, a_stream_waits_for_another);
    tcase_add_test(test_case, an_event_waits_for_what_came_before);
    tcase_add_test(test_case, an_empty_stream_synchronises);
    tcase_add_test(test_case, the_first_failure_stays);
    tcase_add_test(test_case, a_failure_goes_to_the_stream_that_waits);
    tcase_add_test(test_case, threads_have_streams_of_their_own);
    tcase_add_test(test_case, each_code_has_a_name_and_a_status);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
