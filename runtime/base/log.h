/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_BASE_LOG_H
#define RUNNEL_BASE_LOG_H

#include <runnel/rt.h>

/* True when a line of this level would be seen: ask before formatting anything costly. */
RNL_API bool rnl_log_enabled(rnl_log_level level);
RNL_API void rnl_log(rnl_log_level level, const char *format, ...) RNL_PRINTF(2, 3);

#endif
