/* SPDX-License-Identifier: Apache-2.0 */
/* Pinned memory: its limit, its place, and what stands in for it. */
#ifndef RUNNEL_DEVICE_PINNED_H
#define RUNNEL_DEVICE_PINNED_H

#include "device/buffer.h"
#include "device/pool.h"

/*
 * Memory for a buffer that has a device, a size and nothing else yet: sets `block`, `host` and `give_back`. Past the
 * limit, or where the driver refuses, `host` is pageable: past the pool's budget it fails like any memory.
 */
RNL_NODISCARD rnl_status rnl_pinned_take(rnl_buffer *buffer, const rnl_pool_request *request);

/* What all pinned buffers of the device together may be: an eighth of what the host has, unless an option says. */
uint64_t rnl_pinned_limit(rnl_device *device);

/* True when the whole part lies in a pinned buffer of this process. Any thread. */
RNL_API bool rnl_pinned_has(const void *memory, size_t size_bytes);

#endif
