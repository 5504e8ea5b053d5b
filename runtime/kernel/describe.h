/* SPDX-License-Identifier: Apache-2.0 */
/* What a launch was, for messages and for RUNNEL_VERBOSE=run. */
#ifndef RUNNEL_KERNEL_DESCRIBE_H
#define RUNNEL_KERNEL_DESCRIBE_H

#include "base/text.h"
#include "kernel/kernel.h"

/* "512x4 work-items in groups of 64x1" */
void rnl_describe_range(rnl_text *text, const rnl_range *range);
/* "; 0: 1024 bytes labelled 'x'" */
void rnl_describe_buffer(rnl_text *text, uint32_t index, const rnl_buffer *buffer);
/* Of a type of OpenCL C ("float4"), or "" where that is not known: then as integers, and as floats what looks like
 * them.
 */
void rnl_describe_value(rnl_text *text, uint32_t index, const char *type, const void *value, size_t size_bytes);

/* A caller's launch: its range and arguments. */
void rnl_describe_launch(rnl_text *text, const rnl_kernel *kernel, const rnl_range *range, const rnl_arg *args,
                         size_t arg_count);

#endif
