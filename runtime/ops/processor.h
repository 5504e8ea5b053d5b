/* SPDX-License-Identifier: Apache-2.0 */
/* What cost models tell processors apart by: this machine's, whatever the device. */
#ifndef RUNNEL_OPS_PROCESSOR_H
#define RUNNEL_OPS_PROCESSOR_H

#include <stdbool.h>

/* The core does two multiply-adds of 16 floats a cycle, as told by its first cache: 48 KiB, where others have 32. */
bool rnl_processor_is_swift(void);
/* The processor takes a register of 8 floats in two halves: AMD's before Zen 2, whose first cache of instructions is
 * larger. */
bool rnl_processor_multiplies_halves(void);

#endif
