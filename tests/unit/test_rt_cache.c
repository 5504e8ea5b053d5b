/* SPDX-License-Identifier: Apache-2.0 */
/* The program cache's files and folder: whatever is wrong with them, no caller sees a wrong byte. */
#include "base/file.h"
#include "base/memory.h"
#include "kernel/cache.h"
#include "support/test_device.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static const rnl_hash key = {.low = 0x0123456789abcdefu, .high = 0xfedcba9876543210u};
static const char payload[] = "a compiled program, as far as the cache is concerned";
static char *folder;
static unsigned warnings;
static char warning[4096];

static void count_warnings(void *user, rnl_log_level level, const char *line)
{
    (void)user;
    (void)level;
    warnings++;
    snprintf(warning, sizeof warning, "%s", line);
}

static void start(void)
{
    folder = test_folder_create();
    setenv("RUNNEL_CACHE_DIR", folder, 1);
    unsetenv("RUNNEL_CACHE");
    unsetenv("RUNNEL_CACHE_MAX_MB");
    warnings = 0;
    rnl_log_set(count_warnings, NULL, RNL_LOG_WARNING);
}

static void stop(void)
{
    rnl_log_set(NULL, NULL, RNL_LOG_ERROR);
    rnl_alloc_fail_at(0);
    unsetenv("RUNNEL_CACHE_DIR");
    unsetenv("RUNNEL_CACHE_MAX_MB");
    chmod(folder, 0700);
    test_folder_remove(folder);
}

static const char *path_of(rnl_hash of)
{
    static char path[4096];
    char name[64];
    rnl_cache_file_name(of, RNL_CACHE_SUFFIX, name, sizeof name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* True when the cache has the payload, and nothing else. */
static bool is_there(rnl_hash of)
{
    void *data;
    size_t size;
    bool found = rnl_cache_read(of, &data, &size);
    if (found) {
        ck_assert_uint_eq(size, sizeof payload);
        ck_assert_mem_eq(data, payload, size);
    } else {
        ck_assert(data == NULL && size == 0);
    }
    free(data);
    return found;
}

START_TEST(what_is_written_is_read)
{
    ck_assert(!is_there(key));
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert(is_there(key));
    ck_assert(!is_there((rnl_hash){.low = key.low + 1, .high = key.high}));
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert(is_there(key));
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

/* A library, with what is behind it. */
START_TEST(no_broken_library_passes)
{
    char path[4096];
    void *file;
    size_t size;
    ck_assert(!rnl_cache_find_library(key, path, sizeof path));
    rnl_cache_write_library(key, payload, sizeof payload);
    ck_assert(rnl_cache_find_library(key, path, sizeof path));
    ck_assert(!rnl_cache_find_library((rnl_hash){.low = key.low, .high = key.high ^ 1}, path, sizeof path));
    ck_assert(!rnl_cache_find_library(key, path, 8)); /* no room for it */
    ck_assert(rnl_cache_find_library(key, path, sizeof path));
    test_ok(rnl_file_read(path, 1 << 20, &file, &size));
    ck_assert_uint_eq(size, sizeof payload + 2 * RNL_CACHE_HASH_BYTES);
    ck_assert_mem_eq(file, payload, sizeof payload);
    for (size_t length = 0; length < size; length++) {
        void *cut = malloc(length + 1); /* the sanitizers see a read past its end */
        memcpy(cut, file, length);
        ck_assert(!rnl_cache_check_library(cut, length, key));
        free(cut);
    }
    for (size_t bit = 0; bit < 8 * size; bit++) {
        ((unsigned char *)file)[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert(!rnl_cache_check_library(file, size, key));
        ((unsigned char *)file)[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    ck_assert(rnl_cache_check_library(file, size, key));
    rnl_free(file);
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

START_TEST(no_truncation_passes)
{
    void *file, *cut;
    size_t size, offset, found;
    test_ok(rnl_cache_pack(key, payload, sizeof payload, &file, &size));
    ck_assert_uint_eq(size, sizeof payload + RNL_CACHE_HEADER_BYTES + RNL_CACHE_HASH_BYTES);
    ck_assert(rnl_cache_unpack(file, size, key, &offset, &found));
    ck_assert_mem_eq((char *)file + offset, payload, found);
    for (size_t length = 0; length < size; length++) {
        cut = malloc(length + 1); /* the sanitizers see a read past its end */
        memcpy(cut, file, length);
        ck_assert(!rnl_cache_unpack(cut, length, key, &offset, &found));
        free(cut);
        test_ok(rnl_file_replace(path_of(key), file, length));
        ck_assert(!is_there(key));
    }
    test_ok(rnl_file_replace(path_of(key), file, size));
    ck_assert(is_there(key));
    free(file);
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

START_TEST(no_changed_bit_passes)
{
    void *file;
    size_t size, offset, found;
    test_ok(rnl_cache_pack(key, payload, sizeof payload, &file, &size));
    unsigned char *bytes = file;
    for (size_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        ck_assert(!rnl_cache_unpack(file, size, key, &offset, &found));
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    ck_assert(rnl_cache_unpack(file, size, key, &offset, &found));
    free(file);
}
END_TEST

START_TEST(nothing_longer_passes)
{
    void *file;
    size_t size, offset, found;
    char longer[256] = {0};
    test_ok(rnl_cache_pack(key, payload, sizeof payload, &file, &size));
    memcpy(longer, file, size);
    for (size_t length = size + 1; length <= sizeof longer; length++)
        ck_assert(!rnl_cache_unpack(longer, length, key, &offset, &found));
    free(file);
}
END_TEST

START_TEST(another_programs_file_does_not_pass)
{
    void *file;
    size_t size;
    const rnl_hash other = {.low = 5, .high = 6};
    test_ok(rnl_cache_pack(other, payload, sizeof payload, &file, &size));
    test_ok(rnl_file_replace(path_of(key), file, size));
    ck_assert(!is_there(key));
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert(is_there(key));
    free(file);
}
END_TEST

START_TEST(an_empty_payload_is_a_payload)
{
    void *data;
    size_t size = 9;
    rnl_cache_write(key, "", 0);
    ck_assert(rnl_cache_read(key, &data, &size));
    ck_assert_uint_eq(size, 0);
    free(data);
}
END_TEST

/* ---- The folder ---- */

START_TEST(the_folder_is_made_for_its_owner_alone)
{
    struct stat info;
    char path[4096], got[4096];
    mode_t mask = umask(0);
    snprintf(path, sizeof path, "%s/below/it", folder);
    setenv("RUNNEL_CACHE_DIR", path, 1);
    ck_assert(!is_there(key));
    ck_assert_int_ne(stat(path, &info), 0); /* looking makes nothing */
    rnl_cache_write(key, payload, sizeof payload);
    umask(mask);
    ck_assert(is_there(key));
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0700);
    ck_assert_uint_eq(rnl_cache_dir(got, sizeof got), strlen(path));
    ck_assert_str_eq(got, path);
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

START_TEST(the_environment_says_where)
{
    char got[4096], home[4096];
    const char *before = getenv("HOME");
    snprintf(home, sizeof home, "%s", before ? before : "");
    ck_assert_uint_eq(rnl_cache_dir(got, 4), strlen(folder));
    ck_assert_uint_eq(strlen(got), 3);
    setenv("RUNNEL_CACHE", "off", 1);
    ck_assert_uint_eq(rnl_cache_dir(got, sizeof got), 0);
    ck_assert_str_eq(got, "");
    rnl_cache_write(key, payload, sizeof payload);
    unsetenv("RUNNEL_CACHE");
    ck_assert(!is_there(key));
    unsetenv("RUNNEL_CACHE_DIR");
    setenv("XDG_CACHE_HOME", "/x", 1);
    setenv("HOME", "/h", 1);
    ck_assert_uint_eq(rnl_cache_dir(got, sizeof got), 9);
    ck_assert_str_eq(got, "/x/runnel");
    setenv("XDG_CACHE_HOME", "", 1);
    rnl_cache_dir(got, sizeof got);
    ck_assert_str_eq(got, "/h/.cache/runnel");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    ck_assert_uint_eq(rnl_cache_dir(got, sizeof got), 0);
    ck_assert_uint_eq(rnl_cache_dir(NULL, 0), 0);
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert(!is_there(key) && !rnl_cache_is_on());
    setenv("HOME", home, 1);
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

START_TEST(a_folder_that_anybody_can_write_to_is_refused)
{
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert_int_eq(chmod(folder, 0707), 0);
    ck_assert(!is_there(key));
    rnl_cache_write((rnl_hash){.low = 1}, payload, sizeof payload);
    ck_assert(!is_there(key));
    rnl_cache_trim();
    ck_assert_uint_eq(warnings, 1);
    ck_assert_ptr_nonnull(strstr(warning, folder));
    ck_assert_int_eq(chmod(folder, 0700), 0);
    ck_assert(access(path_of((rnl_hash){.low = 1}), F_OK) != 0);
}
END_TEST

START_TEST(a_file_that_anybody_can_write_to_is_refused)
{
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert_int_eq(chmod(path_of(key), 0646), 0);
    ck_assert(!is_there(key));
    ck_assert(!is_there(key));
    ck_assert_uint_eq(warnings, 1);
    ck_assert_ptr_nonnull(strstr(warning, path_of(key)));
}
END_TEST

START_TEST(another_users_folder_or_file_is_refused)
{
    if (geteuid() != 0)
        return; /* only root can give files away */
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert_int_eq(chown(path_of(key), 12345, 12345), 0);
    ck_assert(!is_there(key));
    ck_assert_uint_eq(warnings, 1);
    char path[4096];
    snprintf(path, sizeof path, "%s/own", folder);
    setenv("RUNNEL_CACHE_DIR", path, 1);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(chown(path, 12345, 12345), 0);
    ck_assert(!is_there(key));
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert_uint_eq(warnings, 2);
    ck_assert_ptr_nonnull(strstr(warning, path));
}
END_TEST

START_TEST(a_link_or_a_pipe_is_not_read)
{
    char elsewhere[4096];
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert_int_eq(rename(path_of(key), elsewhere), 0);
    ck_assert_int_eq(symlink(elsewhere, path_of(key)), 0);
    ck_assert(!is_there(key));
    ck_assert_int_eq(unlink(path_of(key)), 0);
    ck_assert_int_eq(mkfifo(path_of(key), 0600), 0);
    ck_assert(!is_there(key));
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert(is_there(key));
}
END_TEST

static void check_unwritable(const char *path)
{
    setenv("RUNNEL_CACHE_DIR", path, 1);
    ck_assert(!is_there(key));
    for (int i = 0; i < 3; i++)
        rnl_cache_write((rnl_hash){.low = (uint64_t)i}, payload, sizeof payload);
    ck_assert(!is_there(key));
    ck_assert_uint_eq(warnings, 1);
    ck_assert(!rnl_cache_is_on());
}

START_TEST(a_folder_that_cannot_be_made_is_one_warning)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/file/below", folder);
    char *file = strndup(path, strlen(path) - strlen("/below"));
    test_ok(rnl_file_replace(file, "x", 1));
    free(file);
    check_unwritable(path);
}
END_TEST

START_TEST(a_folder_that_takes_no_files_is_one_warning)
{
    check_unwritable("/proc/self"); /* as a read-only one, also for root */
}
END_TEST

START_TEST(a_read_only_folder_is_still_read)
{
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert_int_eq(chmod(folder, 0500), 0);
    ck_assert(is_there(key));
    rnl_cache_write((rnl_hash){.low = 1}, payload, sizeof payload);
    ck_assert(is_there(key));
    if (geteuid() != 0) /* nothing is read-only to root */
        ck_assert_uint_eq(warnings, 1);
}
END_TEST

START_TEST(a_full_disk_is_one_warning)
{
    struct rlimit old, limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 60;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int i = 0; i < 3; i++)
        rnl_cache_write(key, payload, sizeof payload);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    ck_assert_uint_eq(warnings, 1);
    ck_assert(!is_there(key));
    DIR *entries = opendir(folder);
    size_t count = 0;
    while (readdir(entries))
        count++;
    closedir(entries);
    ck_assert_uint_eq(count, 2); /* "." and "..": no half file */
}
END_TEST

START_TEST(without_memory_the_answer_is_no)
{
    rnl_cache_write(key, payload, sizeof payload);
    rnl_alloc_fail_at(1);
    ck_assert(!is_there(key));
    ck_assert(is_there(key));
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

/* ---- The limit ---- */

static void write_aged(uint64_t number, size_t size, time_t age)
{
    char *data = calloc(size, 1);
    const rnl_hash of = {.low = number};
    const struct timespec times[2] = {{.tv_sec = time(NULL) - age}, {.tv_sec = time(NULL) - age}};
    rnl_cache_write(of, data, size);
    free(data);
    ck_assert_int_eq(utimensat(AT_FDCWD, path_of(of), times, 0), 0);
}

static bool exists(uint64_t number)
{
    return access(path_of((rnl_hash){.low = number}), F_OK) == 0;
}

START_TEST(the_oldest_files_go_first)
{
    char other[4200], litter[4200], fresh[4200];
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    snprintf(other, sizeof other, "%s/somebody.else", folder);
    snprintf(litter, sizeof litter, "%s.99-1.tmp", path_of(key));
    snprintf(fresh, sizeof fresh, "%s.99-2.tmp", path_of(key));
    test_ok(rnl_file_replace(other, "x", 1));
    test_ok(rnl_file_replace(litter, "x", 1));
    test_ok(rnl_file_replace(fresh, "x", 1));
    ck_assert_int_eq(utimensat(AT_FDCWD, other, old, 0), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, litter, old, 0), 0);
    for (uint64_t i = 0; i < 5; i++)
        write_aged(i, 400 << 10, (time_t)(100 * (i == 3 ? 9 : i)));
    rnl_cache_trim();
    for (uint64_t i = 0; i < 5; i++)
        ck_assert(exists(i));
    ck_assert(access(litter, F_OK) != 0 && access(fresh, F_OK) == 0);
    setenv("RUNNEL_CACHE_MAX_MB", "1", 1);
    rnl_cache_trim();
    ck_assert(exists(0) && exists(1) && !exists(2) && !exists(3) && !exists(4));
    ck_assert_int_eq(access(other, F_OK), 0);
    setenv("RUNNEL_CACHE_MAX_MB", "0", 1);
    rnl_cache_trim();
    ck_assert(!exists(0) && !exists(1));
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert(!is_there(key)); /* one file larger than the limit is not written at all */
    setenv("RUNNEL_CACHE_MAX_MB", "nonsense", 1);
    rnl_cache_write(key, payload, sizeof payload);
    ck_assert(is_there(key));
}
END_TEST

/* ---- Threads ---- */

static void *write_and_read(void *wrong)
{
    for (int i = 0; i < 300; i++) {
        void *data = NULL;
        size_t size = 0;
        rnl_cache_write(key, payload, sizeof payload);
        bool found = rnl_cache_read(key, &data, &size);
        if (!found || size != sizeof payload || memcmp(data, payload, size) != 0)
            *(bool *)wrong = true;
        free(data);
        if (i % 50 == 0)
            rnl_cache_trim();
    }
    return NULL;
}

START_TEST(writers_do_not_disturb_one_another)
{
    pthread_t threads[4];
    bool wrong[4] = {false};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_and_read, &wrong[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        ck_assert(!wrong[i]);
    }
    ck_assert_uint_eq(warnings, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cache");
    TCase *test_case = tcase_create("cache");
    tcase_add_checked_fixture(test_case, start, stop);
    tcase_add_test(test_case, what_is_written_is_read);
    tcase_add_test(test_case, no_broken_library_passes);
    tcase_add_test(test_case, no_truncation_passes);
    tcase_add_test(test_case, no_changed_bit_passes);
    tcase_add_test(test_case, nothing_longer_passes);
    tcase_add_test(test_case, another_programs_file_does_not_pass);
    tcase_add_test(test_case, an_empty_payload_is_a_payload);
    tcase_add_test(test_case, the_folder_is_made_for_its_owner_alone);
    tcase_add_test(test_case, the_environment_says_where);
    tcase_add_test(test_case, a_folder_that_anybody_can_write_to_is_refused);
    tcase_add_test(test_case, a_file_that_anybody_can_write_to_is_refused);
    tcase_add_test(test_case, another_users_folder_or_file_is_refused);
    tcase_add_test(test_case, a_link_or_a_pipe_is_not_read);
    tcase_add_test(test_case, a_folder_that_cannot_be_made_is_one_warning);
    tcase_add_test(test_case, a_folder_that_takes_no_files_is_one_warning);
    tcase_add_test(test_case, a_read_only_folder_is_still_read);
    tcase_add_test(test_case, a_full_disk_is_one_warning);
    tcase_add_test(test_case, without_memory_the_answer_is_no);
    tcase_add_test(test_case, the_oldest_files_go_first);
    tcase_add_test(test_case, writers_do_not_disturb_one_another);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
