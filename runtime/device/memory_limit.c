/* SPDX-License-Identifier: Apache-2.0 */
#include "device/memory_limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_BYTES 4096

/* "max" and version 1's "no limit", a number near 2^63, are both no limit. */
static uint64_t read_limit(const char *path)
{
    char text[32] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return UINT64_MAX;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    char *end;
    text[length] = '\0';
    uint64_t limit = strtoull(text, &end, 10);
    return end == text || limit == 0 || limit > (UINT64_C(1) << 60) ? UINT64_MAX : limit;
}

/* The least limit from the group up to the root. Inside a container the group's path may not be there: its root is. */
static uint64_t least_limit(const char *root, const char *controller, const char *group, const char *file)
{
    uint64_t least = UINT64_MAX;
    char folder[PATH_BYTES], path[PATH_BYTES + 64];
    snprintf(folder, sizeof folder, "%s", group);
    for (;;) {
        snprintf(path, sizeof path, "%.2000s%s%.2000s/%s", root, controller, folder, file);
        uint64_t limit = read_limit(path);
        if (limit < least)
            least = limit;
        char *slash = strrchr(folder, '/');
        if (!slash)
            return least;
        *slash = '\0';
    }
}

/* A line is "0::/path" (version 2) or "4:memory,other:/path". */
static uint64_t limit_of_line(char *line, const char *root)
{
    line[strcspn(line, "\n")] = '\0';
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return UINT64_MAX;
    *group++ = '\0';
    controllers++;
    if (!*controllers)
        return least_limit(root, "", group, "memory.max");
    char *rest = controllers, *name;
    while ((name = strsep(&rest, ",")))
        if (strcmp(name, "memory") == 0)
            return least_limit(root, "/memory", group, "memory.limit_in_bytes");
    return UINT64_MAX;
}

uint64_t rnl_cgroup_memory_limit(const char *groups, const char *root)
{
    uint64_t least = UINT64_MAX;
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(groups, "re");
    if (!file)
        return least;
    while (getline(&line, &capacity, file) > 0) {
        uint64_t limit = limit_of_line(line, root);
        if (limit < least)
            least = limit;
    }
    free(line);
    fclose(file);
    return least;
}
