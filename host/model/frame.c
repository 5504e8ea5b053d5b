/* SPDX-License-Identifier: Apache-2.0 */
#include "model/frame.h"

#include "base/memory.h"
#include "device/buffer.h"
#include "device/guard.h"
#include "model/evaluate.h"
#include "model/late.h"
#include "model/profile.h"
#include <string.h>

/* A part that lies further into its buffer is copied: kernels may count elements with 32 bits. */
#define IN_PLACE_BYTES ((size_t)1 << 30)

rnl_status rnl_frame_init(rnl_frame *frame, rnl_session *session, rnl_model *model)
{
    *frame = (rnl_frame){.session = session, .model = model};
    TRY(rnl_alloc(model->graph->value_count, sizeof *frame->cells, &frame->cells));
    return rnl_alloc(model->graph->value_count, sizeof *frame->is_planned, &frame->is_planned);
}

void rnl_frame_free(rnl_frame *frame)
{
    for (size_t i = 0; frame->cells && i < frame->model->graph->value_count; i++)
        rnl_cell_release(frame->cells[i]);
    rnl_free(frame->cells);
    rnl_free(frame->is_planned);
}

rnl_status rnl_frame_get(rnl_frame *frame, uint32_t value, rnl_cell **out_cell)
{
    const rnl_host_tensor *constant = frame->model->constants.tensors[value];
    *out_cell = frame->cells[value];
    if (*out_cell)
        return RNL_OK;
    if (!constant)
        return FAIL(RNL_INTERNAL, "value '%s' is read before it is made", frame->model->graph->values[value].name);
    TRY(rnl_cell_create(constant->dtype, constant->rank, constant->shape, out_cell));
    (*out_cell)->host = constant->data;
    frame->cells[value] = *out_cell;
    frame->is_planned[value] = true;
    return RNL_OK;
}

rnl_status rnl_frame_input(rnl_frame *frame, const rnl_node *node, uint32_t index, rnl_cell **out_cell)
{
    *out_cell = NULL;
    if (index >= rnl_node_own_inputs(node) || node->inputs[index] == RNL_NO_VALUE)
        return RNL_OK;
    return rnl_frame_get(frame, node->inputs[index], out_cell);
}

void rnl_frame_give(rnl_frame *frame, const rnl_node *node, uint32_t index, rnl_cell *cell)
{
    if (index >= node->output_count || node->outputs[index] == RNL_NO_VALUE ||
        frame->model->last_read[node->outputs[index]] == 0)
        return;
    rnl_cell_set(&frame->cells[node->outputs[index]], cell);
    frame->is_planned[node->outputs[index]] = false;
}

/* ---- one plan ------------------------------------------------------------------------------------------------- */

static bool lies_in_place(const rnl_session *session, const rnl_plan_io *io, const rnl_cell *cell)
{
    const rnl_device_info *info = rnl_device_get_info(session->model->device);
    size_t align = info->base_align_bytes ? info->base_align_bytes : 128;
    return io->may_be_in_place && cell->offset_bytes % align == 0 &&
           cell->offset_bytes + rnl_cell_bytes(cell) <= IN_PLACE_BYTES && rnl_arena_guard_bytes(info) == 0 &&
           !rnl_guard_is_on();
}

static void put_in_place(rnl_session *session, const rnl_plan_io *io, const rnl_cell *cell)
{
    session->slots[io->slot].memory = cell->buffer->memory;
    session->slots[io->slot].offset_bytes = cell->offset_bytes;
}

static rnl_status place_inputs(rnl_frame *frame, const rnl_plan *plan)
{
    rnl_session *session = frame->session;
    for (size_t i = 0; i < plan->input_count; i++) {
        const rnl_plan_io *io = &plan->inputs[i];
        if (io->slot == RNL_NO_SLOT)
            continue;
        rnl_cell *cell = frame->cells[io->value];
        const size_t bytes = rnl_cell_bytes(cell);
        if (bytes == 0)
            continue;
        TRY(rnl_cell_to_device(session, cell));
        if (lies_in_place(session, io, cell))
            put_in_place(session, io, cell);
        else
            TRY(rnl_stream_copy(session->stream, rnl_session_buffer(session, io->slot),
                                session->slots[io->slot].offset_bytes, cell->buffer, cell->offset_bytes, bytes));
    }
    return RNL_OK;
}

static rnl_status make_outputs(rnl_frame *frame, const rnl_plan *plan)
{
    for (size_t i = 0; i < plan->output_count; i++) {
        const rnl_plan_io *io = &plan->outputs[i];
        rnl_cell **cell = &frame->cells[io->value];
        rnl_cell_set(cell, NULL);
        TRY(rnl_cell_create(io->desc.dtype, io->desc.rank, io->desc.shape, cell));
        frame->is_planned[io->value] = io->desc.host != NULL;
        if (io->desc.host) {
            TRY(rnl_cell_alloc_host(*cell));
            memcpy((*cell)->owned, io->desc.host, rnl_cell_bytes(*cell));
            continue;
        }
        TRY(rnl_cell_alloc_device(frame->session, *cell));
        if ((*cell)->buffer && lies_in_place(frame->session, io, *cell))
            put_in_place(frame->session, io, *cell);
    }
    return RNL_OK;
}

static rnl_status copy_outputs(rnl_frame *frame, const rnl_plan *plan)
{
    rnl_session *session = frame->session;
    for (size_t i = 0; i < plan->output_count; i++) {
        const rnl_plan_io *io = &plan->outputs[i];
        const rnl_cell *cell = frame->cells[io->value];
        if (cell->buffer && !lies_in_place(session, io, cell))
            TRY(rnl_stream_copy(session->stream, cell->buffer, 0, rnl_session_buffer(session, io->slot),
                                session->slots[io->slot].offset_bytes + io->offset_bytes, rnl_cell_bytes(cell)));
    }
    return RNL_OK;
}

static rnl_status run_plan(rnl_frame *frame, rnl_plan *plan)
{
    rnl_session *session = frame->session;
    rnl_status status = RNL_OK;
    TRY(rnl_session_bind(session, plan));
    GOTO(rnl_session_begin_plan(session));
    GOTO(place_inputs(frame, plan));
    GOTO(make_outputs(frame, plan));
    GOTO(rnl_session_run_steps(session));
    GOTO(copy_outputs(frame, plan));
    GOTO(rnl_stream_synchronize(session->stream));
    GOTO(rnl_session_end_plan(session));
done:
    rnl_session_place_slots(session);
    return status;
}

/* ---- the row of plans ----------------------------------------------------------------------------------------- */

/* What shapes the first node's output is read, whatever its size; else what plans may depend on, when it is small. */
static const void *known_contents(const rnl_frame *frame, uint32_t value, bool is_wanted)
{
    const rnl_cell *cell = frame->cells[value];
    bool is_small = rnl_desc_elements(&cell->desc) <= RNL_HOST_MAX_ELEMENTS;
    bool is_known = frame->is_planned[value] || frame->model->reads_contents[value];
    return is_wanted || (is_small && is_known) ? cell->host : NULL;
}

static bool shapes_node(const rnl_node *node, uint32_t value)
{
    for (uint32_t i = 0; i < node->input_count && i < 32; i++)
        if (node->inputs[i] == value && (node->schema->shape_inputs >> i & 1))
            return true;
    return false;
}

static rnl_status read_shape_inputs(rnl_frame *frame, const rnl_node *node)
{
    for (uint32_t i = 0; i < node->input_count && i < 32; i++)
        if (node->inputs[i] != RNL_NO_VALUE && (node->schema->shape_inputs >> i & 1) && frame->cells[node->inputs[i]])
            TRY(rnl_cell_to_host(frame->session, frame->cells[node->inputs[i]]));
    return RNL_OK;
}

static void describe_cell(const rnl_frame *frame, uint32_t value, const rnl_node *node, rnl_tensor_desc *out_desc)
{
    const rnl_host_tensor *constant = frame->model->constants.tensors[value];
    if (constant && !frame->cells[value]) {
        *out_desc = rnl_desc_of(constant);
        out_desc->host = NULL; /* the model's: no part of the key */
        return;
    }
    *out_desc = frame->cells[value]->desc;
    out_desc->host = constant ? NULL : known_contents(frame, value, shapes_node(node, value));
}

/* The values that are there, in the graph's order; for the first plan, its inputs. */
static size_t list_values(const rnl_frame *frame, uint32_t first, uint32_t *values)
{
    const rnl_graph *graph = frame->model->graph;
    size_t count = 0;
    if (first == 0) {
        memcpy(values, graph->input_values, graph->input_count * sizeof *values);
        return graph->input_count;
    }
    for (uint32_t i = 0; i < graph->value_count; i++)
        if (frame->cells[i] && !frame->model->constants.tensors[i] && frame->model->last_read[i] > first)
            values[count++] = i;
    return count;
}

static rnl_status get_plan(rnl_frame *frame, uint32_t first, rnl_plan **out_plan)
{
    const rnl_graph *graph = frame->model->graph;
    const rnl_node *node = &graph->nodes[first];
    uint32_t *values = NULL;
    rnl_tensor_desc *descs = NULL;
    rnl_status status = RNL_OK;
    GOTO(read_shape_inputs(frame, node));
    GOTO(rnl_alloc(graph->value_count, sizeof *values, &values));
    GOTO(rnl_alloc(graph->value_count, sizeof *descs, &descs));
    const size_t count = list_values(frame, first, values);
    for (size_t i = 0; i < count; i++)
        describe_cell(frame, values[i], node, &descs[i]);
    const rnl_plan_request request = {first, values, descs, count};
    GOTO(rnl_model_get_plan(frame->model, &request, out_plan));
    if ((*out_plan)->end_node == first)
        GOTO(rnl_node_error(graph, node, FAIL(RNL_INTERNAL, "its shape is not known where all that it reads is")));
done:
    if (status != RNL_OK) {
        rnl_plan_release(*out_plan);
        *out_plan = NULL;
    }
    rnl_free(values);
    rnl_free(descs);
    return status;
}

static rnl_status run_plan_from(rnl_frame *frame, uint32_t *first)
{
    rnl_plan *plan = NULL;
    TRY(get_plan(frame, *first, &plan));
    *first = plan->end_node;
    rnl_status status = run_plan(frame, plan);
    rnl_plan_release(plan);
    return status;
}

/* Nobody reads what the node gives, or it is constant. */
static bool is_done(const rnl_frame *frame, const rnl_node *node)
{
    bool done = true;
    for (uint32_t i = 0; i < node->output_count && done; i++)
        done = node->outputs[i] == RNL_NO_VALUE || frame->model->last_read[node->outputs[i]] == 0 ||
               frame->model->constants.tensors[node->outputs[i]];
    return done;
}

static void release_read(rnl_frame *frame, uint32_t first)
{
    for (size_t i = 0; i < frame->model->graph->value_count; i++)
        if (frame->cells[i] && frame->model->last_read[i] <= first)
            rnl_cell_set(&frame->cells[i], NULL);
}

static rnl_status run_nodes(rnl_frame *frame)
{
    const rnl_graph *graph = frame->model->graph;
    for (uint32_t first = 0; first < graph->node_count;) {
        const rnl_node *node = &graph->nodes[first];
        if (rnl_session_is_cancelled(frame->session))
            return FAIL(RNL_CANCELLED, "the run was cancelled before node %u of %zu", first, graph->node_count);
        if (is_done(frame, node)) {
            first++;
        } else if (rnl_late_kind(node) != RNL_LATE_NOT) {
            rnl_status status = rnl_late_run(frame, node);
            if (status != RNL_OK)
                return rnl_node_error(graph, node, status);
            first++;
        } else {
            TRY(run_plan_from(frame, &first));
        }
        release_read(frame, first);
    }
    return RNL_OK;
}

rnl_status rnl_frame_run(rnl_frame *frame)
{
    rnl_status status = run_nodes(frame);
    if (status == RNL_OK)
        return RNL_OK;
    rnl_error error = *rnl_last_error();
    (void)!rnl_stream_synchronize(frame->session->stream); /* before the cells' memory goes */
    return rnl_error_restore(&error);
}
