/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm:bf16, products of bfloat16 by x86's vdpbf16ps on pocl. Internal to the family.
 *
 * The second factor's form: panels of 32 columns, one behind the other; each integer of a panel's rows holds two of k
 * of a column, the first in the lower half. Behind the last column and the last k are zeros.
 *
 * The instruction multiplies and adds in float32 as the other kernels do, but takes and gives numbers below the
 * smallest normal one (1.2e-38) as zeros.
 */
#ifndef RUNNEL_OPS_GEMM_BF16_H
#define RUNNEL_OPS_GEMM_BF16_H

#include "ops/gemm_pack.h"

/* This form is b's packed one: it is of bfloat16, and the device has the instruction. False as rnl_gemm_panels_of. */
bool rnl_gemm_bf16_panels_of(const rnl_device *device, const rnl_view *b, rnl_gemm_panels *out_panels);
rnl_status rnl_gemm_bf16_append_pack(rnl_step_list *list, const rnl_gemm_panels *panels, const rnl_view *b,
                                     const rnl_view *packed);

int64_t rnl_gemm_bf16_scratch(const rnl_device *device, const rnl_gemm_problem *problem);
bool rnl_gemm_bf16_applies(const rnl_device *device, const void *problem);
bool rnl_gemm_bf16_pays(const rnl_device *device, const void *problem);
rnl_status rnl_gemm_bf16_append(rnl_step_list *list, const char *name, const void *problem);

#endif
