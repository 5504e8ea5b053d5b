/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A system that has no large pages at hand: madvise() is this program's, which takes as long as one that moves small
 * pages together. From then on nobody in the process asks for large ones. A program of its own, since that stays.
 */
#include "base/memory.h"
#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#define MIB ((size_t)1 << 20)
#define SIZE (32 * MIB)

static bool is_slow;
static size_t asked_large, asked_small, populated;

static double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int madvise(void *memory, size_t size, int advice)
{
    asked_large += advice == MADV_HUGEPAGE ? size : 0;
    asked_small += advice == MADV_NOHUGEPAGE ? size : 0;
#ifdef MADV_POPULATE_WRITE
    if (advice == MADV_POPULATE_WRITE) {
        const double pages = (double)size / (double)(2 * MIB), end = thread_seconds() + 5e-3 * pages;
        populated += size;
        while (is_slow && thread_seconds() < end)
            ;
    }
#endif
    (void)memory;
    return 0; /* nothing is done: how long the system takes at the moment is not looked at */
}

/* Room for SIZE bytes at a page's begin, as one is mapped for weights. */
static char *map_some(void)
{
    char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(memory != MAP_FAILED);
    asked_large = asked_small = populated = 0;
    rnl_memory_prefer_large_pages(memory, SIZE);
    rnl_memory_expect(memory, SIZE);
    memory[0] = memory[SIZE - 1] = 1;
    return memory;
}

START_TEST(large_pages_are_given_up)
{
    munmap(map_some(), SIZE);
    ck_assert_uint_eq(asked_large, SIZE);
    ck_assert_uint_eq(asked_small, 0);
    ck_assert_uint_eq(populated, SIZE);
    is_slow = true;
    munmap(map_some(), SIZE);
    ck_assert_uint_eq(asked_large, SIZE);
    ck_assert(asked_small > 0 && asked_small < SIZE); /* all but what took so long */
    ck_assert_uint_eq(populated, SIZE);
    is_slow = false;
    munmap(map_some(), SIZE);
    ck_assert_uint_eq(asked_large, 0);
    ck_assert_uint_eq(asked_small, SIZE);
    ck_assert_uint_eq(populated, SIZE);
}
END_TEST

int main(void)
{
#ifndef MADV_POPULATE_WRITE
    return 77; /* nothing is populated there */
#endif
    Suite *suite = suite_create("large_pages");
    TCase *test_case = tcase_create("large_pages");
    tcase_add_test(test_case, large_pages_are_given_up);
    suite_add_tcase(suite, test_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
