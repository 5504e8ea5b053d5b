/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command lists: launches, copies and fills that are recorded once and replayed many times. All is checked and prepared
 * while recording; a replay only enqueues. Between replays the arguments and ranges of launches can be changed.
 */
#ifndef RUNNEL_COMMAND_LIST_H
#define RUNNEL_COMMAND_LIST_H

#include <runnel/rt.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Belongs to one thread at a time, as the stream does on which it is replayed. Holds its kernels and buffers. */
typedef struct rnl_command_list rnl_command_list;

/* How a list is replayed. The commands and their order are the same. */
typedef enum rnl_replay_way {
    RNL_REPLAY_CHOSEN,  /* as RUNNEL_REPLAY says (own or native), else as was measured on the device, else own */
    RNL_REPLAY_ENQUEUE, /* each command is enqueued, with a kernel object of its own whose arguments are set */
    /* The driver's command buffer (cl_khr_command_buffer). Lists with more than launches of device memory, and devices
     * that have no command buffers or fail a trial of them, take the other way. */
    RNL_REPLAY_NATIVE
} rnl_replay_way;

typedef struct rnl_command_list_options {
    size_t struct_size;
    rnl_replay_way way;
} rnl_command_list_options;
#define RNL_COMMAND_LIST_OPTIONS_INIT                                                                                  \
    {                                                                                                                  \
        sizeof(rnl_command_list_options), RNL_REPLAY_CHOSEN                                                            \
    }

/* An empty list. `options` may be NULL. */
RNL_API RNL_NODISCARD rnl_status rnl_command_list_create(rnl_device *device, const rnl_command_list_options *options,
                                                         rnl_command_list **out_list);
RNL_API rnl_command_list *rnl_command_list_retain(rnl_command_list *list);
/* After the streams on which it was replayed have been synchronised, as for its buffers. */
RNL_API void rnl_command_list_release(rnl_command_list *list);

/*
 * Recording: each call appends one command and gives its index, from 0 (out_index may be NULL). Nothing runs. What the
 * stream's function of that name refuses is refused here, and the list stays as it was. Values are copied; host memory
 * of a write or read is not: it is touched at each replay.
 */
RNL_API RNL_NODISCARD rnl_status rnl_command_list_launch(rnl_command_list *list, rnl_kernel *kernel,
                                                         const rnl_range *range, const rnl_arg *args, size_t arg_count,
                                                         size_t *out_index);
RNL_API RNL_NODISCARD rnl_status rnl_command_list_copy(rnl_command_list *list, rnl_buffer *dst, size_t dst_offset,
                                                       rnl_buffer *src, size_t src_offset, size_t size_bytes,
                                                       size_t *out_index);
RNL_API RNL_NODISCARD rnl_status rnl_command_list_fill(rnl_command_list *list, rnl_buffer *dst, size_t dst_offset,
                                                       const void *pattern, size_t pattern_bytes, size_t size_bytes,
                                                       size_t *out_index);
RNL_API RNL_NODISCARD rnl_status rnl_command_list_write(rnl_command_list *list, rnl_buffer *dst, size_t dst_offset,
                                                        const void *src, size_t size_bytes, size_t *out_index);
RNL_API RNL_NODISCARD rnl_status rnl_command_list_read(rnl_command_list *list, void *dst, rnl_buffer *src,
                                                       size_t src_offset, size_t size_bytes, size_t *out_index);
/* Commands so far; 0 for NULL. */
RNL_API size_t rnl_command_list_count(const rnl_command_list *list);

/*
 * Changes one argument, or the range, of the launch `index`, for the replays to come: those that are under way have
 * taken their arguments when they were enqueued. A buffer that is replaced is released. On failure nothing changes.
 */
RNL_API RNL_NODISCARD rnl_status rnl_command_list_set_arg(rnl_command_list *list, size_t index, uint32_t arg_index,
                                                          const rnl_arg *arg);
RNL_API RNL_NODISCARD rnl_status rnl_command_list_set_range(rnl_command_list *list, size_t index,
                                                            const rnl_range *range);

/* Enqueues all commands in their order; does not wait. Any stream of the list's device, and again before the last
 * replay has ended. */
RNL_API RNL_NODISCARD rnl_status rnl_stream_replay(rnl_stream *stream, rnl_command_list *list);
/* The way that the last replay took; RNL_REPLAY_CHOSEN before the first. */
RNL_API rnl_replay_way rnl_command_list_get_way(const rnl_command_list *list);

/* True when the device's command buffers do what they should: tried, once for each device object. Any thread. */
RNL_API bool rnl_device_has_native_replay(rnl_device *device);
/* What RNL_REPLAY_CHOSEN means on this device, for lists that are created from now on; `runnel tune launch` measures
 * it. Also kept in the cache folder for other processes. Any thread. */
RNL_API RNL_NODISCARD rnl_status rnl_device_set_replay(rnl_device *device, rnl_replay_way way);
RNL_API rnl_replay_way rnl_device_get_replay(rnl_device *device);

#ifdef __cplusplus
}
#endif
#endif
