/* SPDX-License-Identifier: Apache-2.0 */
/* Release in a stream's order: who gets the memory when; and faults. */
#include "base/memory.h"
#include "device/buffer.h"
#include "device/chunk.h"
#include "support/test_device.h"
#include <runnel/pool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static rnl_device *device;
static rnl_stream *stream, *other;
static rnl_buffer *buffers[8];
static cl_event gate; /* what is enqueued on `stream` behind it waits */

static rnl_device *open_with(uint64_t budget)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    options.memory_limit_bytes = budget;
    return test_open_device_with(&options);
}

static void open_all(void)
{
    unsetenv("RUNNEL_ARENA"); /* which the sanitizers' runs set */
    device = open_with(8 * MIB);
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_stream_create(device, &other));
}

static void release(size_t index)
{
    rnl_buffer_release(buffers[index]);
    buffers[index] = NULL;
}

static void release_after(size_t index, rnl_stream *after)
{
    test_ok(rnl_buffer_release_after(buffers[index], after));
    buffers[index] = NULL;
}

static void open_gate(void)
{
    if (!gate)
        return;
    clSetUserEventStatus(gate, CL_COMPLETE);
    clReleaseEvent(gate);
    gate = NULL;
}

/* False where commands that wait for the host hold up the thread that enqueues them. */
static bool shut_gate(void)
{
    cl_int code;
    if (device->runs_in_caller || device->copies_in_caller)
        return false;
    gate = clCreateUserEvent(device->context, &code);
    test_ok(rnl_cl_status(code, "clCreateUserEvent"));
    test_ok(CL(clEnqueueBarrierWithWaitList(stream->queue, 1, &gate, NULL)));
    return true;
}

static void close_all(void)
{
    rnl_cl_fail_at(0, CL_SUCCESS);
    rnl_alloc_fail_at(0);
    open_gate();
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        release(i);
    rnl_stream_release(other);
    rnl_stream_release(stream);
    rnl_device_release(device);
    other = stream = NULL;
    device = NULL;
}

static rnl_pool_stats stats_of(rnl_memory memory)
{
    rnl_pool_stats stats;
    rnl_device_pool_stats(device, memory, &stats);
    return stats;
}

static rnl_status create_for(size_t index, rnl_memory memory, size_t size, rnl_stream *first)
{
    rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
    options.stream = first;
    return rnl_buffer_create_with(device, memory, size, &options, &buffers[index]);
}

/* Fills a buffer on `stream`, behind the gate, and releases it in that order; returns its memory. */
static cl_mem use_and_release(size_t index, size_t size, char value)
{
    test_ok(create_for(index, RNL_MEMORY_DEVICE, size, NULL));
    cl_mem memory = buffers[index]->memory;
    test_ok(rnl_stream_fill(stream, buffers[index], 0, &value, 1, size));
    release_after(index, stream);
    return memory;
}

static void wait_until_free(void)
{
    struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; i < 5000; i++) {
        rnl_device_pool_trim(device);
        if (stats_of(RNL_MEMORY_DEVICE).reserved_bytes + stats_of(RNL_MEMORY_PINNED).reserved_bytes == 0)
            return;
        nanosleep(&pause, NULL);
    }
    ck_abort_msg("memory is stuck");
}

START_TEST(the_stream_has_its_memory_at_once_and_others_later)
{
    unsigned char back[4 * KIB];
    bool gated = shut_gate();
    cl_mem memory = use_and_release(0, sizeof back, 'a');
    if (gated) {
        test_ok(create_for(1, RNL_MEMORY_DEVICE, sizeof back, other));
        ck_assert_ptr_ne(buffers[1]->memory, memory);
        test_ok(create_for(2, RNL_MEMORY_DEVICE, sizeof back, NULL));
        ck_assert_ptr_ne(buffers[2]->memory, memory);
        ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).pending_bytes, sizeof back);
    }
    test_ok(create_for(3, RNL_MEMORY_DEVICE, sizeof back, stream));
    ck_assert_ptr_eq(buffers[3]->memory, memory);
    test_ok(rnl_stream_fill(stream, buffers[3], 0, "b", 1, sizeof back));
    test_ok(rnl_stream_read(stream, back, buffers[3], 0, sizeof back));
    open_gate();
    test_ok(rnl_stream_synchronize(stream));
    for (size_t i = 0; i < sizeof back; i++)
        ck_assert_uint_eq(back[i], 'b');
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).pending_bytes, 0);
}
END_TEST

START_TEST(synchronising_the_stream_frees_its_memory_for_all)
{
    cl_mem memory = use_and_release(0, 4 * KIB, 'a');
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).pending_bytes, 0);
    test_ok(create_for(1, RNL_MEMORY_DEVICE, 4 * KIB, other));
    ck_assert_ptr_eq(buffers[1]->memory, memory);
    release(1);
    wait_until_free();
}
END_TEST

START_TEST(many_releases_are_covered_by_few_markers)
{
    for (int i = 0; i < 2000; i++) {
        test_ok(create_for(0, RNL_MEMORY_DEVICE, (size_t)(i % 50 + 1) * 64, NULL));
        test_ok(rnl_stream_fill(stream, buffers[0], 0, "x", 1, 64));
        release_after(0, stream);
    }
    ck_assert_uint_le(stats_of(RNL_MEMORY_DEVICE).reserved_bytes, 8 * MIB);
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).pending_bytes, 0);
    wait_until_free();
}
END_TEST

START_TEST(exhaustion_waits_for_pending_memory)
{
    use_and_release(0, 5 * MIB, 'a');
    test_ok(create_for(1, RNL_MEMORY_DEVICE, 6 * MIB, other));
    use_and_release(2, MIB, 'c');
    release_after(1, stream);
    test_ok(create_for(3, RNL_MEMORY_PINNED, 6 * MIB, NULL));
    test_fails(RNL_RESOURCE_EXHAUSTED, "one piece at most",
               create_for(4, RNL_MEMORY_DEVICE, 6 * MIB, stream)); /* nothing is pending: it does not wait */
}
END_TEST

START_TEST(a_released_stream_keeps_nothing)
{
    (void)shut_gate();
    use_and_release(0, 4 * KIB, 'a');
    use_and_release(1, MIB, 'b');
    test_ok(create_for(2, RNL_MEMORY_PINNED, 64 * KIB, NULL));
    release_after(2, stream);
    rnl_stream_release(stream); /* waits for nothing */
    stream = NULL;
    open_gate();
    wait_until_free();
}
END_TEST

START_TEST(a_failed_stream_keeps_nothing)
{
    use_and_release(0, 4 * KIB, 'a');
    test_ok(create_for(1, RNL_MEMORY_DEVICE, 4 * KIB, NULL));
    rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES", rnl_stream_fill(stream, buffers[1], 0, "x", 1, 4 * KIB));
    release_after(1, stream);
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES", rnl_stream_synchronize(stream));
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).pending_bytes, 0);
    wait_until_free();
}
END_TEST

/* Where the marker fails, the pool waits for the stream. */
START_TEST(a_marker_that_fails_frees_the_memory)
{
    use_and_release(0, 4 * KIB, 'a');
    rnl_cl_fail_at(1, CL_OUT_OF_RESOURCES);
    rnl_device_pool_trim(device);
    rnl_cl_fail_at(0, CL_SUCCESS);
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).reserved_bytes, 0);
}
END_TEST

START_TEST(pinned_memory_is_given_to_nobody_before_its_commands_ended)
{
    unsigned char back[4 * KIB];
    for (unsigned round = 0; round < 50; round++) {
        test_ok(create_for(0, RNL_MEMORY_PINNED, sizeof back, stream));
        test_ok(create_for(1, RNL_MEMORY_DEVICE, sizeof back, stream));
        memset(rnl_buffer_host(buffers[0]), (int)round, sizeof back);
        test_ok(rnl_stream_copy(stream, buffers[1], 0, buffers[0], 0, sizeof back));
        release_after(0, stream);
        test_ok(create_for(2, RNL_MEMORY_PINNED, sizeof back, stream));
        memset(rnl_buffer_host(buffers[2]), 0xee, sizeof back); /* it is not what is being copied */
        test_ok(rnl_stream_read(stream, back, buffers[1], 0, sizeof back));
        release_after(1, stream);
        release_after(2, stream);
        test_ok(rnl_stream_synchronize(stream));
        for (size_t i = 0; i < sizeof back; i++)
            ck_assert_uint_eq(back[i], round);
    }
}
END_TEST

START_TEST(the_last_holder_decides)
{
    test_ok(create_for(0, RNL_MEMORY_DEVICE, 4 * KIB, NULL));
    rnl_buffer *held = rnl_buffer_retain(buffers[0]);
    test_ok(rnl_stream_fill(stream, buffers[0], 0, "x", 1, 4 * KIB));
    release_after(0, stream);
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).buffers, 1);
    rnl_buffer *again = rnl_buffer_retain(held);
    test_ok(rnl_stream_fill(other, held, 0, "y", 1, 4 * KIB));
    test_ok(rnl_buffer_release_after(again, other));
    rnl_buffer_release(held);
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).buffers, 0);
    wait_until_free();
}
END_TEST

START_TEST(a_stream_of_another_device_is_refused)
{
    rnl_device *second = open_with(MIB);
    rnl_stream *foreign;
    test_ok(rnl_stream_create(second, &foreign));
    test_ok(create_for(0, RNL_MEMORY_DEVICE, 64, NULL));
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_buffer_release_after(buffers[0], foreign));
    test_fails(RNL_INVALID_ARGUMENT, "no stream", rnl_buffer_release_after(buffers[0], NULL));
    test_fails(RNL_INVALID_ARGUMENT, "another device", create_for(1, RNL_MEMORY_DEVICE, 64, foreign));
    test_ok(rnl_buffer_release_after(NULL, stream));
    ck_assert_uint_eq(rnl_buffer_size(buffers[0]), 64);
    rnl_stream_release(foreign);
    rnl_device_release(second);
}
END_TEST

/* ---- Faults ---- */

static rnl_status take_some(void)
{
    static const size_t sizes[] = {4 * KIB, 64 * KIB, 300 * KIB, 100, MIB};
    rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
    rnl_status status = RNL_OK;
    options.label = "fault";
    for (size_t i = 0; i < 5 && status == RNL_OK; i++) {
        options.stream = i % 2 ? stream : NULL;
        status = rnl_buffer_create_with(device, i == 3 ? RNL_MEMORY_PINNED : RNL_MEMORY_DEVICE, sizes[i], &options,
                                        &buffers[i]);
        if (status == RNL_OK && i == 1)
            status = rnl_stream_fill(stream, buffers[1], 0, "x", 1, sizes[1]);
    }
    rnl_error error = *rnl_last_error();
    for (size_t i = 0; i < 5; i++) {
        rnl_status released = rnl_buffer_release_after(buffers[i], stream);
        ck_assert_int_eq(released, RNL_OK);
        buffers[i] = NULL;
    }
    return status == RNL_OK ? status : rnl_error_restore(&error);
}

static void check_after_fault(rnl_status status, const char *part)
{
    if (status != RNL_OK) {
        ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
        ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, part));
    }
    rnl_stream_release(stream); /* a failed stream keeps no memory */
    test_ok(rnl_stream_create(device, &stream));
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).buffers + stats_of(RNL_MEMORY_PINNED).buffers, 0);
    test_ok(take_some());
    test_ok(rnl_stream_synchronize(stream));
    wait_until_free();
}

START_TEST(each_opencl_call_fails_once)
{
    size_t failed = 0;
    for (uint64_t n = 1; n < 40; n++) {
        rnl_cl_fail_at(n, CL_MEM_OBJECT_ALLOCATION_FAILURE);
        rnl_status status = take_some();
        rnl_cl_fail_at(0, CL_SUCCESS);
        failed += status != RNL_OK;
        check_after_fault(status, "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)");
    }
    ck_assert_uint_gt(failed, 0);
}
END_TEST

START_TEST(each_allocation_fails_once)
{
    size_t failed = 0;
    for (uint64_t n = 1; n < 40; n++) {
        rnl_alloc_fail_at(n);
        rnl_status status = take_some();
        rnl_alloc_fail_at(0);
        failed += status != RNL_OK;
        check_after_fault(status, "out of memory");
    }
    ck_assert_uint_gt(failed, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool order");
    TCase *test_case = tcase_create("order");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, the_stream_has_its_memory_at_once_and_others_later);
    tcase_add_test(test_case, synchronising_the_stream_frees_its_memory_for_all);
    tcase_add_test(test_case, many_releases_are_covered_by_few_markers);
    tcase_add_test(test_case, exhaustion_waits_for_pending_memory);
    tcase_add_test(test_case, a_released_stream_keeps_nothing);
    tcase_add_test(test_case, a_failed_stream_keeps_nothing);
    tcase_add_test(test_case, a_marker_that_fails_frees_the_memory);
    tcase_add_test(test_case, pinned_memory_is_given_to_nobody_before_its_commands_ended);
    tcase_add_test(test_case, the_last_holder_decides);
    tcase_add_test(test_case, a_stream_of_another_device_is_refused);
    tcase_add_test(test_case, each_opencl_call_fails_once);
    tcase_add_test(test_case, each_allocation_fails_once);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
