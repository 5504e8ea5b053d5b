/* SPDX-License-Identifier: Apache-2.0 */
/* The tuning table: kept between processes, and absent whatever is wrong with its file. */
#include "base/file.h"
#include "base/memory.h"
#include "ops/tuning.h"
#include "support/test_device.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *folder;
static rnl_device *device;

static void start(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    unsetenv("RUNNEL_CACHE");
    device = test_open_device();
}

static void stop(void)
{
    rnl_device_release(device);
    unsetenv("RUNNEL_CACHE_DIR");
    test_folder_remove(folder);
}

static void reopen(void)
{
    rnl_device_release(device);
    device = test_open_device();
}

static rnl_hash problem(uint64_t number)
{
    return (rnl_hash){.low = number * 0x9e3779b97f4a7c15u, .high = number % 7};
}

/* The only file in the folder. */
static const char *table_path(void)
{
    static char path[4096];
    DIR *items = opendir(folder);
    ck_assert_ptr_nonnull(items);
    path[0] = '\0';
    for (struct dirent *item; (item = readdir(items));)
        if (item->d_name[0] != '.')
            snprintf(path, sizeof path, "%s/%s", folder, item->d_name);
    closedir(items);
    ck_assert(path[0]);
    return path;
}

static void write_table(void)
{
    for (uint32_t i = 0; i < 100; i++)
        ck_assert_int_eq(rnl_tuning_set(device, problem(i), i % 5), RNL_OK);
    rnl_tuning_save(device);
}

START_TEST(what_was_noted_is_there_in_the_next_process)
{
    ck_assert_uint_eq(rnl_tuning_get(device, problem(3), 5), RNL_TUNING_NONE);
    write_table();
    ck_assert_int_eq(rnl_tuning_set(device, problem(3), 4), RNL_OK);
    rnl_tuning_save(device);
    reopen();
    for (uint32_t i = 0; i < 100; i++)
        ck_assert_uint_eq(rnl_tuning_get(device, problem(i), 5), i == 3 ? 4 : i % 5);
    ck_assert_uint_eq(rnl_tuning_get(device, problem(100), 5), RNL_TUNING_NONE);
}
END_TEST

START_TEST(a_variant_that_does_not_exist_is_none)
{
    write_table();
    reopen();
    ck_assert_uint_eq(rnl_tuning_get(device, problem(4), 4), RNL_TUNING_NONE);
    ck_assert_uint_eq(rnl_tuning_get(device, problem(4), 5), 4);
}
END_TEST

static void count_warning(void *user, rnl_log_level level, const char *line)
{
    ck_assert_int_eq(level, RNL_LOG_WARNING);
    *(int *)user += strstr(line, "tuning table") != NULL;
}

/* `change` is done to the file's bytes, which are then what is read. */
static void expect_absent_after(void (*change)(unsigned char *data, size_t *size))
{
    void *data;
    size_t size;
    write_table();
    ck_assert_int_eq(rnl_file_read(table_path(), 1 << 20, &data, &size), RNL_OK);
    change(data, &size);
    ck_assert_int_eq(rnl_file_replace(table_path(), data, size), RNL_OK);
    free(data);
    int warnings = 0;
    rnl_log_set(count_warning, &warnings, RNL_LOG_WARNING);
    reopen();
    for (uint32_t i = 0; i < 100; i++)
        ck_assert_uint_eq(rnl_tuning_get(device, problem(i), 5), RNL_TUNING_NONE);
    rnl_log_set(NULL, NULL, RNL_LOG_WARNING);
    ck_assert_int_eq(warnings, 1);
    write_table(); /* and is written anew */
    reopen();
    ck_assert_uint_eq(rnl_tuning_get(device, problem(7), 5), 2);
}

static void cut_off(unsigned char *data, size_t *size)
{
    (void)data;
    *size -= 1;
}

static void flip_a_bit(unsigned char *data, size_t *size)
{
    data[*size / 2] ^= 1;
}

static void belong_to_another_device(unsigned char *data, size_t *size)
{
    (void)size;
    data[24] ^= 0xff; /* of the key in the header */
}

static void become_empty(unsigned char *data, size_t *size)
{
    (void)data;
    *size = 0;
}

START_TEST(a_corrupt_table_is_absent)
{
    expect_absent_after(cut_off);
    expect_absent_after(flip_a_bit);
    expect_absent_after(become_empty);
}
END_TEST

START_TEST(a_foreign_table_is_absent)
{
    expect_absent_after(belong_to_another_device);
}
END_TEST

int main(void)
{
    TCase *cases = tcase_create("tuning");
    Suite *suite = suite_create("tuning");
    tcase_add_checked_fixture(cases, start, stop);
    tcase_add_test(cases, what_was_noted_is_there_in_the_next_process);
    tcase_add_test(cases, a_variant_that_does_not_exist_is_none);
    tcase_add_test(cases, a_corrupt_table_is_absent);
    tcase_add_test(cases, a_foreign_table_is_absent);
    suite_add_tcase(suite, cases);
    return test_run(suite, false);
}
