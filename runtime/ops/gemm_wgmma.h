/* SPDX-License-Identifier: Apache-2.0 */
/* gemm:wgmma, products with the matrix instruction of NVIDIA's GPUs of compute capability 9.0. */
#ifndef RUNNEL_OPS_GEMM_WGMMA_H
#define RUNNEL_OPS_GEMM_WGMMA_H

#include "ops/gemm_problem.h"

/* The floats of params.scratch that it needs with an instruction, for what the copy engine is told. */
int64_t rnl_gemm_wgmma_scratch(const rnl_device *device, int instruction, const rnl_gemm_problem *problem);
bool rnl_gemm_wgmma_applies(const rnl_device *device, const void *problem);
bool rnl_gemm_wgmma_pays(const rnl_device *device, const void *problem);
rnl_status rnl_gemm_wgmma_append(rnl_step_list *list, const char *name, const void *problem);
/* With RNL_MATRIX_WGMMA or its model, and the problem's scratch. */
RNL_NODISCARD rnl_status rnl_gemm_wgmma_append_with(int instruction, rnl_step_list *list, const char *name,
                                                    const rnl_gemm_problem *problem);

#endif
