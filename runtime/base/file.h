/* SPDX-License-Identifier: Apache-2.0 */
/* Files: whole reads, read-only maps, atomic replacement. Every failure names the path. */
#ifndef RUNNEL_BASE_FILE_H
#define RUNNEL_BASE_FILE_H

#include <runnel/rt.h>

/* A regular file mapped read-only. */
typedef struct rnl_map {
    const void *data; /* NULL when the file is empty */
    size_t size_bytes;
} rnl_map;
RNL_API RNL_NODISCARD rnl_status rnl_map_open(const char *path, rnl_map *out_map);
/* `name` below the open folder `folder_fd`; no component may be a link, "..", or absolute. */
RNL_API RNL_NODISCARD rnl_status rnl_map_open_below(int folder_fd, const char *name, rnl_map *out_map);
RNL_API void rnl_map_close(rnl_map *map);
/* Gives back the memory of the whole pages inside this part of a map; they are read again when they are next touched.
 */
RNL_API void rnl_map_forget(const rnl_map *map, const void *start, size_t size_bytes);
/* Has this part of a map ready in memory: one call instead of a fault for every few pages. Elsewhere it does nothing.
 */
RNL_API void rnl_map_expect(const rnl_map *map, const void *start, size_t size_bytes);

/* Reads a regular file of at most `limit_bytes`; one NUL byte is added behind the data. Freed with rnl_free(). */
RNL_API RNL_NODISCARD rnl_status rnl_file_read(const char *path, size_t limit_bytes, void **out_data, size_t *out_size);
/* Writes to a temporary name in the same folder and renames: readers see the old file or the whole new one. */
RNL_API RNL_NODISCARD rnl_status rnl_file_replace(const char *path, const void *data, size_t size_bytes);
/* The same of what users keep: on the disk before it has the name. */
RNL_API RNL_NODISCARD rnl_status rnl_file_write(const char *path, const void *data, size_t size_bytes);
/* mkdir -p, mode 0700. */
RNL_API RNL_NODISCARD rnl_status rnl_folder_create(const char *path);

#endif
