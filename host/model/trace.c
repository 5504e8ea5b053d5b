/* SPDX-License-Identifier: Apache-2.0 */
#include "model/trace.h"

#include "base/memory.h"
#include "base/text.h"
#include "device/trace.h"
#include "model/profile.h"

rnl_status rnl_session_make_stream(rnl_session *session, rnl_stream **out_stream)
{
    const rnl_stream_options options = {.struct_size = sizeof options, .trace = session->trace, .name = "session"};
    return rnl_stream_create_with(session->model->device, &options, out_stream);
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
    if (!session->trace || session->named == plan)
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
    if (session->trace && session->named == session->bound)
        rnl_stream_call_next(session->stream, session->names[step]);
}

rnl_status rnl_session_trace(rnl_session *session, rnl_trace *trace)
{
    rnl_stream *stream = NULL;
    bool idle = false;
    if (!session)
        return FAIL(RNL_INVALID_ARGUMENT, "session is NULL");
    if (!atomic_compare_exchange_strong(&session->running, &idle, true))
        return FAIL(RNL_UNAVAILABLE, "the session is still running; it is traced from between two runs on");
    rnl_trace *before = session->trace;
    session->trace = trace;
    /* The stream that it takes the place of is idle: a run ends with that. */
    const rnl_status status = rnl_session_make_stream(session, &stream);
    if (status == RNL_OK) {
        rnl_trace_retain(trace);
        rnl_trace_release(before);
        rnl_stream_release(session->stream);
        session->stream = stream;
        session->named = NULL;
    } else {
        session->trace = before;
    }
    atomic_store(&session->running, false);
    return status;
}
