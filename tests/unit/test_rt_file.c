/* SPDX-License-Identifier: Apache-2.0 */
/* Maps, whole reads, atomic replacement, folders, and memory limits that files tell. */
#include "base/file.h"
#include "base/memory.h"
#include "device/host_limits.h"
#include "support/test_device.h"
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char *folder;
static int folder_fd;

static void start(void)
{
    folder = test_folder_create();
    folder_fd = open(folder, O_RDONLY | O_DIRECTORY);
    ck_assert_int_ge(folder_fd, 0);
}

static void stop(void)
{
    rnl_alloc_fail_at(0);
    close(folder_fd);
    test_folder_remove(folder);
}

/* "name" below the test's folder; one of four static buffers, in turn. */
static const char *at(const char *name)
{
    static char paths[4][4096];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *content)
{
    FILE *file = fopen(at(name), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    fclose(file);
}

static size_t count_entries(void)
{
    DIR *entries = opendir(folder);
    size_t count = 0;
    while (readdir(entries))
        count++;
    closedir(entries);
    return count - 2;
}

static size_t count_descriptors(void)
{
    DIR *entries = opendir("/proc/self/fd");
    size_t count = 0;
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

START_TEST(a_map_is_the_file)
{
    rnl_map map;
    write_file("f", "content");
    write_file("empty", "");
    ck_assert_int_eq(symlink("f", at("link")), 0);
    test_ok(rnl_map_open(at("f"), &map));
    ck_assert_uint_eq(map.size_bytes, 7);
    ck_assert_mem_eq(map.data, "content", 7);
    rnl_map_close(&map);
    ck_assert_ptr_null(map.data);
    rnl_map_close(&map);
    rnl_map_close(NULL);
    test_ok(rnl_map_open(at("empty"), &map));
    ck_assert(map.data == NULL && map.size_bytes == 0);
    rnl_map_close(&map);
    test_ok(rnl_map_open(at("link"), &map)); /* a user's own path may be a link */
    rnl_map_close(&map);
}
END_TEST

START_TEST(what_is_no_file_is_refused_at_once)
{
    rnl_map map = {.data = folder, .size_bytes = 1};
    test_fails(RNL_NOT_FOUND, "nothing", rnl_map_open(at("nothing"), &map));
    ck_assert(map.data == NULL && map.size_bytes == 0);
    test_fails(RNL_NOT_FOUND, "open", rnl_map_open("", &map));
    test_fails(RNL_FAILED_PRECONDITION, "not a regular file", rnl_map_open(folder, &map));
    test_fails(RNL_FAILED_PRECONDITION, "not a regular file", rnl_map_open("/dev/zero", &map));
    ck_assert_int_eq(mkfifo(at("pipe"), 0600), 0);
    test_fails(RNL_FAILED_PRECONDITION, "not a regular file", rnl_map_open(at("pipe"), &map));
    test_fails(RNL_FAILED_PRECONDITION, "not a regular file", rnl_map_open_below(folder_fd, "pipe", &map));
    write_file("f", "x");
    test_fails(RNL_NOT_FOUND, "f/g", rnl_map_open(at("f/g"), &map));
}
END_TEST

START_TEST(names_below_a_folder_stay_there)
{
    static const char *const bad[] = {"",     "/",    "/etc/passwd", ".",   "..",    "../x", "a/../x",
                                      "a/..", "a//b", "a/",          "./a", "a/./b", "//a",  "a/b/"};
    rnl_map map;
    ck_assert_int_eq(mkdir(at("a"), 0700), 0);
    ck_assert_int_eq(mkdir(at("a/b"), 0700), 0);
    write_file("a/b/c", "deep");
    write_file("..f", "dots");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        test_fails(RNL_INVALID_ARGUMENT, NULL, rnl_map_open_below(folder_fd, bad[i], &map));
        ck_assert_ptr_null(map.data);
    }
    test_fails(RNL_INVALID_ARGUMENT, NULL, rnl_map_open_below(folder_fd, NULL, &map));
    test_ok(rnl_map_open_below(folder_fd, "a/b/c", &map));
    ck_assert_mem_eq(map.data, "deep", 4);
    rnl_map_close(&map);
    test_ok(rnl_map_open_below(folder_fd, "..f", &map));
    rnl_map_close(&map);
    test_fails(RNL_NOT_FOUND, "a/x/c", rnl_map_open_below(folder_fd, "a/x/c", &map));
    test_fails(RNL_FAILED_PRECONDITION, "not a regular file", rnl_map_open_below(folder_fd, "a/b", &map));
    test_fails(RNL_FAILED_PRECONDITION, "not a folder", rnl_map_open_below(folder_fd, "a/b/c/d", &map));
}
END_TEST

START_TEST(links_below_a_folder_are_refused)
{
    rnl_map map;
    size_t descriptors = count_descriptors();
    ck_assert_int_eq(mkdir(at("a"), 0700), 0);
    write_file("a/f", "x");
    ck_assert_int_eq(symlink("/etc/passwd", at("a/out")), 0);
    ck_assert_int_eq(symlink("f", at("a/in")), 0);
    ck_assert_int_eq(symlink("a", at("b")), 0);
    test_fails(RNL_FAILED_PRECONDITION, "link", rnl_map_open_below(folder_fd, "a/out", &map));
    test_fails(RNL_FAILED_PRECONDITION, "link", rnl_map_open_below(folder_fd, "a/in", &map));
    test_fails(RNL_FAILED_PRECONDITION, "'b'", rnl_map_open_below(folder_fd, "b/f", &map));
    ck_assert_uint_eq(count_descriptors(), descriptors);
}
END_TEST

START_TEST(long_names_are_refused)
{
    rnl_map map;
    char *name = malloc(100001);
    memset(name, 'a', 100000);
    name[100000] = '\0';
    test_fails(RNL_INVALID_ARGUMENT, "too long", rnl_map_open_below(folder_fd, name, &map));
    test_fails(RNL_INVALID_ARGUMENT, NULL, rnl_map_open(name, &map));
    for (size_t i = 1; i < 100000; i += 2)
        name[i] = '/';
    name[99999] = 'a';
    test_fails(RNL_NOT_FOUND, NULL, rnl_map_open_below(folder_fd, name, &map));
    free(name);
}
END_TEST

START_TEST(a_read_is_whole_and_limited)
{
    void *data;
    size_t size;
    write_file("f", "content");
    test_ok(rnl_file_read(at("f"), 7, &data, &size));
    ck_assert_uint_eq(size, 7);
    ck_assert_str_eq(data, "content");
    free(data);
    test_fails(RNL_RESOURCE_EXHAUSTED, "7 bytes", rnl_file_read(at("f"), 6, &data, &size));
    ck_assert(data == NULL && size == 0);
    test_fails(RNL_NOT_FOUND, "none", rnl_file_read(at("none"), 6, &data, &size));
    write_file("empty", "");
    test_ok(rnl_file_read(at("empty"), 0, &data, &size));
    ck_assert_str_eq(data, "");
    free(data);
    rnl_alloc_fail_at(1);
    test_fails(RNL_RESOURCE_EXHAUSTED, "reading", rnl_file_read(at("f"), 7, &data, &size));
}
END_TEST

static void check_content(const char *name, const char *content)
{
    void *data;
    size_t size;
    test_ok(rnl_file_read(at(name), 1 << 20, &data, &size));
    ck_assert_str_eq(data, content);
    free(data);
}

START_TEST(replacing_is_whole_or_not_at_all)
{
    size_t descriptors = count_descriptors();
    test_ok(rnl_file_replace(at("f"), "one", 3));
    check_content("f", "one");
    test_ok(rnl_file_replace(at("f"), "", 0));
    check_content("f", "");
    test_ok(rnl_file_replace(at("f"), "two", 3));
    ck_assert_int_eq(mkdir(at("d"), 0700), 0);
    test_fails(RNL_FAILED_PRECONDITION, "/d", rnl_file_replace(at("d"), "x", 1));
    test_fails(RNL_NOT_FOUND, "none/f", rnl_file_replace(at("none/f"), "x", 1));
    rnl_alloc_fail_at(1);
    test_fails(RNL_RESOURCE_EXHAUSTED, NULL, rnl_file_replace(at("f"), "x", 1));
    check_content("f", "two");
    ck_assert_uint_eq(count_entries(), 2);
    ck_assert_uint_eq(count_descriptors(), descriptors);
}
END_TEST

START_TEST(a_replaced_file_is_not_writable_by_others)
{
    struct stat info;
    mode_t mask = umask(0);
    test_ok(rnl_file_replace(at("f"), "one", 3));
    test_ok(rnl_folder_create(at("g/h")));
    umask(mask);
    ck_assert_int_eq(stat(at("f"), &info), 0);
    ck_assert_uint_eq(info.st_mode & 0022, 0);
    ck_assert_int_eq(stat(at("g/h"), &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0700);
}
END_TEST

/* A full disk: the process may write no file longer than this. */
START_TEST(a_full_disk_leaves_nothing_behind)
{
    static char large[100000];
    struct rlimit old, limit;
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = old;
    limit.rlim_cur = 50000;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    test_ok(rnl_file_replace(at("f"), "old", 3));
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    rnl_status status = rnl_file_replace(at("f"), large, sizeof large);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    ck_assert_int_eq(status, RNL_RESOURCE_EXHAUSTED);
    ck_assert_ptr_nonnull(strstr(rnl_last_error()->message, "/f"));
    check_content("f", "old");
    ck_assert_uint_eq(count_entries(), 1);
}
END_TEST

START_TEST(descriptors_can_run_out)
{
    rnl_map map;
    struct rlimit old, limit;
    write_file("f", "x");
    ck_assert_int_eq(mkdir(at("a"), 0700), 0);
    write_file("a/f", "x");
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &old), 0);
    limit = old;
    for (rlim_t most = 0; most < 64; most++) {
        limit.rlim_cur = most;
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
        rnl_status opened = rnl_map_open_below(folder_fd, "a/f", &map);
        rnl_map_close(&map);
        rnl_status replaced = rnl_file_replace(at("f"), "y", 1);
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &old), 0);
        ck_assert(opened == RNL_OK || opened == RNL_RESOURCE_EXHAUSTED);
        ck_assert(replaced == RNL_OK || replaced == RNL_RESOURCE_EXHAUSTED);
        ck_assert_uint_eq(count_entries(), 2);
    }
}
END_TEST

static atomic_bool stop_reading;

static void *read_all_the_time(void *wrong)
{
    while (!atomic_load(&stop_reading)) {
        rnl_map map;
        if (rnl_map_open_below(folder_fd, "shared", &map) != RNL_OK || map.size_bytes != 5000) {
            atomic_store((atomic_bool *)wrong, true);
            break;
        }
        const char *data = map.data;
        for (size_t i = 1; i < 5000; i++)
            if (data[i] != data[0])
                atomic_store((atomic_bool *)wrong, true);
        rnl_map_close(&map);
    }
    return NULL;
}

static void *replace_many_times(void *letter)
{
    char content[5000], path[4096];
    snprintf(path, sizeof path, "%s/shared", folder);
    memset(content, *(char *)letter, sizeof content);
    for (int i = 0; i < 200; i++)
        if (rnl_file_replace(path, content, sizeof content) != RNL_OK)
            return letter;
    return NULL;
}

START_TEST(readers_see_one_writers_file)
{
    pthread_t reader, writers[3];
    char letters[3] = {'a', 'b', 'c'};
    atomic_bool wrong = false;
    ck_assert_ptr_null(replace_many_times(letters));
    atomic_store(&stop_reading, false);
    ck_assert_int_eq(pthread_create(&reader, NULL, read_all_the_time, &wrong), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&writers[i], NULL, replace_many_times, &letters[i]), 0);
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(writers[i], &failed);
        ck_assert_ptr_null(failed);
    }
    atomic_store(&stop_reading, true);
    pthread_join(reader, NULL);
    ck_assert(!atomic_load(&wrong));
    ck_assert_uint_eq(count_entries(), 1);
}
END_TEST

START_TEST(folders_are_made_with_their_parents)
{
    struct stat info;
    test_ok(rnl_folder_create(at("x/y/z")));
    test_ok(rnl_folder_create(at("x/y/z/")));
    test_ok(rnl_folder_create(at("x")));
    ck_assert(stat(at("x/y/z"), &info) == 0 && S_ISDIR(info.st_mode));
    write_file("f", "x");
    test_fails(RNL_FAILED_PRECONDITION, "/f", rnl_folder_create(at("f")));
    test_fails(RNL_FAILED_PRECONDITION, "/f", rnl_folder_create(at("f/g")));
    test_fails(RNL_NOT_FOUND, NULL, rnl_folder_create(""));
    test_ok(rnl_folder_create("/"));
}
END_TEST

/* ---- Limits of control groups ---- */

static uint64_t limit_of(const char *groups)
{
    write_file("groups", groups);
    return rnl_cgroup_memory_limit(at("groups"), folder);
}

START_TEST(the_least_limit_of_a_group_and_its_parents_counts)
{
    test_ok(rnl_folder_create(at("a/b/c")));
    ck_assert_uint_eq(limit_of("0::/a/b/c\n"), UINT64_MAX);
    write_file("a/b/c/memory.max", "max\n");
    ck_assert_uint_eq(limit_of("0::/a/b/c\n"), UINT64_MAX);
    write_file("a/b/memory.max", "5000000\n");
    write_file("a/memory.max", "6000000\n");
    ck_assert_uint_eq(limit_of("0::/a/b/c\n"), 5000000);
    write_file("a/b/c/memory.max", "4000000");
    ck_assert_uint_eq(limit_of("0::/a/b/c"), 4000000);
    ck_assert_uint_eq(limit_of("0::/a\n"), 6000000);
    ck_assert_uint_eq(limit_of("0::/elsewhere\n"), UINT64_MAX);
    write_file("memory.max", "3000000");
    ck_assert_uint_eq(limit_of("0::/elsewhere\n"), 3000000);
}
END_TEST

START_TEST(version_1_groups_are_read_too)
{
    test_ok(rnl_folder_create(at("memory/g")));
    write_file("memory/memory.limit_in_bytes", "9223372036854771712\n");
    ck_assert_uint_eq(limit_of("9:cpu,cpuacct:/x\n4:memory:/g\n0::/\n"), UINT64_MAX);
    write_file("memory/g/memory.limit_in_bytes", "7000000\n");
    ck_assert_uint_eq(limit_of("9:cpu,cpuacct:/x\n4:memory:/g\n0::/\n"), 7000000);
    ck_assert_uint_eq(limit_of("4:cpu,memory:/g\n"), 7000000);
    ck_assert_uint_eq(limit_of("4:cpu,memoryless:/g\n"), UINT64_MAX);
    ck_assert_uint_eq(limit_of(""), UINT64_MAX);
    ck_assert_uint_eq(limit_of("nonsense\n:\n4:memory\n"), UINT64_MAX);
    write_file("memory/g/memory.limit_in_bytes", "-3 bytes");
    ck_assert_uint_eq(limit_of("4:memory:/g\n"), UINT64_MAX);
    ck_assert_uint_eq(rnl_cgroup_memory_limit(at("no such file"), folder), UINT64_MAX);
}
END_TEST

static uint64_t cpus_of(const char *groups)
{
    write_file("groups", groups);
    return rnl_cgroup_cpu_limit(at("groups"), folder);
}

START_TEST(processors_are_limited_by_groups)
{
    test_ok(rnl_folder_create(at("a/b")));
    test_ok(rnl_folder_create(at("cpu/g")));
    ck_assert_uint_eq(cpus_of("0::/a/b\n"), UINT64_MAX);
    write_file("a/b/cpu.max", "max 100000\n");
    ck_assert_uint_eq(cpus_of("0::/a/b\n"), UINT64_MAX);
    write_file("a/cpu.max", "250000 100000\n");
    ck_assert_uint_eq(cpus_of("0::/a/b\n"), 3);
    write_file("a/b/cpu.max", "200000 100000\n");
    ck_assert_uint_eq(cpus_of("0::/a/b\n"), 2);
    write_file("a/b/cpu.max", "1000 100000\n");
    ck_assert_uint_eq(cpus_of("0::/a/b\n"), 1);
    write_file("a/b/cpu.max", "1000 0\n");
    ck_assert_uint_eq(cpus_of("0::/a/b\n"), 3);
    write_file("cpu/g/cpu.cfs_quota_us", "-1\n");
    write_file("cpu/g/cpu.cfs_period_us", "100000\n");
    ck_assert_uint_eq(cpus_of("1:cpu:/g\n"), UINT64_MAX);
    write_file("cpu/g/cpu.cfs_quota_us", "400000\n");
    ck_assert_uint_eq(cpus_of("1:cpu:/g\n"), 4);
    ck_assert_uint_eq(cpus_of("1:cpuset:/g\n"), UINT64_MAX);
    ck_assert_uint_ge(rnl_host_cpus(), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file");
    TCase *test_case = tcase_create("file");
    tcase_add_checked_fixture(test_case, start, stop);
    tcase_add_test(test_case, a_map_is_the_file);
    tcase_add_test(test_case, what_is_no_file_is_refused_at_once);
    tcase_add_test(test_case, names_below_a_folder_stay_there);
    tcase_add_test(test_case, links_below_a_folder_are_refused);
    tcase_add_test(test_case, long_names_are_refused);
    tcase_add_test(test_case, a_read_is_whole_and_limited);
    tcase_add_test(test_case, replacing_is_whole_or_not_at_all);
    tcase_add_test(test_case, a_replaced_file_is_not_writable_by_others);
    tcase_add_test(test_case, a_full_disk_leaves_nothing_behind);
    tcase_add_test(test_case, descriptors_can_run_out);
    tcase_add_test(test_case, readers_see_one_writers_file);
    tcase_add_test(test_case, folders_are_made_with_their_parents);
    tcase_add_test(test_case, the_least_limit_of_a_group_and_its_parents_counts);
    tcase_add_test(test_case, version_1_groups_are_read_too);
    tcase_add_test(test_case, processors_are_limited_by_groups);
    suite_add_tcase(suite, test_case);
    return test_run(suite, false);
}
