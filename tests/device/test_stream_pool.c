/* SPDX-License-Identifier: Apache-2.0 */
/* Stream pools: the order of streams, the bound, failures, threads. */
#include <runnel/stream_pool.h>

#include "base/memory.h"
#include "device/stream.h"
#include "support/test_device.h"
#include <string.h>
#include <unistd.h>

#define BYTES ((size_t)4096)
#define THREADS 8
#define BATCHES 60

static rnl_device *device;
static rnl_stream_pool *pool;
static rnl_buffer *buffer;

static void open_all(void)
{
    device = test_open_device();
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &buffer));
}

static void close_all(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_alloc_fail_at(0);
    rnl_stream_pool_release(pool);
    pool = NULL;
    rnl_buffer_release(buffer);
    rnl_device_release(device);
}

static bool is_oclgrind(void)
{
    return strcmp(rnl_device_get_info(device)->platform, "Oclgrind") == 0;
}

static rnl_stream_pool *create(uint32_t streams, uint32_t limit)
{
    rnl_stream_pool_options options = RNL_STREAM_POOL_OPTIONS_INIT;
    options.stream_count = streams;
    options.batch_limit = limit;
    test_ok(rnl_stream_pool_create(device, &options, &pool));
    return pool;
}

START_TEST(streams_take_turns)
{
    rnl_stream *turns[3], *again;
    uint64_t number;
    create(3, 8);
    for (uint64_t i = 0; i < 3; i++) {
        test_ok(rnl_stream_pool_begin(pool, &turns[i], &number));
        ck_assert_uint_eq(number, i);
        test_ok(rnl_stream_pool_end(pool, turns[i], NULL));
    }
    ck_assert_ptr_ne(turns[0], turns[1]);
    ck_assert_ptr_ne(turns[1], turns[2]);
    ck_assert_ptr_ne(turns[0], turns[2]);
    for (uint64_t i = 0; i < 30; i++) {
        test_ok(rnl_stream_pool_begin(pool, &again, NULL));
        ck_assert_ptr_eq(again, turns[i % 3]);
        test_ok(rnl_stream_pool_end(pool, again, NULL));
    }
    test_ok(rnl_stream_pool_synchronize(pool, &number));
    ck_assert_uint_eq(number, 0);
    ck_assert_uint_eq(rnl_stream_pool_busy(pool), 0);
}
END_TEST

START_TEST(a_lent_stream_is_passed_over)
{
    rnl_stream *kept, *other, *third;
    create(2, 8);
    test_ok(rnl_stream_pool_begin(pool, &kept, NULL));
    for (int i = 0; i < 4; i++) {
        test_ok(rnl_stream_pool_begin(pool, &other, NULL));
        ck_assert_ptr_ne(other, kept);
        test_ok(rnl_stream_pool_end(pool, other, NULL));
    }
    test_ok(rnl_stream_pool_begin(pool, &other, NULL));
    test_fails(RNL_FAILED_PRECONDITION, "all of the pool's streams are lent",
               rnl_stream_pool_begin(pool, &third, NULL));
    ck_assert_ptr_null(third);
    test_ok(rnl_stream_pool_end(pool, other, NULL));
    test_ok(rnl_stream_pool_synchronize(pool, NULL)); /* does not wait for the open batch */
    ck_assert_uint_eq(rnl_stream_pool_busy(pool), 1);
    test_ok(rnl_stream_pool_end(pool, kept, NULL));
    test_fails(RNL_FAILED_PRECONDITION, "not lent", rnl_stream_pool_end(pool, kept, NULL));
}
END_TEST

static cl_event hold(const rnl_stream *stream)
{
    cl_int code;
    cl_event gate = clCreateUserEvent(device->context, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_int_eq(clEnqueueBarrierWithWaitList(stream->queue, 1, &gate, NULL), CL_SUCCESS);
    return gate;
}

static void *let_go(void *argument)
{
    usleep(30000);
    clSetUserEventStatus(argument, CL_COMPLETE);
    clReleaseEvent(argument);
    return NULL;
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* With `limit` batches held up, the next one waits, and no other does. */
static void check_bound(uint32_t limit)
{
    rnl_stream *stream;
    pthread_t helper;
    create(4, limit);
    test_ok(rnl_stream_pool_begin(pool, &stream, NULL));
    cl_event gate = hold(stream);
    rnl_stream *const held = stream;
    test_ok(rnl_stream_pool_end(pool, stream, NULL));
    for (uint32_t i = 1; i < limit; i++) {
        test_ok(rnl_stream_pool_begin(pool, &stream, NULL));
        /* Otherwise they would have run before the pool is full. */
        if (stream != held) {
            cl_event more = hold(stream);
            ck_assert_int_eq(clSetUserEventStatus(more, CL_COMPLETE), CL_SUCCESS);
            clReleaseEvent(more);
            ck_assert_int_eq(clEnqueueBarrierWithWaitList(stream->queue, 1, &gate, NULL), CL_SUCCESS);
        }
        test_ok(rnl_stream_pool_end(pool, stream, NULL));
    }
    ck_assert_uint_eq(rnl_stream_pool_busy(pool), limit);
    const uint64_t start = now_us();
    ck_assert_int_eq(pthread_create(&helper, NULL, let_go, gate), 0);
    test_ok(rnl_stream_pool_begin(pool, &stream, NULL));
    ck_assert_uint_ge(now_us() - start, 29000);
    ck_assert_uint_le(rnl_stream_pool_busy(pool), limit);
    test_ok(rnl_stream_pool_end(pool, stream, NULL));
    pthread_join(helper, NULL);
    test_ok(rnl_stream_pool_synchronize(pool, NULL));
    rnl_stream_pool_release(pool);
    pool = NULL;
}

START_TEST(begin_waits_when_the_bound_is_reached)
{
    if (device->runs_in_caller)
        return;
    check_bound(1);
    check_bound(2);
    check_bound(8);
}
END_TEST

/* ---- Failures ---- */

START_TEST(a_failure_is_reported_once_with_its_batch)
{
    rnl_stream *stream, *failing;
    rnl_event *event;
    uint64_t number = 0;
    create(2, 8);
    for (int i = 0; i < 6; i++) {
        test_ok(rnl_stream_pool_begin(pool, &stream, &number));
        test_ok(rnl_stream_pool_end(pool, stream, NULL));
    }
    test_ok(rnl_stream_pool_synchronize(pool, NULL)); /* those that have run are beyond harm */
    test_ok(rnl_stream_pool_begin(pool, &failing, &number));
    ck_assert_uint_eq(number, 6);
    test_ok(rnl_stream_pool_end(pool, failing, &event));
    rnl_stream_retain(failing);
    rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES); /* behind the batch, but before it is looked at */
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_fill(failing, buffer, 0, "", 1, 4));
    test_fails(RNL_RESOURCE_EXHAUSTED, "batch 6 of a stream pool", rnl_stream_pool_synchronize(pool, &number));
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "clEnqueueFillBuffer: CL_OUT_OF_RESOURCES (-5)"));
    ck_assert_uint_eq(number, 6);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_event_synchronize(event));
    rnl_event_release(event);
    test_ok(rnl_stream_pool_synchronize(pool, &number));
    for (int i = 0; i < 6; i++) {
        test_ok(rnl_stream_pool_begin(pool, &stream, &number));
        ck_assert_ptr_ne(stream, failing);
        test_ok(rnl_stream_fill(stream, buffer, (size_t)i * 64, "", 1, 64));
        test_ok(rnl_stream_pool_end(pool, stream, NULL));
    }
    test_ok(rnl_stream_pool_synchronize(pool, NULL));
    rnl_stream_release(failing);
}
END_TEST

START_TEST(a_failure_known_at_the_end_is_reported_there)
{
    rnl_stream *stream;
    uint64_t number;
    create(2, 2);
    test_ok(rnl_stream_pool_begin(pool, &stream, NULL));
    rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_fill(stream, buffer, 0, "", 1, 4));
    test_fails(RNL_RESOURCE_EXHAUSTED, "batch 0 of a stream pool", rnl_stream_pool_end(pool, stream, NULL));
    ck_assert_uint_eq(rnl_stream_pool_busy(pool), 0);
    test_ok(rnl_stream_pool_synchronize(pool, &number));
    for (int i = 0; i < 4; i++) {
        test_ok(rnl_stream_pool_begin(pool, &stream, NULL));
        test_ok(rnl_stream_fill(stream, buffer, (size_t)i * 64, "", 1, 64));
        test_ok(rnl_stream_pool_end(pool, stream, NULL));
    }
    test_ok(rnl_stream_pool_synchronize(pool, NULL));
}
END_TEST

START_TEST(several_failures_are_counted)
{
    rnl_stream *stream[2];
    uint64_t number;
    create(2, 4);
    for (int i = 0; i < 2; i++) {
        test_ok(rnl_stream_pool_begin(pool, &stream[i], NULL));
        test_ok(rnl_stream_pool_end(pool, stream[i], NULL));
        rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES);
        test_fails(RNL_RESOURCE_EXHAUSTED, NULL, rnl_stream_fill(stream[i], buffer, 0, "", 1, 4));
        if (i == 0)
            usleep(1000);
    }
    test_fails(RNL_RESOURCE_EXHAUSTED, "batch 0 of a stream pool, and 1 more failed",
               rnl_stream_pool_synchronize(pool, &number));
    test_ok(rnl_stream_pool_synchronize(pool, &number));
}
END_TEST

static rnl_status go_through(void)
{
    static size_t places; /* what a failed run has enqueued may run still */
    rnl_stream_pool *own = NULL;
    rnl_stream *stream;
    rnl_status status = rnl_stream_pool_create(device, NULL, &own);
    for (int i = 0; status == RNL_OK && i < 6; i++) {
        status = rnl_stream_pool_begin(own, &stream, NULL);
        if (status == RNL_OK)
            status = rnl_stream_fill(stream, buffer, places++ % 64 * 64, "", 1, 64);
        if (status == RNL_OK)
            status = rnl_stream_pool_end(own, stream, NULL);
    }
    if (status == RNL_OK)
        status = rnl_stream_pool_synchronize(own, NULL);
    rnl_stream_pool_release(own);
    return status;
}

START_TEST(each_call_fails)
{
    size_t failed = 0;
    for (uint64_t n = 1; n < 60; n++) {
        rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        const rnl_status status = go_through();
        rnl_cl_fail_at(0, CL_SUCCESS);
        ck_assert(status == RNL_OK || status == RNL_RESOURCE_EXHAUSTED);
        failed += status != RNL_OK;
        test_ok(go_through());
    }
    ck_assert_uint_gt(failed, 10);
}
END_TEST

START_TEST(each_allocation_fails)
{
    size_t failed = 0;
    for (uint64_t n = 1; n < 60; n++) {
        rnl_alloc_fail_at(n);
        const rnl_status status = go_through();
        rnl_alloc_fail_at(0);
        ck_assert(status == RNL_OK || status == RNL_RESOURCE_EXHAUSTED);
        failed += status != RNL_OK;
        test_ok(go_through());
    }
    ck_assert_uint_gt(failed, 5);
}
END_TEST

START_TEST(bad_options_are_refused)
{
    rnl_stream_pool_options options = RNL_STREAM_POOL_OPTIONS_INIT;
    options.stream_count = 5000;
    test_fails(RNL_INVALID_ARGUMENT, "at most 1024 streams", rnl_stream_pool_create(device, &options, &pool));
    ck_assert_ptr_null(pool);
    options.stream_count = 1;
    options.batch_limit = 1000000;
    test_fails(RNL_INVALID_ARGUMENT, "at most 65536 batches", rnl_stream_pool_create(device, &options, &pool));
    options.struct_size = 0;
    test_fails(RNL_INVALID_ARGUMENT, "RNL_STREAM_POOL_OPTIONS_INIT", rnl_stream_pool_create(device, &options, &pool));
    test_ok(rnl_stream_pool_create(device, NULL, &pool));
    ck_assert_ptr_eq(rnl_stream_pool_retain(pool), pool);
    rnl_stream_pool_release(pool);
    rnl_stream_pool_release(NULL);
    ck_assert_uint_eq(rnl_stream_pool_busy(pool), 0);
}
END_TEST

/* ---- Threads ---- */

static atomic_uint over; /* more batches under way than may be */

static void *push(void *argument)
{
    unsigned char value = (unsigned char)*(int *)argument, back[BYTES] = {0};
    rnl_buffer *own;
    bool right = rnl_buffer_create(device, RNL_MEMORY_DEVICE, BYTES, &own) == RNL_OK;
    for (int i = 0; i < BATCHES && right; i++) {
        rnl_stream *stream;
        rnl_event *event = NULL;
        value = (unsigned char)(value + 1);
        right = rnl_stream_pool_begin(pool, &stream, NULL) == RNL_OK &&
                rnl_stream_fill(stream, own, 0, &value, 1, BYTES) == RNL_OK &&
                rnl_stream_read(stream, back, own, 0, BYTES) == RNL_OK &&
                rnl_stream_pool_end(pool, stream, &event) == RNL_OK && rnl_event_synchronize(event) == RNL_OK &&
                back[0] == value && back[BYTES - 1] == value;
        rnl_event_release(event);
        if (rnl_stream_pool_busy(pool) > 3)
            atomic_fetch_add(&over, 1);
        if (right && i % 20 == 0)
            right = rnl_stream_pool_synchronize(pool, NULL) == RNL_OK;
    }
    rnl_buffer_release(own);
    return right ? argument : NULL;
}

START_TEST(threads_share_a_pool)
{
    pthread_t threads[THREADS];
    int seeds[THREADS];
    if (is_oclgrind())
        return; /* which crashes when two threads call it */
    create(2, 3);
    for (int i = 0; i < THREADS; i++) {
        seeds[i] = i * 31;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, push, &seeds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        ck_assert_ptr_eq(result, &seeds[i]);
    }
    ck_assert_uint_eq(atomic_load(&over), 0);
    test_ok(rnl_stream_pool_synchronize(pool, NULL));
    ck_assert_uint_eq(rnl_stream_pool_busy(pool), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stream_pool");
    TCase *test_case = tcase_create("stream_pool");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, streams_take_turns);
    tcase_add_test(test_case, a_lent_stream_is_passed_over);
    tcase_add_test(test_case, begin_waits_when_the_bound_is_reached);
    tcase_add_test(test_case, a_failure_is_reported_once_with_its_batch);
    tcase_add_test(test_case, a_failure_known_at_the_end_is_reported_there);
    tcase_add_test(test_case, several_failures_are_counted);
    tcase_add_test(test_case, each_call_fails);
    tcase_add_test(test_case, each_allocation_fails);
    tcase_add_test(test_case, bad_options_are_refused);
    tcase_add_test(test_case, threads_share_a_pool);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
