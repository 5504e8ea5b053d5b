/* SPDX-License-Identifier: Apache-2.0 */
/* Staging rings, plain memory by way of pinned memory, and copies between devices. */
#include "device/buffer.h"
#include "device/way.h"
#include "support/test_device.h"
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static rnl_device *device, *other; /* other: another one where there is, else the same in a context of its own */
static rnl_stream *stream, *far;   /* on `device` and on `other` */
static rnl_buffer *buffers[8];
static rnl_staging *staging;
static unsigned char *out, *back;
static size_t big; /* of copies by threads: several pieces */

static void open_all(void)
{
    device = test_open_device();
    other = test_open_other_device(device);
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_stream_create(other, &far));
    big = getenv("RUNNEL_TEST_SMALL") ? 700 * KIB + 13 : 9 * MIB + 13;
    out = aligned_alloc(4096, 16 * MIB);
    back = aligned_alloc(4096, 16 * MIB);
    test_fill(out, big, 7);
    memset(back, 0, big);
}

/* As on a GPU, whose pinned memory has two sides. */
static void open_all_with_two_sides(void)
{
    open_all();
    device->maps_in_place = other->maps_in_place = false;
}

static void close_all(void)
{
    rnl_staging_release(staging);
    staging = NULL;
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        rnl_buffer_release(buffers[i]);
        buffers[i] = NULL;
    }
    rnl_stream_release(stream);
    rnl_stream_release(far);
    rnl_device_release(other);
    rnl_device_release(device);
    free(out);
    free(back);
}

static rnl_copy_stats stats_of(rnl_device *of)
{
    rnl_copy_stats stats;
    rnl_device_get_copy_stats(of, &stats);
    return stats;
}

/* ---- Staging ---- */

START_TEST(a_ring_carries_more_than_it_holds)
{
    const void *slot;
    size_t bytes, done = 0, taken = 0, size = 100 * KIB + 77;
    test_ok(rnl_staging_create(device, 8 * KIB, 3, &staging));
    ck_assert_uint_eq(rnl_staging_slot_bytes(staging), 8 * KIB);
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, size, &buffers[0]));
    for (; done < size; done += bytes) {
        void *room;
        bytes = size - done < 8 * KIB ? size - done : 8 * KIB;
        test_ok(rnl_staging_begin(staging, &room));
        memcpy(room, out + done, bytes);
        test_ok(rnl_staging_submit(staging, stream, buffers[0], done, bytes));
    }
    for (done = 0; taken < size;) {
        for (int ahead = 0; ahead < 2 && done < size; ahead++) {
            bytes = size - done < 8 * KIB ? size - done : 8 * KIB;
            if (rnl_staging_request(staging, stream, buffers[0], done, bytes) != RNL_OK)
                break;
            done += bytes;
        }
        test_ok(rnl_staging_take(staging, &slot, &bytes));
        memcpy(back + taken, slot, bytes);
        taken += bytes;
    }
    ck_assert_mem_eq(back, out, size);
    ck_assert_uint_eq(stats_of(device).staged_bytes, 2 * size);
    test_fails(RNL_FAILED_PRECONDITION, "no request", rnl_staging_take(staging, &slot, &bytes));
}
END_TEST

START_TEST(a_ring_is_bounded_and_stays_usable)
{
    const void *slot;
    void *room;
    size_t bytes;
    test_ok(rnl_staging_create(device, 64, 2, &staging));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 128, &buffers[0]));
    test_ok(rnl_buffer_create(other, RNL_MEMORY_DEVICE, 128, &buffers[1]));
    test_fails(RNL_FAILED_PRECONDITION, "not begun", rnl_staging_submit(staging, stream, buffers[0], 0, 64));
    test_ok(rnl_staging_begin(staging, &room));
    test_fails(RNL_INVALID_ARGUMENT, "slot of 64", rnl_staging_submit(staging, stream, buffers[0], 0, 65));
    test_fails(RNL_INVALID_ARGUMENT, "64 bytes from 65", rnl_staging_submit(staging, stream, buffers[0], 65, 64));
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_staging_submit(staging, stream, buffers[1], 0, 64));
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_staging_submit(staging, far, buffers[1], 0, 64));
    memset(room, 3, 64);
    test_ok(rnl_staging_submit(staging, stream, buffers[0], 0, 64));
    test_ok(rnl_staging_request(staging, stream, buffers[0], 0, 64));
    test_ok(rnl_staging_request(staging, stream, buffers[0], 0, 32));
    test_fails(RNL_FAILED_PRECONDITION, "all 2 slots", rnl_staging_request(staging, stream, buffers[0], 0, 64));
    test_fails(RNL_FAILED_PRECONDITION, "all 2 slots", rnl_staging_begin(staging, &room));
    test_ok(rnl_staging_take(staging, &slot, &bytes));
    ck_assert_uint_eq(bytes, 64);
    ck_assert_uint_eq(*(const unsigned char *)slot, 3);
    test_ok(rnl_staging_take(staging, &slot, &bytes));
    ck_assert_uint_eq(bytes, 32);
    test_ok(rnl_staging_begin(staging, &room));
    test_ok(rnl_staging_submit(staging, stream, buffers[0], 0, 1));
    rnl_staging *none = staging;
    test_fails(RNL_INVALID_ARGUMENT, "1 to 4096 slots", rnl_staging_create(device, 0, 2, &none));
    ck_assert_ptr_null(none);
    test_fails(RNL_INVALID_ARGUMENT, "1 to 4096 slots", rnl_staging_create(device, 64, 0, &none));
    test_fails(RNL_RESOURCE_EXHAUSTED, "too large", rnl_staging_create(device, SIZE_MAX / 2, 4, &none));
    test_fails(RNL_RESOURCE_EXHAUSTED, "largest allocation", rnl_staging_create(device, SIZE_MAX / 16, 4, &none));
}
END_TEST

/* ---- By threads ---- */

static void set_way(rnl_copy_way way)
{
    atomic_store(&device->copies_known, true);
    for (size_t i = 0; i < RNL_COPY_CLASSES; i++) {
        atomic_store(&device->copy_ways[RNL_COPY_TO_DEVICE][i], (unsigned char)(way + 1));
        atomic_store(&device->copy_ways[RNL_COPY_TO_HOST][i], (unsigned char)(way + 1));
    }
}

START_TEST(staged_copies_keep_the_streams_order)
{
    for (int way = RNL_COPY_DIRECT; way < RNL_COPY_WAYS; way++) {
        set_way((rnl_copy_way)way);
        uint64_t before = stats_of(device).staged_bytes;
        memset(back, 0, big);
        test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, big + 100, &buffers[0]));
        test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, big + 100, &buffers[1]));
        test_ok(rnl_stream_fill(stream, buffers[0], 0, "\x77", 1, big + 100));
        test_ok(rnl_stream_write(stream, buffers[0], 50, out, big));
        test_ok(rnl_stream_copy(stream, buffers[1], 0, buffers[0], 0, big + 100));
        test_ok(rnl_stream_fill(stream, buffers[0], 0, "\x88", 1, big + 100));
        test_ok(rnl_stream_read(stream, back, buffers[1], 50, big));
        test_ok(rnl_stream_fill(stream, buffers[1], 0, "\x99", 1, big + 100));
        test_ok(rnl_stream_synchronize(stream));
        ck_assert_mem_eq(back, out, big);
        if (!device->copies_in_caller)
            ck_assert_uint_eq(stats_of(device).staged_bytes - before, way == RNL_COPY_DIRECT ? 0 : 2 * big);
        rnl_buffer_release(buffers[0]);
        rnl_buffer_release(buffers[1]);
        buffers[0] = buffers[1] = NULL;
        ck_assert_uint_eq(test_pool_in_use(device), 0);
    }
}
END_TEST

START_TEST(pinned_memory_is_not_staged)
{
    set_way(RNL_COPY_STAGED_2);
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, big, &buffers[0]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, big, &buffers[1]));
    memcpy(rnl_buffer_host(buffers[1]), out, big);
    test_ok(rnl_stream_write(stream, buffers[0], 0, rnl_buffer_host(buffers[1]), big));
    test_ok(rnl_stream_synchronize(stream));
    memset(rnl_buffer_host(buffers[1]), 0, big);
    test_ok(rnl_stream_read(stream, rnl_buffer_host(buffers[1]), buffers[0], 0, big));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_mem_eq(rnl_buffer_host(buffers[1]), out, big);
    ck_assert_uint_eq(stats_of(device).staged_bytes, 0);
}
END_TEST

/* ---- Between devices ---- */

START_TEST(copies_go_between_devices)
{
    static const rnl_memory kinds[] = {RNL_MEMORY_DEVICE, RNL_MEMORY_PINNED};
    const size_t sizes[] = {1, 5000, big};
    for (size_t i = 0; i < 12; i++) {
        size_t size = sizes[i / 4];
        memset(back, 0, size);
        test_ok(rnl_buffer_create(device, kinds[i % 2], size + 7, &buffers[0]));
        test_ok(rnl_buffer_create(other, kinds[i / 2 % 2], size + 9, &buffers[1]));
        test_ok(rnl_stream_write(stream, buffers[0], 7, out, size));
        test_ok(rnl_stream_copy_across(far, buffers[1], 9, stream, buffers[0], 7, size));
        test_ok(rnl_stream_fill(stream, buffers[0], 0, "\0", 1, size + 7));
        test_ok(rnl_stream_read(far, back, buffers[1], 9, size));
        test_ok(rnl_stream_synchronize(far));
        test_ok(rnl_stream_synchronize(stream));
        ck_assert_mem_eq(back, out, size);
        rnl_buffer_release(buffers[0]);
        rnl_buffer_release(buffers[1]);
        buffers[0] = buffers[1] = NULL;
    }
    ck_assert_uint_eq(test_pool_in_use(device) + test_pool_in_use(other), 0);
}
END_TEST

START_TEST(many_copies_cross_each_other)
{
    rnl_stream *second, *far_second;
    size_t size = 300 * KIB;
    test_ok(rnl_stream_create(device, &second));
    test_ok(rnl_stream_create(other, &far_second));
    for (size_t i = 0; i < 6; i++)
        test_ok(rnl_buffer_create(i % 2 ? other : device, RNL_MEMORY_DEVICE, size, &buffers[i]));
    test_ok(rnl_stream_write(stream, buffers[0], 0, out, size));
    test_ok(rnl_stream_write(far_second, buffers[3], 0, out + size, size));
    for (int i = 0; i < 10; i++) {
        test_ok(rnl_stream_copy_across(far, buffers[1], 0, stream, buffers[0], 0, size));
        test_ok(rnl_stream_copy_across(second, buffers[2], 0, far_second, buffers[3], 0, size));
        test_ok(rnl_stream_copy_across(stream, buffers[4], 0, far, buffers[1], 0, size));
        test_ok(rnl_stream_copy_across(far_second, buffers[5], 0, second, buffers[2], 0, size));
    }
    test_ok(rnl_stream_read(stream, back, buffers[4], 0, size));
    test_ok(rnl_stream_read(far_second, back + size, buffers[5], 0, size));
    rnl_stream *all[] = {stream, far, second, far_second};
    for (size_t i = 0; i < 4; i++)
        test_ok(rnl_stream_synchronize(all[i]));
    ck_assert_mem_eq(back, out, 2 * size);
    rnl_stream_release(second);
    rnl_stream_release(far_second);
}
END_TEST

START_TEST(a_device_copies_to_itself)
{
    rnl_stream *second;
    test_ok(rnl_stream_create(device, &second));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 4096, &buffers[0]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 4096, &buffers[1]));
    test_ok(rnl_stream_write(stream, buffers[0], 0, out, 4096));
    test_ok(rnl_stream_copy_across(second, buffers[1], 0, stream, buffers[0], 0, 4096));
    test_ok(rnl_stream_fill(stream, buffers[0], 0, "\0", 1, 4096));
    test_ok(rnl_stream_copy_across(second, buffers[0], 0, second, buffers[1], 2048, 2048));
    test_ok(rnl_stream_read(second, back, buffers[1], 0, 4096));
    test_ok(rnl_stream_synchronize(second));
    ck_assert_mem_eq(back, out, 4096);
    test_ok(rnl_stream_synchronize(stream));
    rnl_stream_release(second);
}
END_TEST

START_TEST(bad_copies_between_devices_are_refused)
{
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 64, &buffers[0]));
    test_ok(rnl_buffer_create(other, RNL_MEMORY_DEVICE, 32, &buffers[1]));
    test_fails(RNL_INVALID_ARGUMENT, "another device",
               rnl_stream_copy_across(stream, buffers[1], 0, stream, buffers[0], 0, 16));
    test_fails(RNL_INVALID_ARGUMENT, "64 bytes from 0 do not lie in a buffer of 32",
               rnl_stream_copy_across(far, buffers[1], 0, stream, buffers[0], 0, 64));
    test_fails(RNL_INVALID_ARGUMENT, "do not lie",
               rnl_stream_copy_across(far, buffers[1], 0, stream, buffers[0], 60, SIZE_MAX - 10));
    test_fails(RNL_INVALID_ARGUMENT, "none", rnl_stream_copy_across(far, NULL, 0, stream, buffers[0], 0, 1));
    test_ok(rnl_stream_copy_across(far, buffers[1], 32, stream, buffers[0], 64, 0));
    test_ok(rnl_stream_synchronize(far));
    test_ok(rnl_stream_synchronize(stream));
}
END_TEST

START_TEST(buffers_may_be_released_while_they_are_copied)
{
    for (int i = 0; i < 5; i++) {
        test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 600 * KIB, &buffers[0]));
        test_ok(rnl_buffer_create(other, RNL_MEMORY_DEVICE, 600 * KIB, &buffers[1]));
        test_ok(rnl_stream_write(stream, buffers[0], 0, out, 600 * KIB));
        test_ok(rnl_stream_copy_across(far, buffers[1], 0, stream, buffers[0], 0, 600 * KIB));
        rnl_buffer_release(buffers[0]);
        buffers[0] = NULL;
        test_ok(rnl_stream_read(far, back, buffers[1], 0, 600 * KIB));
        test_ok(rnl_stream_synchronize(far));
        ck_assert_mem_eq(back, out, 600 * KIB);
        rnl_buffer_release(buffers[1]);
        buffers[1] = NULL;
    }
}
END_TEST

START_TEST(a_failed_stream_fails_the_other)
{
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 64, &buffers[0]));
    test_ok(rnl_buffer_create(other, RNL_MEMORY_DEVICE, 64, &buffers[1]));
    rnl_stream_fail(stream, rnl_error_set(RNL_INTERNAL, -9999, "made to fail"));
    test_fails(RNL_INTERNAL, "made to fail", rnl_stream_copy_across(far, buffers[1], 0, stream, buffers[0], 0, 64));
    test_ok(rnl_stream_synchronize(far));
}
END_TEST

/* ---- Tuning ---- */

static void count_call(void *user, const rnl_copy_measured *measured, size_t index, size_t count)
{
    ck_assert_uint_lt(index, count);
    ck_assert(measured->ns[measured->best] > 0);
    ck_assert(measured->ns[measured->best] <= measured->ns[RNL_COPY_DIRECT]);
    ++*(size_t *)user;
}

START_TEST(copies_can_be_tuned)
{
    size_t calls = 0;
    if (device->copies_in_caller) {
        test_fails(RNL_UNIMPLEMENTED, "one way only", rnl_device_tune_copies(device, NULL, NULL));
        return;
    }
    ck_assert_int_eq(rnl_device_copy_way(device, RNL_COPY_TO_HOST, 1000), RNL_COPY_DIRECT);
    device->info.max_allocation_bytes = 16 * MIB; /* small sizes are enough here */
    test_ok(rnl_device_tune_copies(device, count_call, &calls));
    ck_assert_uint_ge(calls, 2);
    ck_assert(atomic_load(&device->copies_known));
    ck_assert_uint_gt(atomic_load(&device->copy_ways[RNL_COPY_TO_DEVICE][0]), 0);
    ck_assert_uint_gt(atomic_load(&device->copy_ways[RNL_COPY_TO_HOST][0]), 0);
    ck_assert_uint_eq(test_pool_in_use(device), 0);
}
END_TEST

static TCase *make_case(const char *name, void (*open)(void))
{
    TCase *test_case = tcase_create(name);
    tcase_add_checked_fixture(test_case, open, close_all);
    tcase_add_test(test_case, a_ring_carries_more_than_it_holds);
    tcase_add_test(test_case, a_ring_is_bounded_and_stays_usable);
    tcase_add_test(test_case, staged_copies_keep_the_streams_order);
    tcase_add_test(test_case, pinned_memory_is_not_staged);
    tcase_add_test(test_case, copies_go_between_devices);
    tcase_add_test(test_case, many_copies_cross_each_other);
    tcase_add_test(test_case, a_device_copies_to_itself);
    tcase_add_test(test_case, bad_copies_between_devices_are_refused);
    tcase_add_test(test_case, buffers_may_be_released_while_they_are_copied);
    tcase_add_test(test_case, a_failed_stream_fails_the_other);
    return test_case;
}

int main(void)
{
    Suite *suite = suite_create("copies");
    TCase *one_side = make_case("copies", open_all);
    tcase_add_test(one_side, copies_can_be_tuned);
    suite_add_tcase(suite, one_side);
    suite_add_tcase(suite, make_case("two sides", open_all_with_two_sides));
    return test_run(suite, false);
}
