/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: the disk is full below the folder that TEST_FULL_FOLDER names. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_below(int fd, const char *folder)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (!folder || length < 0)
        return 0;
    path[length] = '\0';
    return strncmp(path, folder, strlen(folder)) == 0;
}

ssize_t write(int fd, const void *data, size_t size)
{
    static ssize_t (*next)(int, const void *, size_t);
    if (!next) {
        void *symbol = dlsym(RTLD_NEXT, "write");
        memcpy(&next, &symbol, sizeof next);
    }
    if (is_below(fd, getenv("TEST_FULL_FOLDER"))) {
        errno = ENOSPC;
        return -1;
    }
    return next(fd, data, size);
}
