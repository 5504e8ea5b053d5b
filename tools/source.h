/* SPDX-License-Identifier: Apache-2.0 */
/* One input tensor from its source. */
#ifndef RUNNEL_CLI_SOURCE_H
#define RUNNEL_CLI_SOURCE_H

#include "options.h"

/* "random", "random:SEED" or "zeros": anything else is a file. */
bool rnl_source_is_file(const char *source);
/*
 * Loads `source` for the input `info`. `wanted` is the model's shape with --shape put in (-1: free); its rank is
 * SIZE_MAX when neither gives one. Sets everything of *out_tensor; its data is freed by the caller.
 */
rnl_exit rnl_source_load(const char *source, const rnl_value_info *info, const rnl_picture_options *picture,
                         rnl_tensor *out_tensor);
/* True when the first bytes are those of a PNG or JPEG file. */
bool rnl_source_is_picture(const char *source);

#endif
