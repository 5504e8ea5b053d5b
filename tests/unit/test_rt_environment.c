/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the environment lacks: platforms, devices, a home, the linker. Each test is a process of its own, because
 * drivers read the environment once. Those that need pocl pass where it is not the test's device.
 */
#include "device/host_limits.h"
#include "support/test_device.h"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Mesa's library forgets some memory when the loader unloads it, and pocl's when it compiles. */
#if defined(__SANITIZE_ADDRESS__)
#define LEAKS_ARE_CHECKED true
#else
#define LEAKS_ARE_CHECKED false
#endif

static char *folder;

static void start(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE", "off", 1); /* so that the driver compiles */
}

static void stop(void)
{
    test_folder_remove(folder);
}

START_TEST(no_platform_says_what_to_install)
{
    size_t count = 7;
    rnl_device_info info;
    rnl_device *device;
    setenv("OCL_ICD_VENDORS", folder, 1);
    unsetenv("OCL_ICD_FILENAMES");
    rnl_status status = rnl_device_list(&info, 1, &count);
    if (status == RNL_OK)
        return; /* a simulator that takes the loader's place: there is always a platform */
    test_fails(RNL_NOT_FOUND, "pocl-opencl-icd", rnl_device_list(&info, 1, &count));
    ck_assert_uint_eq(count, 0);
    ck_assert_ptr_null(strchr(rnl_last_error()->message, '\n'));
    test_fails(RNL_NOT_FOUND, "no OpenCL platform", rnl_device_open(NULL, NULL, &device));
    ck_assert_ptr_null(device);
    test_fails(RNL_NOT_FOUND, "no OpenCL platform", rnl_device_open("gpu", NULL, &device));
}
END_TEST

/* A platform without a device: Mesa's, where there is no GPU that it drives. */
START_TEST(no_device_says_what_to_install)
{
    static const char mesa[] = "/etc/OpenCL/vendors/mesa.icd";
    size_t count = 7;
    rnl_device *device;
    char link[4096];
    snprintf(link, sizeof link, "%s/mesa.icd", folder);
    if (LEAKS_ARE_CHECKED || access(mesa, R_OK) != 0 || symlink(mesa, link) != 0)
        return;
    setenv("OCL_ICD_VENDORS", folder, 1);
    rnl_status status = rnl_device_list(NULL, 0, &count);
    if (status == RNL_OK)
        return; /* it has one here */
    test_fails(RNL_NOT_FOUND, "pocl-opencl-icd", rnl_device_list(NULL, 0, &count));
    ck_assert_uint_eq(count, 0);
    test_fails(RNL_NOT_FOUND, "pocl-opencl-icd", rnl_device_open("cpu", NULL, &device));
}
END_TEST

/* A platform that cannot be loaded is left out by the loader. */
START_TEST(a_broken_platform_is_no_platform)
{
    char path[4096];
    size_t count;
    snprintf(path, sizeof path, "%s/broken.icd", folder);
    FILE *file = fopen(path, "w");
    fprintf(file, "%s/no-such-library.so\n", folder);
    fclose(file);
    setenv("OCL_ICD_VENDORS", folder, 1);
    rnl_status status = rnl_device_list(NULL, 0, &count);
    ck_assert(status == RNL_OK || status == RNL_NOT_FOUND);
}
END_TEST

static void compute(rnl_device *device)
{
    static const char source[] = "__kernel void one(__global int *x) { x[0] = 1; }";
    rnl_stream *stream;
    rnl_buffer *buffer;
    rnl_kernel *kernel;
    int value = 0;
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof value, &buffer));
    test_ok(rnl_kernel_create(device, source, NULL, "one", &kernel));
    const rnl_arg arg = {.kind = RNL_ARG_BUFFER, .buffer = buffer};
    const rnl_range range = {.dimensions = 1, .global = {1, 1, 1}, .local = {1, 1, 1}};
    test_ok(rnl_stream_launch(stream, kernel, &range, &arg, 1));
    test_ok(rnl_stream_read(stream, &value, buffer, 0, sizeof value));
    test_ok(rnl_stream_synchronize(stream));
    ck_assert_int_eq(value, 1);
    rnl_kernel_release(kernel);
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
}

/* Opens the test's device and computes; false when it is not pocl's, so that the test has nothing to say. */
static bool pocl_computes(rnl_status *out_status)
{
    rnl_device *device;
    *out_status = rnl_device_open(getenv("RUNNEL_TEST_DEVICE"), NULL, &device);
    if (*out_status != RNL_OK)
        return true;
    bool is_pocl = strcmp(rnl_device_get_info(device)->platform, "Portable Computing Language") == 0;
    if (!LEAKS_ARE_CHECKED)
        compute(device);
    rnl_device_release(device);
    return is_pocl;
}

static void check_private(const char *path)
{
    struct stat info;
    ck_assert_int_eq(lstat(path, &info), 0);
    ck_assert(S_ISDIR(info.st_mode) && info.st_uid == geteuid());
    ck_assert_uint_eq(info.st_mode & 0777, 0700);
}

static void without_a_home(void)
{
    unsetenv("POCL_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    setenv("TMPDIR", folder, 1);
}

static void check_cache_below(const char *parent)
{
    rnl_status status;
    if (!pocl_computes(&status))
        return;
    test_ok(status);
    const char *cache = getenv("POCL_CACHE_DIR");
    ck_assert_ptr_nonnull(cache);
    ck_assert_int_eq(strncmp(cache, parent, strlen(parent)), 0);
    check_private(cache);
}

static void check_private_cache(void)
{
    char parent[4096];
    snprintf(parent, sizeof parent, "%s/runnel-%lu/", folder, (unsigned long)geteuid());
    check_cache_below(parent);
}

START_TEST(without_a_home_pocl_gets_a_private_folder)
{
    without_a_home();
    check_private_cache();
}
END_TEST

START_TEST(an_unusable_home_is_as_none)
{
    without_a_home();
    setenv("HOME", "/dev/null/home", 1);
    check_private_cache();
}
END_TEST

START_TEST(an_unusable_cache_home_is_as_none)
{
    without_a_home();
    setenv("XDG_CACHE_HOME", "/proc/self/cache", 1);
    setenv("POCL_CACHE_DIR", "", 1);
    check_private_cache();
}
END_TEST

START_TEST(empty_variables_do_not_confuse)
{
    char parent[4096];
    without_a_home();
    setenv("POCL_CACHE_DIR", "", 1);
    setenv("XDG_CACHE_HOME", "", 1);
    setenv("HOME", folder, 1);
    snprintf(parent, sizeof parent, "%s/.cache/pocl/", folder);
    check_cache_below(parent);
}
END_TEST

START_TEST(a_folder_of_somebody_else_is_not_taken)
{
    char taken[4096], parent[4096];
    without_a_home();
    snprintf(taken, sizeof taken, "%s/runnel-%lu", folder, (unsigned long)geteuid());
    snprintf(parent, sizeof parent, "%s/runnel-", folder);
    ck_assert_int_eq(mkdir(taken, 0700), 0);
    ck_assert_int_eq(chmod(taken, 0777), 0);
    rnl_status status;
    if (!pocl_computes(&status))
        return;
    test_ok(status);
    const char *cache = getenv("POCL_CACHE_DIR");
    ck_assert(cache && strncmp(cache, parent, strlen(parent)) == 0);
    ck_assert(strncmp(cache, taken, strlen(taken)) != 0 || cache[strlen(taken)] != '/');
    check_private(cache);
}
END_TEST

START_TEST(a_cache_folder_that_is_set_stays)
{
    char path[4096];
    rnl_status status;
    snprintf(path, sizeof path, "%s/mine", folder);
    without_a_home();
    setenv("POCL_CACHE_DIR", path, 1);
    pocl_computes(&status);
    ck_assert_str_eq(getenv("POCL_CACHE_DIR"), path);
}
END_TEST

static void stay_on_one_processor(void)
{
    cpu_set_t allowed, one;
    int first = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    while (!CPU_ISSET(first, &allowed))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
}

START_TEST(pocl_starts_as_many_threads_as_may_run)
{
    size_t count;
    rnl_device_info infos[8];
    unsetenv("POCL_MAX_PTHREAD_COUNT");
    stay_on_one_processor();
    test_ok(rnl_device_list(infos, 8, &count));
    if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
        ck_assert_str_eq(getenv("POCL_MAX_PTHREAD_COUNT"), "1");
    for (size_t i = 0; i < count && i < 8; i++)
        if (strcmp(infos[i].platform, "Portable Computing Language") == 0)
            ck_assert_uint_eq(infos[i].compute_units, 1);
}
END_TEST

START_TEST(a_number_of_threads_that_is_set_stays)
{
    size_t count;
    rnl_device_info info;
    setenv("POCL_MAX_PTHREAD_COUNT", "3", 1);
    stay_on_one_processor();
    test_ok(rnl_device_list(&info, 1, &count));
    ck_assert_str_eq(getenv("POCL_MAX_PTHREAD_COUNT"), "3");
}
END_TEST

/* NULL where there is no pocl. */
static rnl_device *open_pocl_alone(const char *spec, uint32_t compute_units)
{
    rnl_device_options options = RNL_DEVICE_OPTIONS_INIT;
    rnl_device *device;
    options.compute_units = compute_units;
    unsetenv("POCL_MAX_PTHREAD_COUNT");
    const rnl_status status = rnl_device_open_alone(spec, &options, &device);
    if (status != RNL_NOT_FOUND)
        test_ok(status);
    return device;
}

START_TEST(a_process_is_held_to_the_share_that_it_names)
{
    cpu_set_t before, after;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    const int all = CPU_COUNT(&before);
    if (all < 2 || rnl_host_cpus() != (uint32_t)all)
        return; /* with less time than processors it is not bound to some */
    rnl_device *device = open_pocl_alone("pthread/2.1", 0);
    if (!device)
        return;
    const rnl_device_info *info = rnl_device_get_info(device);
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert_uint_eq(info->compute_units, (uint32_t)(all - all / 2));
    ck_assert_uint_eq(info->first_unit, (uint32_t)(all / 2));
    ck_assert_uint_eq(info->whole_units, (uint32_t)all);
    ck_assert_int_eq(CPU_COUNT(&after), all - all / 2);
    CPU_AND(&after, &after, &before);
    ck_assert_int_eq(CPU_COUNT(&after), all - all / 2);
    rnl_device_stats stats;
    rnl_device_get_stats(device, &stats);
    ck_assert_uint_lt(stats.pool_budget_bytes, info->global_memory_bytes);
    rnl_device_release(device);
}
END_TEST

/* As hwloc describes a machine of two nodes with a processor each. */
START_TEST(a_process_is_held_to_a_numa_node)
{
    cpu_set_t before, after;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    if (!CPU_ISSET(1, &before) || rnl_host_cpus() < 2)
        return;
    setenv("HWLOC_SYNTHETIC", "numa:2 pu:1", 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    rnl_device *device = open_pocl_alone("pthread/numa1", 0);
    if (!device)
        return;
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_COUNT(&after) == 1 && CPU_ISSET(1, &after));
    ck_assert_uint_eq(rnl_device_get_info(device)->compute_units, 1);
    rnl_device_release(device);
}
END_TEST

START_TEST(a_process_starts_no_more_threads_than_it_wants)
{
    cpu_set_t before, after;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    if (rnl_host_cpus() < 2)
        return;
    rnl_device *device = open_pocl_alone("pthread", 1);
    if (!device)
        return;
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&before, &after));
    ck_assert_str_eq(getenv("POCL_MAX_PTHREAD_COUNT"), "1");
    ck_assert_uint_eq(rnl_device_get_info(device)->compute_units, 1);
    rnl_device_release(device);
}
END_TEST

START_TEST(a_share_that_the_device_has_not_leaves_the_process_as_it_was)
{
    cpu_set_t before, after;
    rnl_device *device;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    test_fails(RNL_NOT_FOUND, "no such device/2.1", rnl_device_open_alone("no such device/2.1", NULL, &device));
    ck_assert_ptr_null(device);
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&before, &after));
}
END_TEST

START_TEST(without_the_linker_pocl_is_not_opened)
{
    rnl_status status;
    char path[4096];
    snprintf(path, sizeof path, "%s::relative:/nothing", folder);
    setenv("PATH", path, 1);
    if (!pocl_computes(&status))
        return;
    test_fails(RNL_FAILED_PRECONDITION, "binutils", status);
}
END_TEST

START_TEST(without_a_path_pocl_is_not_opened)
{
    rnl_status status;
    unsetenv("PATH");
    if (!pocl_computes(&status))
        return;
    test_fails(RNL_FAILED_PRECONDITION, "'ld'", status);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("environment");
    TCase *test_case = tcase_create("environment");
    tcase_set_timeout(test_case, 60);
    tcase_add_checked_fixture(test_case, start, stop);
    tcase_add_test(test_case, no_platform_says_what_to_install);
    tcase_add_test(test_case, no_device_says_what_to_install);
    tcase_add_test(test_case, a_broken_platform_is_no_platform);
    tcase_add_test(test_case, without_a_home_pocl_gets_a_private_folder);
    tcase_add_test(test_case, an_unusable_home_is_as_none);
    tcase_add_test(test_case, an_unusable_cache_home_is_as_none);
    tcase_add_test(test_case, empty_variables_do_not_confuse);
    tcase_add_test(test_case, a_folder_of_somebody_else_is_not_taken);
    tcase_add_test(test_case, a_cache_folder_that_is_set_stays);
    tcase_add_test(test_case, pocl_starts_as_many_threads_as_may_run);
    tcase_add_test(test_case, a_number_of_threads_that_is_set_stays);
    tcase_add_test(test_case, a_process_is_held_to_the_share_that_it_names);
    tcase_add_test(test_case, a_process_is_held_to_a_numa_node);
    tcase_add_test(test_case, a_process_starts_no_more_threads_than_it_wants);
    tcase_add_test(test_case, a_share_that_the_device_has_not_leaves_the_process_as_it_was);
    tcase_add_test(test_case, without_the_linker_pocl_is_not_opened);
    tcase_add_test(test_case, without_a_path_pocl_is_not_opened);
    suite_add_tcase(suite, test_case);
    return test_run(suite, true);
}
