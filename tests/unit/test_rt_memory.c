/* SPDX-License-Identifier: Apache-2.0 */
/* Checked sizes, allocation, zones, and element types. */
#include "base/hash.h"
#include "base/memory.h"
#include "base/zone.h"
#include "support/test_device.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

START_TEST(element_counts_are_checked)
{
    int64_t count = -1;
    ck_assert(rnl_shape_elements(NULL, 0, &count) && count == 1);
    ck_assert(rnl_shape_elements((int64_t[]){2, 3, 4}, 3, &count) && count == 24);
    ck_assert(rnl_shape_elements((int64_t[]){0, 3}, 2, &count) && count == 0);
    ck_assert(rnl_shape_elements((int64_t[]){INT64_MAX, 0, INT64_MAX}, 3, &count) && count == 0);
    ck_assert(rnl_shape_elements((int64_t[]){INT64_MAX, 1}, 2, &count) && count == INT64_MAX);
    ck_assert(!rnl_shape_elements((int64_t[]){-1, 0}, 2, &count));
    ck_assert(!rnl_shape_elements((int64_t[]){0, INT64_MIN}, 2, &count));
    ck_assert(!rnl_shape_elements((int64_t[]){INT64_MAX, 2}, 2, &count));
    ck_assert(!rnl_shape_elements((int64_t[]){1LL << 32, 1LL << 32}, 2, &count));
}
END_TEST

START_TEST(memory_is_zeroed_and_limited)
{
    unsigned char *bytes = NULL;
    test_ok(rnl_alloc(1000, 3, &bytes));
    for (size_t i = 0; i < 3000; i++)
        ck_assert_uint_eq(bytes[i], 0);
    free(bytes);
    test_ok(rnl_alloc(0, 8, &bytes));
    ck_assert_ptr_nonnull(bytes);
    free(bytes);
    test_fails(RNL_RESOURCE_EXHAUSTED, "out of memory", rnl_alloc(SIZE_MAX, 2, &bytes));
    ck_assert_ptr_null(bytes);
    test_fails(RNL_RESOURCE_EXHAUSTED, "out of memory", rnl_alloc(SIZE_MAX / 2 + 1, 1, &bytes));
    test_fails(RNL_RESOURCE_EXHAUSTED, "out of memory", rnl_alloc((size_t)1 << 33, (size_t)1 << 33, &bytes));
}
END_TEST

START_TEST(growth_keeps_and_zeroes)
{
    int *items = NULL;
    size_t capacity = 0, growths = 0;
    for (size_t i = 0; i < 10000; i++) {
        size_t before = capacity;
        test_ok(rnl_grow(&items, &capacity, i + 1, sizeof *items));
        growths += capacity != before;
        ck_assert_int_eq(items[i], 0);
        items[i] = (int)i;
    }
    for (size_t i = 0; i < 10000; i++)
        ck_assert_int_eq(items[i], (int)i);
    ck_assert_uint_le(growths, 12);
    size_t before = capacity;
    test_fails(RNL_RESOURCE_EXHAUSTED, "out of memory", rnl_grow(&items, &capacity, SIZE_MAX, sizeof *items));
    ck_assert_uint_eq(capacity, before);
    ck_assert_int_eq(items[9999], 9999);
    free(items);
}
END_TEST

START_TEST(the_nth_allocation_fails_once)
{
    void *memory;
    char *copy;
    rnl_alloc_fail_at(3);
    test_ok(rnl_alloc(1, 1, &memory));
    free(memory);
    test_ok(rnl_strdup("text", &copy));
    ck_assert_str_eq(copy, "text");
    free(copy);
    test_fails(RNL_RESOURCE_EXHAUSTED, "out of memory", rnl_strdup("text", &copy));
    ck_assert_ptr_null(copy);
    test_ok(rnl_alloc(1, 1, &memory));
    free(memory);
    rnl_alloc_fail_at(1);
    rnl_alloc_fail_at(0);
    test_ok(rnl_alloc(1, 1, &memory));
    free(memory);
}
END_TEST

START_TEST(zone_memory_is_aligned_zeroed_and_apart)
{
    rnl_zone zone = {0};
    unsigned char *all[3000];
    for (size_t i = 0; i < 3000; i++) {
        size_t bytes = i * 7 % 301;
        test_ok(rnl_zone_alloc(&zone, bytes, 1, &all[i]));
        ck_assert_uint_eq((uintptr_t)all[i] % 16, 0);
        for (size_t k = 0; k < bytes; k++)
            ck_assert_uint_eq(all[i][k], 0);
        memset(all[i], (int)(i % 255) + 1, bytes);
    }
    for (size_t i = 0; i < 3000; i++)
        for (size_t k = 0; k < i * 7 % 301; k++)
            ck_assert_uint_eq(all[i][k], i % 255 + 1);
    ck_assert_uint_lt(zone.used_bytes, 3000 * 320);
    rnl_zone_free(&zone);
    ck_assert_uint_eq(zone.used_bytes, 0);
    rnl_zone_free(&zone);
    rnl_zone_free(NULL);
}
END_TEST

START_TEST(a_zone_mixes_large_and_small)
{
    rnl_zone zone = {0};
    char *small, *large;
    size_t chunks_before = 0;
    for (size_t i = 0; i < 100; i++) {
        test_ok(rnl_zone_alloc(&zone, 1, 16, &small));
        test_ok(rnl_zone_alloc(&zone, 300000, 1, &large));
        large[299999] = 1;
        small[15] = 1;
        chunks_before = zone.used_bytes;
    }
    ck_assert_uint_lt(chunks_before, 100 * 300000 + 100 * 100 + 70000);
    rnl_zone_free(&zone);
}
END_TEST

START_TEST(a_zones_limit_holds)
{
    rnl_zone zone = {.limit_bytes = 10000};
    char *memory;
    const char *text;
    size_t had = 0;
    while (rnl_zone_alloc(&zone, 100, 1, &memory) == RNL_OK)
        had += 100;
    ck_assert_uint_ge(had, 8000);
    ck_assert_uint_le(zone.used_bytes, 10000);
    test_fails(RNL_RESOURCE_EXHAUSTED, "10000 bytes", rnl_zone_alloc(&zone, 5000, 1, &memory));
    ck_assert_ptr_null(memory);
    test_fails(RNL_RESOURCE_EXHAUSTED, "out of memory", rnl_zone_alloc(&zone, SIZE_MAX, 1, &memory));
    test_fails(RNL_RESOURCE_EXHAUSTED, "out of memory", rnl_zone_alloc(&zone, SIZE_MAX / 2, 4, &memory));
    test_fails(RNL_RESOURCE_EXHAUSTED, NULL, rnl_zone_alloc(&zone, PTRDIFF_MAX - 40, 1, &memory));
    test_fails(RNL_RESOURCE_EXHAUSTED, NULL, rnl_zone_text(&zone, "", SIZE_MAX, &text));
    rnl_zone_free(&zone);
    test_ok(rnl_zone_text(&zone, "abcdef", 3, &text));
    ck_assert_str_eq(text, "abc");
    test_ok(rnl_zone_text(&zone, NULL, 0, &text));
    ck_assert_str_eq(text, "");
    rnl_alloc_fail_at(1);
    test_fails(RNL_RESOURCE_EXHAUSTED, NULL, rnl_zone_alloc(&zone, 5000, 1, &memory));
    test_ok(rnl_zone_alloc(&zone, 5000, 1, &memory));
    rnl_zone_free(&zone);
}
END_TEST

START_TEST(element_types_have_sizes_and_names)
{
    ck_assert_uint_eq(rnl_dtype_bytes(RNL_F32), 4);
    ck_assert_uint_eq(rnl_dtype_bytes(RNL_BF16), 2);
    ck_assert_uint_eq(rnl_dtype_bytes(RNL_BOOL), 1);
    ck_assert_uint_eq(rnl_dtype_bytes(RNL_U64), 8);
    ck_assert_uint_eq(rnl_dtype_bytes(RNL_DTYPE_NONE), 0);
    ck_assert_uint_eq(rnl_dtype_bytes((rnl_dtype)8), 0);
    ck_assert_uint_eq(rnl_dtype_bytes((rnl_dtype)-1), 0);
    ck_assert_str_eq(rnl_dtype_name(RNL_F16), "float16");
    ck_assert_str_eq(rnl_dtype_name(RNL_I8), "int8");
    ck_assert_str_eq(rnl_dtype_name((rnl_dtype)1000), "unknown");
    ck_assert_str_eq(rnl_dtype_name(RNL_DTYPE_NONE), "unknown");
}
END_TEST

START_TEST(the_hash_is_xxh3)
{
    /* XXH3-128 of nothing, as xxHash's specification and `xxh128sum /dev/null` give it. */
    rnl_hash empty = rnl_hash_bytes("", 0);
    ck_assert_uint_eq(empty.high, 0x99aa06d3014798d8u);
    ck_assert_uint_eq(empty.low, 0x6001c324468d497fu);
    ck_assert(!rnl_hash_equal(empty, rnl_hash_bytes("a", 1)));
    ck_assert(rnl_hash_equal(rnl_hash_bytes("a", 1), rnl_hash_bytes("ab", 1)));
}
END_TEST

/* Each page inside is there after the call, and what was there stays; neither end lies at a page's. */
START_TEST(expected_pages_are_there)
{
    const size_t size = ((size_t)21 << 20) + 12345, page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *is_there = malloc(size / page + 1);
    ck_assert(memory != MAP_FAILED && is_there);
    memory[size / 2] = 7;
    rnl_memory_prefer_large_pages(memory + 5, size - 5);
    rnl_memory_expect(memory + 5, size - 5);
    ck_assert_int_eq(memory[size / 2], 7);
    ck_assert_int_eq(memory[size / 2 + 1], 0);
    rnl_memory_prefer_large_pages(memory + 1, 2);
    rnl_memory_expect(memory + 1, 2);
#ifdef MADV_POPULATE_WRITE
    if (madvise(memory, page, MADV_POPULATE_WRITE) == 0) {
        size_t missing = 0;
        ck_assert_int_eq(mincore(memory, size, is_there), 0);
        for (size_t i = 0; i < size / page; i++)
            missing += !(is_there[i] & 1);
        ck_assert_uint_eq(missing, 0);
    }
#endif
    free(is_there);
    munmap(memory, size);
}
END_TEST

/* All of it can be written, to its last byte; none of it, nor of what was mapped for its place, stays behind. */
START_TEST(aligned_memory_begins_where_a_large_page_may)
{
    static const size_t sizes[] = {1, 4096, ((size_t)2 << 20) - 1, (size_t)2 << 20, ((size_t)9 << 20) + 12345};
    unsigned char is_there;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *memory = rnl_memory_map_aligned(sizes[i]);
        ck_assert_ptr_nonnull(memory);
        ck_assert_uint_eq((uintptr_t)memory % ((size_t)2 << 20), 0);
        ck_assert_int_eq(memory[sizes[i] - 1], 0);
        memset(memory, 0x5a, sizes[i]);
        const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
                        last = (uintptr_t)(memory + sizes[i] - 1) & ~(page - 1);
        rnl_memory_unmap_aligned(memory);
        ck_assert_int_eq(mincore(memory - page, 1, &is_there), -1);
        ck_assert_int_eq(mincore((void *)last, 1, &is_there), -1);
    }
    ck_assert_ptr_null(rnl_memory_map_aligned(SIZE_MAX));
    ck_assert_ptr_null(rnl_memory_map_aligned(PTRDIFF_MAX));
    rnl_alloc_fail_at(1);
    ck_assert_ptr_null(rnl_memory_map_aligned(1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *test_case = tcase_create("memory");
    tcase_add_test(test_case, element_counts_are_checked);
    tcase_add_test(test_case, memory_is_zeroed_and_limited);
    tcase_add_test(test_case, growth_keeps_and_zeroes);
    tcase_add_test(test_case, the_nth_allocation_fails_once);
    tcase_add_test(test_case, zone_memory_is_aligned_zeroed_and_apart);
    tcase_add_test(test_case, a_zone_mixes_large_and_small);
    tcase_add_test(test_case, a_zones_limit_holds);
    tcase_add_test(test_case, element_types_have_sizes_and_names);
    tcase_add_test(test_case, the_hash_is_xxh3);
    tcase_add_test(test_case, expected_pages_are_there);
    tcase_add_test(test_case, aligned_memory_begins_where_a_large_page_may);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
