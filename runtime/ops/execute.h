/* SPDX-License-Identifier: Apache-2.0 */
/* Executing steps: kernels of the caller's own, arguments bound from slots. */
#ifndef RUNNEL_OPS_EXECUTE_H
#define RUNNEL_OPS_EXECUTE_H

#include "device/stream.h"
#include "kernel/launch.h"
#include "ops/op.h"

/* One caller's kernel objects, one for each (program, entry point) that it has used. One thread at a time. */
typedef struct rnl_kernel_set rnl_kernel_set;
RNL_API RNL_NODISCARD rnl_status rnl_kernel_set_create(rnl_device *device, rnl_kernel_set **out_set);
RNL_API void rnl_kernel_set_release(rnl_kernel_set *set);

/*
 * Whether running these steps needs the driver's program. It does not where the device's team calls all that they name
 * of it; a stream that keeps times, say, builds it then.
 */
RNL_API bool rnl_steps_need(const rnl_step_list *list, const rnl_program *program);
/* Whether the device's team collects most of these launches. */
RNL_API bool rnl_steps_are_collected(const rnl_step_list *list);

/*
 * Where a slot lies: part of a buffer from offset_bytes on, aligned for every type. Parts are not sub-buffers: NVIDIA's
 * driver (580.159) crashes when overlapping ones are released in another order than the reverse of their creation.
 */
typedef struct rnl_slot_memory {
    cl_mem memory;
    size_t offset_bytes;
} rnl_slot_memory;

/* Waits for what was enqueued before, and reads part of a slot. */
RNL_API RNL_NODISCARD rnl_status rnl_slot_read(rnl_stream *stream, const rnl_slot_memory *slot, size_t offset_bytes,
                                               size_t size_bytes, void *out_bytes);

/*
 * Enqueues one step of the list. `slots[i]` is the memory of slot i. A local size above the kernel's own limit is
 * reduced for kernels that allow it (range.local is a wish for kernels without barriers, whose global size needs no
 * rounding up).
 */
RNL_API RNL_NODISCARD rnl_status rnl_step_enqueue(rnl_stream *stream, rnl_kernel_set *set, const rnl_step_list *list,
                                                  size_t step_index, const rnl_slot_memory *slots, size_t slot_count);

#endif
