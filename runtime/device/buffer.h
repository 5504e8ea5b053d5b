/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_DEVICE_BUFFER_H
#define RUNNEL_DEVICE_BUFFER_H

#include "device/device.h"

struct rnl_pool_block;

struct rnl_buffer {
    atomic_uint references;
    rnl_device *device;           /* retained */
    rnl_buffer *parent;           /* of a sub-buffer; retained */
    struct rnl_pool_block *block; /* NULL for a sub-buffer or a wrapped host pointer */
    cl_mem memory;
    void *host; /* pinned only */
    size_t size_bytes;
    rnl_memory kind;
};

/* A view of a part of `parent`; offset_bytes is a multiple of base_align_bytes. */
RNL_API RNL_NODISCARD rnl_status rnl_buffer_create_sub(rnl_buffer *parent, size_t offset_bytes, size_t size_bytes,
                                                       rnl_buffer **out_buffer);

#endif
