/* SPDX-License-Identifier: Apache-2.0 */
/* One run: upload, enqueue the plan's steps, read back. */
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "model/evaluate.h"
#include "model/profile.h"

#include <string.h>

/* Steps enqueued before the run looks at what has finished: bounds the queue, so that cancelling takes effect soon. */
#define WINDOW_STEPS 32

static size_t desc_bytes(const rnl_tensor_desc *desc)
{
    return (size_t)rnl_desc_elements(desc) * rnl_dtype_bytes(desc->dtype);
}

/* ---- inputs --------------------------------------------------------------------------------------------------- */

static rnl_status write_slot(rnl_session *session, uint32_t slot, const void *source, size_t bytes)
{
    return rnl_stream_write(session->stream, rnl_session_buffer(session, slot), session->slots[slot].offset_bytes,
                            source, bytes);
}

static rnl_status upload_constants(rnl_session *session)
{
    const rnl_plan *plan = session->bound;
    for (uint32_t i = 0; i < plan->slot_count && !session->has_constants; i++)
        if (plan->slots[i].kind == RNL_SLOT_CONSTANT)
            TRY(write_slot(session, i, plan->slots[i].constant, plan->slots[i].size_bytes));
    session->has_constants = true;
    return RNL_OK;
}

static rnl_status upload_inputs(rnl_session *session)
{
    for (size_t i = 0; i < session->model->graph->input_count; i++) {
        const rnl_plan_io *io = &session->bound->inputs[i];
        const rnl_tensor *tensor = session->order[i];
        size_t bytes = desc_bytes(&io->desc);
        if (bytes == 0)
            continue;
        if (!tensor->data && !tensor->buffer)
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' has no memory", session->model->graph->inputs[i].name);
        if (io->slot == RNL_NO_SLOT)
            continue;
        if (tensor->buffer)
            TRY(rnl_stream_copy(session->stream, rnl_session_buffer(session, io->slot),
                                session->slots[io->slot].offset_bytes, tensor->buffer, tensor->offset_bytes, bytes));
        else
            TRY(write_slot(session, io->slot, tensor->data, bytes));
    }
    return RNL_OK;
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
    return rnl_node_error(session->model->graph, &session->model->graph->nodes[node], status);
}

/* At the end of each window, waits for the end of the one before. */
static rnl_status pace(rnl_session *session, size_t step, rnl_event **previous)
{
    if (step % WINDOW_STEPS != WINDOW_STEPS - 1)
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
    return rnl_step_enqueue(session->stream, session->kernels, &plan->steps, step, session->slots, plan->slot_count);
}

static rnl_status run_steps(rnl_session *session)
{
    const rnl_plan *plan = session->bound;
    rnl_event *previous = NULL;
    rnl_status status = RNL_OK;
    for (size_t i = 0; i < plan->steps.step_count; i++) {
        if (atomic_load(&session->cancelled))
            GOTO(FAIL(RNL_CANCELLED, "the run was cancelled before step %zu of %zu", i, plan->steps.step_count));
        status = enqueue_step(session, plan, i);
        if (status != RNL_OK)
            GOTO(fail_step(session, plan, i, status));
        GOTO(pace(session, i, &previous));
    }
done:
    rnl_event_release(previous);
    return status;
}

/* ---- outputs -------------------------------------------------------------------------------------------------- */

static rnl_status find_output(const rnl_graph *graph, const rnl_tensor *tensor, size_t *out_index)
{
    return rnl_tensor_find(graph->outputs, graph->output_count, "output", tensor, out_index);
}

/* Host memory of the session's for output `index`. */
static rnl_status lend_memory(rnl_session *session, size_t index, size_t bytes, rnl_tensor *tensor)
{
    if (session->output_capacity[index] < bytes || !session->outputs[index]) {
        void *memory = NULL;
        TRY(rnl_alloc(bytes ? bytes : 1, 1, &memory));
        rnl_free(session->outputs[index]);
        session->outputs[index] = memory;
        session->output_capacity[index] = bytes;
    }
    tensor->data = session->outputs[index];
    tensor->size_bytes = bytes;
    return RNL_OK;
}

static rnl_status read_output(rnl_session *session, size_t index, rnl_tensor *tensor)
{
    const rnl_plan_io *io = &session->bound->outputs[index];
    const char *name = session->model->graph->outputs[index].name;
    size_t bytes = desc_bytes(&io->desc);
    bool lent_before = tensor->data && tensor->data == session->outputs[index];
    if (!tensor->buffer && (!tensor->data || lent_before))
        TRY(lend_memory(session, index, bytes, tensor));
    size_t room = tensor->size_bytes;
    if (tensor->buffer) {
        size_t size = rnl_buffer_size(tensor->buffer);
        size_t behind = tensor->offset_bytes < size ? size - tensor->offset_bytes : 0;
        room = room < behind ? room : behind;
    }
    if (room < bytes)
        return FAIL(RNL_INVALID_ARGUMENT, "output '%s' needs %zu bytes, %zu were given", name, bytes, room);
    tensor->dtype = io->desc.dtype;
    tensor->rank = io->desc.rank;
    memcpy(tensor->shape, io->desc.shape, sizeof tensor->shape);
    if (bytes == 0)
        return RNL_OK;
    if (io->desc.host && tensor->buffer)
        return rnl_stream_write(session->stream, tensor->buffer, tensor->offset_bytes, io->desc.host, bytes);
    if (io->desc.host) {
        memcpy(tensor->data, io->desc.host, bytes);
        return RNL_OK;
    }
    rnl_buffer *source = rnl_session_buffer(session, io->slot);
    size_t offset = session->slots[io->slot].offset_bytes + io->offset_bytes;
    if (tensor->buffer)
        return rnl_stream_copy(session->stream, tensor->buffer, tensor->offset_bytes, source, offset, bytes);
    return rnl_stream_read(session->stream, tensor->data, source, offset, bytes);
}

static rnl_status read_outputs(rnl_session *session, rnl_tensor *outputs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t index = 0;
        TRY(find_output(session->model->graph, &outputs[i], &index));
        TRY(read_output(session, index, &outputs[i]));
    }
    return RNL_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

static rnl_status run_bound(rnl_session *session, rnl_tensor *outputs, size_t count)
{
    TRY(upload_constants(session));
    TRY(upload_inputs(session));
    TRY(run_steps(session));
    TRY(read_outputs(session, outputs, count));
    TRY(rnl_stream_synchronize(session->stream));
    session->step_count = session->bound->steps.step_count;
    return rnl_session_check_guards(session);
}

/* A stream keeps its failure for ever; the next run deserves a new one. */
static void recover(rnl_session *session)
{
    rnl_error error = *rnl_last_error();
    rnl_stream *stream = NULL;
    (void)!rnl_stream_synchronize(session->stream);
    if (rnl_stream_create(session->model->device, &stream) == RNL_OK) {
        rnl_stream_release(session->stream);
        session->stream = stream;
    }
    session->has_constants = false;
    rnl_error_restore(&error);
}

rnl_status rnl_session_execute(rnl_session *session, const rnl_tensor *inputs, size_t input_count, rnl_tensor *outputs,
                               size_t output_count)
{
    rnl_plan *plan = NULL;
    rnl_status status = RNL_OK;
    size_t index;
    for (size_t i = 0; i < output_count; i++)
        TRY(find_output(session->model->graph, &outputs[i], &index));
    TRY(rnl_model_match_inputs(session->model, inputs, input_count, session->order, session->descs));
    TRY(rnl_model_get_plan(session->model, session->descs, &plan));
    GOTO(rnl_session_bind(session, plan));
    GOTO(run_bound(session, outputs, output_count));
    rnl_device_save_programs(session->model->device);
done:
    rnl_plan_release(plan);
    if (status != RNL_OK)
        recover(session);
    return status;
}
