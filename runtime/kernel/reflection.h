/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels of a program take, as text: a line "kernel NAME", then one for each argument: space, qualifiers,
 * type and name with tabs between. Drivers know it of a program that they compile, not all of one that is loaded: so it
 * is kept beside the binary.
 */
#ifndef RUNNEL_KERNEL_REFLECTION_H
#define RUNNEL_KERNEL_REFLECTION_H

#include "base/text.h"
#include "device/device.h"
#include <runnel/kernel.h>

/* Asks the driver; an empty text where it does not tell. Fails for want of memory alone. */
RNL_NODISCARD rnl_status rnl_reflection_get(const rnl_device *device, cl_program program, rnl_text *out_text);
/* The names of a program's kernels, "a, b"; "" where the driver does not tell. */
RNL_NODISCARD rnl_status rnl_reflection_names(cl_program program, rnl_text *out_names);

/* A kernel's arguments. */
typedef struct rnl_reflected {
    char *text; /* which the items' names and types lie in; NULL when nothing is known */
    rnl_kernel_arg_info *items;
} rnl_reflected;
/* Empty when `text` has not `arg_count` arguments for this kernel. */
RNL_NODISCARD rnl_status rnl_reflection_find(const char *text, const char *kernel, uint32_t arg_count,
                                             rnl_reflected *out_reflected);
void rnl_reflected_free(rnl_reflected *reflected);

/* Bytes of a value of this type ("float4"), 0 when it is not one that the language has. */
size_t rnl_reflection_type_bytes(const char *type);

#endif
