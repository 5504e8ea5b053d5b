/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tuning table: which of a family's variants was measured to be the fastest for a problem on a device. A family
 * with a choice asks here first and goes by its own estimate when there is no answer. The table is one file in the
 * cache folder, read when it is first asked for; a file that is corrupt, cut off or of another device, driver or
 * version counts as absent. It holds numbers of variants and nothing else: the worst that a wrong one does is a
 * slower kernel.
 */
#ifndef RUNNEL_OPS_TUNING_H
#define RUNNEL_OPS_TUNING_H

#include "base/hash.h"
#include "device/device.h"

#define RNL_TUNING_NONE UINT32_MAX

/* The variant noted (or forced) for `problem`, below `variants`, or RNL_TUNING_NONE. Any thread. */
RNL_API uint32_t rnl_tuning_get(rnl_device *device, rnl_hash problem, uint32_t variants);
/* The same without what is forced: for numbers that are no variants. */
RNL_API uint32_t rnl_tuning_get_noted(rnl_device *device, rnl_hash problem, uint32_t variants);
/* From here on every problem that has such a variant gets it, to be measured; RNL_TUNING_NONE ends that. */
RNL_API RNL_NODISCARD rnl_status rnl_tuning_force(rnl_device *device, uint32_t variant);
/* Notes a variant for this process. */
RNL_API RNL_NODISCARD rnl_status rnl_tuning_set(rnl_device *device, rnl_hash problem, uint32_t variant);
/* Writes the table. A failure is one warning in the log, as for compiled programs. */
RNL_API void rnl_tuning_save(rnl_device *device);

#endif
