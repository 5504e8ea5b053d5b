/* SPDX-License-Identifier: Apache-2.0 */
/* RUNNEL_VERBOSE: what happens, as lines of CSV on the standard error. See docs/debugging.md for the columns. */
#ifndef RUNNEL_BASE_VERBOSE_H
#define RUNNEL_BASE_VERBOSE_H

#include <runnel/rt.h>

typedef enum rnl_verbose_kind {
    RNL_VERBOSE_ERROR = 1,    /* a failure, where it arises */
    RNL_VERBOSE_DISPATCH = 2, /* which implementation a step of a plan has */
    RNL_VERBOSE_BUILD = 4,    /* a program that is compiled or loaded */
    RNL_VERBOSE_RUN = 8       /* a launch or a copy, which is waited for */
} rnl_verbose_kind;

/* Asked for: a branch where nothing is. The variable is read once a process. */
RNL_API bool rnl_verbose_is_on(rnl_verbose_kind kind);

/* One line. NULL and "" are empty columns, and so is a time below 0. */
typedef struct rnl_verbose_event {
    rnl_verbose_kind kind;
    const char *device, *subject, *program, *detail;
    double ms;
} rnl_verbose_event;
RNL_API void rnl_verbose_write(const rnl_verbose_event *event);

#endif
