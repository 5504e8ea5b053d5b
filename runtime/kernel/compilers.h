/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other processes that compile for this one. pocl compiles one kernel at a time in a process, whatever the threads, but
 * finds on disk what any process has compiled: so a first start takes as many times less as there are processors, of
 * which each gets a process (compile_worker, in the folder runnel-rt beside this library or program). Where that is not
 * there, dies or hangs, all is compiled by this process, as if nobody had tried.
 */
#ifndef RUNNEL_KERNEL_COMPILERS_H
#define RUNNEL_KERNEL_COMPILERS_H

#include "base/text.h"
#include "kernel/compile_message.h"
#include "kernel/program.h"

/* A program and what is launched of it, which makes drivers compile. */
typedef struct rnl_compile_job {
    rnl_program *program;
    rnl_text kernels;
    uint64_t kernel_count;
} rnl_compile_job;

/* A kernel: its range, of which one group is launched, from `first` on; then as many arguments, in their order. */
void rnl_compile_job_add(rnl_compile_job *job, const char *kernel, const rnl_range *range, size_t first,
                         uint32_t arg_count);
void rnl_compile_job_add_value(rnl_compile_job *job, const void *bytes, size_t size_bytes);
void rnl_compile_job_add_buffer(rnl_compile_job *job, rnl_compile_arg kind);

/* The program is on the driver's disk now. An error ends it all. */
typedef rnl_status (*rnl_compiled_fn)(void *user, rnl_program *program);

/*
 * Calls `compiled` in this thread for each job that a process has done, in no order; the rest is left to the caller,
 * all of it for less than three programs or two processors, and with RUNNEL_COMPILERS=off. `buffer_bytes`: of the
 * largest buffer that a kernel takes. One caller in a process at a time: others return at once.
 */
RNL_NODISCARD rnl_status rnl_compilers_run(rnl_device *device, const rnl_compile_job *jobs, size_t count,
                                           uint64_t buffer_bytes, rnl_compiled_fn compiled, void *user);

/* For tests: what to start instead, NULL: compile_worker; and how long a process may take for a program. */
extern RNL_API const char *rnl_compile_worker;
extern RNL_API int rnl_compile_patience_ms;

#endif
