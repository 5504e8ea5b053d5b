/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of CPU devices: sub-devices with fewer compute units. */
#ifndef RUNNEL_DEVICE_PART_H
#define RUNNEL_DEVICE_PART_H

#include "device/cl_status.h"
#include <stdint.h>

/*
 * The part of a device with that many compute units, which clReleaseDevice gives back. RNL_UNIMPLEMENTED or what the
 * driver says where it cannot be had.
 */
RNL_NODISCARD rnl_status rnl_part_take(cl_device_id parent, uint32_t compute_units, cl_device_id *out_part);

#endif
