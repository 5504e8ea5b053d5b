/* SPDX-License-Identifier: Apache-2.0 */
/* numpy's file format: 1.0, 2.0 and 3.0 are read, 1.0 is written. Little-endian, C order. */
#ifndef RUNNEL_CLI_NPY_H
#define RUNNEL_CLI_NPY_H

#include "cli.h"

typedef struct rnl_npy_header {
    rnl_dtype dtype;
    size_t rank;
    int64_t shape[RNL_MAX_RANK];
} rnl_npy_header;

/* Reads the dictionary of `length` bytes. NULL when it is sound, else what is wrong with it. */
const char *rnl_npy_parse_header(const char *text, size_t length, rnl_npy_header *out_header);

/* Reads a whole file of `size_bytes`, open at its start. Sets dtype, rank, shape, data (free it) and size_bytes. */
rnl_exit rnl_npy_read(FILE *file, uint64_t size_bytes, const char *path, rnl_tensor *out_tensor);

/* Writes to an open file; false with errno set when that fails. bfloat16, which numpy lacks, is written as float32. */
bool rnl_npy_write(FILE *file, const rnl_tensor *tensor);

#endif
