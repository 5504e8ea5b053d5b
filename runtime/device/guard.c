/* SPDX-License-Identifier: Apache-2.0 */
#include "device/guard.h"

#include "base/log.h"
#include "base/memory.h"
#include "device/buffer.h"
#include "device/pool_list.h"
#include "device/side_queue.h"
#include "device/watch.h"
#include <stdlib.h>
#include <string.h>

#define PATTERN 0xA5
#define LABEL_BYTES 64

/* Of one buffer. */
typedef struct rnl_guard {
    rnl_link link;
    cl_mem memory;
    size_t at; /* where it begins: behind the buffer's last byte */
    bool is_broken;
    char label[LABEL_BYTES];
} rnl_guard;

struct rnl_guards {
    pthread_mutex_t lock;
    rnl_link all;
    rnl_side_queue *queue;
    bool has_late; /* found when its buffer was released */
    rnl_error late;
};

bool rnl_guard_is_on(void)
{
#ifdef RNL_GUARDS
    if (!getenv("RUNNEL_GUARD"))
        return true;
#endif
    return rnl_switch_is_on("RUNNEL_GUARD");
}

rnl_status rnl_guards_create(rnl_device *device, struct rnl_guards **out_guards)
{
    struct rnl_guards *guards;
    *out_guards = NULL;
    /* oclgrind sees such writes by itself, and would not if there were memory behind buffers. */
    if (!rnl_guard_is_on() || strcmp(device->info.platform, "Oclgrind") == 0)
        return RNL_OK;
    TRY(rnl_alloc(1, sizeof *guards, &guards));
    rnl_status status = rnl_side_queue_take(device, &guards->queue);
    if (status != RNL_OK) {
        rnl_free(guards);
        return status;
    }
    rnl_list_init(&guards->all);
    pthread_mutex_init(&guards->lock, NULL);
    *out_guards = guards;
    return RNL_OK;
}

void rnl_guards_free(struct rnl_guards *guards)
{
    if (!guards)
        return;
    rnl_side_queue_drop(guards->queue);
    pthread_mutex_destroy(&guards->lock);
    rnl_free(guards);
}

size_t rnl_guard_bytes(const rnl_device *device, rnl_memory kind)
{
    return device->guards && kind == RNL_MEMORY_DEVICE ? RNL_GUARD_BYTES : 0;
}

/* What was there before may still be the memory of commands of other streams that have not run: the pool gives memory
 * out in a stream's order. With guards each command has ended when the next one is enqueued. */
static rnl_status paint(struct rnl_guards *guards, const rnl_guard *guard)
{
    unsigned char band[RNL_GUARD_BYTES];
    memset(band, PATTERN, sizeof band);
    TRY(CL(clEnqueueWriteBuffer(guards->queue->queue, guard->memory, CL_TRUE, guard->at, sizeof band, band, 0, NULL,
                                NULL)));
    /* Of Intel's CPU runtime (2026.2) one blocking write in ten is done after it has returned, over what others wrote.
     */
    return CL(clFinish(guards->queue->queue));
}

rnl_status rnl_guard_add(rnl_buffer *buffer, const char *label)
{
    struct rnl_guards *guards = buffer->device->guards;
    rnl_guard *guard;
    if (rnl_guard_bytes(buffer->device, buffer->kind) == 0)
        return RNL_OK;
    TRY(rnl_alloc(1, sizeof *guard, &guard));
    guard->memory = buffer->memory;
    guard->at = buffer->size_bytes;
    strncpy(guard->label, label ? label : "", sizeof guard->label - 1);
    pthread_mutex_lock(&guards->lock);
    rnl_status status = paint(guards, guard);
    if (status == RNL_OK)
        rnl_list_add_last(&guards->all, &guard->link);
    pthread_mutex_unlock(&guards->lock);
    if (status != RNL_OK)
        rnl_free(guard);
    else
        buffer->guard = guard;
    return status;
}

static rnl_status fail(rnl_guard *guard, size_t first, size_t last)
{
    guard->is_broken = true;
    return FAIL(RNL_INTERNAL,
                "bytes %zu to %zu behind the end of a buffer of %zu bytes%s%s%s were written, which nobody may", first,
                last, guard->at, guard->label[0] ? " labelled '" : "", guard->label, guard->label[0] ? "'" : "");
}

static rnl_status look(struct rnl_guards *guards, rnl_guard *guard)
{
    unsigned char band[RNL_GUARD_BYTES];
    size_t first = 0, last = RNL_GUARD_BYTES;
    if (guard->is_broken)
        return RNL_OK;
    TRY(CL(clEnqueueReadBuffer(guards->queue->queue, guard->memory, CL_TRUE, guard->at, sizeof band, band, 0, NULL,
                               NULL)));
    while (first < last && band[first] == PATTERN)
        first++;
    while (first < last && band[last - 1] == PATTERN)
        last--;
    return first < last ? fail(guard, first, last - 1) : RNL_OK;
}

void rnl_guard_remove(rnl_buffer *buffer, rnl_stream *stream)
{
    struct rnl_guards *guards = buffer->device->guards;
    rnl_guard *guard = buffer->guard;
    const rnl_error before = *rnl_last_error();
    if (!guard)
        return;
    if (stream)
        clFinish(stream->queue);
    pthread_mutex_lock(&guards->lock);
    if (look(guards, guard) != RNL_OK && guard->is_broken) {
        rnl_log(RNL_LOG_ERROR, "%s", rnl_last_error()->message);
        guards->late = *rnl_last_error();
        guards->has_late = true;
    }
    rnl_list_remove(&guard->link);
    pthread_mutex_unlock(&guards->lock);
    rnl_free(guard);
    buffer->guard = NULL;
    rnl_error_restore(&before);
}

rnl_status rnl_guards_check(rnl_device *device)
{
    struct rnl_guards *guards = device->guards;
    rnl_status status = RNL_OK;
    if (!guards)
        return RNL_OK;
    pthread_mutex_lock(&guards->lock);
    if (guards->has_late)
        status = rnl_error_restore(&guards->late);
    guards->has_late = false;
    for (rnl_link *link = guards->all.next; status == RNL_OK && link != &guards->all; link = link->next)
        status = look(guards, RNL_ELEMENT(rnl_guard, link, link));
    pthread_mutex_unlock(&guards->lock);
    return status;
}
