/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cl_khr_command_buffer and its mutable dispatch. The types are our own: headers differ by version, and the interface
 * changed while it was provisional.
 */
#ifndef RUNNEL_KERNEL_COMMAND_BUFFER_H
#define RUNNEL_KERNEL_COMMAND_BUFFER_H

#include "device/stream.h"

typedef struct rnl_cl_buffer rnl_cl_buffer;   /* cl_command_buffer_khr */
typedef struct rnl_cl_command rnl_cl_command; /* cl_mutable_command_khr */
struct rnl_cl_update;

typedef struct rnl_command_buffers {
    bool has_all, can_mutate; /* can_mutate: arguments can be changed after recording */
    rnl_cl_buffer *(*create)(cl_uint, const cl_command_queue *, const cl_ulong *, cl_int *);
    cl_int (*finalize)(rnl_cl_buffer *);
    cl_int (*retain)(rnl_cl_buffer *);
    cl_int (*release)(rnl_cl_buffer *);
    cl_int (*enqueue)(cl_uint, cl_command_queue *, rnl_cl_buffer *, cl_uint, const cl_event *, cl_event *);
    cl_int (*launch)(rnl_cl_buffer *, cl_command_queue, const cl_ulong *, cl_kernel, cl_uint, const size_t *,
                     const size_t *, const size_t *, cl_uint, const cl_uint *, cl_uint *, rnl_cl_command **);
    cl_int (*update)(rnl_cl_buffer *, cl_uint, const cl_uint *, const void **);
} rnl_command_buffers;

/* Fills the table from what the device claims; has_all stays false where something is missing. */
void rnl_command_buffers_find(const rnl_device *device, rnl_command_buffers *out_functions);

/* One launch of a kernel whose arguments are set. `previous` (0: none) is the sync point that it runs after. */
RNL_NODISCARD rnl_status rnl_command_buffer_record(const rnl_command_buffers *functions, rnl_cl_buffer *buffer,
                                                   cl_kernel kernel, const size_t *global, const size_t *local,
                                                   uint32_t dimensions, cl_uint *sync_point, bool has_previous,
                                                   rnl_cl_command **out_command);
RNL_NODISCARD rnl_status rnl_command_buffer_create(const rnl_command_buffers *functions, cl_command_queue queue,
                                                   rnl_cl_buffer **out_buffer);
/* `value` is NULL for local memory. */
RNL_NODISCARD rnl_status rnl_command_buffer_update(const rnl_command_buffers *functions, rnl_cl_buffer *buffer,
                                                   rnl_cl_command *command, uint32_t arg_index, size_t size_bytes,
                                                   const void *value);

#endif
