/* SPDX-License-Identifier: Apache-2.0 */
/* What cost models tell processors apart by: this machine's, whatever the device. */
#ifndef RUNNEL_OPS_PROCESSOR_H
#define RUNNEL_OPS_PROCESSOR_H

#include "device/device.h"

/* The core does two multiply-adds of 16 floats a cycle, as told by its first cache: 48 KiB, where others have 32. */
bool rnl_processor_is_swift(void);
/* The processor takes a register of 8 floats in two halves: AMD's before Zen 2, whose first cache of instructions is
 * larger. */
bool rnl_processor_multiplies_halves(void);
/*
 * Additions of a register of 16 lanes have units beside those that multiply: AMD's have four and two, so that vpdpwssd
 * with two additions before it takes 1.5 times as long as alone (a Zen 5), Intel's two for both, and it takes 3 times.
 */
bool rnl_processor_adds_beside(const rnl_device *device);

#endif
