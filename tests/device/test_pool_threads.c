/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads take and give back memory at random: a short run of tests/soak/soak_pool.c. */
#include "support/pool_load.h"
#include "support/test_device.h"
#include <stdio.h>
#include <stdlib.h>

static rnl_device *device;

static void open_with(uint64_t budget)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    unsetenv("RUNNEL_ARENA"); /* which the sanitizers' runs set */
    options.memory_limit_bytes = budget;
    device = test_open_device_with(&options);
}

static void close_all(void)
{
    rnl_device_release(device);
    device = NULL;
}

static void run(const pool_load *load, pool_load_result *result)
{
    const char *problem = pool_load_run(device, load, result);
    if (problem)
        ck_abort_msg("%s", problem);
    ck_assert_uint_eq(result->operations, load->operations);
}

START_TEST(nothing_is_lost_and_little_is_fragmented)
{
    bool small = getenv("RUNNEL_TEST_SMALL") != NULL;
    const pool_load load = {small ? 6000 : 200000, small ? 1000 : 10000, 8, 256, (size_t)4 << 20, 0.33};
    pool_load_result result;
    open_with((uint64_t)(small ? 512 : 1024) << 20);
    run(&load, &result);
    ck_assert_uint_eq(result.failures, 0);
    ck_assert_uint_eq(result.above, 0);
}
END_TEST

/* More is asked for than there is: some requests are refused, and nothing else goes wrong. */
START_TEST(a_pool_that_is_too_small_refuses_and_goes_on)
{
    bool small = getenv("RUNNEL_TEST_SMALL") != NULL;
    const pool_load load = {small ? 2000 : 40000, small ? 1000 : 10000, 8, 256, (size_t)1 << 20, 1.2};
    pool_load_result result;
    open_with((uint64_t)(small ? 16 : 64) << 20);
    run(&load, &result);
    ck_assert_uint_gt(result.failures, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool threads");
    TCase *test_case = tcase_create("threads");
    tcase_set_timeout(test_case, 0);
    tcase_add_checked_fixture(test_case, NULL, close_all);
    tcase_add_test(test_case, nothing_is_lost_and_little_is_fragmented);
    tcase_add_test(test_case, a_pool_that_is_too_small_refuses_and_goes_on);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
