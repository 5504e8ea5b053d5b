/* SPDX-License-Identifier: Apache-2.0 */
/* What the pool shares, keeps, counts and refuses. */
#include "device/buffer.h"
#include "device/chunk.h"
#include "support/test_device.h"
#include <math.h>
#include <runnel/interop.h>
#include <runnel/pool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define BUDGET (64 * MIB)
#define MOST 256

static rnl_device *device;
static rnl_stream *stream;
static rnl_buffer *buffers[MOST];
static char log_text[4096];

static rnl_device *open_with(uint64_t budget, bool exact)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    options.memory_limit_bytes = budget;
    options.pool_exact = exact;
    return test_open_device_with(&options);
}

static void open_all(void)
{
    unsetenv("RUNNEL_ARENA"); /* which the sanitizers' runs set */
    device = open_with(BUDGET, false);
    test_ok(rnl_stream_create(device, &stream));
}

static void release(size_t index)
{
    rnl_buffer_release(buffers[index]);
    buffers[index] = NULL;
}

static void close_all(void)
{
    rnl_log_set(NULL, NULL, RNL_LOG_ERROR);
    for (size_t i = 0; i < MOST; i++)
        release(i);
    rnl_stream_release(stream);
    rnl_device_release(device);
    stream = NULL;
    device = NULL;
}

static rnl_pool_stats stats_of(rnl_memory memory)
{
    rnl_pool_stats stats;
    rnl_device_pool_stats(device, memory, &stats);
    return stats;
}

static void create(size_t index, size_t size)
{
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, size, &buffers[index]));
}

static bool shares(const rnl_buffer *buffer)
{
    return buffer->block->chunk != NULL;
}

/* ---- Sharing ---- */

START_TEST(small_buffers_share_a_block_and_do_not_overlap)
{
    unsigned char back[1000];
    for (size_t i = 0; i < MOST; i++) {
        create(i, i * 37 + 1);
        ck_assert(shares(buffers[i]));
        unsigned char pattern = (unsigned char)i;
        test_ok(rnl_stream_fill(stream, buffers[i], 0, &pattern, 1, i * 37 + 1));
    }
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).driver_allocations, 1);
    for (size_t i = 0; i < MOST; i++) {
        size_t count = i * 37 + 1 < sizeof back ? i * 37 + 1 : sizeof back;
        test_ok(rnl_stream_read(stream, back, buffers[i], i * 37 + 1 - count, count));
        test_ok(rnl_stream_synchronize(stream));
        for (size_t k = 0; k < count; k++)
            ck_assert_uint_eq(back[k], (unsigned char)i);
    }
}
END_TEST

START_TEST(neighbours_are_joined_for_a_larger_request)
{
    for (size_t i = 0; i < 64; i++)
        create(i, 128 * KIB); /* the whole chunk, an eighth of the budget, less its first place */
    size_t sharing = 0;
    while (sharing < 64 && buffers[sharing]->block->chunk == buffers[0]->block->chunk)
        sharing++;
    ck_assert_uint_eq(sharing, 63);
    release(63);
    rnl_device_pool_trim(device);
    size_t reserved = stats_of(RNL_MEMORY_DEVICE).reserved_bytes;
    for (size_t i = 0; i < sharing; i++)
        release(i);
    for (size_t i = 0; i < 120; i++)
        create(100 + i, 64 * KIB);
    for (size_t i = 0; i < 120; i++)
        ck_assert(shares(buffers[100 + i]));
    for (size_t i = 0; i < 120; i++)
        release(100 + i);
    for (size_t i = 0; i < sharing; i++) {
        create(i, 128 * KIB);
        ck_assert(shares(buffers[i]));
    }
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).reserved_bytes, reserved);
}
END_TEST

START_TEST(large_buffers_and_those_that_ask_have_memory_of_their_own)
{
    rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
    create(0, MIB);
    ck_assert(!shares(buffers[0]));
    options.own_memory = true;
    test_ok(rnl_buffer_create_with(device, RNL_MEMORY_DEVICE, 4 * KIB, &options, &buffers[1]));
    ck_assert(!shares(buffers[1]));
    create(2, 4 * KIB);
    ck_assert(shares(buffers[2]));
    release(2);
    test_ok(rnl_buffer_create_with(device, RNL_MEMORY_DEVICE, 4 * KIB, &options, &buffers[3]));
    ck_assert(!shares(buffers[3]));
}
END_TEST

static int last_number(cl_context context, cl_mem memory, size_t size)
{
    cl_device_id id;
    cl_int code;
    int found = 0;
    ck_assert_int_eq(clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof id, &id, NULL), CL_SUCCESS);
    cl_command_queue queue = clCreateCommandQueue(context, id, 0, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    code = clEnqueueReadBuffer(queue, memory, CL_TRUE, size - sizeof found, sizeof found, &found, 0, NULL, NULL);
    ck_assert_int_eq(code, CL_SUCCESS);
    clReleaseCommandQueue(queue);
    return found;
}

/* Where it lies in memory that is the pool's own, that stays as long as anybody holds the cl_mem. */
START_TEST(a_large_buffer_outlives_its_pool)
{
    const int number = 0x1234567;
    cl_context context;
    create(0, 5 * MIB);
    test_ok(rnl_stream_fill(stream, buffers[0], 0, &number, sizeof number, 5 * MIB));
    test_ok(rnl_stream_synchronize(stream));
    cl_mem memory = rnl_buffer_get_cl_mem(buffers[0]);
    ck_assert_int_eq(clRetainMemObject(memory), CL_SUCCESS);
    ck_assert_int_eq(clGetMemObjectInfo(memory, CL_MEM_CONTEXT, sizeof context, &context, NULL), CL_SUCCESS);
    ck_assert_int_eq(clRetainContext(context), CL_SUCCESS); /* Intel's runtime does not for a cl_mem */
    close_all();
    ck_assert_int_eq(last_number(context, memory, 5 * MIB), number);
    ck_assert_int_eq(clReleaseMemObject(memory), CL_SUCCESS);
    ck_assert_int_eq(clReleaseContext(context), CL_SUCCESS);
}
END_TEST

START_TEST(a_large_request_is_cut_from_a_chunk_where_the_budget_leaves_no_other_place)
{
    create(0, 4 * KIB); /* makes the chunk of 8 MiB */
    create(1, 55 * MIB);
    create(2, 2 * MIB);
    ck_assert(shares(buffers[2]));
    ck_assert_uint_le(stats_of(RNL_MEMORY_DEVICE).reserved_bytes, BUDGET);
}
END_TEST

START_TEST(pinned_pieces_have_their_place_in_the_host)
{
    unsigned char out[512], back[512];
    for (size_t i = 0; i < 16; i++) {
        test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, sizeof out, &buffers[i]));
        memset(rnl_buffer_host(buffers[i]), (int)i, sizeof out);
    }
    /* From one's host side to another's memory: they are parts of one cl_mem. */
    test_ok(rnl_stream_write(stream, buffers[9], 0, rnl_buffer_host(buffers[0]), sizeof out));
    test_ok(rnl_stream_copy(stream, buffers[8], 0, buffers[7], 0, sizeof out));
    for (size_t i = 0; i < 16; i++) {
        test_ok(rnl_stream_read(stream, back, buffers[i], 0, sizeof back));
        test_ok(rnl_stream_synchronize(stream));
        memset(out, i == 9 ? 0 : i == 8 ? 7 : (int)i, sizeof out);
        ck_assert_mem_eq(back, out, sizeof out);
        ck_assert_mem_eq(rnl_buffer_host(buffers[i]), out, sizeof out);
    }
}
END_TEST

/* A driver that made all users of one cl_mem wait for each other would let streams block each other. */
START_TEST(streams_do_not_wait_for_neighbours_in_a_chunk)
{
    if (device->runs_in_caller || device->copies_in_caller)
        return; /* what waits for the host would wait for this thread */
    cl_int code, state = CL_QUEUED;
    cl_event gate = clCreateUserEvent(device->context, &code), done = NULL;
    rnl_stream *other;
    test_ok(rnl_stream_create(device, &other));
    create(0, 4 * KIB);
    create(1, 4 * KIB);
    test_ok(CL(clEnqueueBarrierWithWaitList(stream->queue, 1, &gate, NULL)));
    test_ok(rnl_stream_fill(stream, buffers[0], 0, "a", 1, 4 * KIB));
    test_ok(rnl_stream_flush(stream));
    test_ok(rnl_stream_fill(other, buffers[1], 0, "b", 1, 4 * KIB));
    test_ok(CL(clEnqueueMarkerWithWaitList(other->queue, 0, NULL, &done)));
    test_ok(rnl_stream_flush(other));
    for (int i = 0; i < 2000 && state > CL_COMPLETE; i++) {
        struct timespec pause = {.tv_nsec = 1000000};
        nanosleep(&pause, NULL);
        test_ok(CL(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, NULL)));
    }
    clSetUserEventStatus(gate, CL_COMPLETE);
    test_ok(rnl_stream_synchronize(stream));
    test_ok(rnl_stream_synchronize(other));
    clReleaseEvent(done);
    clReleaseEvent(gate);
    rnl_stream_release(other);
    ck_assert_int_eq(state, CL_COMPLETE);
}
END_TEST

/* ---- Keeping and counting ---- */

START_TEST(what_is_released_is_found_again_without_the_driver)
{
    static const size_t sizes[] = {100, 4 * KIB, 64 * KIB, 300 * KIB, MIB};
    for (size_t i = 0; i < 5; i++)
        create(i, sizes[i]);
    rnl_pool_stats before = stats_of(RNL_MEMORY_DEVICE);
    for (int round = 0; round < 10; round++)
        for (size_t i = 0; i < 5; i++) {
            cl_mem memory = buffers[i]->memory;
            release(i);
            create(i, sizes[i]);
            ck_assert_ptr_eq(buffers[i]->memory, memory);
        }
    rnl_pool_stats after = stats_of(RNL_MEMORY_DEVICE);
    ck_assert_uint_eq(after.driver_allocations, before.driver_allocations);
    ck_assert_uint_eq(after.hits, before.hits + 50);
    ck_assert_uint_eq(after.misses, before.misses);
    ck_assert_uint_eq(after.allocations, 55);
    ck_assert_uint_eq(after.asked_bytes, 100 + 4 * KIB + 64 * KIB + 300 * KIB + MIB);
    ck_assert_uint_eq(after.buffers, 5);
}
END_TEST

START_TEST(statistics_add_up)
{
    create(0, 3 * MIB);
    create(1, 100 * KIB);
    create(2, 100 * KIB);
    release(0);
    release(1);
    rnl_pool_stats stats = stats_of(RNL_MEMORY_DEVICE);
    ck_assert_uint_eq(stats.reserved_bytes, stats.chunk_bytes + stats.idle_bytes);
    ck_assert_uint_eq(stats.idle_bytes, 3 * MIB);
    ck_assert_uint_eq(stats.asked_bytes, 100 * KIB);
    ck_assert_uint_gt(stats.peak_bytes, 3 * MIB + 200 * KIB);
    ck_assert_uint_lt(stats.chunk_bytes - stats.free_bytes - stats.in_use_bytes, 64 * KIB); /* where nothing lies */
    ck_assert_double_eq(stats.fragmentation, 1 - (double)stats.largest_free_bytes / (double)stats.free_bytes);
    ck_assert_double_gt(stats.fragmentation, 0); /* the place of buffer 1 and the rest of the chunk */
    rnl_device_pool_trim(device);
    stats = stats_of(RNL_MEMORY_DEVICE);
    ck_assert_uint_eq(stats.idle_bytes, 0);
    ck_assert_uint_eq(stats.reserved_bytes, stats.chunk_bytes);
    release(2);
    stats = stats_of(RNL_MEMORY_DEVICE);
    ck_assert_double_eq(stats.fragmentation, 0);
    rnl_device_pool_trim(device);
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).reserved_bytes, 0);
}
END_TEST

START_TEST(an_exact_pool_keeps_nothing)
{
    size_t size = 0;
    rnl_stream_release(stream);
    rnl_device_release(device);
    device = open_with(BUDGET, true);
    test_ok(rnl_stream_create(device, &stream));
    create(0, 1001);
    ck_assert(!shares(buffers[0]));
    test_ok(CL(clGetMemObjectInfo(buffers[0]->memory, CL_MEM_SIZE, sizeof size, &size, NULL)));
    ck_assert_uint_eq(size, 1001);
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).reserved_bytes, 1001);
    release(0);
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).reserved_bytes, 0);
    create(0, 1001);
    test_ok(rnl_buffer_release_after(buffers[0], stream));
    buffers[0] = NULL;
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).reserved_bytes, 0);
    ck_assert_uint_eq(stats_of(RNL_MEMORY_DEVICE).hits, 0);
}
END_TEST

/* ---- Limits ---- */

START_TEST(a_budget_can_be_a_part_of_the_device)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    rnl_device_stats stats;
    rnl_device *opened;
    options.memory_fraction = 0.25;
    opened = test_open_device_with(&options);
    uint64_t all = rnl_device_get_info(opened)->global_memory_bytes;
    rnl_device_get_stats(opened, &stats);
    ck_assert_uint_le(stats.pool_budget_bytes, all / 4);
    rnl_device_release(opened);
    options.memory_limit_bytes = MIB;
    opened = test_open_device_with(&options);
    rnl_device_get_stats(opened, &stats);
    ck_assert_uint_eq(stats.pool_budget_bytes, MIB);
    rnl_device_release(opened);
    static const double bad[] = {-0.1, 1.5, (double)NAN};
    for (size_t i = 0; i < 3; i++) {
        options.memory_fraction = bad[i];
        test_fails(RNL_INVALID_ARGUMENT, "from 0 to 1",
                   rnl_device_open(getenv("RUNNEL_TEST_DEVICE"), &options, &opened));
    }
}
END_TEST

START_TEST(exhaustion_says_what_is_free_and_leaves_the_pool_usable)
{
    size_t count = 0;
    rnl_status status = RNL_OK;
    while (status == RNL_OK && count < MOST)
        if ((status = rnl_buffer_create(device, RNL_MEMORY_DEVICE, 3 * MIB, &buffers[count])) == RNL_OK)
            count++;
    ck_assert_uint_ge(count, 20);
    test_fails(RNL_RESOURCE_EXHAUSTED, "3145728 bytes of memory were asked for on", status);
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "67108864 bytes allowed are in use;"));
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "are free, in one piece at most"));
    release(3);
    create(3, 3 * MIB);
    for (size_t i = 0; i < count; i++)
        release(i);
    create(0, BUDGET - 4 * MIB);
    test_fails(RNL_RESOURCE_EXHAUSTED, "; 4194304 are free, in one piece at most 4194304",
               rnl_buffer_create(device, RNL_MEMORY_DEVICE, 5 * MIB, &buffers[1]));
    release(0);
    create(0, 4 * KIB);
}
END_TEST

START_TEST(idle_memory_of_one_kind_makes_room_for_the_other)
{
    for (size_t i = 0; i < 8; i++)
        create(i, 2 * MIB);
    for (size_t i = 0; i < 8; i++)
        release(i);
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 60 * MIB, &buffers[0]));
    release(0);
    create(0, 60 * MIB);
    ck_assert_uint_le(stats_of(RNL_MEMORY_DEVICE).reserved_bytes + stats_of(RNL_MEMORY_PINNED).reserved_bytes, BUDGET);
}
END_TEST

/* ---- Labels ---- */

static void create_labelled(size_t index, size_t size, const char *label)
{
    rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
    options.label = label;
    test_ok(rnl_buffer_create_with(device, RNL_MEMORY_DEVICE, size, &options, &buffers[index]));
}

static void keep_log(void *user, rnl_log_level level, const char *line)
{
    (void)user;
    if (level == RNL_LOG_WARNING)
        snprintf(log_text + strlen(log_text), sizeof log_text - strlen(log_text), "%s\n", line);
}

START_TEST(labels_tell_what_was_not_released)
{
    rnl_pool_label_info labels[4];
    size_t count;
    rnl_device_pool_labels(device, labels, 4, &count);
    ck_assert_uint_eq(count, 0);
    char text[] = "weights";
    create_labelled(0, 1000, text);
    text[0] = 'x'; /* it was copied */
    create_labelled(1, 500, "weights");
    create_labelled(2, 70, "activations");
    create(3, 9);
    create_labelled(4, 10, "");
    release(1);
    rnl_device_pool_labels(device, labels, 4, &count);
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(labels[0].label, "");
    ck_assert_uint_eq(labels[0].buffers, 2);
    ck_assert_uint_eq(labels[0].bytes, 19);
    ck_assert_str_eq(labels[1].label, "activations");
    ck_assert_str_eq(labels[2].label, "weights");
    ck_assert_uint_eq(labels[2].buffers, 1);
    ck_assert_uint_eq(labels[2].allocations, 2);
    ck_assert_uint_eq(labels[2].bytes, 1000);
    ck_assert_uint_eq(labels[2].peak_bytes, 1500);
    rnl_device_pool_labels(device, labels, 1, &count);
    ck_assert_uint_eq(count, 3);
    log_text[0] = '\0';
    rnl_log_set(keep_log, NULL, RNL_LOG_WARNING);
    ck_assert_uint_eq(rnl_device_pool_report(device), 4);
    ck_assert_ptr_nonnull(strstr(log_text, "1 buffer labelled 'weights' not released: 1000 bytes"));
    ck_assert_ptr_nonnull(strstr(log_text, "2 buffers without a label not released: 19 bytes"));
    for (size_t i = 0; i < 5; i++)
        release(i);
    log_text[0] = '\0';
    ck_assert_uint_eq(rnl_device_pool_report(device), 0);
    ck_assert_str_eq(log_text, "");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *test_case = tcase_create("pool");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, small_buffers_share_a_block_and_do_not_overlap);
    tcase_add_test(test_case, neighbours_are_joined_for_a_larger_request);
    tcase_add_test(test_case, large_buffers_and_those_that_ask_have_memory_of_their_own);
    tcase_add_test(test_case, a_large_buffer_outlives_its_pool);
    tcase_add_test(test_case, a_large_request_is_cut_from_a_chunk_where_the_budget_leaves_no_other_place);
    tcase_add_test(test_case, pinned_pieces_have_their_place_in_the_host);
    tcase_add_test(test_case, streams_do_not_wait_for_neighbours_in_a_chunk);
    tcase_add_test(test_case, what_is_released_is_found_again_without_the_driver);
    tcase_add_test(test_case, statistics_add_up);
    tcase_add_test(test_case, an_exact_pool_keeps_nothing);
    tcase_add_test(test_case, a_budget_can_be_a_part_of_the_device);
    tcase_add_test(test_case, exhaustion_says_what_is_free_and_leaves_the_pool_usable);
    tcase_add_test(test_case, idle_memory_of_one_kind_makes_room_for_the_other);
    tcase_add_test(test_case, labels_tell_what_was_not_released);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
