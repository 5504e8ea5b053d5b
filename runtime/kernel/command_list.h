/* SPDX-License-Identifier: Apache-2.0 */
/* A command list's insides, for the files of this folder. */
#ifndef RUNNEL_KERNEL_COMMAND_LIST_H
#define RUNNEL_KERNEL_COMMAND_LIST_H

#include "kernel/command_buffer.h"
#include "kernel/kernel.h"
#include <runnel/command_list.h>

typedef enum rnl_command_kind {
    RNL_COMMAND_LAUNCH,
    RNL_COMMAND_COPY,
    RNL_COMMAND_FILL,
    RNL_COMMAND_WRITE,
    RNL_COMMAND_READ
} rnl_command_kind;

/* What a list keeps of a launch's argument; its value is in the kernel object. */
typedef struct rnl_command_arg {
    rnl_buffer *buffer; /* retained; NULL for other kinds */
    size_t local_bytes; /* 0 for other kinds */
} rnl_command_arg;

typedef struct rnl_command {
    rnl_command_kind kind;
    /* A launch. */
    rnl_kernel *kernel; /* retained */
    cl_kernel object;   /* of this command alone, its arguments set */
    rnl_range range;
    rnl_command_arg *args;
    bool carries;           /* one of its buffers may be in host memory: see rnl_buffer_push */
    rnl_cl_command *native; /* in the list's command buffer, where it can be changed; borrowed */
    /* The others. */
    rnl_buffer *dst, *src; /* retained */
    size_t dst_offset, src_offset, size_bytes, pattern_bytes;
    unsigned char pattern[16];
    const void *from_host;
    void *to_host;
} rnl_command;

struct rnl_command_list {
    atomic_uint references;
    rnl_device *device; /* retained */
    rnl_command *commands;
    size_t count, capacity;
    rnl_replay_way wanted, taken;
    /* The command buffer: made at the first replay of what is recorded, and for its stream. */
    rnl_command_buffers functions;
    rnl_cl_buffer *native;
    rnl_stream *native_stream; /* retained with `native` */
    bool native_fails;         /* the driver refused what is recorded */
};

/* Replays by the driver's command buffer. RNL_UNIMPLEMENTED, with nothing enqueued, where that cannot be. */
RNL_NODISCARD rnl_status rnl_command_list_replay_native(rnl_stream *stream, rnl_command_list *list);
/* What is recorded has changed: the command buffer is made anew at the next replay. */
void rnl_command_list_forget_native(rnl_command_list *list);
/* An argument of a launch has changed. */
void rnl_command_list_update_native(rnl_command_list *list, const rnl_command *command, uint32_t arg_index,
                                    const rnl_arg *arg);
/* The functions, when a trial has shown that they work on this device. */
bool rnl_device_get_command_buffers(rnl_device *device, rnl_command_buffers *out_functions);

#endif
