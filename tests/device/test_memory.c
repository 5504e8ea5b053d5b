/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory and its limit, the caller's memory in place, and maps. */
#include "device/buffer.h"
#include "support/test_device.h"
#include <runnel/memory.h>
#include <runnel/pool.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static rnl_device *device, *other; /* other: another one where there is, else the same in a context of its own */
static rnl_stream *stream, *far;   /* on `device` and on `other` */
static rnl_buffer *buffers[8];
static unsigned char *out, *back;
#define ROOM (4 * MIB)
static size_t warnings;

static void count_warnings(void *user, rnl_log_level level, const char *line)
{
    (void)user;
    (void)line;
    warnings += level == RNL_LOG_WARNING;
}

static void open_all(void)
{
    device = test_open_device();
    other = test_open_other_device(device);
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_stream_create(other, &far));
    out = aligned_alloc(4096, ROOM);
    back = aligned_alloc(4096, ROOM);
    test_fill(out, ROOM, 7);
    memset(back, 0, ROOM);
    warnings = 0;
}

/* As on a GPU, whose pinned memory has two sides. */
static void open_all_with_two_sides(void)
{
    open_all();
    device->maps_in_place = other->maps_in_place = false;
}

static void close_all(void)
{
    rnl_log_set(NULL, NULL, RNL_LOG_ERROR);
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

/* ---- Pinned memory ---- */

START_TEST(pinned_memory_is_counted)
{
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 100 * KIB, &buffers[0]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 50 * KIB, &buffers[1]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 50 * KIB, &buffers[2]));
    ck_assert_uint_eq(stats_of(device).pinned_bytes, 150 * KIB);
    rnl_buffer_release(buffers[0]);
    buffers[0] = NULL;
    ck_assert_uint_eq(stats_of(device).pinned_bytes, 50 * KIB);
    ck_assert_uint_eq(stats_of(device).pinned_peak_bytes, 150 * KIB);
    ck_assert_uint_eq(stats_of(device).pinned_refused, 0);
    ck_assert_uint_gt(stats_of(device).pinned_limit_bytes, 16 * MIB);
}
END_TEST

static void check_pinned_round_trip(rnl_device *on, rnl_stream *by, rnl_buffer *pinned)
{
    size_t size = rnl_buffer_size(pinned);
    unsigned char *host = rnl_buffer_host(pinned);
    ck_assert_ptr_nonnull(host);
    test_fill(host, size, 11);
    memcpy(out, host, size);
    test_ok(rnl_buffer_create(on, RNL_MEMORY_DEVICE, size, &buffers[7]));
    test_ok(rnl_stream_copy(by, buffers[7], 0, pinned, 0, size));
    test_ok(rnl_stream_fill(by, pinned, 0, "\x11", 1, size));
    test_ok(rnl_stream_synchronize(by));
    for (size_t i = 0; i < size; i++)
        ck_assert_uint_eq(host[i], 0x11);
    test_ok(rnl_stream_copy(by, pinned, 0, buffers[7], 0, size));
    test_ok(rnl_stream_read(by, back, pinned, 0, size));
    test_ok(rnl_stream_synchronize(by));
    ck_assert_mem_eq(host, out, size);
    ck_assert_mem_eq(back, out, size);
    rnl_buffer_release(buffers[7]);
    buffers[7] = NULL;
}

START_TEST(past_the_limit_pinned_memory_is_pageable)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    options.pinned_limit_bytes = 128 * KIB;
    rnl_device *limited = test_open_device_with(&options);
    rnl_stream *by;
    limited->maps_in_place = device->maps_in_place;
    test_ok(rnl_stream_create(limited, &by));
    rnl_log_set(count_warnings, NULL, RNL_LOG_WARNING);
    ck_assert_uint_eq(stats_of(limited).pinned_limit_bytes, 128 * KIB);
    test_ok(rnl_buffer_create(limited, RNL_MEMORY_PINNED, 100 * KIB, &buffers[0]));
    ck_assert_uint_eq(warnings, 0);
    for (size_t i = 1; i < 4; i++)
        test_ok(rnl_buffer_create(limited, RNL_MEMORY_PINNED, 50 * KIB, &buffers[i]));
    ck_assert_uint_eq(warnings, 1);
    ck_assert_uint_eq(stats_of(limited).pinned_bytes, 100 * KIB);
    ck_assert_uint_eq(stats_of(limited).pinned_refused, 3);
    for (size_t i = 0; i < 4; i++)
        check_pinned_round_trip(limited, by, buffers[i]);
    for (size_t i = 0; i < 4; i++) {
        rnl_buffer_release(buffers[i]);
        buffers[i] = NULL;
    }
    ck_assert_uint_eq(test_pool_in_use(limited), 0);
    ck_assert_uint_eq(stats_of(limited).pinned_bytes, 0);
    test_ok(rnl_buffer_create(limited, RNL_MEMORY_PINNED, 128 * KIB, &buffers[0]));
    ck_assert_uint_eq(stats_of(limited).pinned_bytes, 128 * KIB);
    rnl_buffer_release(buffers[0]);
    buffers[0] = NULL;
    rnl_stream_release(by);
    rnl_device_release(limited);
}
END_TEST

START_TEST(what_the_pool_keeps_is_within_the_limit)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    options.pinned_limit_bytes = 2 * MIB;
    rnl_device *limited = test_open_device_with(&options);
    for (size_t size = 700 * KIB; size <= 2 * MIB; size += 300 * KIB) {
        rnl_pool_stats pinned;
        test_ok(rnl_buffer_create(limited, RNL_MEMORY_PINNED, size, &buffers[0]));
        rnl_device_pool_stats(limited, RNL_MEMORY_PINNED, &pinned);
        ck_assert_uint_le(pinned.reserved_bytes, 2 * MIB + 256 * KIB); /* a class is at most an eighth larger */
        rnl_buffer_release(buffers[0]);
        buffers[0] = NULL;
    }
    ck_assert_uint_eq(stats_of(limited).pinned_refused, 0);
    rnl_device_release(limited);
}
END_TEST

START_TEST(copies_are_counted)
{
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 1000, &buffers[0]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 1000, &buffers[1]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 1000, &buffers[2]));
    test_ok(rnl_stream_write(stream, buffers[0], 0, out, 500));
    test_ok(rnl_stream_read(stream, back, buffers[0], 0, 300));
    test_ok(rnl_stream_copy(stream, buffers[2], 0, buffers[0], 0, 200));
    test_ok(rnl_stream_copy(stream, buffers[2], 0, buffers[1], 0, 40));
    test_ok(rnl_stream_copy(stream, buffers[1], 0, buffers[2], 0, 7));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_uint_eq(stats_of(device).to_device_bytes, 540);
    ck_assert_uint_eq(stats_of(device).to_host_bytes, 307);
    ck_assert_uint_eq(stats_of(device).on_device_bytes, 200);
    ck_assert_uint_eq(stats_of(device).staged_bytes, 0);
    ck_assert_uint_eq(stats_of(device).in_place_bytes, 0);
}
END_TEST

/* ---- In place ---- */

static const char doubling[] = "kernel void twice(global int *x) { x[get_global_id(0)] *= 2; }\n";

static rnl_status launch_doubling(rnl_stream *by, rnl_device *on, rnl_buffer *buffer, size_t count)
{
    rnl_kernel *kernel;
    rnl_arg arg = {.kind = RNL_ARG_BUFFER, .buffer = buffer};
    rnl_range range = {1, {count, 1, 1}, {1, 1, 1}};
    rnl_status status = rnl_kernel_create(on, doubling, NULL, "twice", &kernel);
    if (status != RNL_OK)
        return status;
    status = rnl_stream_launch(by, kernel, &range, &arg, 1);
    rnl_status ended = rnl_stream_synchronize(by);
    rnl_kernel_release(kernel);
    return status == RNL_OK ? ended : status;
}

START_TEST(the_callers_memory_is_used_in_place)
{
    int *numbers = (int *)(void *)(out + RNL_WRAP_ALIGN_BYTES); /* not at the start of a page */
    void *host = NULL;
    for (int i = 0; i < 1000; i++)
        numbers[i] = i - 500;
    rnl_status status = rnl_buffer_wrap_host(device, numbers, 4000, &buffers[0]);
    if (status == RNL_UNIMPLEMENTED) {
        ck_assert_int_ne(rnl_device_get_info(device)->type, RNL_DEVICE_CPU);
        return;
    }
    test_ok(status);
    ck_assert_ptr_eq(rnl_buffer_host(buffers[0]), numbers);
    test_ok(launch_doubling(stream, device, buffers[0], 1000));
    test_ok(rnl_stream_map(stream, buffers[0], 0, 4000, RNL_MAP_READ_WRITE, &host));
    ck_assert_ptr_eq(host, numbers);
    for (int i = 0; i < 1000; i++) {
        ck_assert_int_eq(numbers[i], 2 * (i - 500));
        numbers[i] = i;
    }
    test_ok(rnl_stream_unmap(stream, buffers[0]));
    test_ok(launch_doubling(stream, device, buffers[0], 1000));
    test_ok(rnl_stream_map(stream, buffers[0], 0, 4000, RNL_MAP_READ, &host));
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(numbers[i], 2 * i);
    test_ok(rnl_stream_unmap(stream, buffers[0]));
    rnl_copy_stats stats = stats_of(device);
    ck_assert_uint_eq(stats.in_place_bytes, 4000);
    ck_assert_uint_eq(stats.to_device_bytes + stats.to_host_bytes + stats.on_device_bytes, 0);
    ck_assert_uint_eq(test_pool_in_use(device), 0);
}
END_TEST

START_TEST(wrapped_memory_is_a_buffer_like_others)
{
    rnl_status status = rnl_buffer_wrap_host(device, out, 4096, &buffers[0]);
    if (status == RNL_UNIMPLEMENTED)
        return;
    test_ok(status);
    test_fill(back, 4096, 5);
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 4096, &buffers[1]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 4096, &buffers[2]));
    test_ok(rnl_stream_write(stream, buffers[0], 0, back, 4096));
    test_ok(rnl_stream_copy(stream, buffers[1], 0, buffers[0], 0, 4096));
    test_ok(rnl_stream_copy(stream, buffers[2], 0, buffers[1], 0, 4096));
    test_ok(rnl_stream_fill(stream, buffers[0], 0, "\x33", 1, 4096));
    test_ok(rnl_stream_copy(stream, buffers[0], 0, buffers[2], 0, 2048));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_mem_eq(rnl_buffer_host(buffers[2]), back, 4096);
    ck_assert_mem_eq(out, back, 2048);
    ck_assert_uint_eq(out[2048], 0x33);
    ck_assert_uint_eq(out[4095], 0x33);
}
END_TEST

START_TEST(what_cannot_be_wrapped_is_refused)
{
    test_fails(RNL_INVALID_ARGUMENT, "no host memory", rnl_buffer_wrap_host(device, NULL, 64, &buffers[0]));
    test_fails(RNL_INVALID_ARGUMENT, "0 bytes", rnl_buffer_wrap_host(device, out, 0, &buffers[0]));
    test_fails(RNL_INVALID_ARGUMENT, "multiple of 64 bytes, and is 4 past",
               rnl_buffer_wrap_host(device, out + 4, 64, &buffers[0]));
    test_fails(RNL_RESOURCE_EXHAUSTED, "largest allocation", rnl_buffer_wrap_host(device, out, SIZE_MAX, &buffers[0]));
    ck_assert_ptr_null(buffers[0]);
    atomic_store(&device->wraps, -1);
    test_fails(RNL_UNIMPLEMENTED, "does not use host memory in place",
               rnl_buffer_wrap_host(device, out, 64, &buffers[0]));
}
END_TEST

/* ---- Maps ---- */

static void check_map(rnl_buffer *buffer)
{
    unsigned char *host = NULL;
    test_ok(rnl_stream_write(stream, buffer, 0, out, 3000));
    test_ok(rnl_stream_map(stream, buffer, 100, 2000, RNL_MAP_READ_WRITE, (void **)&host));
    ck_assert_mem_eq(host, out + 100, 2000);
    memset(host + 10, 0xab, 20);
    test_ok(rnl_stream_unmap(stream, buffer));
    test_ok(rnl_stream_map(stream, buffer, 2100, 100, RNL_MAP_OVERWRITE, (void **)&host));
    memset(host, 0xcd, 100);
    test_ok(rnl_stream_unmap(stream, buffer));
    test_ok(rnl_stream_read(stream, back, buffer, 0, 3000));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_mem_eq(back, out, 110);
    ck_assert_uint_eq(back[110], 0xab);
    ck_assert_uint_eq(back[129], 0xab);
    ck_assert_mem_eq(back + 130, out + 130, 1970);
    ck_assert_uint_eq(back[2100], 0xcd);
    ck_assert_uint_eq(back[2199], 0xcd);
    ck_assert_mem_eq(back + 2200, out + 2200, 800);
}

START_TEST(buffers_can_be_mapped)
{
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 3000, &buffers[0]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 3000, &buffers[1]));
    check_map(buffers[0]);
    check_map(buffers[1]);
}
END_TEST

START_TEST(bad_maps_are_refused)
{
    void *host = NULL;
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 64, &buffers[0]));
    test_ok(rnl_buffer_create(other, RNL_MEMORY_DEVICE, 64, &buffers[1]));
    test_fails(RNL_INVALID_ARGUMENT, "65 bytes from 0", rnl_stream_map(stream, buffers[0], 0, 65, RNL_MAP_READ, &host));
    test_fails(RNL_INVALID_ARGUMENT, "from 1", rnl_stream_map(stream, buffers[0], 1, SIZE_MAX, RNL_MAP_READ, &host));
    test_fails(RNL_INVALID_ARGUMENT, "0 bytes", rnl_stream_map(stream, buffers[0], 0, 0, RNL_MAP_READ, &host));
    test_fails(RNL_INVALID_ARGUMENT, "access 9", rnl_stream_map(stream, buffers[0], 0, 4, (rnl_map_access)9, &host));
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_stream_map(stream, buffers[1], 0, 4, RNL_MAP_READ, &host));
    test_fails(RNL_FAILED_PRECONDITION, "not mapped", rnl_stream_unmap(stream, buffers[0]));
    test_ok(rnl_stream_map(stream, buffers[0], 0, 4, RNL_MAP_READ, &host));
    test_fails(RNL_FAILED_PRECONDITION, "mapped already",
               rnl_stream_map(stream, buffers[0], 8, 4, RNL_MAP_READ, &host));
    test_ok(rnl_stream_unmap(stream, buffers[0]));
    test_ok(rnl_stream_map(stream, buffers[0], 8, 4, RNL_MAP_READ, &host));
    test_ok(rnl_stream_unmap(stream, buffers[0]));
}
END_TEST

START_TEST(a_map_that_is_never_unmapped_ends_with_its_buffer)
{
    void *host = NULL;
    for (int i = 0; i < 20; i++) {
        test_ok(rnl_buffer_create(device, i % 2 ? RNL_MEMORY_PINNED : RNL_MEMORY_DEVICE, 4096, &buffers[0]));
        test_ok(rnl_stream_map(stream, buffers[0], 0, 4096, RNL_MAP_READ_WRITE, &host));
        memset(host, i, 4096);
        rnl_buffer_release(buffers[0]);
        buffers[0] = NULL;
    }
    ck_assert_uint_eq(test_pool_in_use(device), 0);
    test_ok(rnl_stream_synchronize(stream));
}
END_TEST

static TCase *make_case(const char *name, void (*open)(void))
{
    TCase *test_case = tcase_create(name);
    tcase_add_checked_fixture(test_case, open, close_all);
    tcase_add_test(test_case, pinned_memory_is_counted);
    tcase_add_test(test_case, past_the_limit_pinned_memory_is_pageable);
    tcase_add_test(test_case, what_the_pool_keeps_is_within_the_limit);
    tcase_add_test(test_case, buffers_can_be_mapped);
    tcase_add_test(test_case, bad_maps_are_refused);
    tcase_add_test(test_case, a_map_that_is_never_unmapped_ends_with_its_buffer);
    return test_case;
}

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *one_side = make_case("memory", open_all);
    tcase_add_test(one_side, copies_are_counted);
    tcase_add_test(one_side, the_callers_memory_is_used_in_place);
    tcase_add_test(one_side, wrapped_memory_is_a_buffer_like_others);
    tcase_add_test(one_side, what_cannot_be_wrapped_is_refused);
    suite_add_tcase(suite, one_side);
    suite_add_tcase(suite, make_case("two sides", open_all_with_two_sides));
    return test_run(suite, false);
}
