/* SPDX-License-Identifier: Apache-2.0 */
/* The public ring of pinned slots. */
#include "base/memory.h"
#include "device/buffer.h"
#include "device/traffic.h"
#include <runnel/memory.h>

#define MOST_SLOTS 4096

typedef enum slot_state { SLOT_FREE, SLOT_BEGUN, SLOT_WRITES, SLOT_REQUESTED, SLOT_TAKEN } slot_state;

typedef struct slot {
    slot_state state;
    rnl_event *copied; /* the end of the copy that uses it; NULL: there is none */
    size_t size_bytes;
} slot;

struct rnl_staging {
    rnl_device *device; /* retained */
    rnl_buffer *ring;
    slot *slots;
    size_t slot_bytes, stride, count;
    size_t next;   /* the slot whose turn it is */
    size_t oldest; /* the first request that has not been given back */
    size_t requests;
};

rnl_status rnl_staging_create(rnl_device *device, size_t slot_bytes, size_t slot_count, rnl_staging **out_staging)
{
    rnl_staging *staging;
    rnl_status status = RNL_OK;
    size_t stride, bytes;
    *out_staging = NULL;
    if (slot_bytes == 0 || slot_count == 0 || slot_count > MOST_SLOTS)
        return FAIL(RNL_INVALID_ARGUMENT, "a staging ring has 1 to %d slots of at least a byte, not %zu of %zu",
                    MOST_SLOTS, slot_count, slot_bytes);
    if (!rnl_size_add(slot_bytes, 4095, &stride) || !rnl_size_mul(stride &= ~(size_t)4095, slot_count, &bytes))
        return FAIL(RNL_RESOURCE_EXHAUSTED, "a staging ring of %zu slots of %zu bytes is too large to address",
                    slot_count, slot_bytes);
    TRY(rnl_alloc(1, sizeof *staging, &staging));
    staging->device = rnl_device_retain(device);
    staging->slot_bytes = slot_bytes;
    staging->stride = stride;
    staging->count = slot_count;
    GOTO(rnl_alloc(slot_count, sizeof *staging->slots, &staging->slots));
    GOTO(rnl_buffer_create(device, RNL_MEMORY_PINNED, bytes, &staging->ring), "a staging ring of %zu slots",
         slot_count);
    *out_staging = staging;
    return RNL_OK;
done:
    rnl_staging_release(staging);
    return status;
}

/* The slot's copy has ended, one way or the other. */
static rnl_status settle(slot *of)
{
    if (!of->copied)
        return RNL_OK;
    rnl_status status = rnl_event_synchronize(of->copied);
    rnl_event_release(of->copied);
    of->copied = NULL;
    return status;
}

void rnl_staging_release(rnl_staging *staging)
{
    if (!staging)
        return;
    rnl_error error = *rnl_last_error();
    for (size_t i = 0; staging->slots && i < staging->count; i++)
        (void)!settle(&staging->slots[i]);
    rnl_error_restore(&error);
    rnl_free(staging->slots);
    rnl_buffer_release(staging->ring);
    rnl_device_release(staging->device);
    rnl_free(staging);
}

size_t rnl_staging_slot_bytes(const rnl_staging *staging)
{
    return staging ? staging->slot_bytes : 0;
}

static void step(const rnl_staging *staging, size_t *index)
{
    *index = *index + 1 == staging->count ? 0 : *index + 1;
}

static rnl_status full(const rnl_staging *staging)
{
    return FAIL(RNL_FAILED_PRECONDITION, "all %zu slots of the staging ring hold requests that nobody has taken",
                staging->count);
}

static rnl_status check_part(const rnl_staging *staging, rnl_stream *stream, const rnl_buffer *buffer, size_t offset,
                             size_t size)
{
    TRY(rnl_buffer_check_part(stream, buffer, offset, size));
    if (stream->device != staging->device)
        return FAIL(RNL_INVALID_ARGUMENT, "a staging ring of %s was given a stream of %s, which is another device",
                    staging->device->info.name, stream->device->info.name);
    if (size == 0 || size > staging->slot_bytes)
        return FAIL(RNL_INVALID_ARGUMENT, "%zu bytes were to go through a staging slot of %zu bytes", size,
                    staging->slot_bytes);
    return rnl_stream_check(stream);
}

/* ---- Writing ---- */

rnl_status rnl_staging_begin(rnl_staging *staging, void **out_slot)
{
    slot *turn = &staging->slots[staging->next];
    *out_slot = NULL;
    if (turn->state == SLOT_REQUESTED || turn->state == SLOT_TAKEN)
        return full(staging);
    /* Whether that copy failed is its stream's to say: the slot is free. */
    rnl_error error = *rnl_last_error();
    if (settle(turn) != RNL_OK)
        rnl_error_restore(&error);
    turn->state = SLOT_BEGUN;
    *out_slot = (char *)staging->ring->host + staging->next * staging->stride;
    return RNL_OK;
}

rnl_status rnl_staging_submit(rnl_staging *staging, rnl_stream *stream, rnl_buffer *dst, size_t dst_offset,
                              size_t size_bytes)
{
    slot *turn = &staging->slots[staging->next];
    if (turn->state != SLOT_BEGUN)
        return FAIL(RNL_FAILED_PRECONDITION, "a staging slot is submitted that was not begun");
    TRY(check_part(staging, stream, dst, dst_offset, size_bytes));
    rnl_status status =
        rnl_stream_copy(stream, dst, dst_offset, staging->ring, staging->next * staging->stride, size_bytes);
    if (status == RNL_OK)
        status = rnl_stream_record(stream, &turn->copied);
    if (status != RNL_OK) {
        rnl_error error = *rnl_last_error();
        (void)!rnl_stream_synchronize(stream); /* the slot is the caller's again */
        return rnl_error_restore(&error);
    }
    rnl_traffic_add(&staging->device->traffic.staged, size_bytes);
    turn->state = SLOT_WRITES;
    step(staging, &staging->next);
    return RNL_OK;
}

/* ---- Reading ---- */

/* The slot that was given out is free again. */
static void end_taken(rnl_staging *staging)
{
    slot *taken = &staging->slots[staging->oldest];
    if (taken->state != SLOT_TAKEN)
        return;
    taken->state = SLOT_FREE;
    staging->requests--;
    step(staging, &staging->oldest);
    while (staging->requests > 0 && staging->slots[staging->oldest].state != SLOT_REQUESTED)
        step(staging, &staging->oldest);
}

rnl_status rnl_staging_request(rnl_staging *staging, rnl_stream *stream, rnl_buffer *src, size_t src_offset,
                               size_t size_bytes)
{
    slot *turn = &staging->slots[staging->next];
    if (turn->state == SLOT_REQUESTED || turn->state == SLOT_TAKEN)
        return full(staging);
    TRY(check_part(staging, stream, src, src_offset, size_bytes));
    rnl_error error = *rnl_last_error();
    if (settle(turn) != RNL_OK)
        rnl_error_restore(&error);
    turn->state = SLOT_FREE;
    rnl_status status =
        rnl_stream_copy(stream, staging->ring, staging->next * staging->stride, src, src_offset, size_bytes);
    if (status == RNL_OK)
        status = rnl_stream_record(stream, &turn->copied);
    if (status != RNL_OK) {
        error = *rnl_last_error();
        (void)!rnl_stream_synchronize(stream);
        return rnl_error_restore(&error);
    }
    rnl_traffic_add(&staging->device->traffic.staged, size_bytes);
    turn->state = SLOT_REQUESTED;
    turn->size_bytes = size_bytes;
    if (staging->requests++ == 0)
        staging->oldest = staging->next;
    step(staging, &staging->next);
    return RNL_OK;
}

rnl_status rnl_staging_take(rnl_staging *staging, const void **out_slot, size_t *out_bytes)
{
    *out_slot = NULL;
    *out_bytes = 0;
    end_taken(staging);
    slot *oldest = &staging->slots[staging->oldest];
    if (staging->requests == 0)
        return FAIL(RNL_FAILED_PRECONDITION, "the staging ring holds no request");
    oldest->state = SLOT_TAKEN;
    TRY(settle(oldest));
    *out_slot = (char *)staging->ring->host + staging->oldest * staging->stride;
    *out_bytes = oldest->size_bytes;
    return RNL_OK;
}
