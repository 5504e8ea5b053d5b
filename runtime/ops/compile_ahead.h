/* SPDX-License-Identifier: Apache-2.0 */
/* A list's programs and the kernels of its steps, compiled before the first run by several processes at a time. */
#ifndef RUNNEL_OPS_COMPILE_AHEAD_H
#define RUNNEL_OPS_COMPILE_AHEAD_H

#include "kernel/compilers.h"
#include "ops/op.h"

/*
 * Of `programs`, those that are on no disk yet; calls `compiled` for each that was compiled so, which builds it (that
 * is reading, then). Does nothing where that is not worth it: compilers.h. `buffer_bytes`: at least what any slot has.
 */
RNL_API RNL_NODISCARD rnl_status rnl_compile_ahead(const rnl_step_list *list, rnl_program *const *programs,
                                                   size_t count, uint64_t buffer_bytes, rnl_compiled_fn compiled,
                                                   void *user);

#endif
