/* SPDX-License-Identifier: Apache-2.0 */
/*
 * On the fake driver: devices that are lost, memory that is promised and not there, memory that runs out, commands that
 * fail on their own, and commands that come late. One stream fails, and says why; others go on.
 */
#include "support/fake_driver.h"
#include "support/test_device.h"
#include <runnel/memory.h>
#include <runnel/pool.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 256
#define BYTES (COUNT * sizeof(int))
#define LATE_US 3000
#define PIECE ((size_t)16 << 20)
#define MOST_PIECES 80

static const char *const specs[] = {"0:0", "0:1", "1:0"};
static rnl_device *devices[3];
static rnl_stream *streams[3][2];
static rnl_buffer *buffers[3];
static const fake_control *control;
static size_t alive;
static int numbers[COUNT], back[COUNT];

static void setup(void)
{
    control = fake_driver();
    control->reset();
    setenv("RUNNEL_CACHE", "off", 1);
    alive = fake_count_alive();
    for (int i = 0; i < 3; i++) {
        test_ok(rnl_device_open(specs[i], NULL, &devices[i]));
        test_ok(rnl_stream_create(devices[i], &streams[i][0]));
        test_ok(rnl_stream_create(devices[i], &streams[i][1]));
        test_ok(rnl_buffer_create(devices[i], RNL_MEMORY_DEVICE, BYTES, &buffers[i]));
    }
    for (int i = 0; i < COUNT; i++)
        numbers[i] = 3 * i + 1;
    memset(back, 0, sizeof back);
}

static void teardown(void)
{
    control->reset();
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 2; k++) {
            rnl_status status = rnl_stream_synchronize(streams[i][k]);
            (void)status;
            rnl_stream_release(streams[i][k]);
        }
        rnl_buffer_release(buffers[i]);
        rnl_device_stats stats;
        rnl_device_get_stats(devices[i], &stats);
        ck_assert_uint_eq(stats.pool_in_use_bytes, 0);
        rnl_device_release(devices[i]);
    }
    fake_check_alive(alive);
}

/* Writes and reads back through the stream. */
static rnl_status go_through(rnl_stream *stream, rnl_buffer *buffer)
{
    memset(back, 0, sizeof back);
    rnl_status status = rnl_stream_write(stream, buffer, 0, numbers, BYTES);
    if (status == RNL_OK)
        status = rnl_stream_read(stream, back, buffer, 0, BYTES);
    rnl_status ended = rnl_stream_synchronize(stream);
    if (status == RNL_OK && ended == RNL_OK)
        ck_assert_mem_eq(back, numbers, BYTES);
    return status == RNL_OK ? ended : status;
}

START_TEST(a_lost_device_fails_its_streams_alone)
{
    const int lost = _i;
    control->lose_device((unsigned)lost, 2, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", go_through(streams[lost][0], buffers[lost]));
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", rnl_stream_synchronize(streams[lost][0]));
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", go_through(streams[lost][1], buffers[lost]));
    for (int i = 0; i < 3; i++)
        if (i != lost)
            test_ok(go_through(streams[i][0], buffers[i]));
    /* The driver has it again: for a device that is opened anew. */
    control->lose_device((unsigned)lost, 0, CL_SUCCESS);
    rnl_device *again;
    rnl_stream *stream;
    rnl_buffer *buffer;
    test_ok(rnl_device_open(specs[lost], NULL, &again));
    test_ok(rnl_stream_create(again, &stream));
    test_ok(rnl_buffer_create(again, RNL_MEMORY_PINNED, BYTES, &buffer));
    test_ok(go_through(stream, buffer));
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    rnl_device_release(again);
}
END_TEST

/* Lost at each use in turn: nothing hangs, nothing stays. */
START_TEST(a_device_is_lost_at_any_moment)
{
    fake_stats stats = {.failed_calls = 1};
    for (uint64_t n = 1; stats.failed_calls > 0; n++) {
        rnl_device *own;
        rnl_stream *stream;
        rnl_buffer *pinned = NULL;
        control->reset();
        control->lose_device(0, n, CL_INVALID_COMMAND_QUEUE);
        test_ok(rnl_device_open(specs[0], NULL, &own));
        test_ok(rnl_stream_create(own, &stream));
        rnl_status status = rnl_buffer_create(own, RNL_MEMORY_PINNED, BYTES, &pinned);
        if (status == RNL_OK)
            status = go_through(stream, pinned);
        if (status != RNL_OK)
            ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "CL_INVALID_COMMAND_QUEUE (-36)"));
        rnl_buffer_release(pinned);
        rnl_stream_release(stream);
        rnl_device_release(own);
        control->get_stats(&stats);
        ck_assert((status != RNL_OK) <= (stats.failed_calls > 0));
    }
}
END_TEST

START_TEST(a_command_that_fails_is_the_streams_failure)
{
    control->fail_command(2, CL_OUT_OF_RESOURCES);
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", go_through(streams[_i][0], buffers[_i]));
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)",
               rnl_stream_write(streams[_i][0], buffers[_i], 0, numbers, BYTES));
    test_ok(go_through(streams[_i][1], buffers[_i]));
}
END_TEST

START_TEST(an_event_hands_a_failure_on)
{
    rnl_event *event;
    control->fail_command(1, CL_OUT_OF_RESOURCES);
    test_ok(rnl_stream_write(streams[0][0], buffers[0], 0, numbers, BYTES));
    test_ok(rnl_stream_record(streams[0][0], &event));
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", rnl_event_synchronize(event));
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES (-5)", rnl_stream_wait(streams[0][1], event));
    rnl_event_release(event);
}
END_TEST

START_TEST(memory_that_is_not_there_fails_at_its_first_use)
{
    rnl_buffer *lie;
    control->lie(1);
    test_ok(rnl_buffer_create(devices[_i], RNL_MEMORY_DEVICE, (size_t)8 << 20, &lie));
    test_fails(RNL_RESOURCE_EXHAUSTED, "clEnqueueWriteBuffer: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)",
               rnl_stream_write(streams[_i][0], lie, 0, numbers, BYTES));
    test_fails(RNL_RESOURCE_EXHAUSTED, "CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)", rnl_stream_synchronize(streams[_i][0]));
    test_ok(go_through(streams[_i][1], buffers[_i]));
    test_ok(go_through(streams[(_i + 1) % 3][0], buffers[(_i + 1) % 3]));
    rnl_buffer_release(lie);
}
END_TEST

/* Takes pieces until there are no more; the message says what was asked for and what there is. */
static size_t take_all(rnl_device *device, rnl_buffer **all, size_t count)
{
    while (count < MOST_PIECES && rnl_buffer_create(device, RNL_MEMORY_DEVICE, PIECE, &all[count]) == RNL_OK)
        count++;
    ck_assert_uint_lt(count, MOST_PIECES);
    ck_assert_int_eq(rnl_last_error()->status, RNL_RESOURCE_EXHAUSTED);
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "16777216 bytes of memory were asked for on Fake"));
    return count;
}

/* The driver has less than the pool would allow; then the pool's limit is met. */
START_TEST(memory_runs_out)
{
    rnl_buffer *all[MOST_PIECES] = {NULL};
    rnl_device *device = devices[_i];
    rnl_pool_stats stats;
    rnl_device_pool_stats(device, RNL_MEMORY_DEVICE, &stats);
    control->limit_memory(stats.reserved_bytes + 3 * PIECE + PIECE / 2);
    size_t count = take_all(device, all, 0);
    ck_assert_uint_ge(count, 3);
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "clCreateBuffer: CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)"));
    test_ok(go_through(streams[_i][0], all[count - 1]));
    control->limit_memory(0);
    count = take_all(device, all, count);
    const size_t most = rnl_device_get_info(device)->global_memory_bytes / PIECE;
    ck_assert_uint_le(count, most);
    ck_assert_uint_ge(count + 2, most);
    rnl_buffer_release(all[0]);
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, PIECE, &all[0]));
    test_ok(go_through(streams[_i][0], all[0]));
    for (size_t i = 0; i < count; i++)
        rnl_buffer_release(all[i]);
}
END_TEST

/* The queue that a failed command has spoilt is not used again. */
START_TEST(pinned_memory_is_there_after_a_map_that_failed)
{
    rnl_buffer *pinned;
    rnl_copy_stats before, after;
    control->fail_command(1, CL_OUT_OF_RESOURCES);
    rnl_status status = rnl_buffer_create(devices[_i], RNL_MEMORY_PINNED, PIECE, &pinned);
    rnl_buffer_release(pinned);
    rnl_device_pool_trim(devices[_i]);
    if (status != RNL_OK)
        ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "CL_OUT_OF_RESOURCES (-5)"));
    control->reset();
    rnl_device_get_copy_stats(devices[_i], &before);
    test_ok(rnl_buffer_create(devices[_i], RNL_MEMORY_PINNED, PIECE, &pinned));
    rnl_device_get_copy_stats(devices[_i], &after);
    ck_assert_uint_eq(after.pinned_refused, before.pinned_refused);
    test_ok(go_through(streams[_i][0], pinned));
    rnl_buffer_release(pinned);
}
END_TEST

START_TEST(a_copy_across_works_after_one_that_failed)
{
    for (uint64_t n = 1; n < 12; n++) {
        rnl_stream *from, *to;
        test_ok(rnl_stream_create(devices[0], &from));
        test_ok(rnl_stream_create(devices[2], &to));
        control->fail_command(n, CL_OUT_OF_RESOURCES);
        rnl_status status = rnl_stream_copy_across(to, buffers[2], 0, from, buffers[0], 0, BYTES);
        rnl_status ended = rnl_stream_synchronize(to), other = rnl_stream_synchronize(from);
        ck_assert(status == RNL_OK || ended != RNL_OK || other != RNL_OK);
        rnl_stream_release(from);
        rnl_stream_release(to);
        control->reset();
        memset(back, 0, sizeof back);
        test_ok(rnl_stream_write(streams[0][0], buffers[0], 0, numbers, BYTES));
        test_ok(rnl_stream_copy_across(streams[2][0], buffers[2], 0, streams[0][0], buffers[0], 0, BYTES));
        test_ok(rnl_stream_read(streams[2][0], back, buffers[2], 0, BYTES));
        test_ok(rnl_stream_synchronize(streams[2][0]));
        ck_assert_mem_eq(back, numbers, BYTES);
        /* Its last command could be the next round's that fails. */
        test_ok(rnl_stream_synchronize(streams[0][0]));
    }
}
END_TEST

START_TEST(late_commands_are_waited_for)
{
    control->delay(LATE_US);
    for (int round = 0; round < 3; round++) {
        rnl_event *event;
        memset(back, 0, sizeof back);
        numbers[0] = round + 1000;
        test_ok(rnl_stream_write(streams[_i][0], buffers[_i], 0, numbers, BYTES));
        test_ok(rnl_stream_record(streams[_i][0], &event));
        test_ok(rnl_stream_wait(streams[_i][1], event));
        test_ok(rnl_stream_read(streams[_i][1], back, buffers[_i], 0, BYTES));
        rnl_event_release(event);
        test_ok(rnl_stream_synchronize(streams[_i][1]));
        ck_assert_mem_eq(back, numbers, BYTES);
    }
}
END_TEST

/* Memory that late commands still use goes to their own stream at once, and to nobody else. */
START_TEST(memory_is_released_in_order_behind_late_commands)
{
    static unsigned char other[BYTES], mine[BYTES];
    control->delay(LATE_US);
    for (int round = 0; round < 8; round++) {
        rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
        rnl_buffer *first, *second, *third;
        options.stream = streams[_i][0];
        test_ok(rnl_buffer_create_with(devices[_i], RNL_MEMORY_DEVICE, BYTES, &options, &first));
        test_ok(rnl_stream_fill(streams[_i][0], first, 0, "a", 1, BYTES));
        test_ok(rnl_stream_read(streams[_i][0], mine, first, 0, BYTES));
        test_ok(rnl_buffer_release_after(first, streams[_i][0]));
        test_ok(rnl_buffer_create_with(devices[_i], RNL_MEMORY_DEVICE, BYTES, &options, &second));
        test_ok(rnl_buffer_create(devices[_i], RNL_MEMORY_DEVICE, BYTES, &third));
        test_ok(rnl_stream_fill(streams[_i][1], third, 0, "b", 1, BYTES));
        test_ok(rnl_stream_fill(streams[_i][0], second, 0, "c", 1, BYTES));
        test_ok(rnl_stream_read(streams[_i][1], other, third, 0, BYTES));
        test_ok(rnl_stream_synchronize(streams[_i][1]));
        test_ok(rnl_stream_synchronize(streams[_i][0]));
        for (size_t i = 0; i < BYTES; i++)
            ck_assert(mine[i] == 'a' && other[i] == 'b');
        rnl_buffer_release(second);
        rnl_buffer_release(third);
    }
}
END_TEST

/* A stream may go before its commands have run, and so may the device's last handle. */
START_TEST(late_commands_outlive_their_stream)
{
    rnl_device *own;
    rnl_stream *stream;
    rnl_buffer *buffer;
    rnl_event *event;
    control->delay(LATE_US);
    test_ok(rnl_device_open(specs[_i], NULL, &own));
    test_ok(rnl_stream_create(own, &stream));
    test_ok(rnl_buffer_create(own, RNL_MEMORY_DEVICE, BYTES, &buffer));
    rnl_device_release(own);
    test_ok(rnl_stream_write(stream, buffer, 0, numbers, BYTES));
    test_ok(rnl_stream_read(stream, back, buffer, 0, BYTES));
    test_ok(rnl_stream_record(stream, &event));
    rnl_stream_release(stream);
    test_ok(rnl_event_synchronize(event));
    ck_assert_mem_eq(back, numbers, BYTES);
    rnl_buffer_release(buffer);
    rnl_event_release(event);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_loss");
    TCase *test_case = tcase_create("fake_loss");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_loop_test(test_case, a_lost_device_fails_its_streams_alone, 0, 3);
    tcase_add_test(test_case, a_device_is_lost_at_any_moment);
    tcase_add_loop_test(test_case, a_command_that_fails_is_the_streams_failure, 0, 3);
    tcase_add_test(test_case, an_event_hands_a_failure_on);
    tcase_add_loop_test(test_case, memory_that_is_not_there_fails_at_its_first_use, 0, 3);
    tcase_add_loop_test(test_case, memory_runs_out, 0, 3);
    tcase_add_loop_test(test_case, pinned_memory_is_there_after_a_map_that_failed, 0, 3);
    tcase_add_test(test_case, a_copy_across_works_after_one_that_failed);
    tcase_add_loop_test(test_case, late_commands_are_waited_for, 0, 3);
    tcase_add_loop_test(test_case, memory_is_released_in_order_behind_late_commands, 0, 3);
    tcase_add_loop_test(test_case, late_commands_outlive_their_stream, 0, 3);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
