/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between two devices: a context does not see another's buffers, but both see the same host memory. */
#include "base/clock.h"
#include "base/memory.h"
#include "device/buffer.h"
#include "device/mover.h"
#include "device/side_queue.h"
#include "device/trace.h"
#include "device/traffic.h"
#include <runnel/memory.h>
#include <string.h>

#define SLOTS 6
#define LEAD 3 /* reads that run ahead of the writes; the other slots are being written */
#define LEAST_PIECE ((size_t)256 << 10)
#define MOST_PIECE ((size_t)4 << 20)
#define PIECES 16 /* at least, where they do not get too small: only one piece's time is not hidden */

typedef struct across {
    rnl_job job;
    rnl_turn src_turn, dst_turn;
    rnl_buffer *src, *dst; /* retained */
    size_t src_offset, dst_offset, size_bytes;
} across;

typedef struct pipe {
    const across *copy;
    rnl_side_queue *in, *out;
    rnl_buffer *ring;
    size_t piece, count;
    cl_event read[SLOTS], written[SLOTS];
} pipe;

/* ---- Through pinned memory ---- */

static rnl_status wait_for(cl_event *event)
{
    if (!*event)
        return RNL_OK;
    rnl_status status = CL(clWaitForEvents(1, event));
    if (status != RNL_OK && rnl_last_error()->native_code == CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        status = rnl_command_check(*event) == RNL_OK ? status : rnl_last_error()->status;
    clReleaseEvent(*event);
    *event = NULL;
    return status;
}

static size_t piece_bytes(const pipe *p, size_t index)
{
    size_t at = index * p->piece, left = p->copy->size_bytes - at;
    return left < p->piece ? left : p->piece;
}

static char *slot_at(const pipe *p, size_t index)
{
    return (char *)p->ring->host + index % SLOTS * p->piece;
}

static rnl_status start_read(pipe *p, size_t index)
{
    const across *copy = p->copy;
    TRY(wait_for(&p->written[index % SLOTS]));
    TRY(CL(clEnqueueReadBuffer(p->in->queue, copy->src->memory, CL_FALSE, copy->src_offset + index * p->piece,
                               piece_bytes(p, index), slot_at(p, index), 0, NULL, &p->read[index % SLOTS])));
    return CL(clFlush(p->in->queue));
}

static rnl_status start_write(pipe *p, size_t index)
{
    const across *copy = p->copy;
    TRY(wait_for(&p->read[index % SLOTS]));
    TRY(CL(clEnqueueWriteBuffer(p->out->queue, copy->dst->memory, CL_FALSE, copy->dst_offset + index * p->piece,
                                piece_bytes(p, index), slot_at(p, index), 0, NULL, &p->written[index % SLOTS])));
    return CL(clFlush(p->out->queue));
}

static rnl_status run_pipe(pipe *p)
{
    size_t next = 0;
    for (size_t i = 0; i < p->count; i++) {
        for (; next < p->count && next <= i + LEAD; next++)
            TRY(start_read(p, next));
        TRY(start_write(p, i));
    }
    for (size_t i = 0; i < SLOTS; i++)
        TRY(wait_for(&p->written[i]));
    return RNL_OK;
}

static void leave(rnl_device *device, rnl_side_queue *queue, rnl_status status)
{
    if (status == RNL_OK)
        rnl_side_queue_give_back(device, queue);
    else
        rnl_side_queue_drop(queue);
}

static void close_pipe(pipe *p, rnl_status status)
{
    /* Nothing may use the ring any more, whatever failed. */
    if (p->in)
        clFinish(p->in->queue);
    if (p->out)
        clFinish(p->out->queue);
    for (size_t i = 0; i < SLOTS; i++) {
        if (p->read[i])
            clReleaseEvent(p->read[i]);
        if (p->written[i])
            clReleaseEvent(p->written[i]);
    }
    leave(p->copy->src->device, p->in, status);
    leave(p->copy->dst->device, p->out, status);
    rnl_buffer_release(p->ring);
}

static size_t choose_piece(size_t size)
{
    size_t piece = rnl_align_up(size / PIECES + 1, 4096);
    piece = piece < LEAST_PIECE ? LEAST_PIECE : piece;
    return piece < MOST_PIECE ? piece : MOST_PIECE;
}

static rnl_status move_by_pipe(const across *copy)
{
    pipe p = {.copy = copy, .piece = choose_piece(copy->size_bytes)};
    rnl_device *src = copy->src->device, *dst = copy->dst->device;
    rnl_status status = RNL_OK;
    p.count = (copy->size_bytes - 1) / p.piece + 1;
    size_t slots = p.count < SLOTS ? p.count : SLOTS;
    GOTO(rnl_side_queue_take(src, &p.in));
    GOTO(rnl_side_queue_take(dst, &p.out));
    /* A CPU has no use for pinned memory, the other one has. */
    GOTO(rnl_buffer_create(src->maps_in_place ? dst : src, RNL_MEMORY_PINNED, slots * p.piece, &p.ring));
    GOTO(run_pipe(&p));
done:
    close_pipe(&p, status);
    return status;
}

/* ---- Where an end is host memory already ---- */

static char *host_end(const rnl_buffer *buffer, size_t offset)
{
    bool at_hand = buffer->host && (buffer->device->maps_in_place || !buffer->is_wrapped);
    return at_hand ? (char *)buffer->host + offset : NULL;
}

static rnl_status move_by_one(const across *copy, char *src, char *dst)
{
    rnl_side_queue *side;
    rnl_device *device = src ? copy->dst->device : copy->src->device;
    TRY(rnl_side_queue_take(device, &side));
    rnl_status status = src ? CL(clEnqueueWriteBuffer(side->queue, copy->dst->memory, CL_TRUE, copy->dst_offset,
                                                      copy->size_bytes, src, 0, NULL, NULL))
                            : CL(clEnqueueReadBuffer(side->queue, copy->src->memory, CL_TRUE, copy->src_offset,
                                                     copy->size_bytes, dst, 0, NULL, NULL));
    leave(device, side, status);
    return status;
}

static rnl_status move(const across *copy)
{
    char *src = host_end(copy->src, copy->src_offset), *dst = host_end(copy->dst, copy->dst_offset);
    if (src && dst) {
        memcpy(dst, src, copy->size_bytes);
        return RNL_OK;
    }
    return src || dst ? move_by_one(copy, src, dst) : move_by_pipe(copy);
}

/* ---- The job ---- */

/* Everything is let go of before the streams go on: who has synchronised one finds no memory in use. */
static void finish(across *copy, rnl_status status)
{
    rnl_turn src_turn = copy->src_turn, dst_turn = copy->dst_turn;
    rnl_buffer_release(copy->src);
    rnl_buffer_release(copy->dst);
    rnl_free(copy);
    rnl_turn_end(&src_turn, status);
    rnl_turn_end(&dst_turn, status);
}

static void note(const rnl_stream *stream, const across *copy, uint64_t start_ns)
{
    if (stream->track)
        rnl_track_add(stream->track, RNL_TRACE_ACROSS, copy->size_bytes, start_ns, rnl_clock_ns());
}

static void run(rnl_job *job)
{
    across *copy = (across *)job;
    rnl_status status = rnl_turn_wait(&copy->src_turn);
    if (status == RNL_OK)
        status = rnl_turn_wait(&copy->dst_turn);
    const uint64_t start_ns = rnl_clock_ns();
    if (status == RNL_OK)
        status = move(copy);
    note(copy->src_turn.stream, copy, start_ns);
    note(copy->dst_turn.stream, copy, start_ns);
    finish(copy, status);
}

static rnl_status start(rnl_stream *src_stream, rnl_stream *dst_stream, across *copy)
{
    rnl_status status = RNL_OK;
    copy->job.run = run;
    rnl_buffer_retain(copy->src);
    rnl_buffer_retain(copy->dst);
    GOTO(rnl_turn_begin(src_stream, &copy->src_turn));
    GOTO(rnl_turn_begin(dst_stream, &copy->dst_turn));
    GOTO(rnl_mover_submit(dst_stream, &copy->job));
    return RNL_OK;
done:
    finish(copy, status);
    return status;
}

/* Without a thread, where that is no help. */
static rnl_status move_at_once(rnl_stream *src_stream, rnl_stream *dst_stream, const across *copy)
{
    TRY(rnl_stream_synchronize(src_stream));
    TRY(rnl_stream_synchronize(dst_stream));
    const uint64_t start_ns = rnl_clock_ns();
    rnl_status status = move(copy);
    note(src_stream, copy, start_ns);
    note(dst_stream, copy, start_ns);
    rnl_stream_fail(src_stream, status);
    return rnl_stream_fail(dst_stream, status);
}

/* Streams of one device wait for each other's events. */
static rnl_status copy_within(rnl_stream *dst_stream, rnl_stream *src_stream, const across *copy)
{
    rnl_event *event = NULL;
    rnl_status status = RNL_OK;
    if (dst_stream == src_stream)
        return rnl_stream_copy(dst_stream, copy->dst, copy->dst_offset, copy->src, copy->src_offset, copy->size_bytes);
    GOTO(rnl_stream_record(src_stream, &event));
    GOTO(rnl_stream_wait(dst_stream, event));
    rnl_event_release(event);
    event = NULL;
    GOTO(rnl_stream_copy(dst_stream, copy->dst, copy->dst_offset, copy->src, copy->src_offset, copy->size_bytes));
    GOTO(rnl_stream_record(dst_stream, &event));
    GOTO(rnl_stream_wait(src_stream, event));
done:
    rnl_event_release(event);
    return status;
}

rnl_status rnl_stream_copy_across(rnl_stream *dst_stream, rnl_buffer *dst, size_t dst_offset, rnl_stream *src_stream,
                                  rnl_buffer *src, size_t src_offset, size_t size_bytes)
{
    across copy = {.src = src,
                   .dst = dst,
                   .src_offset = src_offset,
                   .dst_offset = dst_offset,
                   .size_bytes = size_bytes},
           *kept;
    TRY(rnl_buffer_check_part(src_stream, src, src_offset, size_bytes));
    TRY(rnl_buffer_check_part(dst_stream, dst, dst_offset, size_bytes));
    TRY(rnl_stream_check(src_stream));
    TRY(rnl_stream_check(dst_stream));
    if (size_bytes == 0)
        return RNL_OK;
    if (src_stream->device == dst_stream->device)
        return copy_within(dst_stream, src_stream, &copy);
    rnl_traffic_add(&src_stream->device->traffic.to_host, size_bytes);
    rnl_traffic_add(&dst_stream->device->traffic.to_device, size_bytes);
    if (src_stream->device->copies_in_caller || dst_stream->device->copies_in_caller)
        return move_at_once(src_stream, dst_stream, &copy);
    TRY(rnl_alloc(1, sizeof *kept, &kept));
    *kept = copy;
    return start(src_stream, dst_stream, kept);
}
