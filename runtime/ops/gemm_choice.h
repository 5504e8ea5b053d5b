/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the implementations a matrix product gets: the one that is named, that was measured, or that is estimated.
 */
#ifndef RUNNEL_OPS_GEMM_CHOICE_H
#define RUNNEL_OPS_GEMM_CHOICE_H

#include "ops/gemm_problem.h"
#include "ops/implementation.h"

/* Of one implementation. Number 0 is its own estimate, n its n-th variant. */
#define RNL_GEMM_VARIANTS 64

/* Sets problem->variant to go with what it returns. NULL: none applies. */
const rnl_implementation *rnl_gemm_choose(const rnl_implementation *implementations, size_t count,
                                          const rnl_gemm_params *params, rnl_device *device, rnl_gemm_problem *problem);

/* What a product's place in the tuning table depends on. */
rnl_hash rnl_gemm_problem_hash(const rnl_gemm_problem *problem);
/* The number under which "panel" and its n-th variant are noted there; RNL_TUNING_NONE for a name it does not know. */
uint32_t rnl_gemm_choice_number(const char *name, uint32_t variant);
/* Variants of an implementation on this device, beside its own estimate. */
uint32_t rnl_gemm_choice_variants(const rnl_device *device, const char *name);

#endif
