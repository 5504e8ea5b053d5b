/* SPDX-License-Identifier: Apache-2.0 */
/* One run: upload, enqueue the plan's steps, read back. */
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "device/trace.h"
#include "kernel/team.h"
#include "model/edge.h"
#include "model/evaluate.h"
#include "model/frame.h"
#include "model/nan.h"
#include "model/profile.h"
#include "model/trace.h"
#include "ops/random.h"

/* Steps enqueued before the run looks at what has finished: bounds the queue, so that cancelling takes effect soon. */
#define WINDOW_STEPS 32

static rnl_status upload_constants(rnl_session *session)
{
    const rnl_plan *plan = session->bound;
    for (uint32_t i = 0; i < plan->slot_count && !session->has_constants; i++)
        if (plan->slots[i].kind == RNL_SLOT_CONSTANT)
            TRY(rnl_stream_write(session->stream, rnl_session_buffer(session, i), session->slots[i].offset_bytes,
                                 plan->slots[i].constant, plan->slots[i].size_bytes));
    session->has_constants = true;
    return RNL_OK;
}

/* Each run of a plan draws other numbers than the one before; a fill's pattern is copied when it is enqueued. */
static rnl_status start_draws(rnl_session *session)
{
    const rnl_plan *plan = session->bound;
    if (plan->random_slot == RNL_NO_SLOT)
        return RNL_OK;
    const uint64_t draw = session->draw_count, key = session->random_key;
    const rnl_random_state state = {{(uint32_t)draw, (uint32_t)(draw >> 32)}, {(uint32_t)key, (uint32_t)(key >> 32)}};
    session->draw_count += plan->draw_count;
    return rnl_stream_fill(session->stream, rnl_session_buffer(session, plan->random_slot),
                           session->slots[plan->random_slot].offset_bytes, &state, sizeof state, sizeof state);
}

rnl_status rnl_session_begin_plan(rnl_session *session)
{
    TRY(upload_constants(session));
    return start_draws(session);
}

/* ---- steps ---------------------------------------------------------------------------------------------------- */

static rnl_status fail_step(rnl_session *session, const rnl_plan *plan, size_t step, rnl_status status)
{
    const rnl_device_info *info = rnl_device_get_info(session->model->device);
    uint32_t node = plan->step_labels[step].node;
    status = rnl_error_add(status, "%s on %s (%u:%u)", plan->steps.steps[step].implementation, info->name,
                           info->platform_index, info->device_index);
    if (node == RNL_NO_NODE)
        return status;
    return rnl_node_error(plan->model->graph, &plan->model->graph->nodes[node], status);
}

/* At the end of each window, waits for the end of the one before. Who helps has done all but two batches. */
static rnl_status pace(rnl_session *session, size_t step, rnl_event **previous)
{
    if (step % WINDOW_STEPS != WINDOW_STEPS - 1 || rnl_team_is_helped(session->stream))
        return RNL_OK;
    rnl_event *event = NULL;
    TRY(rnl_stream_record(session->stream, &event));
    rnl_status status = *previous ? rnl_event_synchronize(*previous) : RNL_OK;
    rnl_event_release(*previous);
    *previous = event;
    return status;
}

static rnl_status enqueue_step(rnl_session *session, const rnl_plan *plan, size_t step)
{
    if (session->is_profiled)
        return rnl_profile_step(session, step);
    rnl_session_name_step(session, step);
    return rnl_step_enqueue(session->stream, session->kernels, &plan->steps, step, session->slots, plan->slot_count);
}

rnl_status rnl_session_run_steps(rnl_session *session)
{
    const rnl_plan *plan = session->bound;
    rnl_event *previous = NULL;
    rnl_status status = RNL_OK;
    rnl_session_name_steps(session);
    const uint64_t start = rnl_trace_start();
    size_t next_check = 0;
    GOTO(rnl_ring_begin(session));
    GOTO(rnl_nan_begin(session));
    GOTO(rnl_nan_look(session, 0, &next_check));
    for (size_t i = 0; i < plan->steps.step_count; i++) {
        if (rnl_session_is_cancelled(session))
            GOTO(FAIL(RNL_CANCELLED, "the run was cancelled before step %zu of %zu", i, plan->steps.step_count));
        status = rnl_ring_reach(session, i);
        if (status == RNL_OK)
            status = enqueue_step(session, plan, i);
        if (status != RNL_OK)
            GOTO(fail_step(session, plan, i, status));
        GOTO(rnl_nan_look(session, i + 1, &next_check));
        GOTO(pace(session, i, &previous));
    }
    rnl_trace_stop(start, "enqueue %zu steps", plan->steps.step_count);
    status = rnl_ring_reach(session, plan->steps.step_count);
done:
    rnl_event_release(previous);
    if (status == RNL_OK)
        return rnl_team_end(session->stream);
    const rnl_error error = *rnl_last_error();
    (void)!rnl_team_end(session->stream);
    (void)!rnl_error_restore(&error);
    return status;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

rnl_status rnl_session_end_plan(rnl_session *session)
{
    session->step_count += session->bound->steps.step_count;
    TRY(rnl_ring_end(session));
    if (session->is_profiled)
        TRY(rnl_profile_collect(session));
    return rnl_session_check_guards(session);
}

static rnl_status run_whole(rnl_session *session, rnl_plan *plan, rnl_tensor *outputs, size_t count)
{
    TRY(rnl_session_bind(session, plan));
    TRY(rnl_session_begin_plan(session));
    TRY(rnl_edges_begin(session, outputs, count));
    rnl_teamwork_begin(session);
    TRY(rnl_session_run_steps(session));
    TRY(rnl_edges_read(session, outputs, count));
    TRY(rnl_stream_synchronize(session->stream));
    rnl_teamwork_end(session);
    rnl_edges_finish(session);
    return rnl_session_end_plan(session);
}

/* A stream keeps its failure for ever; the next run deserves a new one. */
static void recover(rnl_session *session)
{
    rnl_error error = *rnl_last_error();
    rnl_stream *stream = NULL;
    (void)!rnl_stream_synchronize(session->stream);
    if (rnl_session_make_stream(session, &stream) == RNL_OK) {
        rnl_stream_release(session->stream);
        session->stream = stream;
    }
    rnl_ring_recover(session);
    session->has_constants = false;
    rnl_error_restore(&error);
}

static rnl_status execute(rnl_session *session, const rnl_tensor *inputs, size_t input_count, rnl_tensor *outputs,
                          size_t output_count)
{
    rnl_plan *plan = NULL;
    rnl_status status = RNL_OK;
    TRY(rnl_edges_check(session, outputs, output_count));
    TRY(rnl_model_match_inputs(session->model, inputs, input_count, session->order, session->descs));
    TRY(rnl_model_get_first_plan(session->model, session->descs, &plan));
    session->step_count = 0;
    if (session->model->is_deterministic)
        session->draw_count = 0;
    GOTO(plan->is_whole ? run_whole(session, plan, outputs, output_count)
                        : rnl_session_run_frame(session, outputs, output_count));
    rnl_device_save_programs(session->model->device);
done:
    if (status != RNL_OK)
        recover(session);
    if (plan->is_whole)
        rnl_edges_end(session); /* nothing is under way any more */
    rnl_plan_release(plan);
    return status;
}

static rnl_status execute_traced(rnl_session *session, const rnl_tensor *inputs, size_t input_count,
                                 rnl_tensor *outputs, size_t output_count)
{
    rnl_trace *before = rnl_trace_current();
    if (session->is_recorded || before == session->trace)
        rnl_trace_use(session->is_recorded ? session->trace : NULL);
    rnl_stream_look_at_clocks(session->stream);
    const uint64_t plans = rnl_model_plans_built(session->model), start = rnl_trace_now();
    const rnl_status status = execute(session, inputs, input_count, outputs, output_count);
    if (session->is_recorded)
        rnl_trace_span(session->trace, "run", start);
    rnl_trace_use(before);
    if (!session->is_profiled)
        rnl_session_note_run(session, status, start, rnl_model_plans_built(session->model) != plans);
    return status;
}

rnl_status rnl_session_execute(rnl_session *session, const rnl_tensor *inputs, size_t input_count, rnl_tensor *outputs,
                               size_t output_count)
{
    if (!session->is_profiled)
        rnl_session_choose_stream(session);
    return session->trace ? execute_traced(session, inputs, input_count, outputs, output_count)
                          : execute(session, inputs, input_count, outputs, output_count);
}
