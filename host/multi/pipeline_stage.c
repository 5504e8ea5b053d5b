/* SPDX-License-Identifier: Apache-2.0 */
/* The stages of a cut: their graphs, their models, and how values get from one to the next. */
#include "base/memory.h"
#include "device/device.h"
#include "graph/op_common.h"
#include "model/trace.h"
#include "multi/pipeline.h"
#include <string.h>

size_t rnl_stage_lanes(const rnl_device *device, uint32_t depth)
{
    return device->maps_in_place || depth < 2 ? 1 : 2;
}

void rnl_stages_close(rnl_pipeline *pipeline)
{
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        rnl_pipe_stage *stage = &pipeline->stages[i];
        for (size_t k = 0; stage->lanes && k < stage->lane_count; k++) {
            rnl_session_release(stage->lanes[k].session);
            rnl_free(stage->lanes[k].inputs);
            rnl_free(stage->lanes[k].outputs);
        }
        rnl_free(stage->lanes);
        rnl_model_release(stage->model);
        rnl_graph_release(stage->graph);
        rnl_free(stage->input_sources);
        rnl_free(stage->output_targets);
        *stage = (rnl_pipe_stage){0};
    }
    rnl_free(pipeline->crossings);
    pipeline->crossings = NULL;
    pipeline->crossing_count = pipeline->stage_count = 0;
}

/* ---- one stage --------------------------------------------------------------------------------------------------- */

static const char *name_of(const rnl_graph *graph, uint32_t index)
{
    const rnl_node *node = index < graph->node_count ? &graph->nodes[index] : NULL;
    for (uint32_t i = 0; node && !*node->name && i < node->output_count; i++)
        if (node->outputs[i] != RNL_NO_VALUE)
            return graph->values[node->outputs[i]].name;
    return node ? node->name : "";
}

static size_t count_live(const rnl_flow *flow, uint32_t first, uint32_t end)
{
    size_t count = 0;
    for (uint32_t i = first; i < end; i++)
        count += flow->is_live[i];
    return count;
}

/* Plans for what the cut was made for: the weights are on the device then. */
static rnl_status plan_stage(rnl_pipe_stage *stage, const rnl_stage_plan *plan)
{
    const rnl_graph *part = stage->model->graph;
    rnl_tensor_desc *descs = NULL;
    rnl_plan *made = NULL;
    rnl_status status = RNL_OK;
    rnl_model_stats stats;
    GOTO(rnl_alloc(part->input_count, sizeof *descs, &descs));
    for (size_t i = 0; i < part->input_count; i++) {
        descs[i] = plan->survey->descs[part->input_values[i]];
        if (!stage->model->reads_contents[part->input_values[i]])
            descs[i].host = NULL;
        if (plan->flow->graph->values[part->input_values[i]].producer != RNL_NO_NODE)
            stage->info.crossing_bytes += (size_t)rnl_desc_elements(&descs[i]) * rnl_dtype_bytes(descs[i].dtype);
    }
    GOTO(rnl_model_get_first_plan(stage->model, descs, &made));
    rnl_model_get_stats(stage->model, &stats);
    stage->info.weight_bytes = stats.weight_bytes;
    stage->info.arena_bytes = made->arena_bytes;
done:
    rnl_plan_release(made);
    rnl_free(descs);
    return status;
}

/* "stage 1 on 0:1"; the one that copies beside it: "stage 1 on 0:1, session 2". */
static void name_track(const rnl_lane *lane, size_t index)
{
    char spec[RNL_DEVICE_SPEC_BYTES];
    const size_t stage = (size_t)(lane->stage - lane->pipeline->stages);
    rnl_device_spec(lane->stage->model->device, spec);
    if (index == 0)
        rnl_session_name_track(lane->session, "stage %zu on %s", stage, spec);
    else
        rnl_session_name_track(lane->session, "stage %zu on %s, session %zu", stage, spec, index + 1);
}

static rnl_status open_lanes(rnl_pipeline *pipeline, rnl_pipe_stage *stage, const rnl_stage_plan *plan)
{
    const size_t count = rnl_stage_lanes(pipeline->devices[stage->info.device], plan->depth);
    TRY(rnl_alloc(count, sizeof *stage->lanes, &stage->lanes));
    for (; stage->lane_count < count; stage->lane_count++) {
        rnl_lane *lane = &stage->lanes[stage->lane_count];
        lane->pipeline = pipeline;
        lane->stage = stage;
        TRY(rnl_alloc(stage->graph->input_count, sizeof *lane->inputs, &lane->inputs));
        rnl_status status = rnl_alloc(stage->graph->output_count, sizeof *lane->outputs, &lane->outputs);
        if (status == RNL_OK)
            status = rnl_session_create(stage->model, &lane->session);
        if (status == RNL_OK)
            name_track(lane, stage->lane_count);
        if (status != RNL_OK) {
            rnl_free(lane->inputs);
            rnl_free(lane->outputs);
            return status;
        }
    }
    return RNL_OK;
}

static rnl_status open_stage(rnl_pipeline *pipeline, const rnl_stage_plan *plan, size_t device, size_t *out_needed)
{
    const uint32_t first = plan->cuts[device], end = plan->cuts[device + 1];
    rnl_pipe_stage *stage = &pipeline->stages[pipeline->stage_count++];
    *stage = (rnl_pipe_stage){.info = {.device = device,
                                       .first_node = first,
                                       .node_count = count_live(plan->flow, first, end),
                                       .first_name = name_of(pipeline->graph, first)}};
    TRY(rnl_graph_part(pipeline->graph, plan->flow, first, end, plan->survey->dtypes, &stage->graph,
                       &stage->own_outputs));
    TRY(rnl_model_open(stage->graph, pipeline->devices[device], plan->options, &stage->model));
    TRY(plan_stage(stage, plan));
    TRY(open_lanes(pipeline, stage, plan));
    *out_needed = stage->info.weight_bytes + stage->lane_count * stage->info.arena_bytes;
    if (*out_needed > plan->budgets[device])
        return FAIL(RNL_RESOURCE_EXHAUSTED, "stage %zu needs %zu bytes; %zu are for it", pipeline->stage_count - 1,
                    *out_needed, plan->budgets[device]);
    return RNL_OK;
}

static rnl_status fail_stage(const rnl_pipeline *pipeline, size_t device, rnl_status status)
{
    char spec[RNL_DEVICE_SPEC_BYTES];
    return rnl_error_add(status, "opening stage %zu on %s (%s)", pipeline->stage_count - 1,
                         rnl_device_get_info(pipeline->devices[device])->name,
                         rnl_device_spec(pipeline->devices[device], spec));
}

/* ---- from stage to stage ----------------------------------------------------------------------------------------- */

static uint32_t find_crossing(const rnl_pipeline *pipeline, uint32_t value)
{
    for (uint32_t i = 0; i < pipeline->crossing_count; i++)
        if (pipeline->crossings[i].value == value)
            return i;
    return UINT32_MAX;
}

static uint32_t graph_output(const rnl_pipeline *pipeline, const rnl_value_info *info)
{
    for (uint32_t i = 0; i < pipeline->graph->output_count; i++)
        if (pipeline->graph->outputs[i].name == info->name)
            return i;
    return 0;
}

static rnl_status wire_outputs(rnl_pipeline *pipeline, rnl_pipe_stage *stage)
{
    const rnl_graph *part = stage->graph;
    rnl_device *device = stage->model->device;
    TRY(rnl_alloc(part->output_count, sizeof *stage->output_targets, &stage->output_targets));
    for (size_t i = 0; i < part->output_count; i++) {
        if (i < stage->own_outputs) {
            stage->output_targets[i] = graph_output(pipeline, &part->outputs[i]);
            continue;
        }
        stage->output_targets[i] = (uint32_t)pipeline->crossing_count;
        pipeline->crossings[pipeline->crossing_count++] =
            (rnl_crossing){part->output_values[i], device->maps_in_place ? NULL : device};
    }
    return RNL_OK;
}

static rnl_status wire_inputs(rnl_pipeline *pipeline, rnl_pipe_stage *stage)
{
    const rnl_graph *part = stage->graph;
    rnl_device *device = stage->model->device;
    TRY(rnl_alloc(part->input_count, sizeof *stage->input_sources, &stage->input_sources));
    for (size_t i = 0; i < part->input_count; i++) {
        const uint32_t value = part->input_values[i], crossing = find_crossing(pipeline, value);
        stage->input_sources[i] = pipeline->graph->values[value].input_index;
        if (stage->input_sources[i] >= 0)
            continue;
        if (crossing == UINT32_MAX)
            return FAIL(RNL_INTERNAL, "value '%s' is read by a stage and made by none",
                        pipeline->graph->values[value].name);
        stage->input_sources[i] = -1 - (int32_t)crossing;
        if (!pipeline->crossings[crossing].pins && !device->maps_in_place)
            pipeline->crossings[crossing].pins = device;
    }
    return RNL_OK;
}

static rnl_status wire(rnl_pipeline *pipeline)
{
    size_t most = 0;
    for (size_t i = 0; i < pipeline->stage_count; i++)
        most += pipeline->stages[i].graph->output_count;
    TRY(rnl_alloc(most, sizeof *pipeline->crossings, &pipeline->crossings));
    for (size_t i = 0; i < pipeline->stage_count; i++) {
        TRY(wire_inputs(pipeline, &pipeline->stages[i]));
        TRY(wire_outputs(pipeline, &pipeline->stages[i]));
    }
    return RNL_OK;
}

rnl_status rnl_stages_open(rnl_pipeline *pipeline, const rnl_stage_plan *plan, size_t *out_device, size_t *out_needed)
{
    for (size_t d = 0; d < pipeline->device_count; d++) {
        const bool is_last = d + 1 == pipeline->device_count;
        if (plan->cuts[d] == plan->cuts[d + 1] && !(is_last && pipeline->stage_count == 0))
            continue;
        *out_device = d;
        *out_needed = 0;
        rnl_status status = open_stage(pipeline, plan, d, out_needed);
        if (status != RNL_OK)
            return fail_stage(pipeline, d, status);
    }
    return wire(pipeline);
}
