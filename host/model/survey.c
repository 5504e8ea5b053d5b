/* SPDX-License-Identifier: Apache-2.0 */
#include "model/survey.h"

#include "base/memory.h"
#include "graph/op_common.h"
#include "model/lower.h"
#include "model/profile.h"
#include <string.h>

#define RUNS 3 /* whose shortest times count, behind one that compiles */

void rnl_survey_free(rnl_survey *survey)
{
    rnl_zone_free(&survey->zone);
    *survey = (rnl_survey){0};
}

static rnl_status reserve(rnl_survey *survey, const rnl_graph *graph)
{
    survey->node_count = graph->node_count;
    survey->value_count = graph->value_count;
    TRY(rnl_zone_alloc(&survey->zone, graph->node_count, sizeof *survey->nodes, &survey->nodes));
    TRY(rnl_zone_alloc(&survey->zone, graph->value_count, sizeof *survey->descs, &survey->descs));
    TRY(rnl_zone_alloc(&survey->zone, graph->value_count, sizeof *survey->dtypes, &survey->dtypes));
    TRY(rnl_zone_alloc(&survey->zone, graph->value_count, sizeof *survey->is_there, &survey->is_there));
    return rnl_zone_alloc(&survey->zone, graph->value_count, sizeof *survey->weight_bytes, &survey->weight_bytes);
}

/* ---- planning --------------------------------------------------------------------------------------------------- */

/* An edition has more values behind the graph's own. */
static rnl_status note_value(rnl_survey *survey, const rnl_planner *planner, size_t index)
{
    const rnl_plan_value *value = &planner->values[index];
    rnl_tensor_desc *desc = &survey->descs[index];
    void *copy = NULL;
    *desc = value->desc;
    survey->dtypes[index] = desc->dtype;
    survey->is_there[index] = value->described && (value->placed || value->has_copy || desc->host);
    if (!desc->host || value->is_fixed || rnl_desc_elements(desc) > RNL_HOST_MAX_ELEMENTS) {
        desc->host = NULL;
        return RNL_OK;
    }
    const size_t bytes = (size_t)rnl_desc_elements(desc) * rnl_dtype_bytes(desc->dtype);
    TRY(rnl_zone_alloc(&survey->zone, bytes ? bytes : 1, 1, &copy));
    if (bytes)
        memcpy(copy, desc->host, bytes);
    desc->host = copy;
    return RNL_OK;
}

static rnl_status note_plan(void *user, const rnl_planner *planner)
{
    rnl_survey *survey = user;
    const rnl_weights *weights = &planner->model->weights;
    const rnl_plan *plan = planner->plan;
    survey->end_node = plan->end_node;
    survey->arena_bytes = plan->arena_bytes;
    for (size_t i = 0; i < survey->value_count; i++)
        TRY(note_value(survey, planner, i));
    for (size_t i = 0; i < weights->count; i++)
        if (weights->items[i].key.value < survey->value_count)
            survey->weight_bytes[weights->items[i].key.value] += rnl_weight_own_bytes(&weights->items[i]);
    survey->total_weight_bytes = weights->size_bytes;
    for (size_t i = 0; i < plan->steps.step_count; i++) {
        const uint32_t node = plan->step_labels[i].node;
        if (node >= survey->node_count)
            continue;
        survey->nodes[node].flops += plan->steps.steps[i].flops;
        survey->nodes[node].bytes += plan->steps.steps[i].bytes;
        survey->nodes[node].steps++;
    }
    return RNL_OK;
}

static size_t count_constants(const rnl_graph *graph)
{
    size_t bytes = 0;
    for (size_t i = 0; i < graph->value_count; i++)
        if (graph->values[i].constant && graph->values[i].input_index < 0)
            bytes += graph->values[i].constant->size_bytes;
    for (size_t i = 0; i < graph->subgraph_count; i++)
        bytes += count_constants(graph->subgraphs[i]);
    return bytes;
}

/* What lies behind the plan is known by its constants alone: they are in memory as the file has them, at least. */
static void note_rest(rnl_survey *survey, const rnl_graph *graph)
{
    for (size_t i = survey->end_node; i < graph->node_count; i++) {
        const rnl_node *node = &graph->nodes[i];
        size_t bytes = 0;
        for (uint32_t k = 0; k < node->input_count; k++) {
            const uint32_t value = node->inputs[k];
            const rnl_host_tensor *constant = value == RNL_NO_VALUE ? NULL : graph->values[value].constant;
            if (!constant)
                continue;
            bytes += constant->size_bytes;
            if (survey->weight_bytes[value] == 0) {
                survey->weight_bytes[value] = constant->size_bytes;
                survey->total_weight_bytes += constant->size_bytes;
            }
        }
        for (uint32_t k = 0; k < node->attribute_count; k++)
            if (node->attributes[k].type == RNL_ATTRIBUTE_GRAPH)
                bytes += count_constants(node->attributes[k].graph);
        survey->nodes[i].bytes = bytes;
        survey->nodes[i].steps = 1;
    }
}

static rnl_status plan_dry(rnl_survey *survey, rnl_model *model, const rnl_tensor *inputs, size_t input_count)
{
    const rnl_graph *graph = model->graph;
    const rnl_tensor **order = NULL;
    rnl_tensor_desc *descs = NULL;
    rnl_plan *plan = NULL;
    rnl_status status = RNL_OK;
    GOTO(rnl_alloc(graph->input_count, sizeof *order, &order));
    GOTO(rnl_alloc(graph->input_count, sizeof *descs, &descs));
    GOTO(rnl_model_match_inputs(model, inputs, input_count, order, descs));
    const rnl_plan_request request = {0, graph->input_values, descs, graph->input_count};
    GOTO(rnl_plan_create_noted(model, &request, note_plan, survey, &plan));
done:
    rnl_plan_release(plan);
    rnl_free(descs);
    rnl_free(order);
    return status;
}

rnl_status rnl_survey_create(rnl_graph *graph, rnl_device *device, const rnl_model_options *options,
                             const rnl_tensor *inputs, size_t input_count, rnl_survey *out_survey)
{
    rnl_model *model = NULL;
    rnl_status status = RNL_OK;
    *out_survey = (rnl_survey){0};
    GOTO(reserve(out_survey, graph));
    GOTO(rnl_model_open_dry(graph, device, options, &model));
    GOTO(plan_dry(out_survey, model, inputs, input_count));
    note_rest(out_survey, graph);
done:
    rnl_model_release(model);
    if (status != RNL_OK)
        rnl_survey_free(out_survey);
    return status;
}

/* ---- measuring -------------------------------------------------------------------------------------------------- */

/* What graphs within the graph do counts for the first node behind the plan, which has or precedes them. */
static void add_times(const rnl_survey *survey, const rnl_session *session, uint64_t *times)
{
    const rnl_profile *profile = session->profile;
    for (size_t i = 0; i < profile->piece_count; i++) {
        const rnl_plan *plan = profile->pieces[i].plan;
        const bool is_own = plan->model == session->model;
        for (size_t k = 0; k < plan->steps.step_count; k++) {
            uint32_t node = is_own ? plan->step_labels[k].node : survey->end_node;
            if (is_own && node == RNL_NO_NODE)
                node = plan->end_node > 0 ? plan->end_node - 1 : 0;
            if (node < survey->node_count)
                times[node] += profile->steps[profile->pieces[i].first_step + k].time_ns;
        }
    }
}

static rnl_status measure_runs(rnl_survey *survey, rnl_session *session, const rnl_tensor *inputs, size_t input_count)
{
    const rnl_step_profile *steps;
    uint64_t *times = NULL;
    size_t count;
    rnl_status status = RNL_OK;
    GOTO(rnl_alloc(survey->node_count, sizeof *times, &times));
    for (size_t run = 0; run <= RUNS; run++) {
        GOTO(rnl_session_profile(session, inputs, input_count, &steps, &count));
        memset(times, 0, survey->node_count * sizeof *times);
        add_times(survey, session, times);
        for (size_t i = 0; i < survey->node_count; i++)
            if (run == 1 || (run > 1 && times[i] < survey->nodes[i].time_ns))
                survey->nodes[i].time_ns = times[i];
    }
    survey->is_measured = true;
done:
    rnl_free(times);
    return status;
}

rnl_status rnl_survey_measure(rnl_survey *survey, rnl_graph *graph, rnl_device *device,
                              const rnl_model_options *options, const rnl_tensor *inputs, size_t input_count)
{
    rnl_model *model = NULL;
    rnl_session *session = NULL;
    rnl_status status = RNL_OK;
    GOTO(rnl_model_open(graph, device, options, &model));
    GOTO(rnl_session_create(model, &session));
    GOTO(measure_runs(survey, session, inputs, input_count));
done:
    rnl_session_release(session);
    rnl_model_release(model);
    return status;
}
