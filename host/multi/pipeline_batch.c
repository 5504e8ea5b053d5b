/* SPDX-License-Identifier: Apache-2.0 */
/* A batch: what it takes along, and its way through one stage. */
#include "base/memory.h"
#include "device/device.h"
#include "graph/op_common.h"
#include "multi/pipeline.h"
#include <string.h>

static void release_memory(rnl_parcel *parcel)
{
    rnl_buffer_release(parcel->pinned);
    rnl_free(parcel->plain);
    rnl_output_release(parcel->taken);
    *parcel = (rnl_parcel){0};
}

void rnl_parcels_free(rnl_batch *batch, size_t count)
{
    for (size_t i = 0; batch->parcels && i < count; i++)
        release_memory(&batch->parcels[i]);
    rnl_free(batch->parcels);
    batch->parcels = NULL;
}

/* Memory for a crossing of this size, kept where it is large enough. */
static rnl_status reserve(rnl_parcel *parcel, rnl_device *pins, size_t bytes)
{
    bytes = bytes ? bytes : 1;
    if (parcel->capacity < bytes) {
        release_memory(parcel);
        if (pins)
            TRY(rnl_buffer_create(pins, RNL_MEMORY_PINNED, bytes, &parcel->pinned));
        else
            TRY(rnl_alloc(bytes, 1, &parcel->plain));
        parcel->capacity = bytes;
    }
    parcel->tensor.data = parcel->pinned ? rnl_buffer_host(parcel->pinned) : parcel->plain;
    parcel->tensor.size_bytes = parcel->capacity;
    return RNL_OK;
}

/* ---- a stage ----------------------------------------------------------------------------------------------------- */

/* Where planning knows how large what crosses is, it gets memory of the batch's; else of the session's. */
static rnl_status reserve_crossings(rnl_lane *lane, rnl_batch *batch)
{
    const rnl_pipe_stage *stage = lane->stage;
    const rnl_model *model = stage->model;
    rnl_session *session = lane->session; /* whose scratch is free: nothing runs */
    rnl_plan *plan = NULL;
    rnl_status status = RNL_OK;
    GOTO(rnl_model_match_inputs(model, lane->inputs, stage->graph->input_count, session->order, session->descs));
    GOTO(rnl_model_get_first_plan(stage->model, session->descs, &plan));
    for (size_t i = stage->own_outputs; i < stage->graph->output_count; i++) {
        const uint32_t crossing = stage->output_targets[i];
        rnl_parcel *parcel = &batch->parcels[crossing];
        rnl_output_release(parcel->taken);
        parcel->taken = NULL;
        parcel->tensor = (rnl_tensor){0};
        if (!plan->is_whole)
            continue;
        const rnl_tensor_desc *desc = &plan->outputs[i].desc;
        GOTO(reserve(parcel, lane->pipeline->crossings[crossing].pins,
                     (size_t)rnl_desc_elements(desc) * rnl_dtype_bytes(desc->dtype)));
    }
done:
    rnl_plan_release(plan);
    return status;
}

static void gather_inputs(rnl_lane *lane, const rnl_batch *batch)
{
    const rnl_pipe_stage *stage = lane->stage;
    for (size_t i = 0; i < stage->graph->input_count; i++) {
        const int32_t source = stage->input_sources[i];
        lane->inputs[i] = source >= 0 ? *batch->inputs[source] : batch->parcels[-1 - source].tensor;
        lane->inputs[i].name = stage->graph->inputs[i].name;
    }
}

/* The outputs that the caller wants of this stage, then all that crosses; returns how many. */
static size_t gather_outputs(rnl_lane *lane, const rnl_batch *batch)
{
    const rnl_pipe_stage *stage = lane->stage;
    size_t count = 0;
    for (size_t i = 0; i < stage->graph->output_count; i++) {
        const uint32_t target = stage->output_targets[i];
        const char *name = stage->graph->outputs[i].name;
        if (i >= stage->own_outputs) {
            lane->outputs[count] = batch->parcels[target].tensor;
            lane->outputs[count++].name = name;
            continue;
        }
        for (size_t k = 0; k < batch->output_count; k++)
            if (batch->output_indices[k] == target) {
                lane->outputs[count] = batch->outputs[k];
                lane->outputs[count++].name = name;
                break;
            }
    }
    return count;
}

/* The same way back. What a session lent becomes its reader's. */
static void spread_outputs(rnl_lane *lane, rnl_batch *batch)
{
    const rnl_pipe_stage *stage = lane->stage;
    size_t at = 0;
    for (size_t i = 0; i < stage->graph->output_count; i++) {
        const uint32_t target = stage->output_targets[i];
        if (i >= stage->own_outputs) {
            batch->parcels[target].taken = rnl_session_take_output(lane->session, &lane->outputs[at]);
            batch->parcels[target].tensor = lane->outputs[at++];
            continue;
        }
        for (size_t k = 0; k < batch->output_count; k++)
            if (batch->output_indices[k] == target) {
                const char *name = batch->outputs[k].name;
                batch->output_given[k] = rnl_session_take_output(lane->session, &lane->outputs[at]) != NULL;
                batch->outputs[k] = lane->outputs[at++];
                batch->outputs[k].name = name;
                break;
            }
    }
}

rnl_status rnl_lane_run(rnl_lane *lane, rnl_batch *batch)
{
    gather_inputs(lane, batch);
    if (lane->stage->own_outputs < lane->stage->graph->output_count)
        TRY(reserve_crossings(lane, batch));
    const size_t count = gather_outputs(lane, batch);
    TRY(rnl_session_run(lane->session, lane->inputs, lane->stage->graph->input_count, lane->outputs, count));
    spread_outputs(lane, batch);
    return RNL_OK;
}

/* ---- the caller's tensors ---------------------------------------------------------------------------------------- */

static rnl_status take_inputs(const rnl_pipeline *pipeline, rnl_batch *batch, const rnl_tensor *inputs, size_t count)
{
    const rnl_graph *graph = pipeline->graph;
    memset(batch->inputs, 0, graph->input_count * sizeof *batch->inputs);
    for (size_t i = 0; i < count; i++) {
        size_t index = 0;
        TRY(rnl_tensor_find(graph->inputs, graph->input_count, "input", &inputs[i], &index));
        if (batch->inputs[index])
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' was given twice", graph->inputs[index].name);
        if (inputs[i].buffer)
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' is in device memory; a pipeline takes host memory",
                        graph->inputs[index].name);
        batch->inputs[index] = &inputs[i];
    }
    for (size_t i = 0; i < graph->input_count; i++)
        if (!batch->inputs[i])
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' is missing", graph->inputs[i].name);
    return RNL_OK;
}

static rnl_status take_outputs(const rnl_pipeline *pipeline, rnl_batch *batch, rnl_tensor *outputs, size_t count)
{
    const rnl_graph *graph = pipeline->graph;
    TRY(rnl_grow(&batch->output_indices, &batch->output_capacity, count, sizeof *batch->output_indices));
    TRY(rnl_grow(&batch->output_given, &batch->given_capacity, count, sizeof *batch->output_given));
    for (size_t i = 0; i < count; i++) {
        size_t index = 0;
        TRY(rnl_tensor_find(graph->outputs, graph->output_count, "output", &outputs[i], &index));
        if (outputs[i].buffer)
            return FAIL(RNL_INVALID_ARGUMENT, "output '%s' is in device memory; a pipeline gives host memory",
                        graph->outputs[index].name);
        for (size_t k = 0; k < i; k++)
            if (batch->output_indices[k] == index)
                return FAIL(RNL_INVALID_ARGUMENT, "output '%s' was asked for twice", graph->outputs[index].name);
        batch->output_indices[i] = (uint32_t)index;
        batch->output_given[i] = false;
    }
    batch->outputs = outputs;
    batch->output_count = count;
    return RNL_OK;
}

rnl_status rnl_batch_take(const rnl_pipeline *pipeline, rnl_batch *batch, const rnl_tensor *inputs, size_t input_count,
                          rnl_tensor *outputs, size_t output_count)
{
    if ((input_count && !inputs) || (output_count && !outputs))
        return FAIL(RNL_INVALID_ARGUMENT, "%s is NULL", input_count && !inputs ? "inputs" : "outputs");
    TRY(take_inputs(pipeline, batch, inputs, input_count));
    return take_outputs(pipeline, batch, outputs, output_count);
}

void rnl_batch_take_back(rnl_batch *batch)
{
    for (size_t i = 0; i < batch->output_count; i++) {
        if (!batch->output_given[i])
            continue;
        rnl_output_release(batch->outputs[i].data);
        batch->outputs[i].data = NULL;
        batch->outputs[i].size_bytes = 0;
    }
}

/* ---- a lost device ----------------------------------------------------------------------------------------------- */

static rnl_status use_device(rnl_device *device)
{
    static const uint32_t pattern = 0;
    rnl_stream *stream = NULL;
    rnl_buffer *buffer = NULL;
    rnl_status status = RNL_OK;
    GOTO(rnl_stream_create(device, &stream));
    GOTO(rnl_buffer_create(device, RNL_MEMORY_DEVICE, sizeof pattern, &buffer));
    GOTO(rnl_stream_fill(stream, buffer, 0, &pattern, sizeof pattern, sizeof pattern));
    GOTO(rnl_stream_synchronize(stream));
done:
    rnl_buffer_release(buffer);
    rnl_stream_release(stream);
    return status;
}

bool rnl_device_is_lost(rnl_device *device)
{
    const rnl_error error = *rnl_last_error();
    bool lost = error.native_code != 0 && use_device(device) != RNL_OK && rnl_last_error()->native_code != 0;
    rnl_error_restore(&error);
    return lost;
}
