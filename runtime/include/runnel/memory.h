/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that devices reach fast: pinned buffers and staging, the caller's own memory used in place, copies
 * between devices, and what was copied. rt.h's conventions hold.
 *
 * Pinned memory is a device's RNL_MEMORY_PINNED buffer (rt.h): allocated by the driver, mapped once and for life, near
 * the device where the machine has several NUMA nodes. All pinned buffers of a device together stay below
 * rnl_device_options.pinned_limit_bytes. Past it, or where the driver refuses, a "pinned" buffer is pageable memory
 * with the same functions and results, only slower; one line in the log says so, and rnl_copy_stats counts it.
 */
#ifndef RUNNEL_MEMORY_H
#define RUNNEL_MEMORY_H

#include <runnel/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The caller's memory, in place ---------------------------------------------------------------------------- */

#define RNL_WRAP_ALIGN_BYTES 64

/*
 * A buffer that is `size_bytes` of the caller's memory, not a copy of it: on devices that share the host's memory
 * (CPUs, integrated GPUs). `host` must be a multiple of RNL_WRAP_ALIGN_BYTES: what kernels with float16 need (those
 * with double16 or long16 need 128). The memory stays the caller's, and must stay valid until the buffer has been
 * released; it does not count as the pool's. A device with memory of its own, or whose driver would copy after all, is
 * RNL_UNIMPLEMENTED: nothing is copied behind the caller's back; rnl_buffer_create and rnl_stream_write do that.
 *
 * While commands that write the buffer are under way, nobody else may touch the memory; while some only read it, the
 * host may read it too. On a CPU device host and commands see each other's writes once the stream has been
 * synchronised. An integrated GPU may keep caches of its own: there the host looks between rnl_stream_map and
 * rnl_stream_unmap only. Both calls cost next to nothing on a CPU device, so code that uses them is right everywhere.
 */
RNL_API RNL_NODISCARD rnl_status rnl_buffer_wrap_host(rnl_device *device, void *host, size_t size_bytes,
                                                      rnl_buffer **out_buffer);

typedef enum rnl_map_access {
    RNL_MAP_READ = 1,
    RNL_MAP_WRITE = 2,
    RNL_MAP_READ_WRITE = 3,
    RNL_MAP_OVERWRITE = 4 /* all of the range: what it held may be lost */
} rnl_map_access;

/*
 * Waits for what is enqueued on `stream` and gives the host a part of any buffer, at *out_host until rnl_stream_unmap.
 * No command may use the buffer meanwhile. A pinned buffer's, and on a CPU device a wrapped one's, is the memory that
 * rnl_buffer_host names, and costs no more than waiting; device memory of a GPU is copied by its driver. A buffer is
 * mapped once at a time, else RNL_FAILED_PRECONDITION. One that is released while mapped is unmapped then.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_map(rnl_stream *stream, rnl_buffer *buffer, size_t offset,
                                                size_t size_bytes, rnl_map_access access, void **out_host);
/* Enqueued: what is enqueued on `stream` afterwards sees what the host wrote. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_unmap(rnl_stream *stream, rnl_buffer *buffer);

/* ---- Staging -------------------------------------------------------------------------------------------------- */

/*
 * A ring of pinned slots for data that is produced or consumed piece by piece: the host fills one slot while earlier
 * ones travel. Slots are used in order; each is free again when its copy has happened, and at most `slot_count` copies
 * are under way. One thread at a time; any streams of its device. A call that fails leaves the ring usable. Releasing
 * it waits for the copies that are under way.
 */
typedef struct rnl_staging rnl_staging;

RNL_API RNL_NODISCARD rnl_status rnl_staging_create(rnl_device *device, size_t slot_bytes, size_t slot_count,
                                                    rnl_staging **out_staging);
RNL_API void rnl_staging_release(rnl_staging *staging);
RNL_API size_t rnl_staging_slot_bytes(const rnl_staging *staging);

/*
 * Writing: begin gives the next slot, once the copy that used it has happened; the caller fills it; submit enqueues
 * copying its first `size_bytes` to the buffer. Calling begin again without submit gives the same slot.
 */
RNL_API RNL_NODISCARD rnl_status rnl_staging_begin(rnl_staging *staging, void **out_slot);
RNL_API RNL_NODISCARD rnl_status rnl_staging_submit(rnl_staging *staging, rnl_stream *stream, rnl_buffer *dst,
                                                    size_t dst_offset, size_t size_bytes);
/*
 * Reading: request enqueues copying a part of a buffer to the next slot; take waits for the oldest request that has not
 * been taken and gives its slot, until the next call of take. RNL_FAILED_PRECONDITION when every slot holds a request,
 * or take finds none.
 */
RNL_API RNL_NODISCARD rnl_status rnl_staging_request(rnl_staging *staging, rnl_stream *stream, rnl_buffer *src,
                                                     size_t src_offset, size_t size_bytes);
RNL_API RNL_NODISCARD rnl_status rnl_staging_take(rnl_staging *staging, const void **out_slot, size_t *out_bytes);

/* ---- Between devices ------------------------------------------------------------------------------------------ */

/*
 * Copies between buffers of two devices, of any platforms; each stream is of its buffer's device. It starts when what
 * is enqueued on both streams has run, and what is enqueued later on either runs after it. The caller is not blocked: a
 * thread of the library moves pieces through pinned memory, reading one while others are written (but where a driver
 * runs commands in the caller's thread, as Oclgrind and pocl's basic device do, or takes too long to see that a thread
 * has ended, as rusticl does: there it blocks). A failure is both streams'. Both buffers are held until the copy has
 * ended.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_copy_across(rnl_stream *dst_stream, rnl_buffer *dst, size_t dst_offset,
                                                        rnl_stream *src_stream, rnl_buffer *src, size_t src_offset,
                                                        size_t size_bytes);

/* ---- What was copied ------------------------------------------------------------------------------------------ */

/* Since the device was opened, by all of its streams; counted when a copy is enqueued. */
typedef struct rnl_copy_stats {
    uint64_t to_device_bytes;   /* from host memory, pinned or not */
    uint64_t to_host_bytes;     /* to host memory */
    uint64_t on_device_bytes;   /* from device memory to device memory */
    uint64_t in_place_bytes;    /* of the caller's memory that was used where it is, once a wrapping or a run */
    uint64_t staged_bytes;      /* of pageable memory that travelled through pinned memory */
    uint64_t pinned_bytes;      /* of pinned buffers now … */
    uint64_t pinned_peak_bytes; /* … and at most */
    uint64_t pinned_limit_bytes;
    uint64_t pinned_refused; /* pinned buffers that became pageable ones */
} rnl_copy_stats;
/* Any thread. */
RNL_API void rnl_device_get_copy_stats(rnl_device *device, rnl_copy_stats *out_stats);

/* ---- Choosing ------------------------------------------------------------------------------------------------- */

/* How rnl_stream_write and rnl_stream_read move pageable memory. */
typedef enum rnl_copy_way {
    RNL_COPY_DIRECT,   /* the driver does what it does */
    RNL_COPY_STAGED_1, /* through pinned slots, filled or emptied by one thread … */
    RNL_COPY_STAGED_2, /* … by two … */
    RNL_COPY_STAGED_4  /* … by four */
} rnl_copy_way;
#define RNL_COPY_WAYS 4

typedef enum rnl_copy_direction { RNL_COPY_TO_DEVICE, RNL_COPY_TO_HOST } rnl_copy_direction;

/* One measurement of rnl_device_tune_copies. */
typedef struct rnl_copy_measured {
    rnl_copy_direction direction;
    size_t size_bytes;
    double ns[RNL_COPY_WAYS]; /* of one copy and waiting for it; the least of several */
    rnl_copy_way best;        /* direct, unless another is 5% faster, and the device does not share the host's memory */
} rnl_copy_measured;

/* Called for each size when it has been measured. */
typedef void (*rnl_copy_measured_fn)(void *user, const rnl_copy_measured *measured, size_t index, size_t count);

/*
 * Measures how copies of pageable memory are fastest on this device, notes it in the device's tuning table, and goes by
 * it. Takes a few seconds; nothing else should use the device. Without a measurement a device with memory of its own
 * stages copies of 8 MiB and more, a CPU none.
 */
RNL_API RNL_NODISCARD rnl_status rnl_device_tune_copies(rnl_device *device, rnl_copy_measured_fn measured, void *user);
/* The way that a copy of pageable memory takes on this device. Any thread. */
RNL_API rnl_copy_way rnl_device_copy_way(rnl_device *device, rnl_copy_direction direction, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif
