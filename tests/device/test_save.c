/* SPDX-License-Identifier: Apache-2.0 */
/* When compiled programs reach the disk: while their device is used, at once for who waits, and with its release. */
#include "kernel/cache.h"
#include "kernel/program.h"
#include "support/test_device.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char source[] = "__kernel void set(__global int *x) { x[get_global_id(0)] = VALUE; }\n";

static char *folder;
static rnl_device *device;

static void setup(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    unsetenv("RUNNEL_CACHE");
    device = test_open_device();
}

static void teardown(void)
{
    rnl_device_release(device);
    test_folder_remove(folder);
}

static size_t count_files(void)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    size_t found = 0;
    ck_assert_ptr_nonnull(entries);
    while ((entry = readdir(entries)))
        found += strstr(entry->d_name, RNL_CACHE_SUFFIX) && !strstr(entry->d_name, ".tmp");
    closedir(entries);
    return found;
}

/* One launch of the program with these options, after which it may be saved. */
static void launch(const char *options, int expected)
{
    rnl_stream *stream;
    rnl_buffer *buffer;
    rnl_kernel *kernel;
    int values[16];
    test_ok(rnl_stream_create(device, &stream));
    test_ok(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof values, &buffer));
    test_ok(rnl_kernel_create(device, source, options, "set", &kernel));
    const rnl_arg arg = {.kind = RNL_ARG_BUFFER, .buffer = buffer};
    const rnl_range range = {.dimensions = 1, .global = {16, 1, 1}, .local = {8, 1, 1}};
    test_ok(rnl_stream_launch(stream, kernel, &range, &arg, 1));
    test_ok(rnl_stream_read(stream, values, buffer, 0, sizeof values));
    test_ok(rnl_stream_synchronize(stream));
    for (int i = 0; i < 16; i++)
        ck_assert_int_eq(values[i], expected);
    rnl_kernel_release(kernel);
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    rnl_device_save_programs(device);
}

START_TEST(saved_while_the_device_is_used)
{
    launch("-DVALUE=1", 1);
    for (int i = 0; i < 1200 && count_files() == 0; i++) {
        launch("-DVALUE=1", 1);
        usleep(50000);
    }
    ck_assert_uint_eq(count_files(), 1);
    launch("-DVALUE=2", 2); /* after the first thread has ended, or nearly */
    rnl_device_finish_saving(device);
    ck_assert_uint_eq(count_files(), 2);
}
END_TEST

START_TEST(saved_with_the_release)
{
    launch("-DVALUE=1", 1);
    launch("-DVALUE=2", 2);
    launch("-DVALUE=3", 3);
    rnl_device_release(device);
    ck_assert_uint_eq(count_files(), 3);
    device = test_open_device();
    launch("-DVALUE=2", 2);
    rnl_device_stats stats;
    rnl_device_get_stats(device, &stats);
    ck_assert_uint_eq(stats.programs_compiled, 0);
    ck_assert_uint_eq(stats.programs_loaded, 1);
}
END_TEST

START_TEST(waiting_for_nothing_is_nothing)
{
    rnl_device_finish_saving(device);
    launch("-DVALUE=1", 1);
    rnl_device_finish_saving(device);
    rnl_device_finish_saving(device);
    ck_assert_uint_eq(count_files(), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("save");
    TCase *test_case = tcase_create("save");
    tcase_set_timeout(test_case, 200);
    tcase_add_checked_fixture(test_case, setup, teardown);
    tcase_add_test(test_case, saved_while_the_device_is_used);
    tcase_add_test(test_case, saved_with_the_release);
    tcase_add_test(test_case, waiting_for_nothing_is_nothing);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
