/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of CPU devices: sub-devices with fewer compute units. */
#ifndef RUNNEL_DEVICE_PART_H
#define RUNNEL_DEVICE_PART_H

#include "device/cl_status.h"
#include <stdint.h>

/* A part with that many compute units, which clReleaseDevice gives back; what the driver says where there is none. */
RNL_NODISCARD rnl_status rnl_part_take(cl_device_id parent, uint32_t compute_units, cl_device_id *out_part);
/* Once it is in a context: where that does not hold the part, the process does, from now on. */
RNL_NODISCARD rnl_status rnl_part_keep(cl_device_id parent, uint32_t compute_units, cl_device_id part);

#endif
