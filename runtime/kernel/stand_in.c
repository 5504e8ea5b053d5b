/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel/stand_in.h"
#include "base/text.h"
#include "kernel/reflection.h"
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SPECIAL "1-1-1" /* -goffs0, -smallgrid: for what offsets and ranges moreover */
#define GENERAL "0-0-0"

/* Whether the names, "copy_rows, fill", have this one of `length` bytes. */
static bool has_name(const char *names, const char *name, size_t length)
{
    for (const char *at = names; *at; at += strspn(at, ", ")) {
        const size_t size = strcspn(at, ",");
        if (size == length && memcmp(at, name, length) == 0)
            return true;
        at += size;
    }
    return false;
}

/* The component of the path that ends at *end, which becomes the one's before it; *length is 0 when there is none. */
static const char *take_last(const char *path, size_t *end, size_t *length)
{
    size_t begin = *end;
    while (begin > 0 && path[begin - 1] != '/')
        begin--;
    *length = *end - begin;
    *end = begin > 0 ? begin - 1 : 0;
    return path + begin;
}

/* Of each loaded object: the kernels are among them. */
static int look(struct dl_phdr_info *object, size_t size, void *names)
{
    (void)size;
    const char *path = object->dlpi_name ? object->dlpi_name : "", suffix[] = ".so";
    size_t end = strlen(path), file_size, purpose_size, kernel_size;
    const char *file = take_last(path, &end, &file_size);
    const char *purpose = take_last(path, &end, &purpose_size);
    const char *kernel = take_last(path, &end, &kernel_size);
    char folder[PATH_MAX], general[PATH_MAX];
    if (file_size != kernel_size + strlen(suffix) || memcmp(file, kernel, kernel_size) != 0 ||
        strcmp(file + kernel_size, suffix) != 0 || strncmp(purpose, SPECIAL, strlen(SPECIAL)) != 0 ||
        !has_name(names, kernel, kernel_size))
        return 0;
    const int before = (int)(purpose - path);
    if (snprintf(folder, sizeof folder, "%.*s" GENERAL, before, path) < (int)sizeof folder &&
        snprintf(general, sizeof general, "%s/%s", folder, file) < (int)sizeof general) {
        (void)mkdir(folder, S_IRWXU); /* where it exists, the next call says whether a kernel is there */
        (void)link(path, general);
    }
    return 0;
}

void rnl_stand_in(cl_program program)
{
    rnl_text names = {0};
    if (rnl_reflection_names(program, &names) == RNL_OK)
        dl_iterate_phdr(look, names.data);
    rnl_text_free(&names);
}
