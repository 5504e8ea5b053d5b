/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "model/plan_cache.h"
#include "support/test_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static rnl_plan_cache cache;
static atomic_int builds;
static rnl_status build_result;
static size_t plan_size;
static int build_delay_us;

static void setup(void)
{
    builds = 0;
    build_result = RNL_OK;
    plan_size = 100;
    build_delay_us = 0;
    ck_assert_int_eq(rnl_plan_cache_init(&cache, 1000), RNL_OK);
}

static void teardown(void)
{
    rnl_plan_cache_free(&cache);
}

static rnl_status build(void *user, rnl_plan **out_plan)
{
    (void)user;
    atomic_fetch_add(&builds, 1);
    usleep((useconds_t)build_delay_us);
    *out_plan = NULL;
    if (build_result != RNL_OK)
        return FAIL(build_result, "no plan today");
    rnl_plan *plan = NULL;
    TRY(rnl_alloc(1, sizeof *plan, &plan));
    atomic_init(&plan->references, 1);
    plan->size_bytes = plan_size;
    *out_plan = plan;
    return RNL_OK;
}

static rnl_plan *get(int key)
{
    rnl_plan *plan = NULL;
    ck_assert_int_eq(rnl_plan_cache_get(&cache, &key, sizeof key, build, NULL, &plan), RNL_OK);
    rnl_plan_release(plan);
    return plan;
}

START_TEST(test_second_get_is_a_hit)
{
    ck_assert_ptr_eq(get(1), get(1));
    ck_assert_int_eq(builds, 1);
    get(2);
    ck_assert_int_eq(builds, 2);
}
END_TEST

START_TEST(test_limit_evicts_the_oldest)
{
    for (int i = 0; i < 10; i++)
        get(i);
    get(0); /* 1 is the oldest now */
    get(10);
    ck_assert_uint_eq(cache.plans_evicted, 1);
    ck_assert_uint_le(cache.size_bytes, 1000);
    get(0);
    ck_assert_int_eq(builds, 11);
    get(1);
    ck_assert_int_eq(builds, 12);
}
END_TEST

START_TEST(test_one_too_large_is_kept_alone)
{
    plan_size = 5000;
    get(1);
    get(1);
    ck_assert_int_eq(builds, 1);
    get(2);
    ck_assert_uint_eq(cache.count, 1);
}
END_TEST

START_TEST(test_failure_leaves_nothing)
{
    rnl_plan *plan = NULL;
    int key = 7;
    build_result = RNL_RESOURCE_EXHAUSTED;
    ck_assert_int_eq(rnl_plan_cache_get(&cache, &key, sizeof key, build, NULL, &plan), RNL_RESOURCE_EXHAUSTED);
    ck_assert_ptr_null(plan);
    build_result = RNL_OK;
    get(7);
    ck_assert_int_eq(builds, 2);
}
END_TEST

static void *get_in_thread(void *argument)
{
    for (int i = 0; i < 200; i++)
        get((i + *(int *)argument) % 4);
    return NULL;
}

START_TEST(test_one_builder_while_others_wait)
{
    pthread_t threads[4];
    int starts[4] = {0, 0, 1, 2};
    build_delay_us = 2000;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, get_in_thread, &starts[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(builds, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan_cache");
    TCase *tcase = tcase_create("cache");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, test_second_get_is_a_hit);
    tcase_add_test(tcase, test_limit_evicts_the_oldest);
    tcase_add_test(tcase, test_one_too_large_is_kept_alone);
    tcase_add_test(tcase, test_failure_leaves_nothing);
    tcase_add_test(tcase, test_one_builder_while_others_wait);
    suite_add_tcase(suite, tcase);
    return test_run(suite, false);
}
