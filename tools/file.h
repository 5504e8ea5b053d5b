/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_CLI_FILE_H
#define RUNNEL_CLI_FILE_H

#include <stdint.h>
#include <stdio.h>

/* Regular files only: a pipe could block for ever, and has no size to check against. NULL with errno set. */
FILE *rnl_file_open(const char *path, uint64_t *out_bytes);
/* What that errno means. */
const char *rnl_file_reason(int code);

#endif
