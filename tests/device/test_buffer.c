/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, the pool, copies and fills. */
#include "device/buffer.h"
#include "device/pool.h"
#include "support/test_device.h"
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static rnl_device *device, *small; /* small: a budget of 8 MiB */
static rnl_stream *stream;
static rnl_buffer *buffers[8];

static void open_all(void)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    options.memory_limit_bytes = 8 * MIB;
    unsetenv("RUNNEL_ARENA"); /* which the sanitizers' runs set */
    device = test_open_device();
    small = test_open_device_with(&options);
    test_ok(rnl_stream_create(device, &stream));
}

/* As on a GPU, whose pinned memory has two sides. */
static void open_all_with_two_sides(void)
{
    open_all();
    device->maps_in_place = small->maps_in_place = false;
}

static void close_all(void)
{
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        rnl_buffer_release(buffers[i]);
        buffers[i] = NULL;
    }
    rnl_stream_release(stream);
    rnl_device_release(small);
    rnl_device_release(device);
}

static void check_round_trip(rnl_memory memory, size_t size)
{
    unsigned char *out = malloc(size), *back = malloc(size);
    test_fill(out, size, 7);
    memset(back, 0, size);
    test_ok(rnl_buffer_create(device, memory, size, &buffers[0]));
    ck_assert_uint_eq(rnl_buffer_size(buffers[0]), size);
    ck_assert((rnl_buffer_host(buffers[0]) != NULL) == (memory == RNL_MEMORY_PINNED));
    test_ok(rnl_stream_write(stream, buffers[0], 0, out, size));
    test_ok(rnl_stream_read(stream, back, buffers[0], 0, size));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_mem_eq(out, back, size);
    rnl_buffer_release(buffers[0]);
    buffers[0] = NULL;
    free(out);
    free(back);
}

START_TEST(what_is_written_is_read)
{
    static const size_t sizes[] = {1, 3, 64, 127, 129, 4096, 100003};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_round_trip(RNL_MEMORY_DEVICE, sizes[i]);
        check_round_trip(RNL_MEMORY_PINNED, sizes[i]);
    }
}
END_TEST

START_TEST(copies_go_between_all_kinds)
{
    unsigned char out[1000], back[1000] = {0};
    test_fill(out, sizeof out, 3);
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 1000, &buffers[0]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 2000, &buffers[1]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 1000, &buffers[2]));
    memcpy(rnl_buffer_host(buffers[0]), out, sizeof out);
    test_ok(rnl_stream_copy(stream, buffers[1], 500, buffers[0], 0, 1000));
    test_ok(rnl_stream_copy(stream, buffers[1], 0, buffers[1], 500, 400));
    test_ok(rnl_stream_copy(stream, buffers[2], 0, buffers[1], 500, 1000));
    test_ok(rnl_stream_read(stream, back, buffers[1], 0, 400));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_mem_eq(rnl_buffer_host(buffers[2]), out, 1000);
    ck_assert_mem_eq(back, out, 400);
}
END_TEST

START_TEST(the_host_and_the_stream_share_pinned_memory)
{
    unsigned char out[512], back[512];
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 512, &buffers[0]));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_PINNED, 512, &buffers[1]));
    unsigned char *first = rnl_buffer_host(buffers[0]), *second = rnl_buffer_host(buffers[1]);
    for (unsigned round = 0; round < 3; round++) {
        test_fill(out, sizeof out, round);
        memcpy(first, out, sizeof out);
        test_ok(rnl_stream_read(stream, back, buffers[0], 0, 512));
        test_ok(rnl_stream_copy(stream, buffers[1], 0, buffers[0], 0, 512));
        test_ok(rnl_stream_fill(stream, buffers[0], 0, "\x5a", 1, 256));
        test_ok(rnl_stream_write(stream, buffers[0], 256, out, 256));
        test_ok(rnl_stream_synchronize(stream));
        ck_assert_mem_eq(back, out, 512);
        ck_assert_mem_eq(second, out, 512);
        ck_assert_mem_eq(first + 256, out, 256);
        for (int i = 0; i < 256; i++)
            ck_assert_uint_eq(first[i], 0x5a);
    }
}
END_TEST

START_TEST(fills_repeat_their_pattern)
{
    static const unsigned char pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 256, &buffers[0]));
    for (size_t bytes = 1; bytes <= 16; bytes *= 2) {
        unsigned char back[256];
        test_ok(rnl_stream_fill(stream, buffers[0], 0, "\xee", 1, 256));
        test_ok(rnl_stream_fill(stream, buffers[0], 32, pattern, bytes, 128));
        test_ok(rnl_stream_read(stream, back, buffers[0], 0, 256));
        test_ok(rnl_stream_synchronize(stream));
        for (size_t i = 0; i < 256; i++)
            ck_assert_uint_eq(back[i], i < 32 || i >= 160 ? 0xee : pattern[(i - 32) % bytes]);
    }
}
END_TEST

START_TEST(bad_ranges_are_refused_and_leave_the_stream_usable)
{
    char bytes[64] = {0};
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, 64, &buffers[0]));
    test_fails(RNL_INVALID_ARGUMENT, "65 bytes from 0", rnl_stream_write(stream, buffers[0], 0, bytes, 65));
    test_fails(RNL_INVALID_ARGUMENT, "64", rnl_stream_read(stream, bytes, buffers[0], 1, 64));
    test_fails(RNL_INVALID_ARGUMENT, "64", rnl_stream_read(stream, bytes, buffers[0], SIZE_MAX, 2));
    test_fails(RNL_INVALID_ARGUMENT, "64", rnl_stream_read(stream, bytes, buffers[0], 2, SIZE_MAX));
    test_fails(RNL_INVALID_ARGUMENT, "host memory", rnl_stream_write(stream, buffers[0], 0, NULL, 1));
    test_fails(RNL_INVALID_ARGUMENT, "host memory", rnl_stream_read(stream, NULL, buffers[0], 0, 1));
    test_fails(RNL_INVALID_ARGUMENT, "none", rnl_stream_write(stream, NULL, 0, bytes, 1));
    test_fails(RNL_INVALID_ARGUMENT, "overlaps", rnl_stream_copy(stream, buffers[0], 0, buffers[0], 8, 16));
    test_fails(RNL_INVALID_ARGUMENT, "not 3", rnl_stream_fill(stream, buffers[0], 0, bytes, 3, 3));
    test_fails(RNL_INVALID_ARGUMENT, "pattern", rnl_stream_fill(stream, buffers[0], 0, bytes, 32, 32));
    test_fails(RNL_INVALID_ARGUMENT, "pattern of 8", rnl_stream_fill(stream, buffers[0], 4, bytes, 8, 8));
    test_fails(RNL_INVALID_ARGUMENT, "pattern of 8", rnl_stream_fill(stream, buffers[0], 0, bytes, 8, 12));
    test_ok(rnl_stream_write(stream, buffers[0], 64, NULL, 0));
    test_ok(rnl_stream_write(stream, buffers[0], 0, bytes, 64));
    test_ok(rnl_stream_synchronize(stream));
}
END_TEST

START_TEST(another_devices_buffer_is_refused)
{
    char byte = 0;
    test_ok(rnl_buffer_create(small, RNL_MEMORY_DEVICE, 64, &buffers[0]));
    test_fails(RNL_INVALID_ARGUMENT, "another device", rnl_stream_write(stream, buffers[0], 0, &byte, 1));
}
END_TEST

START_TEST(bad_sizes_are_refused)
{
    test_fails(RNL_INVALID_ARGUMENT, "0 bytes", rnl_buffer_create(device, RNL_MEMORY_DEVICE, 0, &buffers[0]));
    ck_assert_ptr_null(buffers[0]);
    test_fails(RNL_INVALID_ARGUMENT, "kind", rnl_buffer_create(device, (rnl_memory)9, 16, &buffers[0]));
    test_fails(RNL_RESOURCE_EXHAUSTED, "largest allocation",
               rnl_buffer_create(device, RNL_MEMORY_DEVICE, SIZE_MAX, &buffers[0]));
    size_t most = rnl_device_get_info(device)->max_allocation_bytes;
    test_fails(RNL_RESOURCE_EXHAUSTED, "largest allocation",
               rnl_buffer_create(device, RNL_MEMORY_DEVICE, most + 1, &buffers[0]));
    rnl_buffer_release(NULL);
    ck_assert_uint_eq(rnl_buffer_size(NULL), 0);
}
END_TEST

static rnl_device_stats stats_of(const rnl_device *of)
{
    rnl_device_stats stats;
    rnl_device_get_stats(of, &stats);
    return stats;
}

START_TEST(the_budget_holds)
{
    ck_assert_uint_eq(stats_of(small).pool_budget_bytes, 8 * MIB);
    for (size_t i = 0; i < 4; i++)
        test_ok(rnl_buffer_create(small, i % 2 ? RNL_MEMORY_PINNED : RNL_MEMORY_DEVICE, 2 * MIB, &buffers[i]));
    ck_assert_uint_eq(stats_of(small).pool_in_use_bytes, 8 * MIB);
    test_fails(RNL_RESOURCE_EXHAUSTED, "8388608 of the 8388608 bytes",
               rnl_buffer_create(small, RNL_MEMORY_DEVICE, 1, &buffers[4]));
    rnl_buffer_release(buffers[3]);
    buffers[3] = NULL;
    test_ok(rnl_buffer_create(small, RNL_MEMORY_DEVICE, 2 * MIB, &buffers[3]));
    ck_assert_uint_eq(stats_of(small).pool_peak_bytes, 8 * MIB);
    test_fails(RNL_RESOURCE_EXHAUSTED, "1 bytes of memory were asked for",
               rnl_buffer_create(small, RNL_MEMORY_PINNED, 1, &buffers[4]));
}
END_TEST

START_TEST(the_whole_budget_can_be_had)
{
    test_ok(rnl_buffer_create(small, RNL_MEMORY_DEVICE, 8 * MIB - 5, &buffers[0]));
    rnl_buffer_release(buffers[0]);
    test_ok(rnl_buffer_create(small, RNL_MEMORY_DEVICE, 7 * MIB + 1, &buffers[0]));
}
END_TEST

START_TEST(released_memory_is_used_again)
{
    test_ok(rnl_buffer_create(small, RNL_MEMORY_PINNED, 100000, &buffers[0]));
    void *host = rnl_buffer_host(buffers[0]);
    size_t reserved = stats_of(small).pool_reserved_bytes;
    rnl_buffer_release(buffers[0]);
    ck_assert_uint_eq(stats_of(small).pool_in_use_bytes, 0);
    ck_assert_uint_eq(stats_of(small).pool_reserved_bytes, reserved);
    test_ok(rnl_buffer_create(small, RNL_MEMORY_PINNED, 99990, &buffers[0]));
    ck_assert_ptr_eq(rnl_buffer_host(buffers[0]), host);
    ck_assert_uint_eq(stats_of(small).pool_reserved_bytes, reserved);
    test_ok(rnl_buffer_create(small, RNL_MEMORY_DEVICE, 99990, &buffers[1]));
    ck_assert_uint_gt(stats_of(small).pool_reserved_bytes, reserved);
    for (size_t i = 0; i < 2; i++) {
        rnl_buffer_release(buffers[i]);
        buffers[i] = NULL;
    }
    rnl_pool_trim(small->pool);
    ck_assert_uint_eq(stats_of(small).pool_reserved_bytes, 0);
}
END_TEST

START_TEST(exact_sizes_can_be_had)
{
    setenv("RUNNEL_ARENA", "off", 1);
    rnl_device *exact = test_open_device();
    unsetenv("RUNNEL_ARENA");
    size_t size = 0;
    test_ok(rnl_buffer_create(exact, RNL_MEMORY_DEVICE, 1001, &buffers[0]));
    test_ok(CL(clGetMemObjectInfo(buffers[0]->memory, CL_MEM_SIZE, sizeof size, &size, NULL)));
    ck_assert_uint_eq(size, 1001);
    ck_assert_uint_eq(stats_of(exact).pool_in_use_bytes, 1001);
    rnl_device_release(exact);
}
END_TEST

START_TEST(idle_memory_is_limited)
{
    for (size_t i = 0; i < 4; i++)
        test_ok(rnl_buffer_create(small, RNL_MEMORY_DEVICE, MIB, &buffers[i]));
    for (size_t i = 0; i < 4; i++) {
        rnl_buffer_release(buffers[i]);
        buffers[i] = NULL;
    }
    ck_assert_uint_le(stats_of(small).pool_reserved_bytes, 2 * MIB);
}
END_TEST

static TCase *make_case(const char *name, void (*open)(void))
{
    TCase *test_case = tcase_create(name);
    tcase_add_checked_fixture(test_case, open, close_all);
    tcase_add_test(test_case, what_is_written_is_read);
    tcase_add_test(test_case, copies_go_between_all_kinds);
    tcase_add_test(test_case, the_host_and_the_stream_share_pinned_memory);
    tcase_add_test(test_case, fills_repeat_their_pattern);
    tcase_add_test(test_case, bad_ranges_are_refused_and_leave_the_stream_usable);
    tcase_add_test(test_case, another_devices_buffer_is_refused);
    tcase_add_test(test_case, bad_sizes_are_refused);
    tcase_add_test(test_case, the_budget_holds);
    tcase_add_test(test_case, the_whole_budget_can_be_had);
    tcase_add_test(test_case, released_memory_is_used_again);
    tcase_add_test(test_case, exact_sizes_can_be_had);
    tcase_add_test(test_case, idle_memory_is_limited);
    return test_case;
}

int main(void)
{
    Suite *suite = suite_create("buffer");
    suite_add_tcase(suite, make_case("buffer", open_all));
    suite_add_tcase(suite, make_case("two sides", open_all_with_two_sides));
    return test_run(suite, false);
}
