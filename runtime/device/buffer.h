/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_DEVICE_BUFFER_H
#define RUNNEL_DEVICE_BUFFER_H

#include "device/stream.h"

struct rnl_pool_block;
struct rnl_guard;

struct rnl_buffer {
    atomic_uint references;
    rnl_device *device;           /* retained */
    struct rnl_pool_block *block; /* NULL: `memory` is a caller's, and one reference to it is this buffer's */
    cl_mem memory;
    void *host; /* pinned or wrapped only */
    size_t size_bytes;
    rnl_memory kind;
    void (*give_back)(rnl_buffer *buffer); /* releases its memory; NULL: as `block` says */
    bool gives_back_in_order;              /* give_back looks at released_after */
    rnl_stream *released_after;            /* whose commands may still use the buffer; NULL: nothing does */
    bool is_wrapped;                       /* the caller's memory: it has one side */
    void *pageable;                        /* ours, where pinned memory was not to be had */
    struct rnl_side_queue *map_queue;      /* which mapped that */
    rnl_buffer *next_pinned, *previous_pinned;
    atomic_bool is_mapped;   /* rnl_stream_map */
    void *mapped;            /* by the driver: NULL where nothing had to be */
    struct rnl_guard *guard; /* guard.h; NULL: there is none */
    cl_event last_use;       /* of who released it in a stream's order before its last holder; NULL: nobody */
};

/* True when the host has the memory that holds, and the device a copy of it. */
static inline bool rnl_buffer_has_two_sides(const rnl_buffer *buffer)
{
    return buffer->host && !buffer->is_wrapped && !buffer->device->maps_in_place;
}

/* The part lies in a buffer of the stream's device. */
RNL_NODISCARD rnl_status rnl_buffer_check_part(const rnl_stream *stream, const rnl_buffer *buffer, size_t offset_bytes,
                                               size_t size_bytes);
/* For a buffer that is released while it is mapped. */
void rnl_buffer_end_map(rnl_buffer *buffer);

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
