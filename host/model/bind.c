/* SPDX-License-Identifier: Apache-2.0 */
/* Giving a plan's slots memory of a session. */
#include "base/memory.h"
#include "device/buffer.h"
#include "model/session.h"
#include <runnel/pool.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void release_arena(rnl_session *session)
{
    for (size_t i = 0; i < session->block_count; i++)
        rnl_buffer_release(session->blocks[i]);
    session->block_count = 0;
    session->arena_bytes = 0;
}

static void release_plan(rnl_session *session)
{
    rnl_plan_release(session->bound);
    session->bound = NULL;
    session->named = NULL;
    session->has_constants = false;
}

void rnl_session_unbind(rnl_session *session)
{
    release_plan(session);
    release_arena(session);
}

rnl_buffer *rnl_session_buffer(const rnl_session *session, uint32_t slot)
{
    const rnl_slot *placed = &session->bound->slots[slot];
    if (placed->host)
        return rnl_ring_buffer(session, slot);
    return placed->kind == RNL_SLOT_WEIGHT ? placed->weight : session->blocks[placed->block];
}

/* Without an arena each block is one value: it must fit exactly, or a checker would miss what is written past it. */
static bool arena_fits(const rnl_session *session, const rnl_plan *plan, size_t guard)
{
    if (plan->block_count > session->block_count)
        return false;
    for (size_t i = 0; i < plan->block_count; i++) {
        size_t have = rnl_buffer_size(session->blocks[i]), need = plan->block_bytes[i] + guard;
        if (have < need || (rnl_arena_is_off() && have != need))
            return false;
    }
    return true;
}

/* Without an arena a block is one slot, and is called so in messages. */
static rnl_status create_block(rnl_session *session, const rnl_plan *plan, uint32_t block, size_t bytes)
{
    rnl_buffer_options options = RNL_BUFFER_OPTIONS_INIT;
    char label[32];
    for (uint32_t i = 0; rnl_arena_is_off() && i < plan->slot_count; i++)
        if (plan->slots[i].kind != RNL_SLOT_WEIGHT && plan->slots[i].block == block && plan->slots[i].size_bytes > 0) {
            snprintf(label, sizeof label, "slot %u", (unsigned)i);
            options.label = label;
        }
    return rnl_buffer_create_with(session->model->device, RNL_MEMORY_DEVICE, bytes, &options, &session->blocks[block]);
}

static rnl_status grow_arena(rnl_session *session, const rnl_plan *plan, size_t guard)
{
    if (arena_fits(session, plan, guard))
        return RNL_OK;
    release_arena(session);
    TRY(rnl_grow(&session->blocks, &session->block_capacity, plan->block_count, sizeof *session->blocks));
    for (size_t i = 0; i < plan->block_count; i++) {
        size_t bytes = plan->block_bytes[i] + guard;
        TRY(create_block(session, plan, (uint32_t)i, bytes), "arena of %zu bytes", plan->arena_bytes);
        session->block_count = i + 1;
        session->arena_bytes += bytes;
    }
    if (session->arena_bytes > session->arena_peak_bytes)
        session->arena_peak_bytes = session->arena_bytes;
    return RNL_OK;
}

/* ---- guard bands ---------------------------------------------------------------------------------------------- */

#define GUARD_PATTERN 0xA5

static rnl_status write_guards(rnl_session *session, size_t guard)
{
    const unsigned char pattern = GUARD_PATTERN;
    for (size_t i = 0; guard && i < session->bound->block_count; i++)
        TRY(rnl_stream_fill(session->stream, session->blocks[i], session->bound->block_bytes[i], &pattern, 1, guard));
    return RNL_OK;
}

rnl_status rnl_session_check_guards(rnl_session *session)
{
    uint8_t *band = session->guard_band;
    size_t guard = rnl_arena_guard_bytes(rnl_device_get_info(session->model->device));
    for (size_t i = 0; guard && i < session->bound->block_count; i++) {
        size_t bytes = session->bound->block_bytes[i];
        TRY(rnl_stream_read(session->stream, band, session->blocks[i], bytes, guard));
        TRY(rnl_stream_synchronize(session->stream));
        for (size_t j = 0; j < guard; j++)
            if (band[j] != GUARD_PATTERN)
                return FAIL(RNL_INTERNAL, "a step wrote %zu bytes past the end of a value of %zu bytes", j + 1, bytes);
    }
    return RNL_OK;
}

/* ---- binding -------------------------------------------------------------------------------------------------- */

void rnl_session_place_slots(rnl_session *session)
{
    const rnl_plan *plan = session->bound;
    for (size_t i = 0; plan && i < plan->slot_count; i++) {
        const rnl_slot *slot = &plan->slots[i];
        const rnl_buffer *buffer = slot->kind == RNL_SLOT_WEIGHT ? slot->weight : session->blocks[slot->block];
        session->slots[i].memory = buffer ? buffer->memory : NULL; /* none: the ring says where, stretch by stretch */
        session->slots[i].offset_bytes = slot->offset_bytes;
    }
}

rnl_status rnl_session_bind(rnl_session *session, rnl_plan *plan)
{
    size_t guard = rnl_arena_guard_bytes(rnl_device_get_info(session->model->device));
    if (session->bound == plan)
        return RNL_OK;
    release_plan(session);
    TRY(grow_arena(session, plan, guard));
    TRY(rnl_ring_reserve(session, plan));
    TRY(rnl_grow(&session->slots, &session->slot_capacity, plan->slot_count, sizeof *session->slots));
    session->bound = rnl_plan_retain(plan);
    rnl_session_place_slots(session);
    rnl_status status = write_guards(session, guard);
    if (status != RNL_OK)
        release_plan(session);
    return status;
}
