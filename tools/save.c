/* SPDX-License-Identifier: Apache-2.0 */
#include "npy.h"
#include "outputs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* DIR/NAME.npy with every other character than [A-Za-z0-9._-] of NAME as '_'; NULL when memory is short. */
static char *output_path(const char *folder, const char *name)
{
    size_t bytes = strlen(folder) + strlen(name) + sizeof "/.npy";
    char *path = malloc(bytes);
    if (!path)
        return NULL;
    size_t used = (size_t)snprintf(path, bytes, "%s/", folder);
    for (; *name; name++)
        path[used++] = isascii(*name) && (isalnum((unsigned char)*name) || strchr("._-", *name)) ? *name : '_';
    memcpy(path + used, ".npy", sizeof ".npy");
    return path;
}

static char *temporary_path(const char *folder, size_t index)
{
    size_t bytes = strlen(folder) + 64;
    char *path = malloc(bytes);
    if (path)
        snprintf(path, bytes, "%s/.runnel-%ld-%zu.tmp", folder, (long)getpid(), index);
    return path;
}

typedef struct named_path {
    char *path;
    const char *name;
} named_path;

static int compare_paths(const void *left, const void *right)
{
    return strcmp(((const named_path *)left)->path, ((const named_path *)right)->path);
}

/* Two names may become one file: 'a/b' and 'a_b'. */
static rnl_exit check_sorted(named_path *paths, size_t count)
{
    char first[RNL_CLI_NAME_BYTES], second[RNL_CLI_NAME_BYTES];
    qsort(paths, count, sizeof *paths, compare_paths);
    for (size_t i = 1; i < count; i++)
        if (strcmp(paths[i - 1].path, paths[i].path) == 0)
            return rnl_cli_fail("outputs '%s' and '%s' would both be written to %s",
                                rnl_cli_clean(paths[i - 1].name, first, sizeof first),
                                rnl_cli_clean(paths[i].name, second, sizeof second), paths[i].path + 1);
    return RNL_EXIT_DONE;
}

static rnl_exit check_names(const rnl_value_info *infos, size_t count)
{
    size_t made = 0;
    named_path *paths = calloc(count + 1, sizeof *paths);
    for (; paths && made < count; made++) {
        paths[made] = (named_path){output_path("", infos[made].name), infos[made].name};
        if (!paths[made].path)
            break;
    }
    rnl_exit code = paths && made == count ? check_sorted(paths, count) : rnl_cli_fail("out of memory");
    for (size_t i = 0; i < made; i++)
        free(paths[i].path);
    free(paths);
    return code;
}

/* The folder that holds `folder`. */
static const char *parent_of(const char *folder, char *out_parent, size_t capacity)
{
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    while (length > 0 && folder[length - 1] != '/')
        length--;
    if (length == 0)
        return ".";
    snprintf(out_parent, capacity, "%.*s", length > PATH_MAX ? PATH_MAX : (int)length, folder);
    return out_parent;
}

rnl_exit rnl_outputs_check_folder(const char *folder, const rnl_value_info *infos, size_t count)
{
    struct stat status;
    char parent[PATH_MAX + 1];
    const char *writable = folder;
    if (stat(folder, &status) != 0) {
        if (errno != ENOENT)
            return rnl_cli_fail("output folder %s: %s", folder, strerror(errno));
        writable = parent_of(folder, parent, sizeof parent);
        if (stat(writable, &status) != 0)
            return rnl_cli_fail("output folder %s: %s: %s", folder, writable, strerror(errno));
    }
    if (!S_ISDIR(status.st_mode))
        return rnl_cli_fail("output folder %s: not a folder", folder);
    if (access(writable, W_OK | X_OK) != 0)
        return rnl_cli_fail("output folder %s: %s", folder, strerror(errno));
    return check_names(infos, count);
}

static bool write_file(const char *path, const rnl_tensor *tensor)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    FILE *file = fd >= 0 ? fdopen(fd, "wb") : NULL;
    if (!file) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    bool written = rnl_npy_write(file, tensor) && fflush(file) == 0 && fsync(fd) == 0;
    int reason = errno;
    bool closed = fclose(file) == 0;
    if (!written)
        errno = reason;
    return written && closed;
}

static rnl_exit fail_file(const char *folder, const char *name)
{
    int reason = errno;
    char *path = output_path(folder, name);
    rnl_exit code = rnl_cli_fail("cannot write %s: %s", path ? path : folder, strerror(reason));
    free(path);
    return code;
}

/* First every file under a temporary name, then all renamed. */
static rnl_exit write_all(const char *folder, const rnl_tensor *outputs, size_t count, char **temporaries)
{
    for (size_t i = 0; i < count; i++) {
        temporaries[i] = temporary_path(folder, i);
        if (!temporaries[i] || !write_file(temporaries[i], &outputs[i]))
            return fail_file(folder, outputs[i].name);
    }
    for (size_t i = 0; i < count; i++) {
        char *path = output_path(folder, outputs[i].name);
        bool done = path && rename(temporaries[i], path) == 0;
        int reason = errno;
        free(path);
        errno = reason;
        if (!done)
            return fail_file(folder, outputs[i].name);
    }
    return RNL_EXIT_DONE;
}

rnl_exit rnl_outputs_save(const char *folder, const rnl_tensor *outputs, size_t count)
{
    bool created = mkdir(folder, 0777) == 0;
    if (!created && errno != EEXIST)
        return rnl_cli_fail("cannot create the folder %s: %s", folder, strerror(errno));
    char **temporaries = calloc(count + 1, sizeof *temporaries);
    if (!temporaries)
        return rnl_cli_fail("out of memory");
    rnl_exit code = write_all(folder, outputs, count, temporaries);
    for (size_t i = 0; i < count; i++) {
        if (temporaries[i] && code != RNL_EXIT_DONE)
            unlink(temporaries[i]);
        free(temporaries[i]);
    }
    free(temporaries);
    if (created && code != RNL_EXIT_DONE)
        rmdir(folder); /* only when empty */
    return code;
}
