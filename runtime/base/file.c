/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/memory.h"
#include "base/status.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static rnl_status errno_status(int code)
{
    switch (code) {
    case ENOENT:
    case ENOTDIR:
        return RNL_NOT_FOUND;
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
        return RNL_RESOURCE_EXHAUSTED;
    case ENAMETOOLONG:
        return RNL_INVALID_ARGUMENT;
    case EIO:
        return RNL_DATA_LOSS;
    default:
        return RNL_FAILED_PRECONDITION;
    }
}

/* "cannot open /x/y: No such file or directory" from errno. */
static rnl_status fail_errno(const char *what, const char *path)
{
    int code = errno;
    char buffer[128];
    return rnl_error_set(errno_status(code), 0, "cannot %s %s: %s", what, path,
                         strerror_r(code, buffer, sizeof buffer));
}

/* Opens without blocking on a pipe or device; only a regular file passes. */
static rnl_status open_regular(int folder_fd, const char *name, const char *path, int flags, int *out_fd,
                               size_t *out_size)
{
    *out_fd = -1;
    int fd;
    do
        fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags);
    while (fd < 0 && errno == EINTR);
    if (fd < 0 && errno == ELOOP && (flags & O_NOFOLLOW))
        return FAIL(RNL_FAILED_PRECONDITION, "%s is a link, which is refused here", path);
    if (fd < 0)
        return fail_errno("open", path);
    struct stat info;
    rnl_status status = RNL_OK;
    if (fstat(fd, &info) != 0)
        status = fail_errno("examine", path);
    else if (!S_ISREG(info.st_mode))
        status = FAIL(RNL_FAILED_PRECONDITION, "%s is not a regular file", path);
    if (status != RNL_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    *out_size = (size_t)info.st_size;
    return RNL_OK;
}

/* Takes the descriptor. */
static rnl_status map_descriptor(int fd, size_t size, const char *path, rnl_map *out_map)
{
    void *data = NULL;
    rnl_status status = RNL_OK;
    if (size > 0) {
        data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED)
            status = fail_errno("map", path);
    }
    close(fd);
    if (status == RNL_OK)
        *out_map = (rnl_map){.data = data, .size_bytes = size};
    return status;
}

rnl_status rnl_map_open(const char *path, rnl_map *out_map)
{
    *out_map = (rnl_map){0};
    int fd;
    size_t size = 0;
    TRY(open_regular(AT_FDCWD, path, path, 0, &fd, &size));
    return map_descriptor(fd, size, path, out_map);
}

/* Copies the component that starts at `name` into `out`; returns what follows its slash, NULL at the last one. */
static rnl_status next_component(const char *name, const char *whole, char *out, size_t capacity, const char **out_rest)
{
    const char *slash = strchr(name, '/');
    size_t length = slash ? (size_t)(slash - name) : strlen(name);
    if (length == 0 || (length == 1 && name[0] == '.') || (length == 2 && memcmp(name, "..", 2) == 0))
        return FAIL(RNL_INVALID_ARGUMENT, "'%.200s' is not a plain path below its folder", whole);
    if (length >= capacity)
        return FAIL(RNL_INVALID_ARGUMENT, "a part of the path '%.200s' is too long", whole);
    memcpy(out, name, length);
    out[length] = '\0';
    *out_rest = slash ? slash + 1 : NULL;
    return RNL_OK;
}

/* Refuses a whole name before anything is opened, so that the answer does not depend on what is on disk. */
static rnl_status check_components(const char *name)
{
    char component[256];
    const char *rest = name;
    while (rest)
        TRY(next_component(rest, name, component, sizeof component, &rest));
    return RNL_OK;
}

rnl_status rnl_map_open_below(int folder_fd, const char *name, rnl_map *out_map)
{
    *out_map = (rnl_map){0};
    if (!name)
        return FAIL(RNL_INVALID_ARGUMENT, "a file name is missing");
    TRY(check_components(name));
    rnl_status status = RNL_OK;
    int folder = -1, fd = -1; /* folder: of the component, -1 for the caller's */
    size_t size = 0;
    char component[256];
    const char *rest = name;
    while (rest) {
        GOTO(next_component(rest, name, component, sizeof component, &rest));
        int at = folder >= 0 ? folder : folder_fd;
        if (!rest) {
            GOTO(open_regular(at, component, name, O_NOFOLLOW, &fd, &size));
            break;
        }
        int next = openat(at, component, O_RDONLY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW);
        if (next < 0 && errno == ENOTDIR)
            GOTO(FAIL(RNL_FAILED_PRECONDITION, "'%s' in the path '%.200s' is not a folder (links are refused here)",
                      component, name));
        if (next < 0)
            GOTO(fail_errno("open", name));
        if (folder >= 0)
            close(folder);
        folder = next;
    }
    status = map_descriptor(fd, size, name, out_map);
done:
    if (folder >= 0)
        close(folder);
    return status;
}

void rnl_map_close(rnl_map *map)
{
    if (!map)
        return;
    if (map->data)
        munmap((void *)(uintptr_t)map->data, map->size_bytes);
    *map = (rnl_map){0};
}

static bool lies_in(const rnl_map *map, const void *start, size_t size_bytes)
{
    uintptr_t base = (uintptr_t)map->data, at = (uintptr_t)start;
    return map->data && at >= base && at - base <= map->size_bytes && size_bytes <= map->size_bytes - (at - base);
}

void rnl_map_forget(const rnl_map *map, const void *start, size_t size_bytes)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)start;
    if (!lies_in(map, start, size_bytes))
        return;
    uintptr_t first = (at + page - 1) & ~(page - 1), end = (at + size_bytes) & ~(page - 1);
    if (first < end)
        (void)madvise((void *)first, end - first, MADV_DONTNEED); /* only advice */
}

void rnl_map_expect(const rnl_map *map, const void *start, size_t size_bytes)
{
#ifdef MADV_POPULATE_READ
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)start;
    if (!lies_in(map, start, size_bytes) || size_bytes == 0)
        return;
    uintptr_t first = at & ~(page - 1);
    (void)madvise((void *)first, at + size_bytes - first, MADV_POPULATE_READ); /* only advice; new with Linux 5.14 */
#else
    (void)map, (void)start, (void)size_bytes;
#endif
}

/* Reads until `size` bytes or the end of the file. */
static rnl_status read_fully(int fd, char *data, size_t size, const char *path, size_t *out_read)
{
    size_t done = 0;
    while (done < size) {
        ssize_t count = read(fd, data + done, size - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return fail_errno("read", path);
        if (count == 0)
            break;
        done += (size_t)count;
    }
    *out_read = done;
    return RNL_OK;
}

rnl_status rnl_file_read(const char *path, size_t limit_bytes, void **out_data, size_t *out_size)
{
    *out_data = NULL;
    *out_size = 0;
    rnl_status status = RNL_OK;
    char *data = NULL;
    int fd;
    size_t size = 0;
    TRY(open_regular(AT_FDCWD, path, path, 0, &fd, &size));
    if (size > limit_bytes)
        GOTO(FAIL(RNL_RESOURCE_EXHAUSTED, "%s has %zu bytes, more than the %zu that are read here", path, size,
                  limit_bytes));
    GOTO(rnl_alloc(size + 1, 1, &data), "reading %s", path);
    GOTO(read_fully(fd, data, size, path, &size));
    data[size] = '\0';
    *out_data = data;
    *out_size = size;
    data = NULL;
done:
    close(fd);
    rnl_free(data);
    return status;
}

static rnl_status write_fully(int fd, const char *data, size_t size, const char *path)
{
    while (size > 0) {
        ssize_t count = write(fd, data, size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return fail_errno("write", path);
        data += count;
        size -= (size_t)count;
    }
    return RNL_OK;
}

/* Creates a file that was not there beside `path`; its name goes to *out_name. */
static rnl_status create_temporary(const char *path, char **out_name, int *out_fd)
{
    static atomic_uint counter;
    size_t bytes = strlen(path) + 48;
    char *name;
    TRY(rnl_alloc(bytes, 1, &name));
    int fd = -1;
    for (int attempt = 0; attempt < 100 && fd < 0; attempt++) {
        snprintf(name, bytes, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&counter, 1));
        /* Not writable by others whatever the umask: what is written may be trusted later because of that. */
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0 && errno != EEXIST && errno != EINTR)
            break;
    }
    if (fd < 0) {
        rnl_status status = fail_errno("write", path);
        rnl_free(name);
        return status;
    }
    *out_name = name;
    *out_fd = fd;
    return RNL_OK;
}

static rnl_status replace(const char *path, const void *data, size_t size_bytes, bool synced)
{
    char *name = NULL;
    int fd = -1;
    TRY(create_temporary(path, &name, &fd));
    rnl_status status = write_fully(fd, data, size_bytes, path);
    if (status == RNL_OK && synced && fsync(fd) != 0)
        status = fail_errno("write", path);
    if (close(fd) != 0 && status == RNL_OK)
        status = fail_errno("write", path);
    if (status == RNL_OK && rename(name, path) != 0)
        status = fail_errno("replace", path);
    if (status != RNL_OK)
        unlink(name);
    rnl_free(name);
    return status;
}

rnl_status rnl_file_replace(const char *path, const void *data, size_t size_bytes)
{
    return replace(path, data, size_bytes, false);
}

rnl_status rnl_file_write(const char *path, const void *data, size_t size_bytes)
{
    return replace(path, data, size_bytes, true);
}

static rnl_status make_folder(const char *path)
{
    struct stat info;
    if (mkdir(path, 0700) == 0)
        return RNL_OK;
    int code = errno;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return RNL_OK;
    errno = code;
    return fail_errno("create folder", path);
}

rnl_status rnl_folder_create(const char *path)
{
    char *copy;
    TRY(rnl_strdup(path, &copy));
    rnl_status status = RNL_OK;
    for (char *slash = strchr(copy[0] ? copy + 1 : copy, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        GOTO(make_folder(copy));
        *slash = '/';
    }
    status = make_folder(copy);
done:
    rnl_free(copy);
    return status;
}
