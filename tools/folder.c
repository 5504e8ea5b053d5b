/* SPDX-License-Identifier: Apache-2.0 */
#include "folder.h"

#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

rnl_folder_size rnl_folder_measure(const char *path)
{
    rnl_folder_size size = {0};
    char *copy = strdup(path); /* fts wants it writable */
    char *paths[] = {copy, NULL};
    FTS *walk = copy ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL) : NULL;
    FTSENT *entry;
    while (walk && (entry = fts_read(walk)) != NULL) {
        if (entry->fts_info == FTS_D)
            size.exists = true;
        if (entry->fts_info != FTS_F)
            continue;
        size.files++;
        size.bytes += (uint64_t)entry->fts_statp->st_size;
    }
    if (walk)
        fts_close(walk);
    free(copy);
    return size;
}

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

bool rnl_folder_of_pocl(char *out_path, size_t capacity)
{
    const char *own = environment("POCL_CACHE_DIR");
    const char *cache = environment("XDG_CACHE_HOME");
    const char *home = environment("HOME");
    int length = 0;
    if (own)
        length = snprintf(out_path, capacity, "%s", own);
    else if (cache)
        length = snprintf(out_path, capacity, "%s/pocl/kcache", cache);
    else if (home)
        length = snprintf(out_path, capacity, "%s/.cache/pocl/kcache", home);
    return length > 0 && (size_t)length < capacity;
}
