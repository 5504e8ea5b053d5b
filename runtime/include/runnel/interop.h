/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenCL objects of the caller's used by runnel, and runnel's handed out. This header includes <CL/cl.h>.
 *
 * Who owns what: wrapping retains the caller's object and the wrapper's last release releases it, so the caller may
 * release its own reference at once. What is handed out is borrowed, valid as long as runnel's object; retain it
 * (clRetainContext …) to keep it longer. None of them may be released more often than it was retained.
 *
 * Failures: commands that the caller enqueues itself are its own to check. rnl_stream_synchronize also returns a
 * failure of theirs where the driver reports it at the queue's end; not every driver does.
 *
 * The allocator and the log are in rt.h: rnl_allocator_set, rnl_log_set.
 */
#ifndef RUNNEL_INTEROP_H
#define RUNNEL_INTEROP_H

#include <CL/cl.h>
#include <runnel/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A device on the caller's context, which must hold `id`; it may hold others. `options` may be NULL; compute_units must
 * be 0 or the device's: a part of a device is the caller's to make. Buffers of this device are buffers of that context.
 * On pocl, compiled programs are not kept for the next process (see rnl_device_get_cl_context). Any thread.
 */
RNL_API RNL_NODISCARD rnl_status rnl_device_wrap(cl_context context, cl_device_id id, const rnl_device_options *options,
                                                 rnl_device **out_device);
/*
 * A stream on the caller's queue, which must be an in-order queue of the device's context and device. Caller and
 * runnel may both enqueue on it, from one thread at a time; the order is that of the calls.
 */
RNL_API RNL_NODISCARD rnl_status rnl_stream_wrap(rnl_device *device, cl_command_queue queue, rnl_stream **out_stream);
/*
 * A buffer, or sub-buffer, of the device's context. It counts as device memory (rnl_buffer_host is NULL) and not
 * against the pool's budget. The caller must not have it mapped while commands use it. A pointer given to
 * clCreateBuffer with CL_MEM_USE_HOST_PTR should be aligned to base_align_bytes.
 */
RNL_API RNL_NODISCARD rnl_status rnl_buffer_wrap(rnl_device *device, cl_mem memory, rnl_buffer **out_buffer);
/* What is enqueued on `stream` from now on runs after the caller's event, which must be of the same context. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_wait_cl_event(rnl_stream *stream, cl_event event);

/*
 * Borrowed. From then on pocl's programs that this device object compiles are not kept for the next process: asking for
 * them while kernels run, of which runnel would not know, makes pocl abort now and then.
 */
RNL_API cl_context rnl_device_get_cl_context(rnl_device *device);
/* Borrowed. A sub-device where compute_units asked for a part. */
RNL_API cl_device_id rnl_device_get_cl_device(const rnl_device *device);
/* Borrowed; in order. Counts as handing out the context too. */
RNL_API cl_command_queue rnl_stream_get_cl_queue(rnl_stream *stream);
/*
 * Borrowed. The buffer's bytes are its first; it may be larger, and may be a sub-buffer, of which OpenCL makes no
 * further ones. A pinned buffer is mapped for its whole life: on devices with memory of their own its cl_mem is a copy
 * that only runnel's own functions keep up.
 */
RNL_API cl_mem rnl_buffer_get_cl_mem(const rnl_buffer *buffer);
/* Borrowed. */
RNL_API cl_event rnl_event_get_cl_event(const rnl_event *event);

#ifdef __cplusplus
}
#endif
#endif
