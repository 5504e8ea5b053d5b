/* SPDX-License-Identifier: Apache-2.0 */
/* Pageable memory through pinned slots. Several threads fill them: one cannot keep a fast bus busy. */
#include "base/clock.h"
#include "base/memory.h"
#include "device/mover.h"
#include "device/side_queue.h"
#include "device/trace.h"
#include "device/traffic.h"
#include "device/way.h"
#include <string.h>

#define SLOTS 2
#define PIECE_BYTES ((size_t)2 << 20)
#define MOST_LANES 4

typedef struct stage {
    rnl_job job;
    rnl_turn turn;
    rnl_buffer *buffer; /* retained */
    size_t offset, size_bytes, lanes;
    const char *src; /* one of the two */
    char *dst;
} stage;

/* Every n-th piece, on one thread. */
typedef struct lane {
    const stage *work;
    size_t index;
    rnl_side_queue *side;
    rnl_buffer *ring;
    cl_event copied[SLOTS];
    rnl_status status;
    rnl_error error;
} lane;

static size_t piece_count(const stage *work)
{
    return (work->size_bytes - 1) / PIECE_BYTES + 1;
}

static size_t piece_bytes(const stage *work, size_t piece)
{
    size_t left = work->size_bytes - piece * PIECE_BYTES;
    return left < PIECE_BYTES ? left : PIECE_BYTES;
}

static char *slot_at(const lane *l, size_t turn)
{
    return (char *)l->ring->host + turn % SLOTS * PIECE_BYTES;
}

static rnl_status wait_for_slot(lane *l, size_t turn)
{
    cl_event *event = &l->copied[turn % SLOTS];
    if (!*event)
        return RNL_OK;
    rnl_status status = CL(clWaitForEvents(1, event));
    clReleaseEvent(*event);
    *event = NULL;
    return status;
}

static rnl_status write_pieces(lane *l)
{
    const stage *work = l->work;
    for (size_t piece = l->index, turn = 0; piece < piece_count(work); piece += work->lanes, turn++) {
        TRY(wait_for_slot(l, turn));
        memcpy(slot_at(l, turn), work->src + piece * PIECE_BYTES, piece_bytes(work, piece));
        TRY(CL(clEnqueueWriteBuffer(l->side->queue, work->buffer->memory, CL_FALSE, work->offset + piece * PIECE_BYTES,
                                    piece_bytes(work, piece), slot_at(l, turn), 0, NULL, &l->copied[turn % SLOTS])));
        TRY(CL(clFlush(l->side->queue)));
    }
    for (size_t turn = 0; turn < SLOTS; turn++)
        TRY(wait_for_slot(l, turn));
    return RNL_OK;
}

static rnl_status start_read(lane *l, size_t piece, size_t turn)
{
    const stage *work = l->work;
    if (piece >= piece_count(work))
        return RNL_OK;
    TRY(CL(clEnqueueReadBuffer(l->side->queue, work->buffer->memory, CL_FALSE, work->offset + piece * PIECE_BYTES,
                               piece_bytes(work, piece), slot_at(l, turn), 0, NULL, &l->copied[turn % SLOTS])));
    return CL(clFlush(l->side->queue));
}

static rnl_status read_pieces(lane *l)
{
    const stage *work = l->work;
    TRY(start_read(l, l->index, 0));
    for (size_t piece = l->index, turn = 0; piece < piece_count(work); piece += work->lanes, turn++) {
        TRY(start_read(l, piece + work->lanes, turn + 1));
        TRY(wait_for_slot(l, turn));
        memcpy(work->dst + piece * PIECE_BYTES, slot_at(l, turn), piece_bytes(work, piece));
    }
    return RNL_OK;
}

static rnl_status run_lane(lane *l)
{
    rnl_device *device = l->work->buffer->device;
    rnl_status status = RNL_OK;
    GOTO(rnl_side_queue_take(device, &l->side));
    GOTO(rnl_buffer_create(device, RNL_MEMORY_PINNED, SLOTS * PIECE_BYTES, &l->ring));
    GOTO(l->work->src ? write_pieces(l) : read_pieces(l));
done:
    if (l->side)
        clFinish(l->side->queue);
    for (size_t i = 0; i < SLOTS; i++)
        if (l->copied[i])
            clReleaseEvent(l->copied[i]);
    rnl_side_queue_give_back(device, l->side);
    rnl_buffer_release(l->ring);
    return status;
}

static void *run_on_thread(void *argument)
{
    lane *l = argument;
    l->status = run_lane(l);
    if (l->status != RNL_OK)
        l->error = *rnl_last_error();
    return NULL;
}

static rnl_status run_lanes(const stage *work)
{
    lane lanes[MOST_LANES];
    pthread_t threads[MOST_LANES];
    bool started[MOST_LANES] = {false};
    rnl_status status = RNL_OK;
    for (size_t i = 0; i < work->lanes; i++)
        lanes[i] = (lane){.work = work, .index = i};
    for (size_t i = 1; i < work->lanes; i++)
        started[i] = pthread_create(&threads[i], NULL, run_on_thread, &lanes[i]) == 0;
    /* What found no thread is done here. */
    for (size_t i = 0; i < work->lanes; i++)
        if (!started[i])
            run_on_thread(&lanes[i]);
    for (size_t i = 0; i < work->lanes; i++) {
        if (started[i])
            pthread_join(threads[i], NULL);
        if (status == RNL_OK && lanes[i].status != RNL_OK)
            status = rnl_error_restore(&lanes[i].error);
    }
    return status;
}

static void finish(stage *work, rnl_status status)
{
    rnl_turn turn = work->turn;
    rnl_buffer_release(work->buffer);
    rnl_free(work);
    rnl_turn_end(&turn, status);
}

static void run(rnl_job *job)
{
    stage *work = (stage *)job;
    rnl_status status = rnl_turn_wait(&work->turn);
    const uint64_t start_ns = rnl_clock_ns();
    if (status == RNL_OK)
        status = run_lanes(work);
    if (work->turn.stream->track)
        rnl_track_add(work->turn.stream->track, work->src ? RNL_TRACE_WRITE : RNL_TRACE_READ, work->size_bytes,
                      start_ns, rnl_clock_ns());
    finish(work, status);
}

static rnl_status start(rnl_stream *stream, const stage *given, rnl_copy_way way)
{
    stage *work;
    rnl_status status = RNL_OK;
    TRY(rnl_alloc(1, sizeof *work, &work));
    *work = *given;
    work->job.run = run;
    work->lanes = (size_t)1 << (way - RNL_COPY_STAGED_1);
    size_t pieces = piece_count(work);
    work->lanes = work->lanes < pieces ? work->lanes : pieces;
    rnl_buffer_retain(work->buffer);
    GOTO(rnl_turn_begin(stream, &work->turn));
    GOTO(rnl_mover_submit(stream, &work->job));
    rnl_traffic_add(&stream->device->traffic.staged, given->size_bytes);
    return RNL_OK;
done:
    finish(work, status);
    return status;
}

rnl_status rnl_stage_write(rnl_stream *stream, rnl_buffer *dst, size_t dst_offset, const void *src, size_t size_bytes,
                           rnl_copy_way way)
{
    const stage work = {.buffer = dst, .offset = dst_offset, .size_bytes = size_bytes, .src = src};
    rnl_traffic_add(&stream->device->traffic.to_device, size_bytes);
    return start(stream, &work, way);
}

rnl_status rnl_stage_read(rnl_stream *stream, void *dst, rnl_buffer *src, size_t src_offset, size_t size_bytes,
                          rnl_copy_way way)
{
    const stage work = {.buffer = src, .offset = src_offset, .size_bytes = size_bytes, .dst = dst};
    rnl_traffic_add(&stream->device->traffic.to_host, size_bytes);
    return start(stream, &work, way);
}
