/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ring.h"

#include "base/memory.h"
#include "device/buffer.h"
#include "model/session.h"

static void drop_event(rnl_event **event)
{
    rnl_event_release(*event);
    *event = NULL;
}

static void drop_events(rnl_ring *ring)
{
    for (size_t i = 0; i < ring->event_capacity[0]; i++)
        drop_event(&ring->arrived[i]);
    for (size_t i = 0; i < ring->event_capacity[1]; i++)
        drop_event(&ring->ended[i]);
}

static void release_segments(rnl_ring *ring)
{
    for (size_t i = 0; i < ring->segment_count; i++)
        rnl_buffer_release(ring->segments[i]);
    ring->segment_count = 0;
    ring->bytes = 0;
}

void rnl_ring_free(rnl_ring *ring)
{
    drop_events(ring);
    release_segments(ring);
    rnl_free(ring->segments);
    rnl_free(ring->arrived);
    rnl_free(ring->ended);
    rnl_stream_release(ring->stream);
    *ring = (rnl_ring){0};
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static bool fits(const rnl_ring *ring, const struct rnl_ring_plan *plan)
{
    bool fits = ring->segment_count >= plan->segment_count;
    for (size_t i = 0; i < plan->segment_count && fits; i++)
        fits = rnl_buffer_size(ring->segments[i]) >= plan->segment_bytes[i];
    return fits;
}

rnl_status rnl_ring_reserve(rnl_session *session, const rnl_plan *plan)
{
    rnl_ring *ring = &session->ring;
    const struct rnl_ring_plan *wanted = plan->ring;
    ring->is_loaded = false;
    if (!wanted || wanted->stretch_count == 0)
        return RNL_OK;
    if (!ring->stream)
        TRY(rnl_stream_create(session->model->device, &ring->stream));
    TRY(rnl_grow(&ring->arrived, &ring->event_capacity[0], wanted->stretch_count, sizeof(rnl_event *)));
    TRY(rnl_grow(&ring->ended, &ring->event_capacity[1], wanted->stretch_count, sizeof(rnl_event *)));
    if (fits(ring, wanted))
        return RNL_OK;
    release_segments(ring);
    TRY(rnl_grow(&ring->segments, &ring->segment_capacity, wanted->segment_count, sizeof(rnl_buffer *)));
    for (size_t i = 0; i < wanted->segment_count; i++) {
        TRY(rnl_buffer_create(session->model->device, RNL_MEMORY_DEVICE, wanted->segment_bytes[i], &ring->segments[i]),
            "a ring of device memory for weights");
        ring->segment_count = i + 1;
        ring->bytes += wanted->segment_bytes[i];
    }
    return RNL_OK;
}

/* ---- copying ahead -------------------------------------------------------------------------------------------- */

static rnl_status load_stretch(rnl_session *session, size_t index)
{
    rnl_ring *ring = &session->ring;
    const struct rnl_ring_plan *plan = session->bound->ring;
    const rnl_stretch *stretch = &plan->stretches[index];
    if (stretch->after > 0)
        TRY(rnl_stream_wait(ring->stream, ring->ended[stretch->after - 1]));
    for (size_t i = 0; i < stretch->copy_count; i++) {
        const rnl_ring_copy *copy = &plan->copies[stretch->first_copy + i];
        TRY(rnl_stream_write(ring->stream, ring->segments[copy->segment], copy->offset_bytes, copy->host,
                             copy->size_bytes));
    }
    drop_event(&ring->arrived[index]);
    return rnl_stream_record(ring->stream, &ring->arrived[index]);
}

/* Those whose places belong to stretches that have been enqueued. */
static rnl_status load_ahead(rnl_session *session)
{
    rnl_ring *ring = &session->ring;
    const struct rnl_ring_plan *plan = session->bound->ring;
    while (ring->next_load < plan->stretch_count && plan->stretches[ring->next_load].after <= ring->next_stretch)
        TRY(load_stretch(session, ring->next_load++), "copying weights to the device");
    return RNL_OK;
}

rnl_status rnl_ring_begin(rnl_session *session)
{
    rnl_ring *ring = &session->ring;
    const struct rnl_ring_plan *plan = session->bound->ring;
    if (!plan || plan->stretch_count == 0)
        return RNL_OK;
    drop_events(ring);
    ring->next_stretch = 0;
    ring->next_load = ring->is_loaded ? plan->stretch_count : 0;
    return load_ahead(session);
}

/* ---- reaching steps ------------------------------------------------------------------------------------------- */

static void place(rnl_session *session, const rnl_stretch *stretch)
{
    const struct rnl_ring_plan *plan = session->bound->ring;
    for (size_t i = 0; i < stretch->load_count; i++) {
        const rnl_ring_load *load = &plan->loads[stretch->first_load + i];
        session->slots[load->slot].memory = session->ring.segments[load->segment]->memory;
        session->slots[load->slot].offset_bytes = load->offset_bytes;
    }
}

/* The end of the one before lets others into its place. */
static rnl_status enter(rnl_session *session, size_t index)
{
    rnl_ring *ring = &session->ring;
    if (index > 0)
        TRY(rnl_stream_record(session->stream, &ring->ended[index - 1]));
    ring->next_stretch = index;
    TRY(load_ahead(session));
    if (ring->arrived[index])
        TRY(rnl_stream_wait(session->stream, ring->arrived[index]));
    place(session, &session->bound->ring->stretches[index]);
    ring->next_stretch = index + 1;
    return RNL_OK;
}

rnl_status rnl_ring_reach(rnl_session *session, size_t step)
{
    const rnl_ring *ring = &session->ring;
    const struct rnl_ring_plan *plan = session->bound->ring;
    if (!plan || ring->next_stretch == plan->stretch_count || plan->stretches[ring->next_stretch].first_step != step)
        return RNL_OK;
    return enter(session, ring->next_stretch);
}

rnl_status rnl_ring_end(rnl_session *session)
{
    const struct rnl_ring_plan *plan = session->bound->ring;
    if (!plan || plan->stretch_count == 0)
        return RNL_OK;
    TRY(rnl_stream_synchronize(session->ring.stream));
    drop_events(&session->ring);
    session->ring.is_loaded = plan->is_whole;
    return RNL_OK;
}

void rnl_ring_recover(rnl_session *session)
{
    rnl_ring *ring = &session->ring;
    rnl_stream *stream = NULL;
    ring->is_loaded = false;
    if (!ring->stream)
        return;
    (void)!rnl_stream_synchronize(ring->stream);
    drop_events(ring);
    if (rnl_stream_create(session->model->device, &stream) != RNL_OK)
        return;
    rnl_stream_release(ring->stream);
    ring->stream = stream;
}

rnl_buffer *rnl_ring_buffer(const rnl_session *session, uint32_t slot)
{
    const struct rnl_ring_plan *plan = session->bound->ring;
    const rnl_stretch *last = plan->stretch_count ? &plan->stretches[plan->stretch_count - 1] : NULL;
    for (size_t i = 0; last && i < last->load_count; i++)
        if (plan->loads[last->first_load + i].slot == slot)
            return session->ring.segments[plan->loads[last->first_load + i].segment];
    return NULL;
}
