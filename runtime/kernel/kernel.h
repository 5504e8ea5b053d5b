/* SPDX-License-Identifier: Apache-2.0 */
/* A caller's kernel, its arguments and launches, for the files of this folder. */
#ifndef RUNNEL_KERNEL_KERNEL_H
#define RUNNEL_KERNEL_KERNEL_H

#include "device/buffer.h"
#include "kernel/launch.h"
#include "kernel/program.h"
#include "kernel/reflection.h"

struct rnl_kernel {
    atomic_uint references;
    rnl_device *device; /* retained: it holds the program */
    rnl_program *program;
    cl_kernel kernel;
    cl_uint arg_count;
    char *name, *build_log;
    rnl_reflected args; /* items is NULL when the driver does not tell */
    size_t *arg_bytes;  /* of each argument that is a value of a known type, else 0 */
    size_t required[3]; /* work-items of a group; 0: any */
    /* The last range and local memory that were checked: most launches repeat them. */
    rnl_range checked;
    size_t checked_local_bytes;
    size_t static_local_bytes;
};

/* Asks the driver and the program what the kernel takes. */
RNL_NODISCARD rnl_status rnl_kernel_describe(rnl_kernel *kernel);

/* The message says which argument, by its name where that is known. */
RNL_API RNL_NODISCARD rnl_status rnl_kernel_check_arg(const rnl_kernel *kernel, uint32_t index, const rnl_arg *arg);
/* Sets an argument of `object`, which is `kernel`'s or another of the same kernel. It has been checked. */
RNL_NODISCARD rnl_status rnl_kernel_set_arg(const rnl_kernel *kernel, cl_kernel object, uint32_t index,
                                            const rnl_arg *arg);
/* Local memory that arguments ask for. */
RNL_NODISCARD rnl_status rnl_kernel_local_bytes(const rnl_kernel *kernel, const rnl_arg *args, size_t arg_count,
                                                size_t *out_bytes);
/* The range and local memory against the device, and the kernel's own demands. */
RNL_NODISCARD rnl_status rnl_kernel_check_range(const rnl_kernel *kernel, cl_kernel object, const rnl_range *range,
                                                size_t local_bytes);

#endif
