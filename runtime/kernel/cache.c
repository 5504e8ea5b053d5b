/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/cache.h"

#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/text.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define DEFAULT_MAX_MB 512
#define STALE_SECONDS 3600

/* ---- The folder ---- */

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

size_t rnl_cache_dir(char *out_path, size_t capacity)
{
    const char *off = environment("RUNNEL_CACHE"), *own = environment("RUNNEL_CACHE_DIR");
    const char *cache = environment("XDG_CACHE_HOME"), *home = environment("HOME");
    int length = 0;
    if (capacity > 0)
        out_path[0] = '\0';
    if (off && strcmp(off, "off") == 0)
        return 0;
    if (own)
        length = snprintf(out_path, capacity, "%s", own);
    else if (cache && cache[0] == '/')
        length = snprintf(out_path, capacity, "%s/runnel", cache);
    else if (home && home[0] == '/')
        length = snprintf(out_path, capacity, "%s/.cache/runnel", home);
    return length > 0 ? (size_t)length : 0;
}

/* The folder that was found unusable, for which one warning has been given; "" while there is none. */
static pthread_mutex_t refused_lock = PTHREAD_MUTEX_INITIALIZER;
static char refused_folder[PATH_BYTES];
static bool refused_for_reading;

static bool is_refused(const char *folder, bool reading)
{
    pthread_mutex_lock(&refused_lock);
    bool refused = strcmp(folder, refused_folder) == 0 && (!reading || refused_for_reading);
    pthread_mutex_unlock(&refused_lock);
    return refused;
}

bool rnl_cache_is_on(void)
{
    char path[PATH_BYTES];
    size_t length = rnl_cache_dir(path, sizeof path);
    return length > 0 && length < sizeof path && !is_refused(path, false);
}

/* Turns the cache in `folder` off for this process: writing to it, or all of it. Warns once. */
static void refuse(const char *folder, bool reading, const char *reason)
{
    pthread_mutex_lock(&refused_lock);
    bool again = strcmp(folder, refused_folder) == 0;
    snprintf(refused_folder, sizeof refused_folder, "%s", folder);
    refused_for_reading = reading || (again && refused_for_reading);
    pthread_mutex_unlock(&refused_lock);
    if (!again)
        rnl_log(RNL_LOG_WARNING, "compiled programs are not kept: %s", reason);
}

/* What others can write must not reach a driver: it would run in this process. */
static bool is_ours(const struct stat *info)
{
    return info->st_uid == geteuid() && !(info->st_mode & S_IWOTH);
}

/* Opens the cache folder; -1 when there is none to use. `path` has PATH_BYTES. */
static int open_folder(char *path, bool create)
{
    struct stat info;
    char reason[PATH_BYTES + 128];
    size_t length = rnl_cache_dir(path, PATH_BYTES);
    if (length == 0 || length >= PATH_BYTES || is_refused(path, !create))
        return -1;
    if (create && rnl_folder_create(path) != RNL_OK) {
        refuse(path, false, rnl_last_error()->message);
        return -1;
    }
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 && create) {
        snprintf(reason, sizeof reason, "the folder %s cannot be opened", path);
        refuse(path, false, reason);
    }
    if (folder < 0)
        return -1;
    if (fstat(folder, &info) != 0 || !is_ours(&info)) {
        snprintf(reason, sizeof reason, "the folder %s belongs to another user or can be written to by anybody", path);
        refuse(path, true, reason);
        close(folder);
        return -1;
    }
    return folder;
}

/* ---- Reading and writing ---- */

/* The whole file, which may be anything; NULL when it cannot be had. */
static void *read_whole(int file, size_t size)
{
    char *data;
    size_t done = 0;
    if (rnl_alloc(size, 1, &data) != RNL_OK)
        return NULL;
    while (done < size) {
        ssize_t count = read(file, data + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        done += (size_t)count;
    }
    if (done == size)
        return data;
    rnl_free(data);
    return NULL;
}

static int open_file(int folder, const char *path, const char *name, size_t *out_size)
{
    struct stat info;
    char reason[PATH_BYTES + 256];
    int file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (file < 0)
        return -1;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        close(file);
        return -1;
    }
    if (!is_ours(&info)) {
        snprintf(reason, sizeof reason, "the file %s/%s belongs to another user or can be written to by anybody", path,
                 name);
        refuse(path, true, reason);
        close(file);
        return -1;
    }
    *out_size = (size_t)info.st_size;
    return file;
}

/* The file of the cache with this name, which may be anything; NULL when it cannot be had. `path` has PATH_BYTES, and
 * gets the folder's. */
static void *read_named(const char *name, char *path, size_t *out_size)
{
    int folder = open_folder(path, false);
    if (folder < 0)
        return NULL;
    int file = open_file(folder, path, name, out_size);
    close(folder);
    if (file < 0)
        return NULL;
    void *data = read_whole(file, *out_size);
    close(file);
    return data;
}

bool rnl_cache_read(rnl_hash key, void **out_payload, size_t *out_size)
{
    char path[PATH_BYTES], name[64];
    size_t size = 0, offset;
    *out_payload = NULL;
    *out_size = 0;
    rnl_cache_file_name(key, RNL_CACHE_SUFFIX, name, sizeof name);
    char *data = read_named(name, path, &size);
    if (!data || !rnl_cache_unpack(data, size, key, &offset, out_size)) {
        rnl_free(data);
        return false;
    }
    memmove(data, data + offset, *out_size);
    *out_payload = data;
    return true;
}

bool rnl_cache_find_library(rnl_hash key, char *out_path, size_t capacity)
{
    char path[PATH_BYTES], name[64];
    size_t size = 0;
    rnl_cache_file_name(key, RNL_CACHE_LIBRARY_SUFFIX, name, sizeof name);
    void *data = read_named(name, path, &size);
    const bool is_sound = data && rnl_cache_check_library(data, size, key) &&
                          snprintf(out_path, capacity, "%s/%s", path, name) < (int)capacity;
    rnl_free(data);
    return is_sound;
}

bool rnl_cache_has_file(rnl_hash key)
{
    char path[PATH_BYTES], name[64];
    int folder = open_folder(path, false);
    if (folder < 0)
        return false;
    rnl_cache_file_name(key, RNL_CACHE_SUFFIX, name, sizeof name);
    const bool found = faccessat(folder, name, F_OK, 0) == 0;
    close(folder);
    return found;
}

static uint64_t max_bytes(void)
{
    const char *text = environment("RUNNEL_CACHE_MAX_MB");
    char *end;
    unsigned long long value = text ? strtoull(text, &end, 10) : DEFAULT_MAX_MB;
    if (text && (*end || *text == '-'))
        value = DEFAULT_MAX_MB;
    return value > UINT64_MAX >> 20 ? UINT64_MAX : (uint64_t)value << 20;
}

typedef rnl_status pack_fn(rnl_hash key, const void *payload, size_t size, void **out_file, size_t *out_file_size);

static void write_packed(rnl_hash key, const char *suffix, pack_fn *pack, const void *payload, size_t size)
{
    char path[PATH_BYTES], name[64], file_path[PATH_BYTES + 64];
    void *file;
    size_t file_size;
    if (size > max_bytes())
        return;
    int folder = open_folder(path, true);
    if (folder < 0)
        return;
    close(folder);
    rnl_cache_file_name(key, suffix, name, sizeof name);
    snprintf(file_path, sizeof file_path, "%s/%s", path, name);
    rnl_status status = pack(key, payload, size, &file, &file_size);
    if (status == RNL_OK)
        status = rnl_file_replace(file_path, file, file_size);
    if (status != RNL_OK)
        refuse(path, false, rnl_last_error()->message);
    rnl_free(file);
}

void rnl_cache_write(rnl_hash key, const void *payload, size_t size)
{
    write_packed(key, RNL_CACHE_SUFFIX, rnl_cache_pack, payload, size);
}

void rnl_cache_write_library(rnl_hash key, const void *library, size_t size)
{
    write_packed(key, RNL_CACHE_LIBRARY_SUFFIX, rnl_cache_pack_library, library, size);
}

/* ---- The limit on its size ---- */

typedef struct entry {
    char name[64];
    uint64_t bytes;
    struct timespec written;
} entry;

typedef struct listing {
    entry *items;
    size_t count, capacity;
    uint64_t bytes;
} listing;

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Takes note of a file of the cache, or deletes what a writer that died has left. Other files are not ours. */
static rnl_status add_entry(listing *list, int folder, const char *name)
{
    struct stat info;
    bool ours = ends_with(name, RNL_CACHE_SUFFIX) || ends_with(name, RNL_CACHE_LIBRARY_SUFFIX),
         unfinished = (strstr(name, RNL_CACHE_SUFFIX ".") || strstr(name, RNL_CACHE_LIBRARY_SUFFIX ".")) &&
                      ends_with(name, ".tmp");
    if ((!ours && !unfinished) || strlen(name) >= sizeof list->items->name ||
        fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode))
        return RNL_OK;
    if (unfinished) {
        if (time(NULL) - info.st_mtim.tv_sec > STALE_SECONDS)
            unlinkat(folder, name, 0);
        return RNL_OK;
    }
    TRY(rnl_grow(&list->items, &list->capacity, list->count + 1, sizeof *list->items));
    entry *item = &list->items[list->count++];
    memcpy(item->name, name, strlen(name) + 1);
    item->bytes = (uint64_t)info.st_size;
    item->written = info.st_mtim;
    list->bytes += item->bytes;
    return RNL_OK;
}

static int older_first(const void *left, const void *right)
{
    const struct timespec *a = &((const entry *)left)->written, *b = &((const entry *)right)->written;
    if (a->tv_sec != b->tv_sec)
        return a->tv_sec < b->tv_sec ? -1 : 1;
    return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

static void trim_folder(DIR *folder)
{
    listing list = {0};
    struct dirent *item;
    rnl_status status = RNL_OK;
    while (status == RNL_OK && (item = readdir(folder)))
        status = add_entry(&list, dirfd(folder), item->d_name);
    uint64_t limit = max_bytes();
    if (list.bytes > limit)
        qsort(list.items, list.count, sizeof *list.items, older_first);
    for (size_t i = 0; i < list.count && list.bytes > limit; i++)
        if (unlinkat(dirfd(folder), list.items[i].name, 0) == 0)
            list.bytes -= list.items[i].bytes;
    rnl_free(list.items);
}

void rnl_cache_trim(void)
{
    char path[PATH_BYTES];
    int descriptor = open_folder(path, false);
    DIR *folder = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (folder) {
        trim_folder(folder);
        closedir(folder);
    } else if (descriptor >= 0) {
        close(descriptor);
    }
}
