/* SPDX-License-Identifier: Apache-2.0 */
/* CLBlast's tuning parameters: a few sets of our own beside those that it brings for a device. */
#ifndef RUNNEL_OPS_GEMM_CLBLAST_H
#define RUNNEL_OPS_GEMM_CLBLAST_H

#include "device/device.h"

/* Its kernel for large products, and the one that reads matrices as they are. */
typedef enum rnl_clblast_kernel { RNL_CLBLAST_XGEMM, RNL_CLBLAST_DIRECT, RNL_CLBLAST_KERNELS } rnl_clblast_kernel;

/* Sets of a kernel; number 0 is CLBlast's own. */
uint32_t rnl_clblast_sets(rnl_clblast_kernel kernel);
/* As noted in the device's tuning table; 0 when nothing is. */
uint32_t rnl_clblast_noted(rnl_device *device, rnl_clblast_kernel kernel);
RNL_NODISCARD rnl_status rnl_clblast_note(rnl_device *device, rnl_clblast_kernel kernel, uint32_t set);
/* From now on products on this device use these sets. Compiles at the next product. */
RNL_NODISCARD rnl_status rnl_clblast_use(rnl_device *device, const uint32_t sets[RNL_CLBLAST_KERNELS]);

/* For CLBlast's one caller, with its lock held. */
RNL_NODISCARD rnl_status rnl_clblast_override(rnl_device *device, const uint32_t sets[RNL_CLBLAST_KERNELS]);

#endif
