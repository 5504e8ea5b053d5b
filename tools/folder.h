/* SPDX-License-Identifier: Apache-2.0 */
/* What a folder holds. */
#ifndef RUNNEL_CLI_FOLDER_H
#define RUNNEL_CLI_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct rnl_folder_size {
    uint64_t bytes, files;
    bool exists;
} rnl_folder_size;

/* Counts regular files in `path` and below; follows no links. */
rnl_folder_size rnl_folder_measure(const char *path);
/* The folder where pocl keeps what it compiles; false when there is none. */
bool rnl_folder_of_pocl(char *out_path, size_t capacity);

#endif
