/* SPDX-License-Identifier: Apache-2.0 */
/* What cost models tell processors apart by: this machine's, whatever the device. */
#ifndef RUNNEL_OPS_PROCESSOR_H
#define RUNNEL_OPS_PROCESSOR_H

#include "device/device.h"

/* The core does two multiply-adds of 16 floats a cycle, as told by its first cache: 48 KiB, where others have 32; or as
 * RUNNEL_PROCESSOR says: swift, or anything else. */
bool rnl_processor_is_swift(void);
/* The processor takes a register of 8 floats in two halves: AMD's before Zen 2, whose first cache of instructions is
 * larger. */
bool rnl_processor_multiplies_halves(void);
/*
 * Additions of a register of 16 lanes have units beside those that multiply: AMD's have four and two, so that vpdpwssd
 * with two additions before it takes 1.5 times as long as alone (a Zen 5), Intel's two for both, and it takes 3 times.
 */
bool rnl_processor_adds_beside(const rnl_device *device);
/*
 * Sums that have no register are better moved than weights read for each product (conv_panel.cl's SUMS_MOVE): on a Xeon
 * of model 207, where weights have been asked for, 0.64 and 0.74 ms (1,024 channels to 256 of 14x14 pixels). Where they
 * are near it is 0.85 and 0.74, on a Zen 5 0.44 and 0.39.
 */
bool rnl_processor_prefers_moves(const rnl_device *device);

#endif
