/* SPDX-License-Identifier: Apache-2.0 */
/* Events: asked, heard about, timed. */
#include "device/stream.h"
#include "support/test_device.h"
#include <string.h>
#include <unistd.h>

#define BYTES ((size_t)1 << 16)

static rnl_device *device;
static rnl_stream *stream;
static rnl_buffer *buffer;
static rnl_event *event;

static void open_all(void)
{
    device = test_open_device();
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &buffer));
}

static void close_all(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_event_release(event);
    event = NULL;
    rnl_stream_release(stream);
    rnl_buffer_release(buffer);
    rnl_device_release(device);
}

/* What a callback was told; filled once. */
typedef struct told {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int calls;
    rnl_error error; /* status RNL_OK: NULL was given */
    rnl_status blocking;
    rnl_stream *stream; /* what the callback is to use, and to release */
    rnl_event *event;
    rnl_device *device;
    struct told *next; /* to be told by an event that the callback records */
} told;

#define TOLD_INIT                                                                                                      \
    {                                                                                                                  \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                                         \
    }

static void hear(void *user, const rnl_error *error)
{
    told *it = user;
    if (it->stream) {
        it->blocking = rnl_stream_synchronize(it->stream);
        if (it->next) {
            rnl_event *next = NULL;
            if (rnl_stream_fill(it->stream, buffer, 0, "", 1, BYTES) == RNL_OK &&
                rnl_stream_record(it->stream, &next) == RNL_OK)
                (void)!rnl_event_notify(next, hear, it->next);
            rnl_event_release(next);
        }
        rnl_stream_release(it->stream);
        rnl_event_release(it->event);
        rnl_device_release(it->device);
    }
    pthread_mutex_lock(&it->lock);
    it->calls++;
    if (error)
        it->error = *error;
    pthread_cond_broadcast(&it->changed);
    pthread_mutex_unlock(&it->lock);
}

static void wait_until_told(told *it)
{
    pthread_mutex_lock(&it->lock);
    while (it->calls == 0)
        pthread_cond_wait(&it->changed, &it->lock);
    pthread_mutex_unlock(&it->lock);
}

START_TEST(an_event_is_asked_without_blocking)
{
    bool done = true;
    cl_int code;
    if (!device->runs_in_caller) {
        cl_event gate = clCreateUserEvent(device->context, &code);
        ck_assert_int_eq(clEnqueueBarrierWithWaitList(stream->queue, 1, &gate, NULL), CL_SUCCESS);
        test_ok(rnl_stream_record(stream, &event));
        test_ok(rnl_event_query(event, &done));
        ck_assert(!done);
        ck_assert_int_eq(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        clReleaseEvent(gate);
        test_ok(rnl_event_synchronize(event));
        rnl_event_release(event);
        event = NULL;
    }
    test_ok(rnl_stream_fill(stream, buffer, 0, "", 1, BYTES));
    test_ok(rnl_stream_record(stream, &event));
    for (done = false; !done;)
        test_ok(rnl_event_query(event, &done));
    rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_fill(stream, buffer, 0, "", 1, 4));
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_event_query(event, &done));
    ck_assert(done);
}
END_TEST

START_TEST(an_event_tells_when_it_happens)
{
    told first = TOLD_INIT, second = TOLD_INIT;
    test_ok(rnl_stream_fill(stream, buffer, 0, "", 1, BYTES));
    test_ok(rnl_stream_record(stream, &event));
    test_ok(rnl_event_notify(event, hear, &first));
    rnl_event_retain(event);
    rnl_event_release(event);
    wait_until_told(&first);
    test_ok(rnl_event_notify(event, hear, &second)); /* long after it happened */
    wait_until_told(&second);
    usleep(1000);
    ck_assert_int_eq(first.calls, 1);
    ck_assert_int_eq(second.calls, 1);
    ck_assert_int_eq(first.error.status, RNL_OK);
    test_fails(RNL_INVALID_ARGUMENT, "notify is NULL", rnl_event_notify(event, NULL, NULL));
}
END_TEST

START_TEST(an_event_tells_of_a_failure)
{
    told it = TOLD_INIT;
    test_ok(rnl_stream_record(stream, &event));
    rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_fill(stream, buffer, 0, "", 1, 4));
    test_ok(rnl_event_notify(event, hear, &it));
    wait_until_told(&it);
    ck_assert_int_eq(it.error.status, RNL_RESOURCE_EXHAUSTED);
    ck_assert_ptr_nonnull(strstr(it.error.message, "clEnqueueFillBuffer: CL_OUT_OF_RESOURCES (-5)"));
}
END_TEST

/* The last references to a stream, an event and a device end in the callback. */
START_TEST(a_callback_may_release_but_not_block)
{
    for (int i = 0; i < 20; i++) {
        told it = TOLD_INIT;
        it.device = test_open_device();
        test_ok(rnl_stream_create(it.device, &it.stream));
        test_ok(rnl_stream_record(it.stream, &it.event));
        rnl_event *last = it.event;
        test_ok(rnl_event_notify(last, hear, &it));
        wait_until_told(&it);
        ck_assert_int_eq(it.blocking, RNL_FAILED_PRECONDITION);
    }
}
END_TEST

START_TEST(a_callback_may_go_on)
{
    told first = TOLD_INIT, second = TOLD_INIT;
    if (strcmp(rnl_device_get_info(device)->platform, "Oclgrind") == 0)
        return; /* which crashes when two threads call it */
    test_ok(rnl_stream_create(device, &first.stream));
    test_ok(rnl_stream_record(first.stream, &event));
    first.next = &second;
    test_ok(rnl_event_notify(event, hear, &first));
    wait_until_told(&second);
    wait_until_told(&first);
    ck_assert_int_eq(second.error.status, RNL_OK);
}
END_TEST

START_TEST(timed_streams_have_times)
{
    rnl_stream_options options = RNL_STREAM_OPTIONS_INIT;
    rnl_stream *timed, *plain = stream;
    rnl_event *start, *end, *untimed;
    uint64_t ns = 7;
    options.timed = true;
    test_ok(rnl_stream_create_with(device, &options, &timed));
    test_ok(rnl_stream_record(timed, &start));
    for (int i = 0; i < 20; i++)
        test_ok(rnl_stream_fill(timed, buffer, 0, "", 1, BYTES));
    test_ok(rnl_stream_record(timed, &end));
    test_ok(rnl_stream_record(plain, &untimed));
    test_ok(rnl_stream_synchronize(timed));
    test_ok(rnl_stream_synchronize(plain));
    rnl_status status = rnl_event_elapsed(start, end, &ns);
    if (status == RNL_OK) {
        ck_assert_uint_gt(ns, 0);
        ck_assert_uint_lt(ns, UINT64_C(60000000000));
        test_fails(RNL_INVALID_ARGUMENT, "happened before", rnl_event_elapsed(end, start, &ns));
        if (rnl_event_elapsed(start, untimed, &ns) != RNL_OK) /* Oclgrind times all */
            ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "option timed"));
    } else {
        ck_assert_int_eq(status, RNL_UNIMPLEMENTED);
        ck_assert_str_eq(rnl_device_get_info(device)->platform, "rusticl"); /* the others have times */
        ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "does not tell"));
    }
    if (status != RNL_OK)
        ck_assert_uint_eq(ns, 0);
    rnl_event_release(start);
    rnl_event_release(end);
    rnl_event_release(untimed);
    rnl_stream_release(timed);
}
END_TEST

START_TEST(times_need_one_device_and_options_their_size)
{
    rnl_device *other = test_open_device();
    rnl_stream *foreign;
    rnl_event *there;
    rnl_stream_options options = {0};
    uint64_t ns = 7;
    test_fails(RNL_INVALID_ARGUMENT, "RNL_STREAM_OPTIONS_INIT", rnl_stream_create_with(other, &options, &foreign));
    ck_assert_ptr_null(foreign);
    test_ok(rnl_stream_create(other, &foreign));
    test_ok(rnl_stream_record(foreign, &there));
    test_ok(rnl_stream_record(stream, &event));
    test_ok(rnl_event_synchronize(there));
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_event_elapsed(event, there, &ns));
    ck_assert_uint_eq(ns, 0);
    rnl_event_release(there);
    rnl_stream_release(foreign);
    rnl_device_release(other);
}
END_TEST

START_TEST(an_event_that_is_null_is_refused)
{
    bool done;
    uint64_t ns;
    test_fails(RNL_INVALID_ARGUMENT, "rnl_stream_wait: event is NULL", rnl_stream_wait(stream, NULL));
    test_fails(RNL_INVALID_ARGUMENT, "event is NULL", rnl_event_synchronize(NULL));
    test_fails(RNL_INVALID_ARGUMENT, "event is NULL", rnl_event_query(NULL, &done));
    test_fails(RNL_INVALID_ARGUMENT, "event is NULL", rnl_event_notify(NULL, hear, NULL));
    test_fails(RNL_INVALID_ARGUMENT, "event is NULL", rnl_event_elapsed(NULL, NULL, &ns));
    test_ok(rnl_stream_synchronize(stream));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("event");
    TCase *test_case = tcase_create("event");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, an_event_is_asked_without_blocking);
    tcase_add_test(test_case, an_event_tells_when_it_happens);
    tcase_add_test(test_case, an_event_tells_of_a_failure);
    tcase_add_test(test_case, a_callback_may_release_but_not_block);
    tcase_add_test(test_case, a_callback_may_go_on);
    tcase_add_test(test_case, timed_streams_have_times);
    tcase_add_test(test_case, times_need_one_device_and_options_their_size);
    tcase_add_test(test_case, an_event_that_is_null_is_refused);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
