/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's memory as a device's. */
#ifndef RUNNEL_DEVICE_WRAP_H
#define RUNNEL_DEVICE_WRAP_H

#include "device/buffer.h"

/*
 * True when this device's commands use wrapped memory where it is. Tried out once a device: a driver may take the
 * pointer and copy all the same. On a CPU device it also means that nothing has to be mapped for the host to look.
 */
RNL_API bool rnl_device_wraps(rnl_device *device);
/*
 * A memory object that is the caller's memory, on a device that wraps. Kernels need no more alignment than their widest
 * access has.
 */
RNL_API RNL_NODISCARD rnl_status rnl_wrap_memory(rnl_device *device, void *host, size_t size_bytes, cl_mem *out_memory);
RNL_API void rnl_unwrap_memory(cl_mem memory);

#endif
