/* SPDX-License-Identifier: Apache-2.0 */
#include "device/driver.h"

#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "device/host_limits.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4096

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* True when `path` is a folder we may write to, or could be made into one. */
static bool can_write(const char *path)
{
    char folder[PATH_BYTES];
    struct stat info;
    int length = snprintf(folder, sizeof folder, "%s", path);
    if (length <= 0 || (size_t)length >= sizeof folder || path[0] != '/')
        return false;
    while (stat(folder, &info) != 0) {
        char *slash = strrchr(folder, '/');
        if (errno != ENOENT || !slash)
            return false;
        slash[slash == folder ? 1 : 0] = '\0';
    }
    return S_ISDIR(info.st_mode) && access(folder, W_OK | X_OK) == 0;
}

static bool is_private(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() && !(info.st_mode & 0022);
}

/* A folder of our own in the shared temporary folder: one name a user, or a fresh one where somebody else has taken it.
 */
static bool make_private_folder(char *path, size_t capacity)
{
    const char *base = environment("TMPDIR") ? environment("TMPDIR") : "/tmp";
    int length = snprintf(path, capacity, "%s/runnel-%lu", base, (unsigned long)geteuid());
    if (length <= 0 || (size_t)length >= capacity)
        return false;
    if ((mkdir(path, 0700) == 0 || errno == EEXIST) && is_private(path) && access(path, W_OK | X_OK) == 0)
        return true;
    length = snprintf(path, capacity, "%s/runnel-XXXXXX", base);
    return length > 0 && (size_t)length < capacity && mkdtemp(path) != NULL;
}

/* Where pocl would put its cache by itself, when it can. */
static bool find_user_folder(char *path, size_t capacity)
{
    const char *cache = environment("XDG_CACHE_HOME"), *home = environment("HOME");
    if (cache)
        snprintf(path, capacity, "%s/pocl/kcache", cache);
    else if (home)
        snprintf(path, capacity, "%s/.cache/pocl/kcache", home);
    return (cache || home) && can_write(path);
}

/* pocl starts a thread for each processor of the machine and wakes all of them for each launch, on whichever processors
 * are left to this process: so it is told how many those are. */
static void limit_pocl_threads(void)
{
    char count[16];
    uint32_t cpus = rnl_host_cpus();
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (environment(RNL_POCL_THREADS) || online <= 0 || cpus >= (unsigned long)online)
        return;
    snprintf(count, sizeof count, "%u", (unsigned)cpus);
    if (setenv(RNL_POCL_THREADS, count, 1) == 0)
        rnl_log(RNL_LOG_INFO, "pocl starts %s of %ld threads: no more may run", count, online);
}

static void choose_pocl_folder(void)
{
    char path[PATH_BYTES - 16], folder[PATH_BYTES];
    if (environment("POCL_CACHE_DIR"))
        return;
    /* Set but empty, either variable confuses it: then it is told, even where the folder is the usual one. */
    bool confused = getenv("POCL_CACHE_DIR") || (getenv("XDG_CACHE_HOME") && !environment("XDG_CACHE_HOME"));
    bool found = find_user_folder(path, sizeof path);
    if (found && !confused)
        return;
    if (found && rnl_folder_create(path) == RNL_OK)
        snprintf(folder, sizeof folder, "%s", path);
    else if (make_private_folder(path, sizeof path))
        snprintf(folder, sizeof folder, "%s/pocl", path);
    else
        return;
    if (rnl_folder_create(folder) == RNL_OK && setenv("POCL_CACHE_DIR", folder, 1) == 0)
        rnl_log(RNL_LOG_INFO, "pocl keeps its cache in %s", folder);
}

static atomic_bool prepared;

static void prepare(void)
{
    atomic_store(&prepared, true);
    limit_pocl_threads();
    choose_pocl_folder();
}

void rnl_driver_prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
}

bool rnl_driver_is_prepared(void)
{
    return atomic_load(&prepared);
}

rnl_status rnl_driver_check_linker(void)
{
    const char *path = environment("PATH");
    char file[PATH_BYTES];
    while (path && *path) {
        int length = (int)strcspn(path, ":");
        int written = snprintf(file, sizeof file, "%.*s/ld", length, path);
        if (written > 0 && (size_t)written < sizeof file && access(file, X_OK) == 0)
            return RNL_OK;
        path += length;
        path += *path == ':';
    }
    return FAIL(RNL_FAILED_PRECONDITION,
                "pocl needs the program 'ld' (package binutils) in a folder that PATH names, and there is none");
}
