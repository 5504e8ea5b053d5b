/* SPDX-License-Identifier: Apache-2.0 */
/* What the user sees on stderr while waiting: compiling, warnings, and with --verbose the library's log. */
#ifndef RUNNEL_CLI_PROGRESS_H
#define RUNNEL_CLI_PROGRESS_H

#include "cli.h"

/* Sends the library's warnings, or with `verbose` everything down to RNL_LOG_INFO, to stderr. */
void rnl_console_open(bool verbose);
/* For rnl_model_options.progress: "compiling 7 of 23: conv.cl". Silent for what comes from the cache. */
void rnl_console_progress(void *user, const rnl_progress *progress);
/* A bar: "calibrating 7 of 23"; elsewhere than on a terminal a line every two seconds. */
void rnl_console_step(const char *what, size_t done, size_t total);
/* Wipes the progress line, if one stands. */
void rnl_console_clear(void);

#endif
