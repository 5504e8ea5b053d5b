/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "model/model.h"
#include "model/ring.h"
#include <stdlib.h>
#include <string.h>

/* Kernels may count elements with 32 bits. */
#define SEGMENT_BYTES ((size_t)1 << 30)
/* A stretch is a part of the ring, so that others arrive meanwhile; no more than a bus fills quickly. */
#define STRETCH_PART 4
#define STRETCH_BYTES ((size_t)32 << 20)

/* A weight, which several slots may name. */
typedef struct weight {
    size_t noted_for;    /* 1 + the stretch that it was noted for last */
    size_t offset_bytes; /* there, in its segment */
} weight;

typedef struct divider {
    rnl_plan *plan;
    struct rnl_ring_plan *ring;
    size_t align, budget, limit, segment_bytes, segments;
    weight *weights;
    size_t *noted_for;      /* one a slot, likewise */
    const rnl_slot **needs; /* of the stretch at hand: one a weight */
    size_t count, capacity, bytes;
    uint32_t *slots; /* that it reads */
    size_t slot_count, slot_capacity;
    uint32_t segment; /* where the next stretch goes, if it fits */
    size_t offset_bytes;
} divider;

void rnl_ring_plan_free(struct rnl_ring_plan *ring)
{
    if (!ring)
        return;
    rnl_free(ring->stretches);
    rnl_free(ring->loads);
    rnl_free(ring->copies);
    rnl_free(ring->segment_bytes);
    rnl_free(ring);
}

size_t rnl_ring_plan_bytes(const struct rnl_ring_plan *ring)
{
    if (!ring)
        return 0;
    return sizeof *ring + ring->stretch_capacity * sizeof *ring->stretches + ring->load_capacity * sizeof *ring->loads +
           ring->copy_capacity * sizeof *ring->copies + ring->segment_capacity * sizeof *ring->segment_bytes;
}

/* ---- what steps read ------------------------------------------------------------------------------------------ */

typedef rnl_status (*slot_fn)(divider *d, uint32_t slot);

static rnl_status visit(divider *d, uint32_t slot, slot_fn note)
{
    const rnl_slot *read = slot == RNL_NO_SLOT ? NULL : &d->plan->slots[slot];
    return read && read->host && read->size_bytes > 0 ? note(d, slot) : RNL_OK;
}

/* Behind the last step come the outputs. */
static rnl_status visit_step(divider *d, size_t index, slot_fn note)
{
    const rnl_step_list *list = &d->plan->steps;
    for (size_t i = 0; index == list->step_count && i < d->plan->output_count; i++)
        TRY(visit(d, d->plan->outputs[i].slot, note));
    if (index == list->step_count)
        return RNL_OK;
    const rnl_step *step = &list->steps[index];
    for (uint32_t i = 0; i < step->arg_count; i++)
        if (list->args[step->first_arg + i].kind == RNL_STEP_SLOT)
            TRY(visit(d, list->args[step->first_arg + i].slot, note));
    if (step->kind != RNL_STEP_CLBLAST_GEMM)
        return RNL_OK;
    TRY(visit(d, list->gemms[step->gemm_at].a_slot, note));
    TRY(visit(d, list->gemms[step->gemm_at].b_slot, note));
    return visit(d, list->gemms[step->gemm_at].c_slot, note);
}

static rnl_status note_slot(divider *d, uint32_t slot)
{
    const rnl_slot *read = &d->plan->slots[slot];
    const size_t stretch = d->ring->stretch_count + 1;
    if (d->noted_for[slot] == stretch)
        return RNL_OK;
    TRY(rnl_grow(&d->slots, &d->slot_capacity, d->slot_count + 1, sizeof *d->slots));
    TRY(rnl_grow(&d->needs, &d->capacity, d->count + 1, sizeof *d->needs));
    d->noted_for[slot] = stretch;
    d->slots[d->slot_count++] = slot;
    if (d->weights[read->item].noted_for == stretch)
        return RNL_OK;
    d->weights[read->item].noted_for = stretch;
    d->needs[d->count++] = read;
    d->bytes += rnl_align_up(read->size_bytes, d->align);
    return RNL_OK;
}

/* Forgets what was noted since there were that many. */
static void forget(divider *d, size_t slot_count, size_t count, size_t bytes)
{
    for (size_t i = slot_count; i < d->slot_count; i++)
        d->noted_for[d->slots[i]] = 0;
    for (size_t i = count; i < d->count; i++)
        d->weights[d->needs[i]->item].noted_for = 0;
    d->slot_count = slot_count;
    d->count = count;
    d->bytes = bytes;
}

/* ---- places --------------------------------------------------------------------------------------------------- */

/* As they lie on the host, so that neighbours travel together. */
static int compare_needs(const void *a, const void *b)
{
    const rnl_slot *left = *(const rnl_slot *const *)a, *right = *(const rnl_slot *const *)b;
    if (left->block != right->block)
        return left->block < right->block ? -1 : 1;
    return (left->host > right->host) - (left->host < right->host);
}

/* At the ring's head, else at the next segment's start. */
static void choose_place(divider *d, rnl_stretch *stretch)
{
    if (stretch->size_bytes > d->segment_bytes - d->offset_bytes) {
        d->segment = (uint32_t)((d->segment + 1) % d->segments);
        d->offset_bytes = 0;
    }
    stretch->segment = d->segment;
    stretch->offset_bytes = d->offset_bytes;
    d->offset_bytes += stretch->size_bytes;
}

static size_t find_after(const struct rnl_ring_plan *ring, const rnl_stretch *stretch)
{
    for (size_t i = ring->stretch_count; i > 0; i--) {
        const rnl_stretch *other = &ring->stretches[i - 1];
        if (other->segment == stretch->segment && other->offset_bytes < stretch->offset_bytes + stretch->size_bytes &&
            stretch->offset_bytes < other->offset_bytes + other->size_bytes)
            return i;
    }
    return 0;
}

static rnl_status note_extent(struct rnl_ring_plan *ring, const rnl_stretch *stretch)
{
    const size_t count = (size_t)stretch->segment + 1, end = stretch->offset_bytes + stretch->size_bytes;
    TRY(rnl_grow(&ring->segment_bytes, &ring->segment_capacity, count, sizeof *ring->segment_bytes));
    while (ring->segment_count < count)
        ring->segment_bytes[ring->segment_count++] = 0;
    if (ring->segment_bytes[stretch->segment] < end)
        ring->segment_bytes[stretch->segment] = end;
    return RNL_OK;
}

static bool is_neighbour(const rnl_slot *left, const rnl_slot *right, size_t align)
{
    return left->block == right->block &&
           (uintptr_t)left->host + rnl_align_up(left->size_bytes, align) == (uintptr_t)right->host;
}

static rnl_status add_copies(divider *d, rnl_stretch *stretch)
{
    struct rnl_ring_plan *ring = d->ring;
    size_t at = stretch->offset_bytes;
    TRY(rnl_grow(&ring->copies, &ring->copy_capacity, ring->copy_count + d->count, sizeof *ring->copies));
    stretch->first_copy = ring->copy_count;
    for (size_t i = 0; i < d->count; i++) {
        const rnl_slot *slot = d->needs[i];
        d->weights[slot->item].offset_bytes = at;
        if (i > 0 && is_neighbour(d->needs[i - 1], slot, d->align)) {
            rnl_ring_copy *last = &ring->copies[ring->copy_count - 1];
            last->size_bytes = at - last->offset_bytes + slot->size_bytes;
        } else {
            ring->copies[ring->copy_count++] = (rnl_ring_copy){slot->host, stretch->segment, at, slot->size_bytes};
        }
        at += rnl_align_up(slot->size_bytes, d->align);
        if ((at - 1) / slot->element_bytes > INT32_MAX)
            return FAIL(RNL_UNIMPLEMENTED, "steps that read %zu bytes of weights do not fit 32-bit indices", d->bytes);
    }
    stretch->copy_count = ring->copy_count - stretch->first_copy;
    return RNL_OK;
}

static rnl_status add_loads(divider *d, rnl_stretch *stretch)
{
    struct rnl_ring_plan *ring = d->ring;
    TRY(rnl_grow(&ring->loads, &ring->load_capacity, ring->load_count + d->slot_count, sizeof *ring->loads));
    stretch->first_load = ring->load_count;
    stretch->load_count = d->slot_count;
    for (size_t i = 0; i < d->slot_count; i++) {
        const uint32_t item = d->plan->slots[d->slots[i]].item;
        ring->loads[ring->load_count++] = (rnl_ring_load){d->slots[i], stretch->segment, d->weights[item].offset_bytes};
    }
    return RNL_OK;
}

static rnl_status end_stretch(divider *d, size_t first_step)
{
    struct rnl_ring_plan *ring = d->ring;
    rnl_stretch stretch = {.first_step = first_step, .size_bytes = d->bytes};
    if (d->count == 0)
        return RNL_OK;
    TRY(rnl_grow(&ring->stretches, &ring->stretch_capacity, ring->stretch_count + 1, sizeof *ring->stretches));
    qsort(d->needs, d->count, sizeof *d->needs, compare_needs);
    choose_place(d, &stretch);
    stretch.after = find_after(ring, &stretch);
    ring->is_whole = ring->is_whole && stretch.after == 0;
    TRY(note_extent(ring, &stretch));
    TRY(add_copies(d, &stretch));
    TRY(add_loads(d, &stretch));
    ring->stretches[ring->stretch_count++] = stretch;
    d->count = d->slot_count = d->bytes = 0;
    return RNL_OK;
}

/* ---- dividing ------------------------------------------------------------------------------------------------- */

/* What does not fit beside the stretch at hand begins a new one. */
static rnl_status divide(divider *d)
{
    size_t first_step = 0;
    for (size_t i = 0; i <= d->plan->steps.step_count; i++) {
        const size_t count = d->count, slot_count = d->slot_count, bytes = d->bytes;
        TRY(visit_step(d, i, note_slot));
        if (count == 0)
            first_step = i;
        if (count == 0 || d->bytes <= d->limit || d->count == count)
            continue;
        forget(d, slot_count, count, bytes);
        TRY(end_stretch(d, first_step));
        TRY(visit_step(d, i, note_slot));
        first_step = i;
    }
    return end_stretch(d, first_step);
}

/* The step that reads most at once. */
static rnl_status find_most(divider *d, size_t *out_bytes, uint32_t *out_node)
{
    *out_bytes = 0;
    *out_node = RNL_NO_NODE;
    for (size_t i = 0; i <= d->plan->steps.step_count; i++) {
        TRY(visit_step(d, i, note_slot));
        if (d->bytes > *out_bytes) {
            *out_bytes = d->bytes;
            *out_node = i < d->plan->steps.step_count ? d->plan->step_labels[i].node : RNL_NO_NODE;
        }
        forget(d, 0, 0, 0);
    }
    return RNL_OK;
}

static rnl_status choose_sizes(divider *d)
{
    const rnl_graph *graph = d->plan->model->graph;
    const uint64_t largest = rnl_device_get_info(d->plan->model->device)->max_allocation_bytes;
    uint32_t node;
    size_t most;
    TRY(find_most(d, &most, &node));
    if (most > d->budget) {
        rnl_status status =
            FAIL(RNL_RESOURCE_EXHAUSTED, "a budget of %zu bytes for weights is too small: this step reads %zu at once",
                 d->budget, most);
        return node == RNL_NO_NODE ? status : rnl_node_error(graph, &graph->nodes[node], status);
    }
    d->segment_bytes = d->budget;
    if (d->segment_bytes > SEGMENT_BYTES)
        d->segment_bytes = most > SEGMENT_BYTES ? most : SEGMENT_BYTES;
    if (d->segment_bytes > largest)
        d->segment_bytes = largest > most ? (size_t)largest : most;
    d->segments = d->budget / d->segment_bytes;
    d->limit = d->segment_bytes / STRETCH_PART < STRETCH_BYTES ? d->segment_bytes / STRETCH_PART : STRETCH_BYTES;
    return RNL_OK;
}

rnl_status rnl_ring_plan_make(rnl_plan *plan)
{
    const rnl_model *root = plan->model->root;
    const uint32_t align = rnl_device_get_info(root->device)->base_align_bytes;
    divider d = {.plan = plan, .align = align ? align : 1, .budget = root->options.weight_budget_bytes};
    size_t weight_count = 0;
    rnl_status status = RNL_OK;
    if (d.budget == 0)
        return RNL_OK;
    TRY(rnl_alloc(1, sizeof *plan->ring, &plan->ring));
    d.ring = plan->ring;
    d.ring->is_whole = true;
    for (size_t i = 0; i < plan->slot_count; i++)
        weight_count = plan->slots[i].item >= weight_count ? plan->slots[i].item + 1 : weight_count;
    GOTO(rnl_alloc(plan->slot_count, sizeof *d.noted_for, &d.noted_for));
    GOTO(rnl_alloc(weight_count, sizeof *d.weights, &d.weights));
    GOTO(choose_sizes(&d));
    GOTO(divide(&d));
done:
    rnl_free(d.needs);
    rnl_free(d.slots);
    rnl_free(d.noted_for);
    rnl_free(d.weights);
    return status;
}
