/* SPDX-License-Identifier: Apache-2.0 */
#include "device/side_queue.h"

#include "base/memory.h"

#define MOST_IDLE 8

void rnl_side_queue_drop(rnl_side_queue *queue)
{
    if (!queue)
        return;
    if (queue->queue)
        clReleaseCommandQueue(queue->queue);
    rnl_free(queue);
}

void rnl_side_queues_destroy(rnl_device *device)
{
    while (device->idle_queues) {
        rnl_side_queue *queue = device->idle_queues;
        device->idle_queues = queue->next;
        rnl_side_queue_drop(queue);
    }
}

static rnl_side_queue *take_idle(rnl_device *device)
{
    pthread_mutex_lock(&device->lock);
    rnl_side_queue *queue = device->idle_queues;
    if (queue) {
        device->idle_queues = queue->next;
        device->idle_queue_count--;
    }
    pthread_mutex_unlock(&device->lock);
    return queue;
}

rnl_status rnl_side_queue_take(rnl_device *device, rnl_side_queue **out_queue)
{
    cl_int code;
    rnl_side_queue *queue = take_idle(device);
    *out_queue = queue;
    if (queue)
        return RNL_OK;
    TRY(rnl_alloc(1, sizeof *queue, &queue));
    queue->queue = CL_NEW(&code, clCreateCommandQueue(device->context, device->id, 0, &code));
    rnl_status status = rnl_cl_status(code, "clCreateCommandQueue");
    if (status == RNL_OK)
        *out_queue = queue;
    else
        rnl_side_queue_drop(queue);
    return status;
}

void rnl_side_queue_give_back(rnl_device *device, rnl_side_queue *queue)
{
    if (!queue)
        return;
    pthread_mutex_lock(&device->lock);
    bool keeps = device->idle_queue_count < MOST_IDLE;
    if (keeps) {
        queue->next = device->idle_queues;
        device->idle_queues = queue;
        device->idle_queue_count++;
    }
    pthread_mutex_unlock(&device->lock);
    if (!keeps)
        rnl_side_queue_drop(queue);
}
