/* SPDX-License-Identifier: Apache-2.0 */
/* How pageable memory travels, and doing it through pinned memory. */
#ifndef RUNNEL_DEVICE_WAY_H
#define RUNNEL_DEVICE_WAY_H

#include "device/buffer.h"
#include <runnel/memory.h>

/* The largest size of each class; those past the last are the last's. */
size_t rnl_copy_class_bytes(size_t index);

/*
 * Asks the device's tuning table for what is measured, once a device. It is ops/copy_way.c's, since the table is: this
 * layer only says when.
 */
void rnl_copy_ways_load(rnl_device *device);

/*
 * False for a device in the host's own memory: what a copy by two steps takes there, it takes from everybody, whatever
 * a measurement says.
 */
RNL_API bool rnl_copy_ways_differ(const rnl_device *device);

/* RNL_COPY_DIRECT for memory that is pinned, and where staging is not for this device or size. */
rnl_copy_way rnl_copy_way_for(rnl_device *device, rnl_copy_direction direction, const void *host, size_t size_bytes);

/* Device memory without a host's side. They do not block; see rnl_stream_write. */
RNL_API RNL_NODISCARD rnl_status rnl_stage_write(rnl_stream *stream, rnl_buffer *dst, size_t dst_offset,
                                                 const void *src, size_t size_bytes, rnl_copy_way way);
RNL_API RNL_NODISCARD rnl_status rnl_stage_read(rnl_stream *stream, void *dst, rnl_buffer *src, size_t src_offset,
                                                size_t size_bytes, rnl_copy_way way);

#endif
