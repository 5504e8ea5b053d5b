/* SPDX-License-Identifier: Apache-2.0 */
#include "model/profile.h"

#include "base/memory.h"

static void clear_timers(rnl_profile *profile)
{
    for (size_t i = 0; i < profile->timer_count; i++)
        rnl_step_timer_clear(&profile->timers[i]);
    profile->timer_count = 0;
}

static void clear_pieces(rnl_profile *profile)
{
    for (size_t i = 0; i < profile->piece_count; i++)
        rnl_plan_release(profile->pieces[i].plan);
    profile->piece_count = profile->step_count = 0;
}

void rnl_profile_free(rnl_profile *profile)
{
    if (!profile)
        return;
    clear_timers(profile);
    clear_pieces(profile);
    rnl_free(profile->pieces);
    rnl_free(profile->timers);
    rnl_free(profile->steps);
    rnl_free(profile);
}

/* Room for all steps is made before the first: a driver may fill in an event's place later. */
rnl_status rnl_profile_step(rnl_session *session, size_t step)
{
    rnl_profile *profile = session->profile;
    const rnl_step_list *list = &session->bound->steps;
    const rnl_step_place place = {session->stream, session->kernels, session->slots, session->bound->slot_count};
    TRY(rnl_grow(&profile->timers, &profile->timer_capacity, list->step_count, sizeof *profile->timers));
    profile->timer_count = step + 1;
    return rnl_step_enqueue_timed(&place, list, step, profile->waits, &profile->timers[step]);
}

/* A node without a name goes by its first output. */
static const char *node_name(const rnl_graph *graph, const rnl_node *node)
{
    for (uint32_t i = 0; !*node->name && i < node->output_count; i++)
        if (node->outputs[i] != RNL_NO_VALUE)
            return graph->values[node->outputs[i]].name;
    return node->name;
}

rnl_step_profile rnl_profile_describe(const rnl_plan *plan, size_t index)
{
    const rnl_graph *graph = plan->model->graph;
    const rnl_step *step = &plan->steps.steps[index];
    rnl_step_profile record = {.node = "",
                               .op_type = "",
                               .implementation = step->implementation,
                               .file = step->program ? rnl_program_file(step->program) : "",
                               .kernel = step->kernel ? step->kernel : "",
                               .flops = step->flops,
                               .bytes = step->bytes};
    const rnl_step_label *label = &plan->step_labels[index];
    record.also = label->also;
    if (label->node != RNL_NO_NODE) {
        const rnl_node *node = &graph->nodes[label->node];
        record.node = node_name(graph, node);
        record.op_type = node->op_type;
    }
    return record;
}

static rnl_status add_piece(rnl_profile *profile, rnl_plan *plan, size_t *out_first)
{
    const size_t count = plan->steps.step_count;
    for (size_t i = 0; i < profile->piece_count; i++) {
        *out_first = profile->pieces[i].first_step;
        if (profile->pieces[i].plan == plan)
            return RNL_OK;
    }
    TRY(rnl_grow(&profile->pieces, &profile->piece_capacity, profile->piece_count + 1, sizeof *profile->pieces));
    TRY(rnl_grow(&profile->steps, &profile->step_capacity, profile->step_count + count, sizeof *profile->steps));
    *out_first = profile->step_count;
    profile->pieces[profile->piece_count++] = (rnl_profile_piece){rnl_plan_retain(plan), profile->step_count};
    for (size_t i = 0; i < count; i++)
        profile->steps[profile->step_count++] = rnl_profile_describe(plan, i);
    return RNL_OK;
}

rnl_status rnl_profile_collect(rnl_session *session)
{
    rnl_profile *profile = session->profile;
    size_t first = 0;
    TRY(add_piece(profile, session->bound, &first));
    for (size_t i = 0; i < session->bound->steps.step_count; i++) {
        rnl_step_profile *record = &profile->steps[first + i];
        uint64_t time_ns = 0;
        TRY(rnl_step_timer_read(&profile->timers[i], &time_ns, &record->device_clock));
        record->time_ns += time_ns;
        profile->is_timed = profile->is_timed && (time_ns > 0 || !record->device_clock);
    }
    clear_timers(profile);
    return RNL_OK;
}

/* The session's own stream rests meanwhile: it keeps no times. A failure may have put another one in place of this. */
static rnl_status run_timed(rnl_session *session, const rnl_tensor *inputs, size_t input_count)
{
    const rnl_stream_options options = {.struct_size = sizeof options, .timed = true};
    rnl_stream *usual = session->stream, *timed = NULL;
    clear_pieces(session->profile);
    session->profile->is_timed = true;
    TRY(rnl_stream_create_with(session->model->device, &options, &timed));
    session->stream = timed;
    session->is_profiled = true;
    rnl_status status = rnl_session_execute(session, inputs, input_count, NULL, 0);
    session->is_profiled = false;
    clear_timers(session->profile);
    rnl_stream_release(session->stream);
    session->stream = usual;
    return status;
}

rnl_status rnl_profile_run(rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                           const rnl_step_profile **out_steps, size_t *out_count)
{
    if (!session->profile)
        TRY(rnl_alloc(1, sizeof *session->profile, &session->profile));
    rnl_profile *profile = session->profile;
    TRY(run_timed(session, inputs, input_count));
    if (!profile->is_timed) {
        profile->waits = true;
        TRY(run_timed(session, inputs, input_count));
    }
    *out_steps = profile->steps;
    *out_count = profile->step_count;
    return RNL_OK;
}
