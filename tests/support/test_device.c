/* SPDX-License-Identifier: Apache-2.0 */
#include "support/test_device.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

rnl_device *test_open_device_with(const rnl_device_options *options)
{
    const char *spec = getenv("RUNNEL_TEST_DEVICE");
    rnl_device *device;
    rnl_status status = rnl_device_open(spec, options, &device);
    if (status == RNL_OK)
        return device;
    fprintf(stderr, "%s\n", rnl_last_error()->message);
    exit(status == RNL_NOT_FOUND ? 77 : 1);
}

rnl_device *test_open_device(void)
{
    return test_open_device_with(NULL);
}

rnl_device *test_open_other_device(const rnl_device *device)
{
    const rnl_device_info *own = rnl_device_get_info(device);
    rnl_device_info infos[16];
    size_t count = 0;
    rnl_device *found = NULL;
    test_ok(rnl_device_list(infos, 16, &count));
    for (size_t i = 0; i < count && i < 16 && !found; i++) {
        char spec[32];
        if (infos[i].platform_index == own->platform_index && infos[i].device_index == own->device_index)
            continue;
        snprintf(spec, sizeof spec, "%u:%u", (unsigned)infos[i].platform_index, (unsigned)infos[i].device_index);
        test_ok(rnl_device_open(spec, NULL, &found));
    }
    return found ? found : test_open_device();
}

size_t test_pool_in_use(const rnl_device *device)
{
    rnl_device_stats stats;
    rnl_device_get_stats(device, &stats);
    return stats.pool_in_use_bytes;
}

void test_fill(unsigned char *bytes, size_t count, unsigned seed)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(i * 31 + seed + (i >> 8) + (i >> 16));
}

int test_run(Suite *suite, bool fork)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_fork_status(runner, fork ? CK_FORK : CK_NOFORK);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void test_ok_at(rnl_status status, const char *call, const char *file, int line)
{
    if (status != RNL_OK)
        ck_abort_msg("%s:%d: %s: %s: %s", file, line, call, rnl_status_name(status), rnl_last_error()->message);
}

void test_fails_at(rnl_status expected, const char *part, rnl_status status, const char *call, const char *file,
                   int line)
{
    const rnl_error *error = rnl_last_error();
    if (status != expected)
        ck_abort_msg("%s:%d: %s: %s instead of %s: %s", file, line, call, rnl_status_name(status),
                     rnl_status_name(expected), error->message);
    if (error->status != expected)
        ck_abort_msg("%s:%d: %s: the error's status is %s", file, line, call, rnl_status_name(error->status));
    if (part && !strstr(error->message, part))
        ck_abort_msg("%s:%d: %s: no '%s' in: %s", file, line, call, part, error->message);
}

char *test_folder_create(void)
{
    const char *base = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/runnel-test-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(path)) {
        perror(path);
        exit(1);
    }
    return strdup(path);
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

void test_folder_remove(char *path)
{
    if (path)
        nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
}

bool test_must_have_team(const rnl_device *device)
{
#if defined(__x86_64__)
    const rnl_device_info *info = rnl_device_get_info(device);
    return strcmp(info->platform, "Portable Computing Language") == 0 && strncmp(info->name, "pthread", 7) == 0 &&
           info->compute_units >= 2 && info->compute_units <= 8;
#else
    (void)device;
    return false;
#endif
}
