/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a device that was chosen. */
#ifndef RUNNEL_DEVICE_OPEN_H
#define RUNNEL_DEVICE_OPEN_H

#include "device/enumerate.h"
#include "device/share.h"

/* In the caller's context, which is retained. Of the options, compute_units is 0 or what the device has. */
RNL_NODISCARD rnl_status rnl_device_open_in(cl_context context, const rnl_candidate *chosen,
                                            const rnl_device_options *options, rnl_device **out_device);

#define RNL_SPEC_BYTES 256

/* Checked; what is left out is as RNL_DEVICE_OPTIONS_INIT has it. `given` may be NULL. */
RNL_NODISCARD rnl_status rnl_device_copy_options(const rnl_device_options *given, rnl_device_options *out_options);

/* A share, the spec that named it, and whether a driver is asked for it whose threads can be bound. */
typedef struct rnl_share_wish {
    rnl_share share;
    const char *spec;
    bool binds;
} rnl_share_wish;

/*
 * Before the device has a context: a share, or so many of its compute units as the options ask for. A share is given
 * its part of the memory in the options where they limit none.
 */
RNL_NODISCARD rnl_status rnl_device_choose_part(rnl_device *device, const rnl_share_wish *wanted,
                                                rnl_device_options *options);

#endif
