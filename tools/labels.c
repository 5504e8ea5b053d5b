/* SPDX-License-Identifier: Apache-2.0 */
#include "file.h"
#include "outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t labels_limit = 64 * 1024 * 1024;

static bool add_label(rnl_labels *labels, size_t *capacity, const char *line)
{
    if (labels->count == *capacity) {
        size_t larger = *capacity ? *capacity * 2 : 256;
        char **names = realloc(labels->names, larger * sizeof *names);
        if (!names)
            return false;
        labels->names = names;
        *capacity = larger;
    }
    char *name = strdup(line);
    if (!name)
        return false;
    labels->names[labels->count++] = name;
    return true;
}

rnl_exit rnl_labels_read(const char *path, rnl_labels *out_labels)
{
    char *line = NULL;
    size_t line_bytes = 0;
    size_t capacity = 0;
    ssize_t length;
    uint64_t bytes = 0;
    bool enough = true;
    *out_labels = (rnl_labels){0};
    FILE *file = rnl_file_open(path, &bytes);
    if (!file)
        return rnl_cli_fail("labels %s: %s", path, rnl_file_reason(errno));
    while (bytes <= labels_limit && enough && (length = getline(&line, &line_bytes, file)) >= 0) {
        while (length > 0 && (line[length - 1] == '\n' || line[length - 1] == '\r'))
            line[--length] = '\0';
        enough = add_label(out_labels, &capacity, line);
    }
    rnl_exit code = RNL_EXIT_DONE;
    if (bytes > labels_limit)
        code = rnl_cli_fail("labels %s: larger than 64 MiB", path);
    else if (ferror(file) || !enough)
        code = rnl_cli_fail("labels %s: cannot be read to its end", path);
    free(line);
    fclose(file);
    return code;
}

void rnl_labels_free(rnl_labels *labels)
{
    for (size_t i = 0; i < labels->count; i++)
        free(labels->names[i]);
    free(labels->names);
    *labels = (rnl_labels){0};
}
