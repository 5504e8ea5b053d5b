/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_DEVICE_BUFFER_H
#define RUNNEL_DEVICE_BUFFER_H

#include "device/stream.h"

struct rnl_pool_block;

struct rnl_buffer {
    atomic_uint references;
    rnl_device *device; /* retained */
    struct rnl_pool_block *block; /* NULL: `memory` is a caller's, and one reference to it is this buffer's */
    cl_mem memory;
    void *host; /* pinned only */
    size_t size_bytes;
    rnl_memory kind;
};

/*
 * Pinned memory is mapped for its whole life, and what holds is its host side. On a CPU device that is also what
 * commands use. A GPU has a copy of its own behind it, which NVIDIA's driver updates only when a buffer is unmapped:
 * there, push copies the host side to the device's before a command reads it, and pull copies back what one wrote.
 * Both are enqueued, and do nothing for other buffers.
 */
RNL_API RNL_NODISCARD rnl_status rnl_buffer_push(rnl_stream *stream, const rnl_buffer *buffer, size_t offset_bytes,
                                                 size_t size_bytes);
RNL_API RNL_NODISCARD rnl_status rnl_buffer_pull(rnl_stream *stream, const rnl_buffer *buffer, size_t offset_bytes,
                                                 size_t size_bytes);

/*
 * The memory of a device whose buffers map in place, for the host to write all of anew. Commands may use the buffer
 * once it is unmapped, which is enqueued; it is unmapped even where that fails.
 */
RNL_API RNL_NODISCARD rnl_status rnl_buffer_map(rnl_stream *stream, rnl_buffer *buffer, void **out_host);
RNL_API RNL_NODISCARD rnl_status rnl_buffer_unmap(rnl_stream *stream, rnl_buffer *buffer, void *host);

#endif
