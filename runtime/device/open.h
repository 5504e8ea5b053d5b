/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a device that was chosen. */
#ifndef RUNNEL_DEVICE_OPEN_H
#define RUNNEL_DEVICE_OPEN_H

#include "device/enumerate.h"

/* In the caller's context, which is retained. Of the options, compute_units is 0 or what the device has. */
RNL_NODISCARD rnl_status rnl_device_open_in(cl_context context, const rnl_candidate *chosen,
                                            const rnl_device_options *options, rnl_device **out_device);

#endif
