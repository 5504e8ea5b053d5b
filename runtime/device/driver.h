/* SPDX-License-Identifier: Apache-2.0 */
/* What drivers need from the process around them. */
#ifndef RUNNEL_DEVICE_DRIVER_H
#define RUNNEL_DEVICE_DRIVER_H

#include <runnel/rt.h>

/*
 * Called before the first OpenCL call of the process; later calls do nothing. pocl refuses to make a context, or
 * aborts, where it can have no cache folder: when it would find none, POCL_CACHE_DIR is set to a private one. Where
 * fewer processors are left to this process than there are, POCL_MAX_PTHREAD_COUNT says how many, unless it is set.
 */
void rnl_driver_prepare(void);
/* False before the first OpenCL call that this library makes. */
bool rnl_driver_is_prepared(void);
#define RNL_POCL_THREADS "POCL_MAX_PTHREAD_COUNT"
/* pocl runs `ld` at a kernel's first launch, and aborts without it. */
RNL_NODISCARD rnl_status rnl_driver_check_linker(void);

#endif
