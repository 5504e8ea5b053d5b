/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several streams of one device for batches of work that do not depend on each other, so that one batch is copied while
 * another one computes. rt.h's conventions hold.
 *
 * A batch goes from begin, which lends the next stream, to end, which marks its end. At most `batch_limit` batches are
 * under way at a time: begin blocks when there are as many, until the one that was ended first has run. Any thread may
 * call any of these functions; a stream that is lent belongs to the thread that began the batch, and is neither
 * released nor used behind the batch's end. Batches that share a stream run in the order of their begin; others run in
 * any order, and wait for each other only where rnl_stream_wait says so.
 *
 * A batch that fails fails those on its stream that are not known to have run by then. Other streams go on, and the
 * pool puts a new stream in the failed one's place.
 */
#ifndef RUNNEL_STREAM_POOL_H
#define RUNNEL_STREAM_POOL_H

#include <runnel/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rnl_stream_pool rnl_stream_pool;

typedef struct rnl_stream_pool_options {
    size_t struct_size;
    uint32_t stream_count; /* 0: 4; at most RNL_STREAM_POOL_MOST */
    uint32_t batch_limit;  /* batches under way, as many as memory was set aside for; 0: one a stream */
    bool timed;            /* as rnl_stream_options.timed */
} rnl_stream_pool_options;
#define RNL_STREAM_POOL_OPTIONS_INIT                                                                                   \
    {                                                                                                                  \
        sizeof(rnl_stream_pool_options), 0, 0, false                                                                   \
    }
#define RNL_STREAM_POOL_MOST 1024

/* `options` may be NULL. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_pool_create(rnl_device *device, const rnl_stream_pool_options *options,
                                                        rnl_stream_pool **out_pool);
RNL_API rnl_stream_pool *rnl_stream_pool_retain(rnl_stream_pool *pool);
/* Waits for nothing; batches that were begun but not ended are over. */
RNL_API void rnl_stream_pool_release(rnl_stream_pool *pool);

/*
 * Begins a batch. The stream is borrowed until the batch's end. *out_batch (may be NULL) is the batch's number, counted
 * from 0. Where all streams are lent, it waits for an end. A thread that would have to wait while a batch of its own is
 * open is refused with RNL_FAILED_PRECONDITION: it might wait for itself.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_pool_begin(rnl_stream_pool *pool, rnl_stream **out_stream,
                                                       uint64_t *out_batch);
/*
 * Ends the batch on `stream` and starts what is enqueued. *out_event (may be NULL; released by the caller) is its end.
 * A failure of the stream that is known by now is returned here, and not again; the batch is over then, too, and
 * nothing of it is under way any more.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_pool_end(rnl_stream_pool *pool, rnl_stream *stream, rnl_event **out_event);

/*
 * Blocks until all batches that have been ended have run. A batch that failed since it was ended is reported here once:
 * the first one's failure is returned, with its number in the last line of the message and in *out_batch (may be NULL),
 * and with how many more there were.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_pool_synchronize(rnl_stream_pool *pool, uint64_t *out_batch);
/* Batches under way: begun, and not known to have run. */
RNL_API uint32_t rnl_stream_pool_busy(rnl_stream_pool *pool);

#ifdef __cplusplus
}
#endif
#endif
