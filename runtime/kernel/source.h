/* SPDX-License-Identifier: Apache-2.0 */
/* The embedded OpenCL C files, and their text with includes spliced in. */
#ifndef RUNNEL_KERNEL_SOURCE_H
#define RUNNEL_KERNEL_SOURCE_H

#include "base/text.h"

typedef struct rnl_embedded_file {
    const char *name, *data; /* data is NUL-terminated */
    size_t size_bytes;
} rnl_embedded_file;
extern const rnl_embedded_file rnl_embedded_files[]; /* ends with a NULL name */

/*
 * The text of `file` with each #include "x.clh" replaced by that file's text, once, between #line directives, so that
 * compiler messages name our files. RUNNEL_KERNEL_DIR in the environment reads files from that folder instead of the
 * embedded ones.
 */
RNL_API RNL_NODISCARD rnl_status rnl_source_get(const char *file, rnl_text *out_text);
/*
 * The same behind declarations of the functions that our files call (clkernels/builtins.clh), for a compiler that is
 * not to read its own.
 */
RNL_NODISCARD rnl_status rnl_source_get_declared(const char *file, rnl_text *out_text);

#endif
