/* SPDX-License-Identifier: Apache-2.0 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *rnl_file_open(const char *path, uint64_t *out_bytes)
{
    struct stat status;
    FILE *file = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0) {
        errno = S_ISDIR(status.st_mode) ? EISDIR : EINVAL;
        if (S_ISREG(status.st_mode))
            file = fdopen(fd, "rb");
        *out_bytes = (uint64_t)status.st_size;
    }
    if (!file) {
        int reason = errno;
        if (fd >= 0)
            close(fd);
        errno = reason;
    }
    return file;
}

const char *rnl_file_reason(int code)
{
    return code == EINVAL ? "not a regular file" : strerror(code);
}
