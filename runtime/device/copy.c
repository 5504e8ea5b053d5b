/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills: checked here, because drivers differ in what they notice. */
#include "device/buffer.h"
#include "device/trace.h"
#include "device/traffic.h"
#include "device/watch.h"
#include "device/way.h"
#include <stdio.h>

/* The driver's answer to an enqueue: a failure leaves a hole in the stream, so it is the stream's. */
#define ENQUEUE(stream, call) rnl_stream_fail((stream), rnl_stream_end((stream), CL(call)))

/* Where the stream is watched: the end of a copy, and the line or the message that says what it was. */
static rnl_status end_copy(rnl_watch *watch, rnl_status status, const char *kind, const rnl_buffer *buffer,
                           size_t offset, size_t size)
{
    char text[128];
    if (!watch->is_on)
        return status;
    status = rnl_watch_end(watch, status);
    snprintf(text, sizeof text, "%zu bytes at %zu of a buffer of %zu", size, offset, buffer->size_bytes);
    rnl_watch_tell(watch, kind, "", text);
    return status == RNL_OK ? status : rnl_stream_fail(watch->stream, rnl_error_add(status, "%s: %s", kind, text));
}

rnl_status rnl_buffer_check_part(const rnl_stream *stream, const rnl_buffer *buffer, size_t offset, size_t size)
{
    if (!buffer)
        return FAIL(RNL_INVALID_ARGUMENT, "a copy needs a buffer, and there is none");
    if (buffer->device != stream->device)
        return FAIL(RNL_INVALID_ARGUMENT, "a buffer of %s was given to a stream of %s, which is another device",
                    buffer->device->info.name, stream->device->info.name);
    if (offset > buffer->size_bytes || size > buffer->size_bytes - offset)
        return FAIL(RNL_INVALID_ARGUMENT, "%zu bytes from %zu do not lie in a buffer of %zu bytes", size, offset,
                    buffer->size_bytes);
    return RNL_OK;
}

static rnl_status put(rnl_stream *stream, const rnl_buffer *dst, size_t offset, const void *src, size_t size)
{
    rnl_traffic_add(&stream->device->traffic.to_device, size);
    rnl_watch watch;
    rnl_watch_begin(&watch, stream);
    const rnl_status status =
        ENQUEUE(stream, clEnqueueWriteBuffer(stream->queue, dst->memory, CL_FALSE, offset, size, src, 0, NULL,
                                             rnl_stream_begin(stream, RNL_TRACE_WRITE, size)));
    return end_copy(&watch, status, "write", dst, offset, size);
}

static rnl_status take(rnl_stream *stream, void *dst, const rnl_buffer *src, size_t offset, size_t size)
{
    rnl_traffic_add(&stream->device->traffic.to_host, size);
    rnl_watch watch;
    rnl_watch_begin(&watch, stream);
    const rnl_status status =
        ENQUEUE(stream, clEnqueueReadBuffer(stream->queue, src->memory, CL_FALSE, offset, size, dst, 0, NULL,
                                            rnl_stream_begin(stream, RNL_TRACE_READ, size)));
    return end_copy(&watch, status, "read", src, offset, size);
}

static char *host_at(const rnl_buffer *buffer, size_t offset)
{
    return (char *)buffer->host + offset;
}

/* From a buffer's host side. NVIDIA's driver reads pageable memory as soon as a copy of it is enqueued: what an earlier
 * command writes there has to be there by then. */
static rnl_status put_host_side(rnl_stream *stream, const rnl_buffer *dst, size_t dst_offset, const rnl_buffer *src,
                                size_t src_offset, size_t size)
{
    if (src->pageable)
        TRY(rnl_stream_synchronize(stream));
    return put(stream, dst, dst_offset, host_at(src, src_offset), size);
}

rnl_status rnl_buffer_push(rnl_stream *stream, const rnl_buffer *buffer, size_t offset_bytes, size_t size_bytes)
{
    if (!rnl_buffer_has_two_sides(buffer))
        return RNL_OK;
    rnl_stream_rejoin(stream);
    return put_host_side(stream, buffer, offset_bytes, buffer, offset_bytes, size_bytes);
}

rnl_status rnl_buffer_pull(rnl_stream *stream, const rnl_buffer *buffer, size_t offset_bytes, size_t size_bytes)
{
    if (!rnl_buffer_has_two_sides(buffer))
        return RNL_OK;
    rnl_stream_rejoin(stream);
    return take(stream, host_at(buffer, offset_bytes), buffer, offset_bytes, size_bytes);
}

rnl_status rnl_stream_write(rnl_stream *stream, rnl_buffer *dst, size_t dst_offset, const void *src, size_t size_bytes)
{
    TRY(rnl_buffer_check_part(stream, dst, dst_offset, size_bytes));
    TRY(rnl_stream_check(stream));
    if (size_bytes == 0)
        return RNL_OK;
    if (!src)
        return FAIL(RNL_INVALID_ARGUMENT, "a copy of %zu bytes needs host memory, and there is none", size_bytes);
    rnl_copy_way way = rnl_copy_way_for(stream->device, RNL_COPY_TO_DEVICE, src, size_bytes);
    if (way != RNL_COPY_DIRECT && !dst->host)
        return rnl_stage_write(stream, dst, dst_offset, src, size_bytes, way);
    TRY(put(stream, dst, dst_offset, src, size_bytes));
    return rnl_buffer_pull(stream, dst, dst_offset, size_bytes);
}

rnl_status rnl_stream_read(rnl_stream *stream, void *dst, rnl_buffer *src, size_t src_offset, size_t size_bytes)
{
    TRY(rnl_buffer_check_part(stream, src, src_offset, size_bytes));
    TRY(rnl_stream_check(stream));
    if (size_bytes == 0)
        return RNL_OK;
    if (!dst)
        return FAIL(RNL_INVALID_ARGUMENT, "a copy of %zu bytes needs host memory, and there is none", size_bytes);
    rnl_copy_way way = rnl_copy_way_for(stream->device, RNL_COPY_TO_HOST, dst, size_bytes);
    if (way != RNL_COPY_DIRECT && !src->host)
        return rnl_stage_read(stream, dst, src, src_offset, size_bytes, way);
    TRY(rnl_buffer_push(stream, src, src_offset, size_bytes));
    return take(stream, dst, src, src_offset, size_bytes);
}

/* Pinned memory is the host's, also where commands use it as they do any other. */
static rnl_status copy_on_device(rnl_stream *stream, const rnl_buffer *dst, size_t dst_offset, const rnl_buffer *src,
                                 size_t src_offset, size_t size)
{
    rnl_traffic *traffic = &stream->device->traffic;
    rnl_traffic_add(src->host && !dst->host   ? &traffic->to_device
                    : dst->host && !src->host ? &traffic->to_host
                                              : &traffic->on_device,
                    size);
    rnl_watch watch;
    rnl_watch_begin(&watch, stream);
    const rnl_status status =
        ENQUEUE(stream, clEnqueueCopyBuffer(stream->queue, src->memory, dst->memory, src_offset, dst_offset, size, 0,
                                            NULL, rnl_stream_begin(stream, RNL_TRACE_COPY, size)));
    return end_copy(&watch, status, "copy", dst, dst_offset, size);
}

rnl_status rnl_stream_copy(rnl_stream *stream, rnl_buffer *dst, size_t dst_offset, rnl_buffer *src, size_t src_offset,
                           size_t size_bytes)
{
    TRY(rnl_buffer_check_part(stream, dst, dst_offset, size_bytes));
    TRY(rnl_buffer_check_part(stream, src, src_offset, size_bytes));
    TRY(rnl_stream_check(stream));
    if (size_bytes == 0)
        return RNL_OK;
    size_t distance = dst_offset > src_offset ? dst_offset - src_offset : src_offset - dst_offset;
    if (dst->memory == src->memory && distance < size_bytes)
        return FAIL(RNL_INVALID_ARGUMENT, "a copy of %zu bytes from %zu to %zu of one buffer overlaps itself",
                    size_bytes, src_offset, dst_offset);
    if (rnl_buffer_has_two_sides(dst) && !rnl_buffer_has_two_sides(src))
        return take(stream, host_at(dst, dst_offset), src, src_offset, size_bytes);
    if (!rnl_buffer_has_two_sides(src))
        return copy_on_device(stream, dst, dst_offset, src, src_offset, size_bytes);
    TRY(put_host_side(stream, dst, dst_offset, src, src_offset, size_bytes));
    return rnl_buffer_pull(stream, dst, dst_offset, size_bytes);
}

rnl_status rnl_stream_fill(rnl_stream *stream, rnl_buffer *dst, size_t dst_offset, const void *pattern,
                           size_t pattern_bytes, size_t size_bytes)
{
    TRY(rnl_buffer_check_part(stream, dst, dst_offset, size_bytes));
    TRY(rnl_stream_check(stream));
    if (!pattern || pattern_bytes == 0 || pattern_bytes > 16 || (pattern_bytes & (pattern_bytes - 1)) != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "a pattern to fill with has 1, 2, 4, 8 or 16 bytes, not %zu", pattern_bytes);
    if (dst_offset % pattern_bytes != 0 || size_bytes % pattern_bytes != 0)
        return FAIL(RNL_INVALID_ARGUMENT, "%zu bytes from %zu cannot be filled with a pattern of %zu bytes", size_bytes,
                    dst_offset, pattern_bytes);
    if (size_bytes == 0)
        return RNL_OK;
    rnl_watch watch;
    rnl_watch_begin(&watch, stream);
    const rnl_status status =
        ENQUEUE(stream, clEnqueueFillBuffer(stream->queue, dst->memory, pattern, pattern_bytes, dst_offset, size_bytes,
                                            0, NULL, rnl_stream_begin(stream, RNL_TRACE_FILL, size_bytes)));
    TRY(end_copy(&watch, status, "fill", dst, dst_offset, size_bytes));
    return rnl_buffer_pull(stream, dst, dst_offset, size_bytes);
}
