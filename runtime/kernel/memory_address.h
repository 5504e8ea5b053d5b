/* SPDX-License-Identifier: Apache-2.0 */
/* Where memory objects of a CPU lie in the process's memory, for what calls kernels without the driver. */
#ifndef RUNNEL_KERNEL_MEMORY_ADDRESS_H
#define RUNNEL_KERNEL_MEMORY_ADDRESS_H

#include "device/device.h"

/*
 * A caller's memory lies where it says. Else the first time by a native kernel on the queue, of pocl, which is waited
 * for; then from a table that forgets a memory object when the driver destroys it. Any thread. NULL where it cannot be
 * found.
 */
RNL_API void *rnl_memory_address(cl_command_queue queue, cl_mem memory);

#endif
