/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's allocator: what the library takes from it and gives back. */
#include "base/memory.h"
#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct counts {
    atomic_int taken, resized, given_back;
    bool empty; /* there is no memory */
} counts;

static counts counted;

static void *take(void *user, size_t size_bytes)
{
    counts *c = user;
    void *memory = c->empty ? NULL : malloc(size_bytes);
    if (memory)
        memset(memory, 0xa5, size_bytes);
    atomic_fetch_add(&c->taken, memory ? 1 : 0);
    return memory;
}

static void *resize(void *user, void *memory, size_t size_bytes)
{
    counts *c = user;
    if (c->empty)
        return NULL;
    atomic_fetch_add(memory ? &c->resized : &c->taken, 1);
    return realloc(memory, size_bytes);
}

static void give_back(void *user, void *memory)
{
    counts *c = user;
    ck_assert_ptr_nonnull(memory);
    atomic_fetch_add(&c->given_back, 1);
    free(memory);
}

static void set_allocator(void)
{
    rnl_allocator ours = RNL_ALLOCATOR_INIT;
    ours.user = &counted;
    ours.allocate = take;
    ours.resize = resize;
    ck_assert_int_eq(rnl_allocator_set(NULL), RNL_INVALID_ARGUMENT);
    ck_assert_int_eq(rnl_allocator_set(&ours), RNL_INVALID_ARGUMENT); /* nothing gives memory back */
    ours.release = give_back;
    ck_assert_int_eq(rnl_allocator_set(&ours), RNL_OK);
}

START_TEST(takes_and_gives_back)
{
    unsigned char *zeroed;
    char *copy;
    size_t capacity = 0;
    int *list = NULL;
    set_allocator();
    ck_assert_int_eq(rnl_alloc(100, 1, &zeroed), RNL_OK);
    for (int i = 0; i < 100; i++)
        ck_assert_uint_eq(zeroed[i], 0);
    ck_assert_int_eq(rnl_strdup("text", &copy), RNL_OK);
    ck_assert_str_eq(copy, "text");
    ck_assert_int_eq(rnl_grow(&list, &capacity, 1, sizeof *list), RNL_OK);
    ck_assert_int_eq(rnl_grow(&list, &capacity, 1000, sizeof *list), RNL_OK);
    ck_assert_int_eq(list[999], 0);
    ck_assert_int_eq(atomic_load(&counted.taken), 3);
    ck_assert_int_eq(atomic_load(&counted.resized), 1);
    rnl_free(zeroed);
    rnl_free(copy);
    rnl_free(list);
    rnl_free(NULL);
    ck_assert_int_eq(atomic_load(&counted.given_back), 3);
}
END_TEST

START_TEST(stays_once_used)
{
    rnl_allocator other = RNL_ALLOCATOR_INIT;
    void *memory;
    set_allocator();
    ck_assert_int_eq(rnl_alloc(1, 1, &memory), RNL_OK);
    other.allocate = take;
    other.resize = resize;
    other.release = give_back;
    ck_assert_int_eq(rnl_allocator_set(&other), RNL_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "after memory had been allocated"));
    rnl_free(memory);
}
END_TEST

START_TEST(has_no_memory)
{
    void *memory;
    char *copy;
    size_t capacity = 0;
    int *list = NULL;
    set_allocator();
    counted.empty = true;
    ck_assert_int_eq(rnl_alloc(3, 8, &memory), RNL_RESOURCE_EXHAUSTED);
    ck_assert_ptr_null(memory);
    ck_assert_int_eq(rnl_strdup("text", &copy), RNL_RESOURCE_EXHAUSTED);
    ck_assert_int_eq(rnl_grow(&list, &capacity, 1, sizeof *list), RNL_RESOURCE_EXHAUSTED);
    counted.empty = false;
    ck_assert_int_eq(rnl_alloc(3, 8, &memory), RNL_OK);
    rnl_free(memory);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("allocator");
    TCase *tests = tcase_create("allocator");
    tcase_add_test(tests, takes_and_gives_back);
    tcase_add_test(tests, stays_once_used);
    tcase_add_test(tests, has_no_memory);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite); /* each test in a process of its own: the allocator stays */
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
