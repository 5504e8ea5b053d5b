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

/*
 * Sums of products of bytes by clkernels/fip.clh are more than 1.1 times as fast as plain ones of vpmaddwd: on
 * processors with one unit for it (Zen 1 at 1.3 times). The device runs vpmaddwd on 8 lanes. Measured likewise, some 5
 * ms.
 */
RNL_API bool rnl_device_gains_by_fip(rnl_device *device);

/*
 * Sums of products of float32 by clkernels/fip_floats.clh are more than 1.2 times as fast as plain ones: on processors
 * of 16 lanes and bfloat16 that add in units beside those that multiply (Zen 5 at 1.5 times). Measured likewise, some
 * 10 ms.
 */
RNL_API bool rnl_device_gains_by_float_fip(const rnl_device *device);

typedef enum rnl_rate { RNL_RATE_F32, RNL_RATE_BF16, RNL_RATE_INNER, RNL_RATE_MADD, RNL_RATE_FIP } rnl_rate;

/* Multiply-adds a second of one thread, of each by clkernels/rate.cl, in turns. The device has the instructions. */
RNL_API RNL_NODISCARD rnl_status rnl_rate_measure(rnl_device *device, rnl_rate first, rnl_rate second,
                                                  double out_rates[2]);

#endif
