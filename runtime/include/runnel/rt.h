/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runnel-rt: OpenCL devices, streams, events, buffers and kernels.
 *
 * Conventions, for every function of this header:
 *   - A function that can fail returns rnl_status; RNL_OK is 0. The reason is in rnl_last_error(), which belongs to the
 *     calling thread and holds until that thread's next failure.
 *   - Results come last, as out_x, and are set to NULL or 0 on failure.
 *   - rnl_X_release(NULL) is legal. A child holds its parent, so objects may be released in any order.
 *   - An options structure starts with struct_size; initialise it with its _INIT macro. Zero means default, everywhere.
 *   - Sizes and offsets are in bytes unless the name says otherwise; times are in nanoseconds.
 *   - Never fork a process that has made an OpenCL call: several drivers hang in the child.
 *   - exit() may come while other threads are in calls: they do not return then. In exit handlers registered before
 *     the first device was listed or opened, calls are RNL_UNAVAILABLE and releasing does nothing.
 */
#ifndef RUNNEL_RT_H
#define RUNNEL_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RNL_API __attribute__((visibility("default")))
#define RNL_NODISCARD __attribute__((warn_unused_result))
#define RNL_PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))

/* ---- Status and errors ---------------------------------------------------------------------------------------- */

/* X(name, process exit code, HTTP code, sentence) */
#define RNL_STATUS_LIST(X)                                                                                             \
    X(OK, 0, 200, "ok")                                                                                                \
    X(CANCELLED, 1, 499, "cancelled")                                                                                  \
    X(INVALID_ARGUMENT, 1, 400, "invalid argument")                                                                    \
    X(DEADLINE_EXCEEDED, 1, 504, "deadline exceeded")                                                                  \
    X(NOT_FOUND, 1, 404, "not found")                                                                                  \
    X(RESOURCE_EXHAUSTED, 1, 503, "resource exhausted")                                                                \
    X(FAILED_PRECONDITION, 1, 400, "failed precondition")                                                              \
    X(UNIMPLEMENTED, 1, 501, "not implemented")                                                                        \
    X(UNAVAILABLE, 1, 503, "unavailable")                                                                              \
    X(DATA_LOSS, 1, 500, "data loss")                                                                                  \
    X(INTERNAL, 1, 500, "internal error")

typedef enum rnl_status {
#define X(name, exit_code, http_code, sentence) RNL_##name,
    RNL_STATUS_LIST(X)
#undef X
        RNL_STATUS_COUNT
} rnl_status;

#define RNL_ERROR_MESSAGE_BYTES 4096

/* A failure: the root cause on the first line of `message`, then one line a frame that added to it. Plain data: copy
 * it. */
typedef struct rnl_error {
    rnl_status status;
    int32_t native_code; /* OpenCL's or CLBlast's code, 0 when the failure is our own */
    uint32_t length;     /* bytes of `message` in use, without the final NUL */
    uint32_t lines_left_out;
    char message[RNL_ERROR_MESSAGE_BYTES];
    bool is_callers; /* a function of the caller's failed, a custom operator's: neither the driver nor the library */
} rnl_error;

/* "INVALID_ARGUMENT"; never NULL. */
RNL_API const char *rnl_status_name(rnl_status status);
/* The calling thread's last failure; status RNL_OK when there was none. Borrowed, valid until this thread's next
 * failure. */
RNL_API const rnl_error *rnl_last_error(void);

/* ---- Log ------------------------------------------------------------------------------------------------------ */

typedef enum rnl_log_level { RNL_LOG_ERROR, RNL_LOG_WARNING, RNL_LOG_INFO, RNL_LOG_DEBUG } rnl_log_level;

/* Called with whole lines without a newline, from any thread, one call at a time. Must not call back into runnel. */
typedef void (*rnl_log_fn)(void *user, rnl_log_level level, const char *line);

/* Sets the process's log: lines up to `level` go to `log`. NULL (the default) is silence. Any thread. */
RNL_API void rnl_log_set(rnl_log_fn log, void *user, rnl_log_level level);

/* ---- Host memory ---------------------------------------------------------------------------------------------- */

/* Where the library's own host memory comes from; the OpenCL driver's does not. Called from any thread. */
typedef struct rnl_allocator {
    size_t struct_size;
    void *user;
    void *(*allocate)(void *user, size_t size_bytes);             /* aligned as malloc's; NULL: there is none */
    void *(*resize)(void *user, void *memory, size_t size_bytes); /* as realloc; `memory` may be NULL */
    void (*release)(void *user, void *memory);                    /* never NULL */
} rnl_allocator;
#define RNL_ALLOCATOR_INIT                                                                                             \
    {                                                                                                                  \
        sizeof(rnl_allocator), NULL, NULL, NULL, NULL                                                                  \
    }

/*
 * Sets the process's allocator, which is copied; malloc, realloc and free without one. Before any other call into the
 * library: RNL_FAILED_PRECONDITION once memory has been allocated.
 */
RNL_API RNL_NODISCARD rnl_status rnl_allocator_set(const rnl_allocator *allocator);

/* ---- Element types -------------------------------------------------------------------------------------------- */

/*
 * X(name, ONNX code, bytes of an element, name as ONNX prints it)
 *
 * Elements of 4 and 2 bits take a byte each in memory, in the low bits; the upper bits are ignored when they are read,
 * and those of INT4 and INT2 repeat the sign when they are computed. Only model files hold them packed. The types from
 * F8E4M3FN on are for storage: they are moved, cast, quantised to and dequantised from, not computed with.
 */
#define RNL_DTYPE_LIST(X)                                                                                              \
    X(F32, 1, 4, "float32")                                                                                            \
    X(U8, 2, 1, "uint8")                                                                                               \
    X(I8, 3, 1, "int8")                                                                                                \
    X(U16, 4, 2, "uint16")                                                                                             \
    X(I16, 5, 2, "int16")                                                                                              \
    X(I32, 6, 4, "int32")                                                                                              \
    X(I64, 7, 8, "int64")                                                                                              \
    X(BOOL, 9, 1, "bool")                                                                                              \
    X(F16, 10, 2, "float16")                                                                                           \
    X(F64, 11, 8, "float64")                                                                                           \
    X(U32, 12, 4, "uint32")                                                                                            \
    X(U64, 13, 8, "uint64")                                                                                            \
    X(BF16, 16, 2, "bfloat16")                                                                                         \
    X(F8E4M3FN, 17, 1, "float8e4m3fn")                                                                                 \
    X(F8E4M3FNUZ, 18, 1, "float8e4m3fnuz")                                                                             \
    X(F8E5M2, 19, 1, "float8e5m2")                                                                                     \
    X(F8E5M2FNUZ, 20, 1, "float8e5m2fnuz")                                                                             \
    X(U4, 21, 1, "uint4")                                                                                              \
    X(I4, 22, 1, "int4")                                                                                               \
    X(F4E2M1, 23, 1, "float4e2m1")                                                                                     \
    X(F8E8M0, 24, 1, "float8e8m0")                                                                                     \
    X(U2, 25, 1, "uint2")                                                                                              \
    X(I2, 26, 1, "int2")

/* Values equal ONNX's TensorProto.DataType. */
typedef enum rnl_dtype {
    RNL_DTYPE_NONE = 0,
#define X(name, code, bytes, text) RNL_##name = code,
    RNL_DTYPE_LIST(X)
#undef X
} rnl_dtype;

#define RNL_MAX_RANK 8

/* Bytes of one element; 0 for an unknown type. */
RNL_API size_t rnl_dtype_bytes(rnl_dtype dtype);
/* Bits that an element has a meaning in: 4 and 2 where it has less than a byte. 0 for an unknown type. */
RNL_API size_t rnl_dtype_width(rnl_dtype dtype);
/* "float32"; "unknown" for an unknown type. Never NULL. */
RNL_API const char *rnl_dtype_name(rnl_dtype dtype);

/* ---- Devices -------------------------------------------------------------------------------------------------- */

typedef struct rnl_device rnl_device;
typedef struct rnl_stream rnl_stream;
typedef struct rnl_event rnl_event;
typedef struct rnl_buffer rnl_buffer;
typedef struct rnl_trace rnl_trace; /* trace.h */

typedef enum rnl_device_type {
    RNL_DEVICE_CPU,
    RNL_DEVICE_GPU,
    RNL_DEVICE_ACCELERATOR,
    RNL_DEVICE_OTHER
} rnl_device_type;

typedef struct rnl_device_info {
    uint32_t platform_index, device_index; /* as clinfo counts them: "platform:device" */
    rnl_device_type type;
    char name[128], vendor[64], platform[64];
    char device_version[96], driver_version[64], opencl_c_version[64];
    char pci_bus_id[16]; /* "0000:3b:00.0", or empty when unknown */
    int32_t numa_node;   /* hwloc's index, -1 when unknown or not tied to one */
    uint32_t vendor_id;
    uint32_t compute_units;
    uint32_t clock_mhz;
    uint64_t global_memory_bytes, max_allocation_bytes, local_memory_bytes;
    uint64_t max_work_group_size;
    uint32_t base_align_bytes; /* sub-buffer offsets and pool blocks are multiples of it */
    bool unified_memory;       /* host and device share memory: mapping copies nothing */
    bool is_default;           /* what rnl_device_open(NULL, …) takes when RUNNEL_DEVICE is unset */
    bool emulated;             /* llvmpipe: right, but about 5,000 times slower than a CPU driver */
    bool has_fp64, has_fp16_arithmetic, has_images;
    bool compiler_available;
    uint32_t whole_units; /* of the device that a share is one of; else compute_units */
    uint32_t first_unit;  /* of a share by compute units: where it begins */
    /* Filled in by rnl_device_list, which tries it out: into how many shares "P:D/N" and "P:D/numa" the device can be
     * divided; 1 and 0: it cannot. 0 for a device that is open. */
    uint32_t most_shares, numa_shares;
} rnl_device_info;

/*
 * Lists the devices of all platforms, in the platforms' order. Writes at most `capacity` entries and the number there
 * is to *out_count (which may be greater). No platform, or platforms without a device, is RNL_NOT_FOUND with a sentence
 * that says what to install. Any thread.
 */
RNL_API RNL_NODISCARD rnl_status rnl_device_list(rnl_device_info *out_infos, size_t capacity, size_t *out_count);

typedef struct rnl_device_options {
    size_t struct_size;
    /* A sub-device of that many compute units (CPU threads). 0 = the whole device, but no more threads of a CPU device
     * than the process may run, by its affinity and control groups, where the driver can divide the device. */
    uint32_t compute_units;
    uint64_t memory_limit_bytes; /* the pool's budget; 0 = the least of device, host and cgroup limits */
    uint64_t pinned_limit_bytes; /* of all pinned buffers; 0 = an eighth of what the host, or its cgroup, has */
    double memory_fraction;      /* the budget is at most this part of the device's memory; 0 = all of it */
    bool pool_exact;             /* the pool keeps and shares nothing: see runnel/pool.h */
} rnl_device_options;
#define RNL_DEVICE_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(rnl_device_options), 0, 0, 0, 0, false                                                                  \
    }

/*
 * Opens a device in a context of its own. `spec` is "0:0" (platform:device), "gpu", "cpu", "accelerator", part of a
 * device, vendor or platform name (any case), or a PCI bus id; and, behind it, a share of its compute units. NULL or
 * "": RUNNEL_DEVICE, else the default: GPU, then accelerator, then CPU; discrete before integrated; llvmpipe last. A
 * spec that matches nothing is RNL_NOT_FOUND and the message lists what there is. `options` may be NULL. Any thread.
 *
 * A share: "0:0/2" is one of two equal parts of the device that no other part in use by this process overlaps, and
 * RNL_RESOURCE_EXHAUSTED where there is none; of a CPU whose threads can be bound one whose processors no share of
 * another process is bound to, while there is one and processes can see each other (docs/devices.md, Shares). "0:0/2.1"
 * is the second of them, however many use it; "0:0/numa" and "0:0/numa1" are parts by NUMA node, where the driver has
 * them. Sizes differ by one unit where they must. Its budget of memory is as large a part as that of its units, unless
 * the options limit it. A device that cannot give the share is refused.
 */
RNL_API RNL_NODISCARD rnl_status rnl_device_open(const char *spec, const rnl_device_options *options,
                                                 rnl_device **out_device);
/*
 * The same for a process that opens one device alone, and before any other OpenCL call: its share of a CPU device, or
 * its compute_units, it is given by starting no more of pocl's threads; "/N.K", "/numa" and "/numaK", and "/N" where no
 * share of another process has the processors, by running on those alone, with all its threads: until the process ends,
 * also when the device is released. Elsewhere, or later, it is rnl_device_open. Not while other threads run.
 */
RNL_API RNL_NODISCARD rnl_status rnl_device_open_alone(const char *spec, const rnl_device_options *options,
                                                       rnl_device **out_device);
RNL_API rnl_device *rnl_device_retain(rnl_device *device);
/*
 * The last release writes compiled programs that are not in the cache yet, which takes as long as compiling them on
 * pocl. A process may end without it, and compiles them again the next time.
 */
RNL_API void rnl_device_release(rnl_device *device);
/* Borrowed, valid as long as the device. */
RNL_API const rnl_device_info *rnl_device_get_info(const rnl_device *device);
#define RNL_DEVICE_SPEC_BYTES 64
/* What names it among the others, share and all: "0:0", "0:0/2.1", "0:0/numa1", "0:0, 3 of 8 units". Returns `out`. */
RNL_API const char *rnl_device_spec(const rnl_device *device, char out[RNL_DEVICE_SPEC_BYTES]);

typedef struct rnl_device_stats {
    size_t pool_in_use_bytes, pool_reserved_bytes, pool_peak_bytes, pool_budget_bytes;
    uint64_t programs_compiled; /* from source by this device object */
    uint64_t programs_loaded;   /* from the cache on disk */
    uint64_t kernels_launched;
} rnl_device_stats;
RNL_API void rnl_device_get_stats(const rnl_device *device, rnl_device_stats *out_stats);

/*
 * The folder of the program cache on disk: RUNNEL_CACHE_DIR, else XDG_CACHE_HOME/runnel, else ~/.cache/runnel. Empty
 * when the cache is off (RUNNEL_CACHE=off) or no folder can be had. Writes a NUL-terminated path; returns its length.
 * Any thread.
 */
RNL_API size_t rnl_cache_dir(char *out_path, size_t capacity);

/* ---- Streams and events --------------------------------------------------------------------------------------- */

/* One in-order queue. A stream is used by one thread at a time; it keeps its first failure and returns it ever after.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_create(rnl_device *device, rnl_stream **out_stream);

typedef struct rnl_stream_options {
    size_t struct_size;
    bool timed;       /* its events know when they happened, where the driver can tell: rnl_event_elapsed */
    rnl_trace *trace; /* its commands are recorded there: see trace.h */
    const char *name; /* of its track there; copied. NULL: "stream N" */
} rnl_stream_options;
#define RNL_STREAM_OPTIONS_INIT                                                                                        \
    {                                                                                                                  \
        sizeof(rnl_stream_options), false, NULL, NULL                                                                  \
    }
/* `options` may be NULL. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_create_with(rnl_device *device, const rnl_stream_options *options,
                                                        rnl_stream **out_stream);
RNL_API rnl_stream *rnl_stream_retain(rnl_stream *stream);
/* Waits for nothing: commands that were enqueued still run. */
RNL_API void rnl_stream_release(rnl_stream *stream);
/* Starts what is enqueued, without waiting. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_flush(rnl_stream *stream);
/* Blocks until everything enqueued has run; returns the stream's first failure. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_synchronize(rnl_stream *stream);

/* A point in the stream; flushes. The event is released by the caller, whether it has happened or not. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_record(rnl_stream *stream, rnl_event **out_event);
/*
 * What is enqueued on `stream` from now on runs after `event`, which may be of another device, also of another
 * platform. Does not block, but for pocl's basic device and Oclgrind, which run commands in the thread that enqueues
 * them. The stream fails when the event's stream fails, or one that that waited for. An event of another device is
 * waited for by a thread of the waiting stream's device, made with the first such call; the device's last release waits
 * for it.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_wait(rnl_stream *stream, rnl_event *event);
RNL_API rnl_event *rnl_event_retain(rnl_event *event);
RNL_API void rnl_event_release(rnl_event *event);
/* Blocks until the event has happened; returns the failure of its stream, if any. Any thread. */
RNL_API RNL_NODISCARD rnl_status rnl_event_synchronize(rnl_event *event);
/*
 * Whether the event has happened, without blocking. The failure of its stream, if any, is returned once it has, with
 * *out_done true. Any thread.
 */
RNL_API RNL_NODISCARD rnl_status rnl_event_query(rnl_event *event, bool *out_done);

/* `error` is NULL, or the failure of the event's stream: borrowed for the call. */
typedef void (*rnl_event_fn)(void *user, const rnl_error *error);
/*
 * Calls `notify` once, when the event has happened: from a thread of the event's device that also serves its streams'
 * waiting, so it should be quick. It may enqueue, record, wait on the device and release anything; blocking for a
 * stream or an event is RNL_FAILED_PRECONDITION there. The event may be released before; the device's last release
 * waits for the call. Any thread.
 */
RNL_API RNL_NODISCARD rnl_status rnl_event_notify(rnl_event *event, rnl_event_fn notify, void *user);
/*
 * Nanoseconds from one event to another, which have happened, on timed streams of one device, by the device's clock.
 * RNL_UNIMPLEMENTED where the driver has no times (rusticl). Any thread.
 */
RNL_API RNL_NODISCARD rnl_status rnl_event_elapsed(rnl_event *from, rnl_event *to, uint64_t *out_ns);

/* ---- Buffers -------------------------------------------------------------------------------------------------- */

typedef enum rnl_memory {
    RNL_MEMORY_DEVICE, /* device memory */
    /* Host memory that the device's copies reach fast; mapped from creation to release. A kernel of a device with
     * memory of its own may take it too: it is then copied there and back around the launch. */
    RNL_MEMORY_PINNED
} rnl_memory;

/*
 * From the device's pool, aligned to base_align_bytes, contents undefined. RNL_RESOURCE_EXHAUSTED past the pool's
 * budget or the device's largest allocation; the message names the limit. `size_bytes` of 0 is RNL_INVALID_ARGUMENT.
 * Any thread. Release a buffer only after the streams that use it have been synchronised, or with
 * rnl_buffer_release_after (runnel/pool.h), which waits for nothing.
 */
RNL_API RNL_NODISCARD rnl_status rnl_buffer_create(rnl_device *device, rnl_memory memory, size_t size_bytes,
                                                   rnl_buffer **out_buffer);
RNL_API rnl_buffer *rnl_buffer_retain(rnl_buffer *buffer);
RNL_API void rnl_buffer_release(rnl_buffer *buffer);
RNL_API size_t rnl_buffer_size(const rnl_buffer *buffer);
/* A pinned buffer's host address; NULL for device memory. The host may touch it while no command uses the buffer. */
RNL_API void *rnl_buffer_host(const rnl_buffer *buffer);

/*
 * Enqueue copies; they do not block where the host memory is pinned or the device is a CPU. `src` or `dst` host memory
 * must stay valid until the stream has been synchronised. What `src` holds is read at any time from the call on: unless
 * it is pinned memory, no command before this one may still have to write it.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_write(rnl_stream *stream, rnl_buffer *dst, size_t dst_offset,
                                                  const void *src, size_t size_bytes);
RNL_API RNL_NODISCARD rnl_status rnl_stream_read(rnl_stream *stream, void *dst, rnl_buffer *src, size_t src_offset,
                                                 size_t size_bytes);
RNL_API RNL_NODISCARD rnl_status rnl_stream_copy(rnl_stream *stream, rnl_buffer *dst, size_t dst_offset,
                                                 rnl_buffer *src, size_t src_offset, size_t size_bytes);
/* Fills with a repeated pattern of 1, 2, 4, 8 or 16 bytes; offset and size are multiples of its size. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_fill(rnl_stream *stream, rnl_buffer *dst, size_t dst_offset,
                                                 const void *pattern, size_t pattern_bytes, size_t size_bytes);

/* ---- Kernels -------------------------------------------------------------------------------------------------- */

typedef struct rnl_kernel rnl_kernel;

/*
 * Builds OpenCL C `source` with `options` ("-DTILE=4 …", may be NULL), or takes it from the caches, and gets the kernel
 * `name`. A build error is RNL_INVALID_ARGUMENT with the compiler's log. A kernel belongs to one stream's thread at a
 * time.
 */
RNL_API RNL_NODISCARD rnl_status rnl_kernel_create(rnl_device *device, const char *source, const char *options,
                                                   const char *name, rnl_kernel **out_kernel);
RNL_API rnl_kernel *rnl_kernel_retain(rnl_kernel *kernel);
RNL_API void rnl_kernel_release(rnl_kernel *kernel);

typedef enum rnl_arg_kind { RNL_ARG_VALUE, RNL_ARG_BUFFER, RNL_ARG_LOCAL } rnl_arg_kind;
typedef struct rnl_arg {
    rnl_arg_kind kind;
    size_t size_bytes;  /* of a value or of local memory */
    const void *value;  /* RNL_ARG_VALUE */
    rnl_buffer *buffer; /* RNL_ARG_BUFFER */
} rnl_arg;

typedef struct rnl_range {
    uint32_t dimensions; /* 1, 2 or 3 */
    size_t global[3];    /* work-items; rounded up by the caller to a multiple of `local` */
    size_t local[3];     /* work-items of a group; at least 1 each */
} rnl_range;

/* Enqueues one launch. Checks local memory and work-group size against the device first: some drivers abort on them. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_launch(rnl_stream *stream, rnl_kernel *kernel, const rnl_range *range,
                                                   const rnl_arg *args, size_t arg_count);

#ifdef __cplusplus
}
#endif
#endif
