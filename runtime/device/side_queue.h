/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues of the library's own beside the streams, kept by their device: making one takes longer than a small copy.
 */
#ifndef RUNNEL_DEVICE_SIDE_QUEUE_H
#define RUNNEL_DEVICE_SIDE_QUEUE_H

#include "device/device.h"

typedef struct rnl_side_queue {
    struct rnl_side_queue *next;
    cl_command_queue queue;
} rnl_side_queue;

/* With the device. */
void rnl_side_queues_destroy(rnl_device *device);

/* For the caller alone until it is given back, when nothing of it may be under way. Any thread. */
RNL_NODISCARD rnl_status rnl_side_queue_take(rnl_device *device, rnl_side_queue **out_queue);
void rnl_side_queue_give_back(rnl_device *device, rnl_side_queue *queue);
/* Instead, where one of its commands failed: drivers fail what is enqueued behind it, for ever. */
void rnl_side_queue_drop(rnl_side_queue *queue);

#endif
