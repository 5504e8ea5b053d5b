/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of a device: which units, whose, how much memory; and what a device cannot give. */
#include "device/claim.h"
#include "device/device.h"
#include "device/host_limits.h"
#include "device/part.h"
#include "device/part_bind.h"
#include "support/test_device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 4
#define MANY 64

static rnl_device *device, *shares[MOST + 1];
static rnl_device_info info; /* as it is listed */
static char text[64], *folder;

static void open_all(void)
{
    static rnl_device_info infos[MANY];
    size_t count;
    folder = test_folder_create();
    rnl_claim_folder = folder; /* of this process alone: what others on the machine have is no matter */
    device = test_open_device();
    test_ok(rnl_device_list(infos, MANY, &count));
    const rnl_device_info *own = rnl_device_get_info(device);
    for (size_t i = 0; i < count && i < MANY; i++)
        if (infos[i].platform_index == own->platform_index && infos[i].device_index == own->device_index)
            info = infos[i];
    ck_assert_uint_ge(info.most_shares, 1);
    ck_assert_uint_le(info.most_shares, info.compute_units);
    memset(shares, 0, sizeof shares);
}

static void close_all(void)
{
    for (int i = 0; i <= MOST; i++)
        rnl_device_release(shares[i]);
    rnl_device_release(device);
    test_folder_remove(folder);
}

/* "0:0" of the test's device, and `rest`. */
static const char *spec(const char *rest)
{
    snprintf(text, sizeof text, "%u:%u%s", info.platform_index, info.device_index, rest);
    return text;
}

static const char *spec_of(unsigned count, int at)
{
    char rest[32];
    snprintf(rest, sizeof rest, at < 0 ? "/%u" : "/%u.%d", count, at);
    return spec(rest);
}

static unsigned most(void)
{
    return info.most_shares < MOST ? info.most_shares : MOST;
}

static void give_back(int at)
{
    rnl_device_release(shares[at]);
    shares[at] = NULL;
}

/* The fake driver knows the kernel by its name. */
static void run_something(rnl_device *on)
{
    static const char source[] = "__kernel void fake_add(__global int *x, int y) { x[get_global_id(0)] += y; }";
    int values[64], back[64], by = 7;
    rnl_stream *stream;
    rnl_buffer *buffer;
    rnl_kernel *kernel;
    for (int i = 0; i < 64; i++)
        values[i] = i * i;
    test_ok(rnl_stream_create(on, &stream));
    test_ok(rnl_buffer_create(on, RNL_MEMORY_DEVICE, sizeof values, &buffer));
    test_ok(rnl_kernel_create(on, source, NULL, "fake_add", &kernel));
    test_ok(rnl_stream_write(stream, buffer, 0, values, sizeof values));
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = buffer},
                            {.kind = RNL_ARG_VALUE, .size_bytes = sizeof by, .value = &by}};
    const rnl_range range = {.dimensions = 1, .global = {64, 1, 1}, .local = {1, 1, 1}};
    for (int i = 0; i < 10; i++)
        test_ok(rnl_stream_launch(stream, kernel, &range, args, 2));
    test_ok(rnl_stream_read(stream, back, buffer, 0, sizeof back));
    test_ok(rnl_stream_synchronize(stream));
    for (int i = 0; i < 64; i++)
        ck_assert_int_eq(back[i], i * i + 10 * by);
    rnl_kernel_release(kernel);
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
}

START_TEST(shares_do_not_overlap)
{
    uint32_t units = 0;
    if (info.most_shares < 2)
        return;
    for (unsigned i = 0; i < most(); i++) {
        test_ok(rnl_device_open(spec_of(most(), -1), NULL, &shares[i]));
        const rnl_device_info *share = rnl_device_get_info(shares[i]);
        ck_assert_uint_eq(share->first_unit, units);
        ck_assert_uint_eq(share->whole_units, info.compute_units);
        ck_assert(share->compute_units == info.most_shares / most() ||
                  share->compute_units == info.most_shares / most() + 1);
        units += share->compute_units;
        run_something(shares[i]);
    }
    ck_assert_uint_eq(units, info.most_shares);
    run_something(shares[0]);
    test_fails(RNL_RESOURCE_EXHAUSTED, "are in use", rnl_device_open(spec_of(most(), -1), NULL, &shares[MOST]));
    ck_assert_ptr_null(shares[MOST]);
}
END_TEST

START_TEST(a_share_that_was_given_back_is_free)
{
    if (info.most_shares < 2)
        return;
    for (unsigned i = 0; i < most(); i++)
        test_ok(rnl_device_open(spec_of(most(), -1), NULL, &shares[i]));
    const uint32_t first = rnl_device_get_info(shares[1])->first_unit;
    give_back(1);
    for (int round = 0; round < 5; round++) {
        test_ok(rnl_device_open(spec_of(most(), -1), NULL, &shares[1]));
        ck_assert_uint_eq(rnl_device_get_info(shares[1])->first_unit, first);
        run_something(shares[1]);
        give_back(1);
    }
}
END_TEST

START_TEST(a_share_that_is_named_may_be_used_twice)
{
    if (info.most_shares < 2)
        return;
    test_ok(rnl_device_open(spec_of(2, 1), NULL, &shares[0]));
    test_ok(rnl_device_open(spec_of(2, 1), NULL, &shares[1]));
    test_ok(rnl_device_open(spec_of(2, -1), NULL, &shares[2])); /* the first half is free */
    ck_assert_uint_eq(rnl_device_get_info(shares[0])->first_unit, info.most_shares / 2);
    ck_assert_uint_eq(rnl_device_get_info(shares[1])->first_unit, info.most_shares / 2);
    ck_assert_uint_eq(rnl_device_get_info(shares[2])->first_unit, 0);
    ck_assert_ptr_eq(shares[0]->id, shares[1]->id);
    for (int i = 0; i < 3; i++)
        run_something(shares[i]);
    give_back(0);
    run_something(shares[1]);
}
END_TEST

START_TEST(threads_are_spread)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    options.compute_units = 1;
    if (info.most_shares < 2)
        return;
    for (int i = 0; i < 3; i++)
        test_ok(rnl_device_open(spec(""), &options, &shares[i]));
    ck_assert_uint_eq(rnl_device_get_info(shares[0])->first_unit, 0);
    ck_assert_uint_eq(rnl_device_get_info(shares[1])->first_unit, 1);
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(rnl_device_get_info(shares[i])->compute_units, 1);
    run_something(shares[1]);
}
END_TEST

static uint64_t budget_of(const char *name, const rnl_device_options *options)
{
    rnl_device *opened;
    rnl_device_stats stats;
    test_ok(rnl_device_open(name, options, &opened));
    rnl_device_get_stats(opened, &stats);
    rnl_device_release(opened);
    return stats.pool_budget_bytes;
}

START_TEST(memory_is_shared_too)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    const uint64_t bytes = info.global_memory_bytes;
    options.memory_fraction = 1.0 / 1024;
    ck_assert_uint_eq(budget_of(spec(""), &options), bytes / 1024);
    options.memory_fraction = 1;
    ck_assert_uint_le(budget_of(spec(""), &options), bytes);
    if (info.most_shares < 2)
        return;
    ck_assert_uint_le(budget_of(spec_of(info.most_shares, 0), NULL), bytes / 2 + 1);
    options.memory_fraction = 1.0 / 1024;
    ck_assert_uint_eq(budget_of(spec_of(2, 0), &options), bytes / 1024);
    options.memory_fraction = 0;
    options.memory_limit_bytes = 12345678;
    ck_assert_uint_eq(budget_of(spec_of(2, 0), &options), 12345678);
}
END_TEST

START_TEST(a_fraction_is_a_number_up_to_one)
{
    const double wrong[] = {-0.1, -1e-300, 1.0000001, 2, 1e300, 1.0 / 0.0, -1.0 / 0.0, strtod("nan", NULL)};
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.memory_fraction = wrong[i];
        test_fails(RNL_INVALID_ARGUMENT, "memory_fraction", rnl_device_open(spec(""), &options, &shares[0]));
        ck_assert_ptr_null(shares[0]);
    }
}
END_TEST

START_TEST(what_a_device_cannot_give_is_refused)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    const rnl_status of_units = info.most_shares > 1 ? RNL_INVALID_ARGUMENT : RNL_UNIMPLEMENTED;
    test_fails(of_units, info.name, rnl_device_open(spec_of(info.most_shares + 1, -1), NULL, &shares[0]));
    ck_assert_ptr_null(strchr(rnl_last_error()->message, '\n'));
    test_fails(of_units, info.name, rnl_device_open(spec("/99999999999999999999"), NULL, &shares[0]));
    test_fails(RNL_INVALID_ARGUMENT, "counted from 0", rnl_device_open(spec("/2.2"), NULL, &shares[0]));
    test_fails(RNL_INVALID_ARGUMENT, "names no share", rnl_device_open(spec("/0"), NULL, &shares[0]));
    test_fails(RNL_INVALID_ARGUMENT, "names no share", rnl_device_open(spec("/half"), NULL, &shares[0]));
    test_fails(RNL_NOT_FOUND, "no OpenCL device", rnl_device_open("99:99/2", NULL, &shares[0]));
    if (info.numa_shares == 0)
        test_fails(RNL_UNIMPLEMENTED, "NUMA", rnl_device_open(spec("/numa"), NULL, &shares[0]));
    test_fails(info.numa_shares ? RNL_INVALID_ARGUMENT : RNL_UNIMPLEMENTED, "NUMA",
               rnl_device_open(spec("/numa99999"), NULL, &shares[0]));
    options.compute_units = 1;
    test_fails(RNL_INVALID_ARGUMENT, "one of them", rnl_device_open(spec("/1"), &options, &shares[0]));
    ck_assert_ptr_null(shares[0]);
    test_ok(rnl_device_open(spec("/1"), NULL, &shares[0]));
    ck_assert_uint_eq(rnl_device_get_info(shares[0])->compute_units, rnl_device_get_info(device)->compute_units);
    run_something(shares[0]);
}
END_TEST

START_TEST(the_environment_names_a_share)
{
    if (info.most_shares < 2)
        return;
    setenv("RUNNEL_DEVICE", spec_of(2, 1), 1);
    test_ok(rnl_device_open(NULL, NULL, &shares[0]));
    unsetenv("RUNNEL_DEVICE");
    ck_assert_uint_eq(rnl_device_get_info(shares[0])->first_unit, info.most_shares / 2);
}
END_TEST

/* Too late, or nothing that it could do: it opens what rnl_device_open would. */
START_TEST(alone_is_a_share_all_the_same)
{
    if (info.most_shares < 2)
        return;
    test_ok(rnl_device_open_alone(spec_of(2, 1), NULL, &shares[0]));
    ck_assert_uint_eq(rnl_device_get_info(shares[0])->compute_units, (info.most_shares + 1) / 2);
    test_fails(RNL_INVALID_ARGUMENT, "names no share", rnl_device_open_alone(spec("/2/"), NULL, &shares[1]));
    run_something(shares[0]);
}
END_TEST

static bool is_bound(int at)
{
    return shares[at]->part && shares[at]->part->bound;
}

/* Not every driver lets its threads be bound. */
static bool binds(void)
{
    if (info.most_shares < 2)
        return false;
    test_ok(rnl_device_open(spec_of(2, 0), NULL, &shares[0]));
    const bool bound = is_bound(0);
    give_back(0);
    return bound;
}

START_TEST(halves_are_bound_to_processors)
{
    if (!binds())
        return;
    cpu_set_t both;
    for (int i = 0; i < 2; i++) {
        test_ok(rnl_device_open(spec_of(2, -1), NULL, &shares[i]));
        ck_assert(is_bound(i));
        run_something(shares[i]);
    }
    CPU_AND(&both, &shares[0]->part->bound->now, &shares[1]->part->bound->now);
    ck_assert_int_eq(CPU_COUNT(&both), 0);
    for (int i = 0; i < 2; i++) {
        give_back(i);
        test_ok(rnl_device_open(spec_of(2, -1), NULL, &shares[i]));
        ck_assert(is_bound(i));
    }
}
END_TEST

/* Whose claims are not asked: these are this process's, and count as another's. */
static rnl_claim *claim_processors(uint32_t first, uint32_t count)
{
    cpu_set_t all, some;
    ck_assert(rnl_host_processors(first, count, info.most_shares, &all, &some));
    rnl_claim *claim = rnl_claim_beside(&some);
    ck_assert_ptr_nonnull(claim);
    return claim;
}

START_TEST(what_others_have_is_avoided)
{
    const uint32_t half = info.most_shares / 2;
    if (!binds())
        return;
    rnl_claim *first = claim_processors(0, 1);
    test_ok(rnl_device_open(spec_of(2, -1), NULL, &shares[0]));
    ck_assert_uint_eq(rnl_device_get_info(shares[0])->first_unit, half);
    ck_assert(is_bound(0));
    test_ok(rnl_device_open(spec_of(2, -1), NULL, &shares[1])); /* none is left: where the system likes */
    ck_assert_uint_eq(rnl_device_get_info(shares[1])->first_unit, 0);
    ck_assert(!is_bound(1) && !shares[1]->part->claim);
    run_something(shares[1]);
    test_fails(RNL_RESOURCE_EXHAUSTED, "are in use", rnl_device_open(spec_of(2, -1), NULL, &shares[2]));
    give_back(0);
    give_back(1);
    rnl_claim_give_back(first);
    rnl_claim *last = claim_processors(info.most_shares - 1, 1);
    for (int i = 0; i < 2; i++)
        test_ok(rnl_device_open(spec_of(2, -1), NULL, &shares[i]));
    ck_assert_uint_eq(rnl_device_get_info(shares[0])->first_unit, 0);
    ck_assert(is_bound(0) && !is_bound(1));
    test_ok(rnl_device_open(spec_of(2, 1), NULL, &shares[2])); /* who names it means it */
    ck_assert(is_bound(2) && shares[2]->part == shares[1]->part);
    rnl_claim_give_back(last);
}
END_TEST

static void *take_turns(void *argument)
{
    for (int i = 0; i < 20; i++) {
        rnl_device *own;
        const rnl_status status = rnl_device_open(argument, NULL, &own);
        if (status != RNL_OK && status != RNL_RESOURCE_EXHAUSTED)
            return NULL;
        rnl_device_release(own);
    }
    return argument;
}

START_TEST(threads_take_shares)
{
    pthread_t threads[4];
    char name[64];
    bool right = true;
    if (info.most_shares < 2)
        return;
    snprintf(name, sizeof name, "%s", spec_of(2, -1));
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, take_turns, name), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        right = right && result;
    }
    ck_assert(right);
    for (int i = 0; i < 2; i++)
        test_ok(rnl_device_open(spec_of(2, -1), NULL, &shares[i])); /* none was lost */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("share");
    TCase *test_case = tcase_create("share");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, shares_do_not_overlap);
    tcase_add_test(test_case, a_share_that_was_given_back_is_free);
    tcase_add_test(test_case, a_share_that_is_named_may_be_used_twice);
    tcase_add_test(test_case, threads_are_spread);
    tcase_add_test(test_case, memory_is_shared_too);
    tcase_add_test(test_case, a_fraction_is_a_number_up_to_one);
    tcase_add_test(test_case, what_a_device_cannot_give_is_refused);
    tcase_add_test(test_case, the_environment_names_a_share);
    tcase_add_test(test_case, alone_is_a_share_all_the_same);
    tcase_add_test(test_case, halves_are_bound_to_processors);
    tcase_add_test(test_case, what_others_have_is_avoided);
    tcase_add_test(test_case, threads_take_shares);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
