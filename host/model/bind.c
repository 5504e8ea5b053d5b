/* SPDX-License-Identifier: Apache-2.0 */
/* Giving a plan's slots memory of a session. */
#include "base/memory.h"
#include "device/buffer.h"
#include "model/session.h"

#include <stdlib.h>
#include <string.h>

static void release_bound(rnl_bound_plan *bound)
{
    if (!bound->plan)
        return;
    for (size_t i = 0; i < bound->plan->slot_count && bound->buffers; i++)
        if (bound->plan->slots[i].kind != RNL_SLOT_WEIGHT)
            rnl_buffer_release(bound->buffers[i]);
    free(bound->buffers);
    free(bound->memories);
    rnl_plan_release(bound->plan);
    *bound = (rnl_bound_plan){0};
}

void rnl_session_unbind(rnl_session *session)
{
    for (size_t i = 0; i < RNL_BOUND_PLANS; i++)
        release_bound(&session->bound[i]);
    for (size_t i = 0; i < session->block_count; i++)
        rnl_buffer_release(session->blocks[i]);
    session->block_count = 0;
    session->arena_bytes = 0;
    session->constants_of = NULL;
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

static rnl_status grow_arena(rnl_session *session, const rnl_plan *plan, size_t guard)
{
    if (arena_fits(session, plan, guard))
        return RNL_OK;
    rnl_session_unbind(session);
    TRY(rnl_grow(&session->blocks, &session->block_capacity, plan->block_count, sizeof *session->blocks));
    for (size_t i = 0; i < plan->block_count; i++) {
        size_t bytes = plan->block_bytes[i] + guard;
        TRY(rnl_buffer_create(session->model->device, RNL_MEMORY_DEVICE, bytes, &session->blocks[i]),
            "arena of %zu bytes", plan->arena_bytes);
        session->block_count = i + 1;
        session->arena_bytes += bytes;
    }
    if (session->arena_bytes > session->arena_peak_bytes)
        session->arena_peak_bytes = session->arena_bytes;
    return RNL_OK;
}

static rnl_bound_plan *pick_entry(rnl_session *session)
{
    rnl_bound_plan *oldest = &session->bound[0];
    for (size_t i = 0; i < RNL_BOUND_PLANS; i++) {
        if (!session->bound[i].plan)
            return &session->bound[i];
        if (session->bound[i].last_used < oldest->last_used)
            oldest = &session->bound[i];
    }
    release_bound(oldest);
    return oldest;
}

static rnl_status bind_slot(rnl_session *session, const rnl_slot *slot, size_t guard, rnl_buffer **out_buffer)
{
    if (slot->kind == RNL_SLOT_WEIGHT) {
        *out_buffer = slot->weight;
        return RNL_OK;
    }
    rnl_buffer *block = session->blocks[slot->block];
    if (rnl_arena_is_off()) {
        *out_buffer = rnl_buffer_retain(block);
        return RNL_OK;
    }
    return rnl_buffer_create_sub(block, slot->offset_bytes, slot->size_bytes + guard, out_buffer);
}

static rnl_status bind_new(rnl_session *session, rnl_plan *plan, rnl_bound_plan **out_bound)
{
    size_t guard = rnl_arena_guard_bytes(rnl_device_get_info(session->model->device));
    TRY(grow_arena(session, plan, guard));
    rnl_bound_plan *bound = pick_entry(session);
    rnl_status status = RNL_OK;
    bound->plan = rnl_plan_retain(plan);
    GOTO(rnl_alloc(plan->slot_count, sizeof(rnl_buffer *), &bound->buffers));
    GOTO(rnl_alloc(plan->slot_count, sizeof *bound->memories, &bound->memories));
    for (size_t i = 0; i < plan->slot_count; i++) {
        GOTO(bind_slot(session, &plan->slots[i], guard, &bound->buffers[i]));
        bound->memories[i] = bound->buffers[i]->memory;
    }
    GOTO(rnl_session_write_guards(session, bound));
    *out_bound = bound;
    return RNL_OK;
done:
    release_bound(bound);
    return status;
}

rnl_status rnl_session_bind(rnl_session *session, rnl_plan *plan, rnl_bound_plan **out_bound)
{
    *out_bound = NULL;
    for (size_t i = 0; i < RNL_BOUND_PLANS; i++)
        if (session->bound[i].plan == plan)
            *out_bound = &session->bound[i];
    if (!*out_bound)
        TRY(bind_new(session, plan, out_bound));
    (*out_bound)->last_used = ++session->run_count;
    return RNL_OK;
}

/* ---- guard bands ---------------------------------------------------------------------------------------------- */

#define GUARD_PATTERN 0xA5

rnl_status rnl_session_write_guards(rnl_session *session, const rnl_bound_plan *bound)
{
    const unsigned char pattern = GUARD_PATTERN;
    size_t guard = rnl_arena_guard_bytes(rnl_device_get_info(session->model->device));
    for (size_t i = 0; guard && i < bound->plan->slot_count; i++)
        if (bound->plan->slots[i].kind != RNL_SLOT_WEIGHT)
            TRY(rnl_stream_fill(session->stream, bound->buffers[i], bound->plan->slots[i].size_bytes, &pattern, 1,
                                guard));
    return RNL_OK;
}

rnl_status rnl_session_check_guards(rnl_session *session, const rnl_bound_plan *bound)
{
    unsigned char band[1024];
    size_t guard = rnl_arena_guard_bytes(rnl_device_get_info(session->model->device));
    for (size_t i = 0; guard && i < bound->plan->slot_count; i++) {
        const rnl_slot *slot = &bound->plan->slots[i];
        if (slot->kind == RNL_SLOT_WEIGHT)
            continue;
        TRY(rnl_stream_read(session->stream, band, bound->buffers[i], slot->size_bytes, guard));
        TRY(rnl_stream_synchronize(session->stream));
        for (size_t j = 0; j < guard; j++)
            if (band[j] != GUARD_PATTERN)
                return FAIL(RNL_INTERNAL, "a step wrote %zu bytes past the end of slot %zu (%zu bytes)", j + 1, i,
                            slot->size_bytes);
    }
    return RNL_OK;
}
