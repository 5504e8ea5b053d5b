/* SPDX-License-Identifier: Apache-2.0 */
/* On the fake driver: NUMA nodes, parts that cannot be made, and parts that are smaller than they should be. */
#include "device/device.h"
#include "support/fake_driver.h"
#include "support/test_device.h"
#include <stdio.h>
#include <string.h>

#define MANY 16

static const fake_control *control;
static rnl_device *shares[2];
static size_t alive;

static void setup(void)
{
    control = fake_driver();
    control->reset();
    alive = fake_count_alive();
}

static void teardown(void)
{
    control->reset();
    for (int i = 0; i < 2; i++) {
        rnl_device_release(shares[i]);
        shares[i] = NULL;
    }
    fake_check_alive(alive);
}

static rnl_device_info find(unsigned device_index)
{
    rnl_device_info infos[MANY];
    size_t count;
    test_ok(rnl_device_list(infos, MANY, &count));
    for (size_t i = 0; i < count; i++)
        if (infos[i].platform_index == 0 && infos[i].device_index == device_index)
            return infos[i];
    ck_abort();
}

START_TEST(numa_nodes_are_shares)
{
    const rnl_device_info info = find(1);
    rnl_device *third;
    ck_assert_uint_eq(info.numa_shares, 2);
    for (int i = 0; i < 2; i++) {
        test_ok(rnl_device_open("0:1/numa", NULL, &shares[i]));
        ck_assert_uint_eq(rnl_device_get_info(shares[i])->compute_units, info.compute_units / 2);
        ck_assert_uint_eq(rnl_device_get_info(shares[i])->whole_units, info.compute_units);
    }
    test_fails(RNL_RESOURCE_EXHAUSTED, "'0:1/numa0'", rnl_device_open("0:1/numa", NULL, &third));
    test_ok(rnl_device_open("0:1/numa1", NULL, &third));
    rnl_device_release(third);
    test_fails(RNL_INVALID_ARGUMENT, "from 0 to 1", rnl_device_open("0:1/numa2", NULL, &third));
    ck_assert_uint_eq(find(0).numa_shares, 0);
    test_fails(RNL_UNIMPLEMENTED, "NUMA", rnl_device_open("0:0/numa", NULL, &third));
}
END_TEST

static void check_spec(const char *asked, const rnl_device_options *options, const char *said)
{
    char spec[RNL_DEVICE_SPEC_BYTES];
    rnl_device *opened;
    test_ok(rnl_device_open(asked, options, &opened));
    ck_assert_str_eq(rnl_device_spec(opened, spec), said);
    rnl_device_release(opened);
}

/* What a device says that it is can be asked for. */
START_TEST(shares_have_names)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    const uint32_t units = find(1).most_shares;
    char expected[RNL_DEVICE_SPEC_BYTES];
    check_spec("0:0", NULL, "0:0");
    check_spec("0:1/numa1", NULL, "0:1/numa1");
    check_spec("0:1", NULL, "0:1");
    if (units >= 2) {
        check_spec("0:1/2.0", NULL, "0:1/2.0");
        check_spec("0:1/2.1", NULL, "0:1/2.1");
    }
    if (units >= 4) {
        check_spec("0:1/4.3", NULL, "0:1/4.3");
        options.compute_units = 3;
        snprintf(expected, sizeof expected, "0:1, 3 of %u units", (unsigned)find(1).compute_units);
        check_spec("0:1", &options, expected);
    }
}
END_TEST

START_TEST(a_gpu_has_no_shares_but_of_memory)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    rnl_device_stats stats;
    const rnl_device_info info = find(0);
    ck_assert_uint_eq(info.most_shares, 1);
    test_fails(RNL_UNIMPLEMENTED, "cannot be divided", rnl_device_open("gpu/2", NULL, &shares[0]));
    options.memory_fraction = 0.25;
    test_ok(rnl_device_open("gpu", &options, &shares[0]));
    rnl_device_get_stats(shares[0], &stats);
    ck_assert_uint_eq(stats.pool_budget_bytes, info.global_memory_bytes / 4);
}
END_TEST

START_TEST(a_part_that_cannot_be_made_is_an_error)
{
    static const char *const specs[] = {"0:1/2", "0:1/2.1", "0:1/numa1"};
    for (size_t i = 0; i < 3; i++) {
        control->fail_call("clCreateSubDevices", i < 2 ? 1 : 2, CL_OUT_OF_RESOURCES,
                           false); /* NUMA nodes are counted first */
        test_fails(RNL_RESOURCE_EXHAUSTED, "CL_OUT_OF_RESOURCES", rnl_device_open(specs[i], NULL, &shares[0]));
        ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, specs[i]));
        control->reset();
        test_ok(rnl_device_open(specs[i], NULL, &shares[0]));
        rnl_device_release(shares[0]);
        shares[0] = NULL;
    }
}
END_TEST

START_TEST(a_part_with_fewer_units_is_refused)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    rnl_device_info info = find(1);
    options.compute_units = 3;
    control->shorten_parts(1);
    test_fails(RNL_UNAVAILABLE, "2 compute units where 3", rnl_device_open("0:1", &options, &shares[0]));
    ck_assert_uint_gt(info.most_shares, 1);
    info = find(1);
    ck_assert_uint_eq(info.most_shares, 1); /* it was tried out */
    control->reset();
    test_ok(rnl_device_open("0:1", &options, &shares[0]));
}
END_TEST

static rnl_status open_shares(void *data)
{
    (void)data;
    rnl_status status = rnl_device_open("0:1/2", NULL, &shares[0]);
    if (status == RNL_OK)
        status = rnl_device_open("0:1/numa1", NULL, &shares[1]);
    for (int i = 0; i < 2; i++) {
        rnl_device_release(shares[i]);
        shares[i] = NULL;
    }
    return status;
}

START_TEST(each_call_may_fail)
{
    for (int from_then_on = 0; from_then_on < 2; from_then_on++) {
        const fake_sweep sweep = {.program = open_shares,
                                  .code = CL_OUT_OF_RESOURCES,
                                  .code_text = "CL_OUT_OF_RESOURCES (-5)",
                                  .from_then_on = from_then_on,
                                  .may_be_not_found = true};
        ck_assert_uint_gt(fake_sweep_calls(&sweep), 10);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fake_share");
    TCase *test_case = tcase_create("fake_share");
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_test(test_case, numa_nodes_are_shares);
    tcase_add_test(test_case, shares_have_names);
    tcase_add_test(test_case, a_gpu_has_no_shares_but_of_memory);
    tcase_add_test(test_case, a_part_that_cannot_be_made_is_an_error);
    tcase_add_test(test_case, a_part_with_fewer_units_is_refused);
    tcase_add_test(test_case, each_call_may_fail);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
