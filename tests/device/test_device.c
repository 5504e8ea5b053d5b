/* SPDX-License-Identifier: Apache-2.0 */
/* Listing, choosing and opening devices. */
#include "support/test_device.h"
#include "device/device.h"
#include <ctype.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 64

static rnl_device *device;
static rnl_device_info infos[MANY];
static size_t count;

static void open_all(void)
{
    device = test_open_device();
    test_ok(rnl_device_list(infos, MANY, &count));
    ck_assert_uint_le(count, MANY);
}

static void close_all(void)
{
    rnl_device_release(device);
    unsetenv("RUNNEL_DEVICE");
}

static void check_info(const rnl_device_info *info)
{
    ck_assert(info->name[0] && info->platform[0] && info->device_version[0]);
    ck_assert_uint_gt(info->compute_units, 0);
    ck_assert_uint_gt(info->global_memory_bytes, 0);
    ck_assert_uint_gt(info->max_allocation_bytes, 0);
    ck_assert_uint_gt(info->local_memory_bytes, 0);
    ck_assert_uint_gt(info->max_work_group_size, 0);
    ck_assert_uint_ge(info->base_align_bytes, 64);
    ck_assert_uint_eq(info->base_align_bytes & (info->base_align_bytes - 1), 0);
    ck_assert_int_ge(info->numa_node, -1);
    for (const char *at = info->name; *at; at++)
        ck_assert(isprint((unsigned char)*at));
}

START_TEST(the_list_is_complete_and_has_one_default)
{
    size_t defaults = 0, total = 0;
    for (size_t i = 0; i < count; i++) {
        check_info(&infos[i]);
        defaults += infos[i].is_default;
    }
    ck_assert_uint_eq(defaults, 1);
    test_ok(rnl_device_list(NULL, 0, &total));
    ck_assert_uint_eq(total, count);
    rnl_device_info one[2] = {0};
    test_ok(rnl_device_list(one, 1, &total));
    ck_assert_uint_eq(total, count);
    ck_assert_str_eq(one[0].name, infos[0].name);
    ck_assert_str_eq(one[1].name, "");
}
END_TEST

/* The position in the list of what `spec` opens. */
static size_t opened_by(const char *spec)
{
    rnl_device *other;
    test_ok(rnl_device_open(spec, NULL, &other));
    const rnl_device_info *info = rnl_device_get_info(other);
    size_t at = 0;
    while (at < count &&
           (infos[at].platform_index != info->platform_index || infos[at].device_index != info->device_index))
        at++;
    rnl_device_release(other);
    ck_assert_uint_lt(at, count);
    return at;
}

static size_t default_position(void)
{
    size_t at = 0;
    while (!infos[at].is_default)
        at++;
    return at;
}

START_TEST(each_device_opens_by_its_numbers)
{
    char spec[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(spec, sizeof spec, "%u:%u", infos[i].platform_index, infos[i].device_index);
        ck_assert_uint_eq(opened_by(spec), i);
    }
}
END_TEST

START_TEST(each_device_opens_by_its_name)
{
    char part[sizeof infos->name];
    for (size_t i = 0; i < count; i++) {
        size_t at = opened_by(infos[i].name);
        ck_assert_str_eq(infos[at].name, infos[i].name);
        for (size_t c = 0; c < sizeof part; c++)
            part[c] = (char)toupper((unsigned char)infos[i].name[c]);
        ck_assert_uint_eq(opened_by(part), at);
        ck_assert_uint_eq(opened_by(part + 1), at);
    }
}
END_TEST

START_TEST(types_choose)
{
    static const struct {
        const char *spec;
        rnl_device_type type;
    } rows[] = {{"gpu", RNL_DEVICE_GPU}, {"CPU", RNL_DEVICE_CPU}, {"accelerator", RNL_DEVICE_ACCELERATOR}};
    for (size_t row = 0; row < 3; row++) {
        bool any = false;
        for (size_t i = 0; i < count; i++)
            any = any || infos[i].type == rows[row].type;
        rnl_device *none;
        if (any)
            ck_assert_int_eq(infos[opened_by(rows[row].spec)].type, rows[row].type);
        else
            test_fails(RNL_NOT_FOUND, rows[row].spec, rnl_device_open(rows[row].spec, NULL, &none));
    }
}
END_TEST

START_TEST(emulated_devices_come_last)
{
    bool all = true;
    for (size_t i = 0; i < count; i++)
        all = all && infos[i].emulated;
    ck_assert(infos[default_position()].emulated == all);
}
END_TEST

START_TEST(the_environment_names_the_default)
{
    char spec[32];
    snprintf(spec, sizeof spec, "%u:%u", infos[count - 1].platform_index, infos[count - 1].device_index);
    ck_assert_uint_eq(opened_by(NULL), default_position());
    setenv("RUNNEL_DEVICE", spec, 1);
    ck_assert_uint_eq(opened_by(NULL), count - 1);
    ck_assert_uint_eq(opened_by(""), count - 1);
    setenv("RUNNEL_DEVICE", "", 1);
    ck_assert_uint_eq(opened_by(NULL), default_position());
}
END_TEST

START_TEST(what_matches_nothing_is_listed_against)
{
    static const char *const specs[] = {"no such thing", "99:0", "0:99", "0:0:0", "4294967296:0", "-1:0", "0:", ":"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        rnl_device *none = device;
        if (strcmp(specs[i], ":") == 0 && strchr(infos[0].name, ':'))
            continue;
        test_fails(RNL_NOT_FOUND, specs[i], rnl_device_open(specs[i], NULL, &none));
        ck_assert_ptr_null(none);
        ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, infos[0].name));
    }
}
END_TEST

START_TEST(options_are_checked)
{
    rnl_device_options options = {0};
    rnl_device *other;
    char spec[32];
    const rnl_device_info *info = rnl_device_get_info(device);
    snprintf(spec, sizeof spec, "%u:%u", info->platform_index, info->device_index);
    test_fails(RNL_INVALID_ARGUMENT, "RNL_DEVICE_OPTIONS_INIT", rnl_device_open(spec, &options, &other));
    options.struct_size = sizeof options;
    options.compute_units = info->compute_units + 1;
    test_fails(RNL_INVALID_ARGUMENT, "compute units", rnl_device_open(spec, &options, &other));
    options.compute_units = info->compute_units;
    options.memory_limit_bytes = 12345678;
    test_ok(rnl_device_open(spec, &options, &other));
    rnl_device_stats stats;
    rnl_device_get_stats(other, &stats);
    ck_assert_uint_eq(stats.pool_budget_bytes, 12345678);
    ck_assert_uint_eq(rnl_device_get_info(other)->compute_units, info->compute_units);
    rnl_device_release(other);
}
END_TEST

static void run_something(rnl_device *on)
{
    /* The fake driver knows it by its name. */
    static const char source[] = "__kernel void fake_add(__global int *x, int y) { x[get_global_id(0)] += y; }";
    int values[16], back[16], by = 70;
    rnl_stream *stream;
    rnl_buffer *buffer;
    rnl_kernel *kernel;
    for (int i = 0; i < 16; i++)
        values[i] = i - 5;
    test_ok(rnl_stream_create(on, &stream));
    test_ok(rnl_buffer_create(on, RNL_MEMORY_DEVICE, sizeof values, &buffer));
    test_ok(rnl_kernel_create(on, source, NULL, "fake_add", &kernel));
    test_ok(rnl_stream_write(stream, buffer, 0, values, sizeof values));
    const rnl_arg args[] = {{.kind = RNL_ARG_BUFFER, .buffer = buffer},
                            {.kind = RNL_ARG_VALUE, .size_bytes = sizeof by, .value = &by}};
    rnl_range range = {.dimensions = 1, .global = {16, 1, 1}, .local = {4, 1, 1}};
    test_ok(rnl_stream_launch(stream, kernel, &range, args, 2));
    test_ok(rnl_stream_read(stream, back, buffer, 0, sizeof back));
    test_ok(rnl_stream_synchronize(stream));
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(back[i], i - 5 + by);
    rnl_kernel_release(kernel);
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
}

START_TEST(a_part_of_a_device_runs)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    rnl_device *part = NULL;
    char spec[32];
    const rnl_device_info *info = rnl_device_get_info(device);
    snprintf(spec, sizeof spec, "%u:%u", info->platform_index, info->device_index);
    options.compute_units = 1;
    if (info->compute_units == 1)
        return;
    rnl_status status = rnl_device_open(spec, &options, &part);
    if (status == RNL_UNIMPLEMENTED) {
        ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "cannot be divided"));
        ck_assert_ptr_null(part);
        return;
    }
    test_ok(status);
    ck_assert_uint_eq(rnl_device_get_info(part)->compute_units, 1);
    ck_assert_ptr_ne(part->context, device->context);
    run_something(part);
    run_something(device);
    rnl_device_release(part);
}
END_TEST

START_TEST(affinity_limits_a_cpu_device)
{
    cpu_set_t all, one;
    rnl_device *limited;
    uint32_t whole = rnl_device_get_info(device)->compute_units;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    rnl_status status = rnl_device_open(getenv("RUNNEL_TEST_DEVICE"), NULL, &limited);
    uint32_t units = status == RNL_OK ? rnl_device_get_info(limited)->compute_units : 0;
    bool divided = status == RNL_OK && limited->parent_id;
    if (status == RNL_OK)
        run_something(limited);
    rnl_device_release(limited);
    ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
    test_ok(status);
    ck_assert_uint_eq(units, divided ? 1 : whole);
}
END_TEST

START_TEST(all_devices_run_in_one_process)
{
    rnl_device *all[MANY];
    char spec[32];
    for (size_t i = 0; i < count; i++) {
        snprintf(spec, sizeof spec, "%u:%u", infos[i].platform_index, infos[i].device_index);
        test_ok(rnl_device_open(spec, NULL, &all[i]));
    }
    for (size_t i = 0; i < count; i++)
        run_something(all[i]);
    for (size_t i = 0; i < count; i++)
        rnl_device_release(all[i]);
}
END_TEST

START_TEST(children_hold_their_device)
{
    char bytes[64] = "abc", back[64];
    rnl_device *own = test_open_device();
    rnl_stream *stream;
    rnl_buffer *buffer;
    rnl_event *event;
    ck_assert_ptr_eq(rnl_device_retain(own), own);
    rnl_device_release(own);
    test_ok(rnl_stream_create(own, &stream));
    test_ok(rnl_buffer_create(own, RNL_MEMORY_PINNED, sizeof bytes, &buffer));
    rnl_device_release(own);
    test_ok(rnl_stream_write(stream, buffer, 0, bytes, sizeof bytes));
    test_ok(rnl_stream_read(stream, back, buffer, 0, sizeof back));
    test_ok(rnl_stream_record(stream, &event));
    rnl_stream_release(stream);
    test_ok(rnl_event_synchronize(event));
    rnl_event_release(event);
    ck_assert_mem_eq(bytes, back, sizeof bytes);
    rnl_buffer_release(buffer);
    rnl_device_release(NULL);
    ck_assert_ptr_null(rnl_device_retain(NULL));
}
END_TEST

static void *open_and_close(void *argument)
{
    for (int i = 0; i < 5; i++) {
        rnl_device *own;
        rnl_buffer *buffer;
        size_t total;
        if (rnl_device_list(NULL, 0, &total) != RNL_OK ||
            rnl_device_open(getenv("RUNNEL_TEST_DEVICE"), NULL, &own) != RNL_OK)
            return NULL;
        rnl_status status = rnl_buffer_create(own, i % 2 ? RNL_MEMORY_PINNED : RNL_MEMORY_DEVICE, 5000, &buffer);
        rnl_buffer_release(buffer);
        rnl_device_release(own);
        if (status != RNL_OK)
            return NULL;
    }
    return argument;
}

START_TEST(threads_open_devices)
{
    pthread_t threads[4];
    bool right = true;
    if (strstr(rnl_device_get_info(device)->platform, "Oclgrind"))
        return; /* which crashes when two threads call it */
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, open_and_close, threads), 0);
    for (int i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        right = right && result;
    }
    ck_assert(right);
}
END_TEST

START_TEST(the_vector_width_is_one_of_three)
{
    uint32_t width = device->vector_width;
    ck_assert(width == 4 || width == 8 || width == 16);
    if (rnl_device_get_info(device)->emulated || rnl_device_get_info(device)->type != RNL_DEVICE_CPU)
        ck_assert_uint_eq(width, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device");
    TCase *test_case = tcase_create("device");
    tcase_add_checked_fixture(test_case, open_all, close_all);
    tcase_add_test(test_case, the_list_is_complete_and_has_one_default);
    tcase_add_test(test_case, each_device_opens_by_its_numbers);
    tcase_add_test(test_case, each_device_opens_by_its_name);
    tcase_add_test(test_case, types_choose);
    tcase_add_test(test_case, emulated_devices_come_last);
    tcase_add_test(test_case, the_environment_names_the_default);
    tcase_add_test(test_case, what_matches_nothing_is_listed_against);
    tcase_add_test(test_case, options_are_checked);
    tcase_add_test(test_case, a_part_of_a_device_runs);
    tcase_add_test(test_case, affinity_limits_a_cpu_device);
    tcase_add_test(test_case, all_devices_run_in_one_process);
    tcase_add_test(test_case, children_hold_their_device);
    tcase_add_test(test_case, threads_open_devices);
    tcase_add_test(test_case, the_vector_width_is_one_of_three);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
