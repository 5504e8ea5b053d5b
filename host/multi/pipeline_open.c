/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a cut: what nodes take, where a graph may be cut, and whether what comes of it fits. */
#include "multi/pipeline.h"

#include "base/log.h"
#include "base/memory.h"
#include "device/device.h"
#include "graph/op_common.h"
#include "multi/pipeline_cut.h"
#include <math.h>
#include <string.h>

#define MOST_PLACES 512
#define MOST_ATTEMPTS 8
#define DEFAULT_DEPTH 2
#define COPY_NS_PER_BYTE 0.1 /* 10 GB/s, to or from memory of a device's own */
#define STEP_NS 2000.0

typedef struct search {
    rnl_pipeline *pipeline;
    rnl_pipeline_options options;
    uint32_t depth;
    rnl_zone zone;
    rnl_flow flow;
    rnl_survey *surveys; /* one a device; those of the same kind are the first one's */
    size_t *kinds;       /* the first device of its kind */
    rnl_tensor *inputs;
    size_t input_count;
    uint32_t *places; /* nodes in front of which a cut may be, then the end */
    rnl_cut_problem problem;
    size_t *budgets;
    double *scales;
} search;

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static rnl_status make_inputs(search *s)
{
    const rnl_graph *graph = s->pipeline->graph;
    s->input_count = s->options.inputs ? s->options.input_count : graph->input_count;
    TRY(rnl_zone_alloc(&s->zone, s->input_count, sizeof *s->inputs, &s->inputs));
    for (size_t i = 0; i < s->input_count; i++) {
        if (s->options.inputs) {
            s->inputs[i] = s->options.inputs[i];
            continue;
        }
        const rnl_value_info *info = &graph->inputs[i];
        s->inputs[i] = (rnl_tensor){.name = info->name, .dtype = info->dtype, .rank = info->rank};
        for (size_t k = 0; info->rank == SIZE_MAX || k < info->rank; k++) {
            if (info->rank == SIZE_MAX || info->shape[k] < 0)
                return FAIL(RNL_FAILED_PRECONDITION,
                            "input '%s' leaves dimensions free: give inputs of the pipeline's batches in its options",
                            info->name);
            s->inputs[i].shape[k] = info->shape[k];
        }
    }
    return RNL_OK;
}

/* Zeros, where measuring needs contents that planning did not. */
static rnl_status fill_inputs(search *s)
{
    for (size_t i = 0; i < s->input_count; i++) {
        rnl_tensor *tensor = &s->inputs[i];
        int64_t elements;
        if (tensor->data || tensor->buffer)
            continue;
        if (!rnl_shape_elements(tensor->shape, tensor->rank, &elements) ||
            !rnl_size_mul((size_t)elements, rnl_dtype_bytes(tensor->dtype), &tensor->size_bytes))
            return FAIL(RNL_INVALID_ARGUMENT, "input '%s' is too large to address", tensor->name);
        TRY(rnl_zone_alloc(&s->zone, tensor->size_bytes ? tensor->size_bytes : 1, 1, &tensor->data));
    }
    return RNL_OK;
}

/* ---- devices ----------------------------------------------------------------------------------------------------- */

static bool is_same_kind(const rnl_device *a, const rnl_device *b)
{
    const rnl_device_info *left = rnl_device_get_info(a), *right = rnl_device_get_info(b);
    return strcmp(left->name, right->name) == 0 && strcmp(left->platform, right->platform) == 0 &&
           left->compute_units == right->compute_units;
}

/* A device that is given several times shares what it has among its stages. */
static void find_budgets(search *s)
{
    const rnl_pipeline *pipeline = s->pipeline;
    for (size_t i = 0; i < pipeline->device_count; i++) {
        rnl_device_stats stats;
        size_t times = 0;
        rnl_device_get_stats(pipeline->devices[i], &stats);
        for (size_t k = 0; k < pipeline->device_count; k++)
            times += pipeline->devices[k] == pipeline->devices[i];
        const size_t left =
            stats.pool_budget_bytes > stats.pool_in_use_bytes ? stats.pool_budget_bytes - stats.pool_in_use_bytes : 0;
        s->budgets[i] = left / times;
        const uint64_t given = s->options.memory_bytes ? s->options.memory_bytes[i] : 0;
        if (given > 0 && given < s->budgets[i])
            s->budgets[i] = (size_t)given;
    }
}

static rnl_status survey_devices(search *s)
{
    rnl_pipeline *pipeline = s->pipeline;
    for (size_t i = 0; i < pipeline->device_count; i++) {
        s->kinds[i] = i;
        for (size_t k = i; k-- > 0;)
            s->kinds[i] = is_same_kind(pipeline->devices[k], pipeline->devices[i]) ? k : s->kinds[i];
        if (s->kinds[i] == i)
            TRY(rnl_survey_create(pipeline->graph, pipeline->devices[i], s->options.model, s->inputs, s->input_count,
                                  &s->surveys[i]));
    }
    return RNL_OK;
}

static rnl_status measure_devices(search *s)
{
    if (s->options.estimate)
        return RNL_OK;
    TRY(fill_inputs(s));
    for (size_t i = 0; i < s->pipeline->device_count; i++) {
        rnl_survey *survey = &s->surveys[i];
        size_t needed;
        if (s->kinds[i] != i || !rnl_size_add(survey->total_weight_bytes, survey->arena_bytes, &needed) ||
            needed > s->budgets[i])
            continue;
        rnl_status status = rnl_survey_measure(survey, s->pipeline->graph, s->pipeline->devices[i], s->options.model,
                                               s->inputs, s->input_count);
        if (status != RNL_OK && status != RNL_RESOURCE_EXHAUSTED)
            return status;
    }
    return RNL_OK;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* Behind the last node whose shapes planning knows, nothing is cut. */
static rnl_status find_places(search *s, size_t **out_crossing)
{
    const rnl_graph *graph = s->pipeline->graph;
    const rnl_survey *survey = &s->surveys[0];
    const size_t n = graph->node_count;
    size_t *crossing = NULL, *blocked = NULL; /* as differences from place to place */
    TRY(rnl_zone_alloc(&s->zone, n + 2, sizeof *crossing, &crossing));
    TRY(rnl_zone_alloc(&s->zone, n + 2, sizeof *blocked, &blocked));
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const uint32_t producer = graph->values[v].producer, last = s->flow.last_read[v];
        if (producer == RNL_NO_NODE || !rnl_flow_crosses(&s->flow, v, producer + 1))
            continue;
        const rnl_tensor_desc *desc = &survey->descs[v];
        const size_t bytes = (size_t)rnl_desc_elements(desc) * rnl_dtype_bytes(desc->dtype);
        crossing[producer + 1] += bytes;
        crossing[last] -= bytes;
        blocked[producer + 1] += !survey->is_there[v];
        blocked[last] -= !survey->is_there[v];
    }
    TRY(rnl_zone_alloc(&s->zone, n + 2, sizeof *s->places, &s->places));
    s->places[s->problem.count++] = 0;
    for (size_t i = 1; i < n; i++) {
        crossing[i] += crossing[i - 1];
        blocked[i] += blocked[i - 1];
        if (blocked[i] == 0 && i <= survey->end_node && s->flow.is_live[i])
            s->places[s->problem.count++] = (uint32_t)i;
    }
    s->places[s->problem.count++] = (uint32_t)n;
    crossing[n] = 0;
    *out_crossing = crossing;
    return RNL_OK;
}

/* Of too many places, those where least travels among their neighbours. */
static void thin_places(search *s, const size_t *crossing)
{
    const size_t inner = s->problem.count - 2, end = s->problem.count - 1;
    size_t kept = 1;
    if (s->problem.count <= MOST_PLACES)
        return;
    for (size_t group = 0; group < MOST_PLACES - 2; group++) {
        const size_t first = 1 + group * inner / (MOST_PLACES - 2),
                     behind = 1 + (group + 1) * inner / (MOST_PLACES - 2);
        size_t best = first;
        for (size_t i = first; i < behind; i++)
            if (crossing[s->places[i]] < crossing[s->places[best]])
                best = i;
        s->places[kept++] = s->places[best];
    }
    s->places[kept++] = s->places[end];
    s->problem.count = kept;
}

static rnl_status refuse(const search *s)
{
    const rnl_graph *graph = s->pipeline->graph;
    const uint32_t end = s->surveys[0].end_node;
    if (end < graph->node_count)
        return FAIL(
            RNL_FAILED_PRECONDITION,
            "the graph cannot be cut into stages: from node %u (%s '%s') on, shapes depend on what is computed, and "
            "nothing before it can be cut off",
            (unsigned)end, graph->nodes[end].op_type, graph->nodes[end].name);
    return FAIL(RNL_FAILED_PRECONDITION,
                "the graph cannot be cut into stages: each cut would go through nodes that are computed as one step");
}

/* ---- what stages take -------------------------------------------------------------------------------------------- */

/* A guess, where the device's kind could not be measured. */
static double estimate(const rnl_device *device, const rnl_survey_node *node)
{
    const rnl_device_info *info = rnl_device_get_info(device);
    const bool gpu = info->type == RNL_DEVICE_GPU;
    const double clock = info->clock_mhz ? info->clock_mhz * 1e6 : 1e9;
    const double flops = (double)info->compute_units * clock * (gpu ? 128 : 16);
    const double bytes = (double)info->compute_units * (gpu ? 1e10 : 4e9);
    return node->steps * STEP_NS + fmax((double)node->flops / flops, (double)node->bytes / bytes) * 1e9;
}

static rnl_status fill_times(search *s, size_t device, double *times)
{
    const rnl_survey *survey = &s->surveys[s->kinds[device]];
    double sum = 0;
    size_t place = 0;
    for (uint32_t i = 0; i <= survey->node_count; i++) {
        while (place < s->problem.count && s->places[place] == i)
            times[place++] = sum;
        if (i < survey->node_count)
            sum += survey->is_measured ? (double)survey->nodes[i].time_ns
                                       : estimate(s->pipeline->devices[device], &survey->nodes[i]);
    }
    return RNL_OK;
}

/* Bytes of values that are there at each node. */
static rnl_status find_living(search *s, size_t **out_living)
{
    const rnl_graph *graph = s->pipeline->graph;
    size_t *living = NULL;
    TRY(rnl_zone_alloc(&s->zone, graph->node_count + 2, sizeof *living, &living));
    for (uint32_t v = 0; v < graph->value_count; v++) {
        const uint32_t producer = graph->values[v].producer;
        const rnl_tensor_desc *desc = &s->surveys[0].descs[v];
        if (s->flow.value_fixed[v] || !s->surveys[0].is_there[v] ||
            (s->flow.last_read[v] == 0 && !s->flow.is_output[v]))
            continue;
        const size_t bytes = (size_t)rnl_desc_elements(desc) * rnl_dtype_bytes(desc->dtype);
        living[producer == RNL_NO_NODE ? 0 : producer] += bytes;
        living[s->flow.is_output[v] ? graph->node_count : s->flow.last_read[v]] -= bytes;
    }
    for (size_t i = 1; i < graph->node_count; i++)
        living[i] += living[i - 1];
    *out_living = living;
    return RNL_OK;
}

/* For stages that end at place `end`, from their last node backwards: a constant counts where it is read first from
 * there. */
static void fill_memory(const search *s, size_t end, const size_t *living, uint32_t *seen, size_t *weights,
                        size_t *arenas)
{
    const rnl_graph *graph = s->pipeline->graph;
    size_t weight = 0, arena = 0, first = end;
    for (uint32_t i = s->places[end]; i-- > 0;) {
        const rnl_node *node = &graph->nodes[i];
        arena = living[i] > arena ? living[i] : arena;
        for (uint32_t k = 0; k < node->input_count && s->flow.is_live[i]; k++) {
            const uint32_t value = node->inputs[k];
            if (value == RNL_NO_VALUE || seen[value] == end)
                continue;
            seen[value] = (uint32_t)end;
            weight += s->surveys[0].weight_bytes[value];
        }
        if (i >= s->surveys[0].end_node)
            weight += s->surveys[0].nodes[i].bytes;
        if (first > 0 && s->places[first - 1] == i) {
            first--;
            weights[first * s->problem.count + end] = weight;
            arenas[first * s->problem.count + end] = arena;
        }
    }
}

static rnl_status find_memory(search *s)
{
    const size_t count = s->problem.count;
    size_t *weights = NULL, *arenas = NULL, *living = NULL;
    uint32_t *seen = NULL;
    TRY(rnl_zone_alloc(&s->zone, count * count, sizeof *weights, &weights));
    TRY(rnl_zone_alloc(&s->zone, count * count, sizeof *arenas, &arenas));
    TRY(rnl_zone_alloc(&s->zone, s->pipeline->graph->value_count, sizeof *seen, &seen));
    TRY(find_living(s, &living));
    for (size_t end = 1; end < count; end++)
        fill_memory(s, end, living, seen, weights, arenas);
    s->problem.weight_bytes = weights;
    s->problem.arena_bytes = arenas;
    return RNL_OK;
}

static rnl_status pose(search *s)
{
    const size_t devices = s->pipeline->device_count;
    size_t *crossing, *at_places;
    double **times, *ns_per_byte;
    TRY(find_places(s, &crossing));
    thin_places(s, crossing);
    TRY(rnl_zone_alloc(&s->zone, s->problem.count, sizeof *at_places, &at_places));
    TRY(rnl_zone_alloc(&s->zone, devices, sizeof *times, &times));
    TRY(rnl_zone_alloc(&s->zone, devices, sizeof *ns_per_byte, &ns_per_byte));
    for (size_t i = 0; i < s->problem.count; i++)
        at_places[i] = crossing[s->places[i]];
    for (size_t d = 0; d < devices; d++) {
        TRY(rnl_zone_alloc(&s->zone, s->problem.count, sizeof *times[d], &times[d]));
        TRY(fill_times(s, d, times[d]));
        ns_per_byte[d] = s->pipeline->devices[d]->maps_in_place ? 0 : COPY_NS_PER_BYTE;
        s->scales[d] = 1;
        const size_t lanes = rnl_stage_lanes(s->pipeline->devices[d], s->depth);
        s->problem.arenas = lanes > s->problem.arenas ? lanes : s->problem.arenas;
    }
    s->problem.crossing_bytes = at_places;
    s->problem.device_count = devices;
    s->problem.time_ns = (const double *const *)times;
    s->problem.ns_per_byte = ns_per_byte;
    s->problem.budget_bytes = s->budgets;
    s->problem.memory_scale = s->scales;
    return find_memory(s);
}

/* ---- trying ------------------------------------------------------------------------------------------------------ */

static rnl_status fail_memory(const search *s)
{
    const rnl_survey *survey = &s->surveys[0];
    size_t sum = 0;
    for (size_t i = 0; i < s->pipeline->device_count; i++)
        sum = rnl_size_add(sum, s->budgets[i], &sum) ? sum : SIZE_MAX;
    return FAIL(
        RNL_RESOURCE_EXHAUSTED,
        "the model does not fit, however it is cut: its weights take %zu bytes and a run up to %zu more, and the "
        "%zu devices together have %zu for it",
        survey->total_weight_bytes, survey->arena_bytes, s->pipeline->device_count, sum);
}

static void note_expected(const search *s, const size_t *at)
{
    for (size_t i = 0; i < s->pipeline->stage_count; i++) {
        rnl_pipeline_stage *info = &s->pipeline->stages[i].info;
        const size_t d = info->device;
        info->expected_ns = rnl_cut_time(&s->problem, d, at[d], at[d + 1]);
        info->is_measured = s->surveys[s->kinds[d]].is_measured;
    }
}

/* What was opened tells what is needed: another cut, where that is more than there is. */
static rnl_status try_cut(search *s, bool *out_again)
{
    size_t at[RNL_PIPELINE_MOST_DEVICES + 1], device = 0, needed = 0;
    uint32_t cuts[RNL_PIPELINE_MOST_DEVICES + 1];
    *out_again = false;
    if (rnl_cut_solve(&s->problem, at) != RNL_OK)
        return rnl_last_error()->status == RNL_RESOURCE_EXHAUSTED ? fail_memory(s) : rnl_last_error()->status;
    for (size_t d = 0; d <= s->pipeline->device_count; d++)
        cuts[d] = s->places[at[d]];
    const rnl_stage_plan plan = {&s->flow, &s->surveys[0], s->options.model, cuts, s->budgets, s->depth};
    rnl_status status = rnl_stages_open(s->pipeline, &plan, &device, &needed);
    if (status == RNL_OK) {
        note_expected(s, at);
        return RNL_OK;
    }
    rnl_stages_close(s->pipeline);
    if (status != RNL_RESOURCE_EXHAUSTED || at[device] == at[device + 1])
        return status;
    const size_t foreseen = rnl_cut_memory(&s->problem, device, at[device], at[device + 1]);
    const double factor = needed > foreseen && foreseen > 0 ? 1.01 * (double)needed / (double)foreseen : 1.2;
    s->scales[device] *= factor;
    *out_again = true;
    return status;
}

static rnl_status search_cut(search *s)
{
    bool again = true;
    rnl_status status = RNL_OK;
    for (int i = 0; i < MOST_ATTEMPTS && again; i++)
        status = try_cut(s, &again);
    return status;
}

static rnl_status prepare(search *s, const rnl_pipeline_options *options)
{
    const rnl_pipeline *pipeline = s->pipeline;
    if (options)
        memcpy(&s->options, options, options->struct_size < sizeof *options ? options->struct_size : sizeof *options);
    s->depth = s->options.depth ? s->options.depth : DEFAULT_DEPTH;
    TRY(rnl_zone_alloc(&s->zone, pipeline->device_count, sizeof *s->surveys, &s->surveys));
    TRY(rnl_zone_alloc(&s->zone, pipeline->device_count, sizeof *s->kinds, &s->kinds));
    TRY(rnl_zone_alloc(&s->zone, pipeline->device_count, sizeof *s->budgets, &s->budgets));
    TRY(rnl_zone_alloc(&s->zone, pipeline->device_count, sizeof *s->scales, &s->scales));
    TRY(make_inputs(s));
    TRY(rnl_flow_find(pipeline->graph, &s->zone, &s->flow));
    find_budgets(s);
    TRY(survey_devices(s));
    return measure_devices(s);
}

rnl_status rnl_pipeline_open_stages(rnl_pipeline *pipeline, const rnl_pipeline_options *options)
{
    search s = {.pipeline = pipeline};
    rnl_status status = RNL_OK;
    GOTO(prepare(&s, options));
    GOTO(pose(&s));
    if (s.problem.count == 2 && pipeline->device_count > 1)
        GOTO(refuse(&s));
    GOTO(search_cut(&s));
done:
    for (size_t i = 0; s.surveys && i < pipeline->device_count; i++)
        rnl_survey_free(&s.surveys[i]);
    rnl_zone_free(&s.zone);
    return status;
}
