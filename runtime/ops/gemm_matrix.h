/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm:matrix, products with the matrix instructions of AMD's, Intel's and NVIDIA's GPUs. Whether a device has one is
 * found by running it: a name or an extension only says where that is worth trying.
 */
#ifndef RUNNEL_OPS_GEMM_MATRIX_H
#define RUNNEL_OPS_GEMM_MATRIX_H

#include "ops/gemm_problem.h"

/* As in clkernels/matrix.clh; MMA: mma.clh; WGMMA: wgmma.clh, for gemm:wgmma, and there is MMA, too. */
enum {
    RNL_MATRIX_NONE = -1,
    RNL_MATRIX_UNKNOWN,
    RNL_MATRIX_MFMA,
    RNL_MATRIX_DPAS8,
    RNL_MATRIX_DPAS16,
    RNL_MATRIX_MMA,
    RNL_MATRIX_WGMMA
};
#define RNL_MATRIX_MODEL 0x100 /* with one of them: what it does, in plain C, on any device; for tests */

/* Finds the device's instruction at its first call, and keeps it in device->matrix_instruction. Any thread. */
void rnl_matrix_find(rnl_device *device);
RNL_NODISCARD rnl_status rnl_gemm_matrix_append_with(int instruction, rnl_step_list *list, const char *name,
                                                     const rnl_gemm_problem *problem);
/* A small product with this instruction is right on the device. */
bool rnl_matrix_works(rnl_device *device, int instruction);

#endif
