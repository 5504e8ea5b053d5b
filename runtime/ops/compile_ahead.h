/* SPDX-License-Identifier: Apache-2.0 */
/* A list's programs and the kernels of its steps, compiled before the first run by several processes at a time. */
#ifndef RUNNEL_OPS_COMPILE_AHEAD_H
#define RUNNEL_OPS_COMPILE_AHEAD_H

#include "kernel/compilers.h"
#include "ops/op.h"

/*
 * Whether this looks like the very first start: then all is compiled by processes from the beginning, the team's
 * program (kernel/team.h) too, so that nobody should ask for the team before.
 */
RNL_API bool rnl_compile_is_first(const rnl_step_list *list, rnl_program *const *programs, size_t count);

/*
 * On pocl; elsewhere it does nothing. Calls `compiled`, which builds, for `programs` in their order up to the first
 * that is on no disk, and then for those that other processes have compiled. The rest is left to the caller, all of it
 * where that is not worth it: compilers.h. `buffer_bytes`: at least what any slot has.
 */
RNL_API RNL_NODISCARD rnl_status rnl_compile_ahead(const rnl_step_list *list, rnl_program *const *programs,
                                                   size_t count, uint64_t buffer_bytes, rnl_compiled_fn compiled,
                                                   void *user);

#endif
