/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of a run in several plans: the caller's inputs become cells, and cells the caller's outputs. */
#include "device/buffer.h"
#include "model/edge.h"
#include "model/frame.h"

#include <string.h>

static rnl_status take_inputs(rnl_frame *frame)
{
    rnl_session *session = frame->session;
    const rnl_graph *graph = frame->model->graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        const rnl_tensor *tensor = session->order[i];
        const rnl_tensor_desc *desc = &session->descs[i];
        rnl_cell **cell = &frame->cells[graph->input_values[i]];
        TRY(rnl_cell_create(desc->dtype, desc->rank, desc->shape, cell));
        if (rnl_cell_bytes(*cell) > 0 && !tensor->data && !tensor->buffer)
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' has no memory", graph->inputs[i].name);
        if (tensor->buffer) {
            (*cell)->buffer = rnl_buffer_retain(tensor->buffer);
            (*cell)->offset_bytes = tensor->offset_bytes;
            /* Steps read it where it is; pinned memory has two sides on some devices. */
            if (rnl_cell_bytes(*cell) > 0)
                TRY(rnl_buffer_push(session->stream, tensor->buffer, tensor->offset_bytes, rnl_cell_bytes(*cell)));
        } else {
            (*cell)->host = tensor->data;
        }
    }
    return RNL_OK;
}

static rnl_status give_output(rnl_frame *frame, rnl_tensor *tensor)
{
    rnl_session *session = frame->session;
    const rnl_graph *graph = frame->model->graph;
    rnl_cell *cell = NULL;
    size_t index = 0;
    TRY(rnl_tensor_find(graph->outputs, graph->output_count, "output", tensor, &index));
    TRY(rnl_frame_get(frame, graph->output_values[index], &cell));
    TRY(rnl_edges_describe(session, index, &cell->desc, tensor));
    const size_t bytes = rnl_cell_bytes(cell);
    if (bytes == 0)
        return RNL_OK;
    if (tensor->buffer) {
        TRY(rnl_cell_to_device(session, cell));
        return rnl_stream_copy(session->stream, tensor->buffer, tensor->offset_bytes, cell->buffer, cell->offset_bytes,
                               bytes);
    }
    if (!cell->host)
        return rnl_stream_read(session->stream, tensor->data, cell->buffer, cell->offset_bytes, bytes);
    memmove(tensor->data, cell->host, bytes);
    return RNL_OK;
}

static rnl_status give_outputs(rnl_frame *frame, rnl_tensor *outputs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TRY(give_output(frame, &outputs[i]));
    return rnl_stream_synchronize(frame->session->stream);
}

rnl_status rnl_session_run_frame(rnl_session *session, rnl_tensor *outputs, size_t count)
{
    rnl_frame frame = {0};
    rnl_status status = RNL_OK;
    GOTO(rnl_frame_init(&frame, session, session->model));
    GOTO(take_inputs(&frame));
    GOTO(rnl_frame_run(&frame));
    GOTO(give_outputs(&frame, outputs, count));
done:
    if (status != RNL_OK) {
        rnl_error error = *rnl_last_error();
        (void)!rnl_stream_synchronize(session->stream); /* before the cells' memory goes */
        status = rnl_error_restore(&error);
    }
    rnl_frame_free(&frame);
    return status;
}
