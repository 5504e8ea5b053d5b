/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an instruction that a device runs is worth using there: how fast it is, measured. */
#ifndef RUNNEL_OPS_INSTRUCTION_RATE_H
#define RUNNEL_OPS_INSTRUCTION_RATE_H

#include "device/device.h"

/*
 * The device multiplies pairs of bfloat16, and does so at more than 1.25 times the rate of float32: AMD's Zen 4 and 5
 * at 2 times, Intel's Xeons of 2023 at half of it. Measured at the first call for a device, some 20 ms. Any thread.
 */
RNL_API bool rnl_device_gains_by_bf16(rnl_device *device);

/* Multiply-adds a second of one thread with vectors of 16, by this define of clkernels/rate.cl ("": float32). */
RNL_API RNL_NODISCARD rnl_status rnl_rate_measure(rnl_device *device, const char *define, double *out_rate);

#endif
