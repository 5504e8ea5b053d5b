/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that wait for another device's events: of another platform where there is one, else of another device, else
 * of the same device in a second context.
 */
#include "base/memory.h"
#include "device/stream.h"
#include "device/waiter.h"
#include "support/fault.h"
#include "support/test_device.h"
#include "support/test_peer.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BYTES 64
#define HOPS 1000
#define MOST_FAULTS 500

static rnl_device *devices[2];
static rnl_stream *streams[2];
static rnl_buffer *buffers[2];
/* What goes to and fro lies in pinned memory: drivers may read plain memory already when a copy of it is enqueued. */
static rnl_buffer *pinned;
static unsigned char (*steps)[BYTES];
static bool is_small;

static void open_all(void)
{
    const char *small = getenv("RUNNEL_TEST_SMALL");
    is_small = small && *small;
    devices[0] = test_open_device();
    devices[1] = test_open_peer(devices[0]);
    for (int i = 0; i < 2; i++) {
        test_ok(rnl_stream_create(devices[i], &streams[i]));
        test_ok(rnl_buffer_create(devices[i], RNL_MEMORY_DEVICE, BYTES, &buffers[i]));
    }
    test_ok(rnl_buffer_create(devices[0], RNL_MEMORY_PINNED, (size_t)(HOPS + 1) * BYTES, &pinned));
    steps = rnl_buffer_host(pinned);
}

static bool is_fake(void)
{
    return strstr(rnl_device_get_info(devices[1])->platform, "Fake") != NULL;
}

static void close_all(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_alloc_fail_at(0);
    rnl_buffer_release(pinned);
    for (int i = 0; i < 2; i++) {
        rnl_stream_release(streams[i]);
        rnl_buffer_release(buffers[i]);
        rnl_device_release(devices[i]);
    }
}

/* `from` to the buffer of stream `at` and on to `to`, after `event`, which is released. */
static rnl_status hop(int at, rnl_event *after, const void *from, void *to, rnl_event **out_event)
{
    rnl_status status = after ? rnl_stream_wait(streams[at], after) : RNL_OK;
    rnl_event_release(after);
    if (status == RNL_OK)
        status = rnl_stream_write(streams[at], buffers[at], 0, from, BYTES);
    if (status == RNL_OK)
        status = rnl_stream_read(streams[at], to, buffers[at], 0, BYTES);
    *out_event = NULL;
    return status == RNL_OK ? rnl_stream_record(streams[at], out_event) : status;
}

static void check_chain(int first, size_t hops)
{
    rnl_event *event = NULL;
    memset(steps, 0, (hops + 1) * BYTES);
    for (int i = 0; i < BYTES; i++)
        steps[0][i] = (unsigned char)(i * 7 + 3);
    for (size_t i = 0; i < hops; i++)
        test_ok(hop((first + (int)i) % 2, event, steps[i], steps[i + 1], &event));
    test_ok(rnl_event_synchronize(event));
    rnl_event_release(event);
    ck_assert_int_eq(memcmp(steps[0], steps[hops], BYTES), 0);
    test_ok(rnl_stream_synchronize(streams[0]));
    test_ok(rnl_stream_synchronize(streams[1]));
}

START_TEST(bytes_go_both_ways)
{
    for (size_t hops = 1; hops < 6; hops++) {
        check_chain(0, hops);
        check_chain(1, hops);
    }
}
END_TEST

START_TEST(a_long_chain_goes_to_and_fro)
{
    check_chain(0, is_small ? 50 : HOPS);
}
END_TEST

/* ---- A stream that the test holds up ---- */

static bool can_hold(int which)
{
    return !devices[which]->runs_in_caller;
}

static cl_event hold(rnl_stream *stream)
{
    cl_int code;
    cl_event gate = clCreateUserEvent(stream->device->context, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    ck_assert_int_eq(clEnqueueBarrierWithWaitList(stream->queue, 1, &gate, NULL), CL_SUCCESS);
    return gate;
}

static void let_go(cl_event gate)
{
    ck_assert_int_eq(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    clReleaseEvent(gate);
}

START_TEST(waiting_does_not_block)
{
    unsigned char *from = steps[0], *to = steps[1];
    rnl_event *event, *last;
    bool done = true;
    if (!can_hold(0) || !can_hold(1))
        return;
    memset(from, 9, BYTES);
    memset(to, 0, BYTES);
    cl_event gate = hold(streams[0]);
    test_ok(rnl_stream_record(streams[0], &event));
    test_ok(hop(1, event, from, to, &last));
    usleep(20000);
    test_ok(rnl_event_query(last, &done));
    ck_assert(!done);
    ck_assert_int_eq(to[0], 0);
    let_go(gate);
    test_ok(rnl_event_synchronize(last));
    test_ok(rnl_event_query(last, &done));
    ck_assert(done);
    ck_assert_int_eq(to[BYTES - 1], 9);
    rnl_event_release(last);
}
END_TEST

START_TEST(one_wait_does_not_hold_up_another)
{
    rnl_stream *free_source, *free_target;
    rnl_event *held, *ready;
    if (!can_hold(0) || !can_hold(1))
        return;
    test_ok(rnl_stream_create(devices[0], &free_source));
    test_ok(rnl_stream_create(devices[1], &free_target));
    cl_event gate = hold(streams[0]), second = hold(free_source);
    test_ok(rnl_stream_record(streams[0], &held));
    test_ok(rnl_stream_wait(streams[1], held));
    test_ok(rnl_stream_record(free_source, &ready));
    test_ok(rnl_stream_wait(free_target, ready));
    let_go(second);
    test_ok(rnl_stream_synchronize(free_target)); /* though the other one waits still */
    bool done = true;
    test_ok(rnl_event_query(held, &done));
    ck_assert(!done);
    let_go(gate);
    test_ok(rnl_stream_synchronize(streams[1]));
    rnl_event_release(held);
    rnl_event_release(ready);
    rnl_stream_release(free_source);
    rnl_stream_release(free_target);
}
END_TEST

/* ---- Failures ---- */

static void fail_stream(rnl_stream *stream, rnl_buffer *buffer)
{
    rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_fill(stream, buffer, 0, "", 1, BYTES));
}

START_TEST(a_failure_known_before_is_handed_on)
{
    rnl_event *event;
    test_ok(rnl_stream_record(streams[0], &event));
    fail_stream(streams[0], buffers[0]);
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_wait(streams[1], event));
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_synchronize(streams[1]));
    rnl_event_release(event);
}
END_TEST

/* streams[0] -> streams[1] -> a third one, and the first fails last. */
START_TEST(a_failure_that_comes_later_is_handed_on)
{
    rnl_event *first, *second;
    rnl_stream *third, *apart;
    if (!can_hold(0))
        return;
    test_ok(rnl_stream_create(devices[1], &third));
    test_ok(rnl_stream_create(devices[1], &apart));
    cl_event gate = hold(streams[0]);
    test_ok(rnl_stream_record(streams[0], &first));
    if (can_hold(1)) {
        test_ok(rnl_stream_wait(streams[1], first));
        test_ok(rnl_stream_record(streams[1], &second));
        test_ok(rnl_stream_wait(third, second));
        fail_stream(streams[0], buffers[0]);
        let_go(gate);
        test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_event_synchronize(second));
        test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_synchronize(third));
        test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer", rnl_stream_synchronize(streams[1]));
        test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueFillBuffer",
                   rnl_stream_fill(streams[1], buffers[1], 0, "", 1, BYTES));
        rnl_event_release(second);
    } else {
        let_go(gate);
    }
    test_ok(rnl_stream_fill(apart, buffers[1], 0, "", 1, BYTES));
    test_ok(rnl_stream_synchronize(apart));
    rnl_event_release(first);
    rnl_stream_release(third);
    rnl_stream_release(apart);
}
END_TEST

static rnl_status go_round(void)
{
    rnl_event *event = NULL;
    rnl_status status = RNL_OK;
    memset(steps, 0, (size_t)4 * BYTES);
    memset(steps[0], 5, BYTES);
    for (int i = 0; status == RNL_OK && i < 3; i++)
        status = hop(i % 2, event, steps[i], steps[i + 1], &event);
    rnl_event_release(event);
    for (int i = 0; i < 2; i++) {
        rnl_status ended = rnl_stream_synchronize(streams[i]);
        status = status == RNL_OK ? ended : status;
    }
    if (status == RNL_OK)
        ck_assert_int_eq(memcmp(steps[0], steps[3], BYTES), 0);
    return status;
}

/* Failed streams stay so. */
static void renew_streams(void)
{
    for (int i = 0; i < 2; i++) {
        rnl_stream_release(streams[i]);
        test_ok(rnl_stream_create(devices[i], &streams[i]));
    }
}

static void fail_each(bool of_memory)
{
    size_t failed = 0;
    bool left = false;
    for (uint64_t n = 1; n < MOST_FAULTS && !left; n++) {
        if (of_memory)
            rnl_alloc_fail_at(n);
        else
            rnl_cl_fail_at(n, CL_OUT_OF_RESOURCES);
        rnl_status status = go_round();
        left = of_memory ? test_alloc_fault_left() : test_cl_fault_left();
        ck_assert(status == RNL_OK || status == RNL_RESOURCE_EXHAUSTED);
        failed += status != RNL_OK;
        renew_streams();
        test_ok(go_round());
    }
    ck_assert(left);
    ck_assert_uint_gt(failed, 0);
}

START_TEST(each_call_fails)
{
    fail_each(false);
}
END_TEST

START_TEST(each_allocation_fails)
{
    fail_each(true);
}
END_TEST

/* ---- Releases ---- */

typedef struct held {
    cl_event gate;
    useconds_t pause;
} held;

static void *let_go_later(void *argument)
{
    held *it = argument;
    usleep(it->pause);
    clSetUserEventStatus(it->gate, CL_COMPLETE);
    clReleaseEvent(it->gate);
    return NULL;
}

/* What a wait under way consists of, released in the order that `which` stands for. */
static void release_in_order(rnl_device *from, rnl_device *to, unsigned which)
{
    rnl_stream *source, *target;
    rnl_event *event;
    pthread_t helper;
    bool gone[5] = {false};
    test_ok(rnl_stream_create(from, &source));
    test_ok(rnl_stream_create(to, &target));
    held it = {hold(source), which % 3 * 300};
    test_ok(rnl_stream_record(source, &event));
    test_ok(rnl_stream_wait(target, event));
    ck_assert_int_eq(pthread_create(&helper, NULL, let_go_later, &it), 0);
    for (unsigned left = 5; left > 0; left--) {
        unsigned skip = which % left, i = 0;
        which /= left;
        while (gone[i] || skip-- > 0)
            i++;
        gone[i] = true;
        if (i == 0)
            rnl_stream_release(source);
        else if (i == 1)
            rnl_stream_release(target);
        else if (i == 2)
            rnl_event_release(event);
        else
            rnl_device_release(i == 3 ? from : to);
    }
    pthread_join(helper, NULL);
}

START_TEST(releases_in_any_order)
{
    if (!can_hold(0) || !can_hold(1))
        return;
    for (unsigned which = 0; which < 120; which += is_small ? 13 : 1) {
        rnl_device *from = test_open_device();
        release_in_order(from, test_open_peer(devices[0]), which);
    }
}
END_TEST

/* A stream that launched something is released by a callback, on the thread that it waits for. */
static void release_stream(void *user, const rnl_error *error)
{
    (void)error;
    rnl_stream_release(user);
}

START_TEST(a_callback_releases_a_stream_that_waits)
{
    rnl_buffer *own; /* which the chain below does not use */
    const rnl_range range = {1, {4, 1, 1}, {1, 1, 1}};
    rnl_kernel *kernel;
    rnl_stream *waiting;
    rnl_event *later, *now;
    if (!can_hold(0) || !can_hold(1) || !devices[1]->info.compiler_available || is_fake())
        return;
    test_ok(
        rnl_kernel_create(devices[1], "kernel void f(global int *a) { a[get_global_id(0)] = 3; }", NULL, "f", &kernel));
    test_ok(rnl_buffer_create(devices[1], RNL_MEMORY_DEVICE, BYTES, &own));
    const rnl_arg arg = {.kind = RNL_ARG_BUFFER, .buffer = own};
    test_ok(rnl_stream_create(devices[1], &waiting));
    test_ok(rnl_stream_launch(waiting, kernel, &range, &arg, 1));
    cl_event gate = hold(streams[0]);
    test_ok(rnl_stream_record(streams[0], &later));
    test_ok(rnl_stream_record(streams[1], &now));
    test_ok(rnl_stream_wait(waiting, later));
    test_ok(rnl_stream_launch(waiting, kernel, &range, &arg, 1));
    test_ok(rnl_event_notify(now, release_stream, waiting));
    usleep(20000);
    let_go(gate);
    rnl_event_release(later);
    rnl_event_release(now);
    test_ok(rnl_stream_synchronize(streams[0]));
    check_chain(0, 4); /* the thread goes on */
    rnl_buffer_release(own);
    rnl_kernel_release(kernel);
}
END_TEST

/* ---- Threads ---- */

/* Those that wait for events: the driver and the program cache have threads of their own. */
static size_t count_waiters(void)
{
    size_t count = 0;
    char path[300], name[sizeof RNL_WAITER_NAME + 1];
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task; tasks && (task = readdir(tasks)) != NULL;) {
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        count += fgets(name, sizeof name, file) && strcmp(name, RNL_WAITER_NAME "\n") == 0;
        fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return count;
}

START_TEST(many_waits_need_one_thread_a_device)
{
    check_chain(0, 20);
    const size_t before = count_waiters(); /* those of devices that were closed may still be ending */
    for (int i = 0; i < 20; i++)
        check_chain(0, 20);
    ck_assert_uint_le(count_waiters(), before + 2); /* what had happened before needed none */
}
END_TEST

static void *go_to_and_fro(void *argument)
{
    rnl_stream *own[2] = {NULL, NULL};
    bool right = rnl_stream_create(devices[0], &own[0]) == RNL_OK && rnl_stream_create(devices[1], &own[1]) == RNL_OK;
    for (int i = 0; i < 200 && right; i++) {
        rnl_event *event = NULL;
        right = rnl_stream_record(own[i % 2], &event) == RNL_OK && rnl_stream_wait(own[1 - i % 2], event) == RNL_OK;
        rnl_event_release(event);
    }
    for (int i = 0; i < 2; i++) {
        right = right && rnl_stream_synchronize(own[i]) == RNL_OK;
        rnl_stream_release(own[i]);
    }
    return right ? argument : NULL;
}

START_TEST(threads_wait_side_by_side)
{
    pthread_t threads[4];
    if (strcmp(rnl_device_get_info(devices[0])->platform, "Oclgrind") == 0)
        return; /* which crashes when two threads call it */
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, go_to_and_fro, devices), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        ck_assert_ptr_eq(result, devices);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waits");
    TCase *test_case = tcase_create("waits");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, bytes_go_both_ways);
    tcase_add_test(test_case, a_long_chain_goes_to_and_fro);
    tcase_add_test(test_case, waiting_does_not_block);
    tcase_add_test(test_case, one_wait_does_not_hold_up_another);
    tcase_add_test(test_case, a_failure_known_before_is_handed_on);
    tcase_add_test(test_case, a_failure_that_comes_later_is_handed_on);
    tcase_add_test(test_case, each_call_fails);
    tcase_add_test(test_case, each_allocation_fails);
    tcase_add_test(test_case, releases_in_any_order);
    tcase_add_test(test_case, a_callback_releases_a_stream_that_waits);
    tcase_add_test(test_case, many_waits_need_one_thread_a_device);
    tcase_add_test(test_case, threads_wait_side_by_side);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
