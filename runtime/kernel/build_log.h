/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiler says, in terms of the files that people wrote. */
#ifndef RUNNEL_KERNEL_BUILD_LOG_H
#define RUNNEL_KERNEL_BUILD_LOG_H

#include "base/text.h"
#include "device/device.h"

/* The compiler's log, "" when it has none, for a program of `source`: places in the whole text that a driver was given
 * become files and lines, by the text's #line directives, which not every driver follows. */
RNL_NODISCARD rnl_status rnl_build_log_get(const rnl_device *device, cl_program program, const char *source,
                                           rnl_text *out_log);
/* The same for a log that is there: as it came from a driver. */
RNL_NODISCARD rnl_status rnl_build_log_translate(const char *log, const char *source, rnl_text *out_log);

/* The failure of a build, with the log's first errors where it is too long for a message. */
rnl_status rnl_build_log_fail(const rnl_device *device, cl_int code, const char *options, const char *log);

#endif
