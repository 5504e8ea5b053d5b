/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RUNNEL_GUARD=1: behind each buffer lie bytes that nobody may write. They are looked at after each launch and copy,
 * when a stream is synchronised, and when the buffer is released. The variable is read when a device is opened.
 */
#ifndef RUNNEL_DEVICE_GUARD_H
#define RUNNEL_DEVICE_GUARD_H

#include "device/device.h"

#define RNL_GUARD_BYTES 256

/* In builds for debugging also where the variable is not set. */
RNL_API bool rnl_guard_is_on(void);

/* The guards of a device. NULL: there are none. */
struct rnl_guards;
RNL_NODISCARD rnl_status rnl_guards_create(rnl_device *device, struct rnl_guards **out_guards);
void rnl_guards_free(struct rnl_guards *guards);

/* Bytes more that a buffer of this kind is to have. */
size_t rnl_guard_bytes(const rnl_device *device, rnl_memory kind);
/* A new buffer, whose memory has them. `label` may be NULL; it is copied. */
RNL_NODISCARD rnl_status rnl_guard_add(rnl_buffer *buffer, const char *label);
/* The buffer goes away, and commands of `stream` may still use it (NULL: none): a broken guard is in the log, and the
 * next check fails with it. */
void rnl_guard_remove(rnl_buffer *buffer, rnl_stream *stream);
/* Fails with the first broken guard, once for each. Nothing that was launched may be under way. */
RNL_API RNL_NODISCARD rnl_status rnl_guards_check(rnl_device *device);

#endif
