/* SPDX-License-Identifier: Apache-2.0 */
#include "model/edge.h"

#include "base/memory.h"
#include "device/buffer.h"
#include "device/guard.h"
#include "device/pinned.h"
#include "device/trace.h"
#include "device/traffic.h"
#include "device/way.h"
#include "device/wrap.h"
#include "model/evaluate.h"
#include <string.h>

/* A copy that is smaller takes no time, one that is larger has its own way through pinned memory. */
#define LEAST_STAGED ((size_t)16 << 10)
#define MOST_STAGED ((size_t)8 << 20)
#define STAGED_PIECE ((size_t)1 << 20) /* the device has one while the host fills the next */
/* The widest access of the kernels that load from unaligned offsets; what malloc gives. */
#define IN_PLACE_ALIGN 16

static size_t io_bytes(const rnl_plan_io *io)
{
    return (size_t)rnl_desc_elements(&io->desc) * rnl_dtype_bytes(io->desc.dtype);
}

static rnl_edge *input_edge(const rnl_session *session, size_t index)
{
    return &session->edges[index];
}

static rnl_edge *output_edge(const rnl_session *session, size_t index)
{
    return &session->edges[session->model->graph->input_count + index];
}

static size_t edge_count(const rnl_session *session)
{
    return session->model->graph->input_count + session->model->graph->output_count;
}

rnl_status rnl_edges_create(rnl_session *session)
{
    return rnl_alloc(edge_count(session), sizeof *session->edges, &session->edges);
}

void rnl_edges_free(rnl_session *session)
{
    for (size_t i = 0; session->edges && i < edge_count(session); i++) {
        rnl_buffer_release(session->edges[i].staging);
        rnl_free(session->edges[i].lent);
    }
    rnl_free(session->edges);
}

void *rnl_session_take_output(rnl_session *session, const rnl_tensor *output)
{
    for (size_t i = session->model->graph->input_count; output->data && i < edge_count(session); i++) {
        rnl_edge *edge = &session->edges[i];
        if (edge->lent != output->data)
            continue;
        edge->lent = NULL;
        edge->lent_bytes = 0;
        return output->data;
    }
    return NULL;
}

void rnl_output_release(void *memory)
{
    rnl_free(memory);
}

/* ---- In place ------------------------------------------------------------------------------------------------- */

static bool writes(const rnl_step_list *list, const rnl_step *step, uint32_t slot)
{
    return step->write_slot == slot || step->write_slot_2 == slot || step->write_slot_3 == slot ||
           (step->kind == RNL_STEP_CLBLAST_GEMM && list->gemms[step->gemm_at].c_slot == slot);
}

/* The slot belongs to this input or output alone. */
static bool is_alone(const rnl_plan *plan, const rnl_plan_io *io)
{
    size_t users = 0;
    if (io->slot == RNL_NO_SLOT || plan->slots[io->slot].kind != RNL_SLOT_ARENA || io->offset_bytes != 0 ||
        plan->slots[io->slot].size_bytes != io_bytes(io))
        return false;
    for (size_t i = 0; i < plan->input_count; i++)
        users += plan->inputs[i].slot == io->slot;
    for (size_t i = 0; i < plan->output_count; i++)
        users += plan->outputs[i].slot == io->slot;
    return users == 1;
}

void rnl_plan_find_in_place(rnl_plan *plan)
{
    for (size_t i = 0; i < plan->output_count; i++)
        plan->outputs[i].may_be_in_place = is_alone(plan, &plan->outputs[i]);
    for (size_t i = 0; i < plan->input_count; i++) {
        rnl_plan_io *io = &plan->inputs[i];
        io->may_be_in_place = is_alone(plan, io);
        for (size_t j = 0; j < plan->steps.step_count && io->may_be_in_place; j++)
            io->may_be_in_place = !writes(&plan->steps, &plan->steps.steps[j], io->slot);
    }
}

/* Checkers look behind values that lie in the arena. */
static bool goes_in_place(const rnl_session *session, const rnl_plan_io *io, const void *host)
{
    rnl_device *device = session->model->device;
    return io->may_be_in_place && device->maps_in_place && (uintptr_t)host % IN_PLACE_ALIGN == 0 &&
           rnl_arena_guard_bytes(rnl_device_get_info(device)) == 0 && !rnl_guard_is_on() && rnl_device_wraps(device);
}

static rnl_status put_in_place(rnl_session *session, const rnl_plan_io *io, rnl_edge *edge, void *host)
{
    cl_mem memory;
    TRY(rnl_wrap_memory(session->model->device, host, io_bytes(io), &memory));
    edge->wrapped = memory;
    session->slots[io->slot].memory = memory;
    session->slots[io->slot].offset_bytes = 0;
    rnl_traffic_in_place(session->model->device, io_bytes(io));
    return RNL_OK;
}

static void leave_place(rnl_session *session, const rnl_plan_io *io, rnl_edge *edge)
{
    edge->target = NULL;
    edge->asked = 0;
    if (!edge->wrapped)
        return;
    rnl_unwrap_memory(edge->wrapped);
    edge->wrapped = NULL;
    session->slots[io->slot].memory = rnl_session_buffer(session, io->slot)->memory;
    session->slots[io->slot].offset_bytes = session->bound->slots[io->slot].offset_bytes;
}

void rnl_edges_end(rnl_session *session)
{
    const bool has_edges = session->bound && session->bound->is_whole; /* binding may have failed */
    for (size_t i = 0; has_edges && i < session->model->graph->input_count; i++)
        leave_place(session, &session->bound->inputs[i], input_edge(session, i));
    for (size_t i = 0; has_edges && i < session->model->graph->output_count; i++)
        leave_place(session, &session->bound->outputs[i], output_edge(session, i));
}

static bool overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
    return a && b && first < second + b_bytes && second < first + a_bytes;
}

/* A step may write this output while another still reads what lies there. */
static bool is_shared(const rnl_session *session, const rnl_tensor *outputs, size_t count, size_t which, size_t bytes)
{
    const void *host = outputs[which].data;
    for (size_t i = 0; i < session->model->graph->input_count; i++)
        if (overlap(host, bytes, session->order[i]->data, session->order[i]->size_bytes))
            return true;
    for (size_t i = 0; i < count; i++)
        if (i != which && overlap(host, bytes, outputs[i].data, outputs[i].size_bytes))
            return true;
    return false;
}

/* ---- Through pinned memory ------------------------------------------------------------------------------------ */

static bool is_staged(const rnl_session *session, const void *host, size_t bytes)
{
    return rnl_copy_ways_differ(session->model->device) && bytes >= LEAST_STAGED && bytes < MOST_STAGED &&
           !rnl_pinned_has(host, bytes);
}

static rnl_status get_staging(rnl_session *session, rnl_edge *edge, size_t bytes)
{
    if (rnl_buffer_size(edge->staging) >= bytes)
        return RNL_OK;
    rnl_buffer_release(edge->staging);
    edge->staging = NULL;
    return rnl_buffer_create(session->model->device, RNL_MEMORY_PINNED, bytes, &edge->staging);
}

static rnl_status write_staged(rnl_session *session, rnl_edge *edge, const rnl_plan_io *io, const void *host)
{
    const size_t bytes = io_bytes(io), offset = session->slots[io->slot].offset_bytes;
    TRY(get_staging(session, edge, bytes));
    rnl_traffic_add(&session->model->device->traffic.staged, bytes);
    const size_t most = edge->staging->pageable ? bytes : STAGED_PIECE; /* which is waited for, each piece */
    for (size_t at = 0; at < bytes; at += most) {
        const size_t piece = bytes - at < most ? bytes - at : most;
        memcpy((char *)rnl_buffer_host(edge->staging) + at, (const char *)host + at, piece);
        TRY(rnl_stream_copy(session->stream, rnl_session_buffer(session, io->slot), offset + at, edge->staging, at,
                            piece));
        if (at + piece < bytes)
            TRY(rnl_stream_flush(session->stream));
    }
    return RNL_OK;
}

/* ---- Inputs --------------------------------------------------------------------------------------------------- */

static rnl_status upload_input(rnl_session *session, size_t index)
{
    const rnl_plan_io *io = &session->bound->inputs[index];
    const rnl_tensor *tensor = session->order[index];
    rnl_edge *edge = input_edge(session, index);
    const size_t bytes = io_bytes(io), offset = session->slots[io->slot].offset_bytes;
    rnl_buffer *slot = rnl_session_buffer(session, io->slot);
    if (tensor->buffer)
        return rnl_stream_copy(session->stream, slot, offset, tensor->buffer, tensor->offset_bytes, bytes);
    if (goes_in_place(session, io, tensor->data))
        return put_in_place(session, io, edge, tensor->data);
    if (is_staged(session, tensor->data, bytes)) {
        const uint64_t start = rnl_trace_start();
        TRY(write_staged(session, edge, io, tensor->data));
        rnl_trace_stop(start, "copy input %s", session->model->graph->inputs[index].name);
        return RNL_OK;
    }
    return rnl_stream_write(session->stream, slot, offset, tensor->data, bytes);
}

static rnl_status upload_inputs(rnl_session *session)
{
    for (size_t i = 0; i < session->model->graph->input_count; i++) {
        const rnl_plan_io *io = &session->bound->inputs[i];
        const rnl_tensor *tensor = session->order[i];
        if (io_bytes(io) == 0)
            continue;
        if (!tensor->data && !tensor->buffer)
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' has no memory", session->model->graph->inputs[i].name);
        if (io->slot != RNL_NO_SLOT)
            TRY(upload_input(session, i));
    }
    return RNL_OK;
}

/* ---- Outputs -------------------------------------------------------------------------------------------------- */

static rnl_status find_output(const rnl_session *session, const rnl_tensor *tensor, size_t *out_index)
{
    const rnl_graph *graph = session->model->graph;
    return rnl_tensor_find(graph->outputs, graph->output_count, "output", tensor, out_index);
}

rnl_status rnl_edges_check(const rnl_session *session, rnl_tensor *outputs, size_t count)
{
    size_t index;
    for (size_t i = 0; i < count; i++)
        TRY(find_output(session, &outputs[i], &index));
    return RNL_OK;
}

/* Host memory of the session's for an output. */
static rnl_status lend_memory(rnl_edge *edge, size_t bytes, rnl_tensor *tensor)
{
    if (edge->lent_bytes < bytes || !edge->lent) {
        void *memory = NULL;
        TRY(rnl_alloc(bytes ? bytes : 1, 1, &memory));
        rnl_free(edge->lent);
        edge->lent = memory;
        edge->lent_bytes = bytes;
    }
    tensor->data = edge->lent;
    tensor->size_bytes = bytes;
    return RNL_OK;
}

rnl_status rnl_edges_describe(rnl_session *session, size_t index, const rnl_tensor_desc *desc, rnl_tensor *tensor)
{
    rnl_edge *edge = output_edge(session, index);
    const size_t bytes = (size_t)rnl_desc_elements(desc) * rnl_dtype_bytes(desc->dtype);
    if (!tensor->buffer && (!tensor->data || tensor->data == edge->lent))
        TRY(lend_memory(edge, bytes, tensor));
    size_t room = tensor->size_bytes;
    if (tensor->buffer) {
        size_t size = rnl_buffer_size(tensor->buffer);
        size_t behind = tensor->offset_bytes < size ? size - tensor->offset_bytes : 0;
        room = room < behind ? room : behind;
    }
    if (room < bytes)
        return FAIL(RNL_INVALID_ARGUMENT, "output '%s' needs %zu bytes, %zu were given",
                    session->model->graph->outputs[index].name, bytes, room);
    tensor->dtype = desc->dtype;
    tensor->rank = desc->rank;
    memcpy(tensor->shape, desc->shape, sizeof tensor->shape);
    return RNL_OK;
}

rnl_status rnl_edges_begin(rnl_session *session, rnl_tensor *outputs, size_t count)
{
    size_t index = 0;
    for (size_t i = 0; i < count; i++) {
        TRY(find_output(session, &outputs[i], &index));
        TRY(rnl_edges_describe(session, index, &session->bound->outputs[index].desc, &outputs[i]));
        output_edge(session, index)->asked++;
    }
    for (size_t i = 0; i < count; i++) {
        TRY(find_output(session, &outputs[i], &index));
        const rnl_plan_io *io = &session->bound->outputs[index];
        if (!outputs[i].buffer && output_edge(session, index)->asked == 1 &&
            goes_in_place(session, io, outputs[i].data) && !is_shared(session, outputs, count, i, io_bytes(io)))
            TRY(put_in_place(session, io, output_edge(session, index), outputs[i].data));
    }
    return upload_inputs(session);
}

static rnl_status read_known(rnl_session *session, const rnl_plan_io *io, const rnl_tensor *tensor)
{
    if (tensor->buffer)
        return rnl_stream_write(session->stream, tensor->buffer, tensor->offset_bytes, io->desc.host, io_bytes(io));
    memcpy(tensor->data, io->desc.host, io_bytes(io));
    return RNL_OK;
}

static rnl_status read_output(rnl_session *session, size_t index, const rnl_tensor *tensor)
{
    const rnl_plan_io *io = &session->bound->outputs[index];
    rnl_edge *edge = output_edge(session, index);
    const size_t bytes = io_bytes(io);
    if (bytes == 0 || edge->wrapped)
        return RNL_OK;
    if (io->desc.host)
        return read_known(session, io, tensor);
    rnl_buffer *source = rnl_session_buffer(session, io->slot);
    const size_t offset = session->slots[io->slot].offset_bytes + io->offset_bytes;
    if (tensor->buffer)
        return rnl_stream_copy(session->stream, tensor->buffer, tensor->offset_bytes, source, offset, bytes);
    if (!is_staged(session, tensor->data, bytes) || edge->target)
        return rnl_stream_read(session->stream, tensor->data, source, offset, bytes);
    TRY(get_staging(session, edge, bytes));
    edge->target = tensor->data;
    rnl_traffic_add(&session->model->device->traffic.staged, bytes);
    return rnl_stream_copy(session->stream, edge->staging, 0, source, offset, bytes);
}

rnl_status rnl_edges_read(rnl_session *session, rnl_tensor *outputs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t index = 0;
        TRY(find_output(session, &outputs[i], &index));
        TRY(read_output(session, index, &outputs[i]));
    }
    return RNL_OK;
}

void rnl_edges_finish(rnl_session *session)
{
    for (size_t i = 0; i < session->model->graph->output_count; i++) {
        rnl_edge *edge = output_edge(session, i);
        if (!edge->target)
            continue;
        const uint64_t start = rnl_trace_start();
        memcpy(edge->target, rnl_buffer_host(edge->staging), io_bytes(&session->bound->outputs[i]));
        rnl_trace_stop(start, "copy output %s", session->model->graph->outputs[i].name);
    }
}
