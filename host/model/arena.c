/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arena offsets: greedy by size, largest first, each at the lowest offset where it overlaps no slot that lives at the
 * same time (the "greedy by size" of Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference,
 * 2020).
 */
#include "base/memory.h"
#include "device/guard.h"
#include "model/plan.h"

#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 256
/* Kernels index most tensors with 32 bits, from the start of their block: a block that is shared stays below that. */
#define SHARED_BLOCK_BYTES ((size_t)1 << 30)

bool rnl_arena_is_off(void)
{
    const char *mode = getenv("RUNNEL_ARENA");
    return (mode && strcmp(mode, "off") == 0) || rnl_guard_is_on();
}

size_t rnl_arena_guard_bytes(const rnl_device_info *device)
{
    bool sees_by_itself = strcmp(device->platform, "Oclgrind") == 0;
    return rnl_arena_is_off() && !sees_by_itself && !rnl_guard_is_on() ? GUARD_BYTES : 0;
}

/* Steps of one in-order stream happen in the order of their indices. */
static bool happens_before(int64_t use, int64_t write)
{
    return use < write;
}

static bool may_share(const rnl_slot *a, const rnl_slot *b)
{
    return happens_before(a->last_use, b->first_write) || happens_before(b->last_use, a->first_write);
}

static bool in_arena(const rnl_slot *slot)
{
    return slot->kind != RNL_SLOT_WEIGHT && slot->size_bytes > 0;
}

static int larger_first(const void *a, const void *b, void *slots)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    size_t left_bytes = ((rnl_slot *)slots)[left].size_bytes, right_bytes = ((rnl_slot *)slots)[right].size_bytes;
    if (left_bytes != right_bytes)
        return left_bytes < right_bytes ? 1 : -1;
    return left < right ? -1 : left > right;
}

static int lower_first(const void *a, const void *b, void *slots)
{
    size_t left = ((rnl_slot *)slots)[*(const uint32_t *)a].offset_bytes;
    size_t right = ((rnl_slot *)slots)[*(const uint32_t *)b].offset_bytes;
    return left < right ? -1 : left > right;
}

typedef struct placement {
    rnl_plan *plan;
    uint32_t *order;      /* slots, largest first */
    uint32_t *neighbours; /* scratch: slots of one block that live at the same time */
    size_t count, alignment, limit;
} placement;

/* A tensor too large to share a block has one to itself. */
static bool is_large(const rnl_slot *slot)
{
    return slot->size_bytes > SHARED_BLOCK_BYTES;
}

/* The lowest offset in `block` for slot order[index]; SIZE_MAX when it does not fit below the limit. */
static size_t find_offset(placement *p, size_t index, uint32_t block)
{
    rnl_slot *slots = p->plan->slots, *slot = &slots[p->order[index]];
    size_t neighbour_count = 0, offset = 0;
    for (size_t i = 0; i < index; i++) {
        const rnl_slot *other = &slots[p->order[i]];
        if (other->block == block && !may_share(slot, other))
            p->neighbours[neighbour_count++] = p->order[i];
    }
    qsort_r(p->neighbours, neighbour_count, sizeof *p->neighbours, lower_first, slots);
    for (size_t i = 0; i < neighbour_count; i++) {
        const rnl_slot *other = &slots[p->neighbours[i]];
        if (other->offset_bytes >= offset && other->offset_bytes - offset >= slot->size_bytes)
            break;
        size_t end = rnl_align_up(other->offset_bytes + other->size_bytes, p->alignment);
        offset = end > offset ? end : offset;
    }
    size_t limit = p->limit < SHARED_BLOCK_BYTES ? p->limit : SHARED_BLOCK_BYTES;
    return offset + slot->size_bytes <= limit ? offset : SIZE_MAX;
}

static rnl_status place_one(placement *p, size_t index)
{
    rnl_plan *plan = p->plan;
    rnl_slot *slot = &plan->slots[p->order[index]];
    bool own_block = rnl_arena_is_off() || is_large(slot);
    if (slot->size_bytes > p->limit)
        return FAIL(RNL_RESOURCE_EXHAUSTED,
                    "a tensor of %zu bytes exceeds the device's largest allocation of %zu bytes", slot->size_bytes,
                    p->limit);
    uint32_t block = own_block ? (uint32_t)plan->block_count : 0;
    size_t offset = own_block ? 0 : SIZE_MAX;
    while (offset == SIZE_MAX) {
        offset = find_offset(p, index, block);
        if (offset == SIZE_MAX)
            block++;
    }
    if (block >= plan->block_count) {
        plan->block_count = block + 1u;
        plan->block_bytes[block] = 0;
    }
    slot->block = block;
    slot->offset_bytes = offset;
    if (offset + slot->size_bytes > plan->block_bytes[block])
        plan->block_bytes[block] = offset + slot->size_bytes;
    return RNL_OK;
}

rnl_status rnl_arena_assign(rnl_plan *plan, const rnl_device_info *device)
{
    placement p = {.plan = plan, .alignment = device->base_align_bytes, .limit = device->max_allocation_bytes};
    size_t slots = plan->slot_count ? plan->slot_count : 1;
    rnl_status status = RNL_OK;
    p.alignment = p.alignment ? p.alignment : 128;
    GOTO(rnl_alloc(slots, sizeof *p.order, &p.order));
    GOTO(rnl_alloc(slots, sizeof *p.neighbours, &p.neighbours));
    GOTO(rnl_zone_alloc(&plan->zone, slots, sizeof *plan->block_bytes, &plan->block_bytes));
    for (uint32_t i = 0; i < plan->slot_count; i++)
        if (in_arena(&plan->slots[i]))
            p.order[p.count++] = i;
    qsort_r(p.order, p.count, sizeof *p.order, larger_first, plan->slots);
    for (size_t i = 0; i < p.count; i++)
        GOTO(place_one(&p, i));
    for (size_t i = 0; i < plan->block_count; i++)
        plan->arena_bytes += plan->block_bytes[i];
done:
    rnl_free(p.order);
    rnl_free(p.neighbours);
    return status;
}
