/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory pool of a device: what it keeps, labels, release in a stream's order, statistics. rt.h's conventions hold.
 *
 * All buffers come from their device's pool. It rounds sizes up to one of eight classes between two powers of two, and
 * keeps what is released for the next request of that class: taking and releasing then calls no driver. Device and
 * pinned memory are kept apart.
 *   - Buffers of up to 128 KiB are parts of chunks: reserved blocks, the first of an eighth of the budget and at most
 *     256 MiB (pinned 16 MiB), that are split and joined. Larger ones have a cl_mem of their own, as long as the budget
 *     has room for it; then they too are cut from a chunk that has. Pinned memory has chunks on CPU devices only.
 *   - Of what nobody uses, blocks of their own are kept up to a quarter of the budget, the latest used, and the largest
 *     chunk. All of it goes back to the driver before a request is refused, and with rnl_device_pool_trim.
 *   - The budget (rnl_device_options: memory_limit_bytes, memory_fraction) is the guard: it bounds everything that is
 *     reserved. New memory is not touched. A driver that allocates lazily may therefore fail, or end the process, at
 * the first use of memory that it does not have after all: set a budget that holds.
 *   - RUNNEL_ARENA=off: every buffer is a cl_mem of exactly its size, so that checkers see accesses past it. With
 *     rnl_device_options.pool_exact nothing is kept either: they see uses after the release too, and the driver's own
 *     price can be measured.
 */
#ifndef RUNNEL_POOL_H
#define RUNNEL_POOL_H

#include <runnel/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Buffers with a label, and in a stream's order ------------------------------------------------------------- */

typedef struct rnl_buffer_options {
    size_t struct_size;
    /* Counts the buffer under this text, which is copied, in rnl_device_pool_labels. NULL: no label. Labels stay until
     * the device ends: use few of them, not one for each buffer. */
    const char *label;
    /* The stream whose commands will use the buffer first: it may be given device memory that was released in this
     * stream's order, also while earlier commands still run. NULL: any. */
    rnl_stream *stream;
    bool own_memory; /* a cl_mem of its own, not a part of a larger one */
} rnl_buffer_options;
#define RNL_BUFFER_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(rnl_buffer_options), NULL, NULL, false                                                                  \
    }

/* As rnl_buffer_create, which says when it fails. `options` may be NULL. Any thread. */
RNL_API RNL_NODISCARD rnl_status rnl_buffer_create_with(rnl_device *device, rnl_memory memory, size_t size_bytes,
                                                        const rnl_buffer_options *options, rnl_buffer **out_buffer);

/*
 * Releases a buffer in the stream's order, without waiting: commands of `stream` that were enqueued before may still
 * use it, commands of other streams must have ended. Device memory is given at once to who asks for this stream
 * (rnl_buffer_options.stream), all memory to others when those commands have ended, in whatever way; a failed stream
 * keeps nothing. Where somebody else still holds the buffer, its last release waits for those commands. A stream of
 * another device is RNL_INVALID_ARGUMENT, and the buffer stays the caller's; nothing else fails. Any thread, while no
 * other thread enqueues commands on the stream that use the buffer.
 */
RNL_API RNL_NODISCARD rnl_status rnl_buffer_release_after(rnl_buffer *buffer, rnl_stream *stream);

/* ---- What the pool holds ---------------------------------------------------------------------------------------- */

/* Of one kind of memory. Bytes are those of whole classes, unless it says otherwise. */
typedef struct rnl_pool_stats {
    uint64_t buffers;            /* that are in use */
    size_t in_use_bytes;         /* by them */
    size_t asked_bytes;          /* by them, not rounded up */
    size_t peak_bytes;           /* the most that was in use */
    size_t pending_bytes;        /* released in a stream's order, not seen to have ended */
    size_t idle_bytes;           /* blocks of their own that nobody uses: kept for the next request, given back whole */
    size_t reserved_bytes;       /* all memory that the driver gave */
    size_t chunk_bytes;          /* of it, blocks that several buffers share */
    size_t free_bytes;           /* inside those */
    size_t largest_free_bytes;   /* the largest piece of it that one buffer can have at once */
    double fragmentation;        /* 1 - largest_free_bytes / free_bytes; 0 where nothing is free */
    uint64_t allocations;        /* since the device was opened */
    uint64_t hits;               /* those that found a block ready */
    uint64_t misses;             /* the others: a chunk was split, or the driver asked */
    uint64_t driver_allocations; /* blocks and chunks that the driver was asked for and gave */
} rnl_pool_stats;

/* Takes time in proportion to the pieces of chunks. Any thread. */
RNL_API void rnl_device_pool_stats(const rnl_device *device, rnl_memory memory, rnl_pool_stats *out_stats);

/* Gives back to the driver what nobody uses. Any thread. */
RNL_API void rnl_device_pool_trim(rnl_device *device);

typedef struct rnl_pool_label_info {
    const char *label; /* "" for buffers without one; borrowed, valid as long as the device */
    uint64_t buffers;  /* that were not released yet */
    uint64_t allocations;
    size_t bytes, peak_bytes; /* as asked for; the peak is 0 for buffers without a label */
} rnl_pool_label_info;

/*
 * What is in use under each label, in the order of their texts. Writes at most `capacity` entries and the number there
 * is to *out_count (which may be greater). Any thread.
 */
RNL_API void rnl_device_pool_labels(const rnl_device *device, rnl_pool_label_info *out_labels, size_t capacity,
                                    size_t *out_count);

/*
 * Logs a warning for each label with buffers that were not released, and returns how many buffers those are. A buffer
 * holds its device: call it before the device's release, when all buffers should be gone. Any thread.
 */
RNL_API uint64_t rnl_device_pool_report(const rnl_device *device);

#ifdef __cplusplus
}
#endif
#endif
