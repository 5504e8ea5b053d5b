/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace.h"

#include "base/memory.h"
#include "base/text.h"
#include "device/trace.h"
#include "model/profile.h"
#include <stdarg.h>
#include <stdio.h>

static rnl_status make_stream(rnl_session *session, rnl_trace *trace, rnl_stream **out_stream)
{
    const rnl_stream_options options = {.struct_size = sizeof options, .trace = trace, .name = session->name};
    return rnl_stream_create_with(session->model->device, &options, out_stream);
}

rnl_status rnl_session_make_stream(rnl_session *session, rnl_stream **out_stream)
{
    return make_stream(session, session->is_recorded ? session->trace : NULL, out_stream);
}

static void add_member(rnl_text *args, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    rnl_text_add(args, "%s\"%s\":", args->length ? "," : "", key);
    rnl_text_add_json(args, value);
}

static uint32_t describe(rnl_trace *trace, const rnl_plan *plan, size_t step)
{
    const rnl_step_profile record = rnl_profile_describe(plan, step);
    rnl_text name = {0}, args = {0};
    uint32_t what = RNL_TRACE_UNKNOWN;
    const char *kernel = *record.kernel ? record.kernel : record.implementation;
    rnl_text_add(&name, "%s%s%s%s", record.node, record.also, *record.node ? " " : "", kernel);
    add_member(&args, "operator", record.op_type);
    add_member(&args, "implementation", record.implementation);
    add_member(&args, "file", record.file);
    add_member(&args, "shapes", plan->step_labels[step].shapes);
    if (name.status == RNL_OK && args.status == RNL_OK) {
        const rnl_trace_what described = {.name = name.data,
                                          .category = "kernel",
                                          .args = args.data ? args.data : "",
                                          .flops = record.flops,
                                          .bytes = record.bytes};
        what = rnl_trace_describe(trace, &described);
    }
    rnl_text_free(&name);
    rnl_text_free(&args);
    return what;
}

/* They hold until another plan is bound. */
void rnl_session_name_steps(rnl_session *session)
{
    const rnl_plan *plan = session->bound;
    if (!session->is_recorded || session->named == plan)
        return;
    const rnl_error before = *rnl_last_error();
    session->named = NULL;
    if (rnl_grow(&session->names, &session->name_capacity, plan->steps.step_count, sizeof *session->names) != RNL_OK) {
        rnl_error_restore(&before);
        return;
    }
    for (size_t i = 0; i < plan->steps.step_count; i++)
        session->names[i] = describe(session->trace, plan, i);
    session->named = plan;
}

void rnl_session_name_step(rnl_session *session, size_t step)
{
    if (session->is_recorded && session->named == session->bound)
        rnl_stream_call_next(session->stream, session->names[step]);
}

/* ---- Which runs ---- */

static void swap_streams(rnl_session *session)
{
    rnl_stream *stream = session->stream;
    session->stream = session->parked;
    session->parked = stream;
    session->is_recorded = !session->is_recorded;
}

void rnl_session_choose_stream(rnl_session *session)
{
    if (session->is_told || !session->trace)
        return;
    const uint32_t interval = rnl_trace_cost_interval(&session->trace_cost);
    if (rnl_trace_takes(session->trace, &session->turn, interval) != session->is_recorded)
        swap_streams(session);
}

/* Asking for the times is a part of what recording costs, and no part of the run's span. */
void rnl_session_note_run(rnl_session *session, rnl_status status, uint64_t start_ns, bool has_planned)
{
    if (!rnl_trace_is_automatic(session->trace))
        return;
    if (session->is_recorded)
        rnl_stream_ask_times(session->stream);
    if (!session->is_told && status == RNL_OK && !has_planned)
        rnl_trace_cost_add(&session->trace_cost, session->is_recorded, (uintptr_t)session->bound,
                           rnl_trace_now() - start_ns);
}

void rnl_session_name_track(rnl_session *session, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(session->name, sizeof session->name, format, args);
    va_end(args);
}

static void name_by_number(rnl_session *session, rnl_trace *trace)
{
    if (!*session->name)
        rnl_session_name_track(session, "session %u", (unsigned)rnl_trace_next_number(trace));
}

/* Both streams are idle: a run ends with that. */
static rnl_status set_trace(rnl_session *session, rnl_trace *trace)
{
    rnl_stream *stream = NULL;
    if (trace == session->trace)
        return RNL_OK;
    if (trace) {
        name_by_number(session, trace);
        TRY(make_stream(session, trace, &stream));
    }
    if (session->is_recorded)
        swap_streams(session);
    rnl_stream_release(session->parked);
    session->parked = stream;
    rnl_trace_retain(trace);
    rnl_trace_release(session->trace);
    session->trace = trace;
    session->turn = (rnl_trace_turn){0};
    session->named = NULL;
    return RNL_OK;
}

rnl_status rnl_session_trace(rnl_session *session, rnl_trace *trace)
{
    bool idle = false;
    if (!session)
        return FAIL(RNL_INVALID_ARGUMENT, "session is NULL");
    if (!atomic_compare_exchange_strong(&session->running, &idle, true))
        return FAIL(RNL_UNAVAILABLE, "the session is still running; it is traced from between two runs on");
    const rnl_status status = set_trace(session, trace);
    atomic_store(&session->running, false);
    return status;
}

void rnl_session_record(rnl_session *session, rnl_trace *trace)
{
    const rnl_error before = *rnl_last_error();
    session->is_told = true;
    const bool has_it = !trace || set_trace(session, trace) == RNL_OK;
    if (!has_it)
        rnl_error_restore(&before);
    if ((trace && has_it) != session->is_recorded)
        swap_streams(session);
}
