/* SPDX-License-Identifier: Apache-2.0 */
/* A caller's source made ready to be compiled: one text that holds its defines and includes. */
#ifndef RUNNEL_KERNEL_USER_SOURCE_H
#define RUNNEL_KERNEL_USER_SOURCE_H

#include "base/text.h"
#include <runnel/kernel.h>

typedef struct rnl_user_source {
    rnl_text text;  /* with #line directives: compilers name the caller's files and lines */
    rnl_text title; /* "blur.cl -DTILE=4 -cl-mad-enable": for messages */
    bool untracked; /* it includes a file that was not found here: what the compiler takes is not known */
} rnl_user_source;

/* One of `source` and `path` is NULL. `options` is complete. */
RNL_NODISCARD rnl_status rnl_user_source_make(const char *source, const char *path, const rnl_kernel_options *options,
                                              rnl_user_source *out_source);
void rnl_user_source_free(rnl_user_source *source);

#endif
