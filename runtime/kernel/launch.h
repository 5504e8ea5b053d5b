/* SPDX-License-Identifier: Apache-2.0 */
/* What is checked before a kernel is enqueued, in one place. */
#ifndef RUNNEL_KERNEL_LAUNCH_H
#define RUNNEL_KERNEL_LAUNCH_H

#include "device/stream.h"

/*
 * Checks a range and local memory against the device and this kernel: some drivers abort past the limit instead of
 * answering. Costs a driver call: do it once a kernel and local size, not once a launch. Drivers count local arguments
 * that are set as static: ask rnl_kernel_static_local once, before a kernel's first argument.
 */
RNL_API RNL_NODISCARD rnl_status rnl_kernel_check(rnl_device *device, cl_kernel kernel, const rnl_range *range,
                                                  size_t static_local_bytes, size_t dynamic_local_bytes);
RNL_API RNL_NODISCARD rnl_status rnl_kernel_static_local(rnl_device *device, cl_kernel kernel, size_t *out_bytes);
/* The largest work-group this kernel allows on this device. */
RNL_API RNL_NODISCARD rnl_status rnl_kernel_max_group(rnl_device *device, cl_kernel kernel, size_t *out_work_items);
/* The only one, of a kernel that names it; else 0. */
RNL_API RNL_NODISCARD rnl_status rnl_kernel_fixed_group(rnl_device *device, cl_kernel kernel, size_t *out_work_items);
/* Enqueues with the arguments set before, from `first` on in the first dimension; failures become the stream's. */
RNL_API RNL_NODISCARD rnl_status rnl_kernel_enqueue(rnl_stream *stream, cl_kernel kernel, const rnl_range *range,
                                                    size_t first);

#endif
