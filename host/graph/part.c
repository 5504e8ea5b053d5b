/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/part.h"

#include "base/memory.h"
#include "base/text.h"
#include "graph/graph_build.h"
#include "graph/graph_sort.h"
#include "graph/op.h"
#include <string.h>

/* ---- who reads what --------------------------------------------------------------------------------------------- */

static void find_live(rnl_flow *flow)
{
    const rnl_graph *graph = flow->graph;
    for (size_t i = graph->node_count; i-- > 0;) {
        const rnl_node *node = &graph->nodes[i];
        for (uint32_t k = 0; k < node->output_count && !flow->is_live[i]; k++) {
            const uint32_t value = node->outputs[k];
            flow->is_live[i] = value != RNL_NO_VALUE && (flow->is_output[value] || flow->last_read[value] > 0);
        }
        for (uint32_t k = 0; k < node->input_count && flow->is_live[i]; k++)
            if (node->inputs[k] != RNL_NO_VALUE && flow->last_read[node->inputs[k]] == 0)
                flow->last_read[node->inputs[k]] = (uint32_t)i + 1;
    }
}

/* As the model works out its constants. */
static bool follows_from_constants(const rnl_flow *flow, const rnl_node *node)
{
    bool fixed = node->schema && node->schema->evaluate && node->input_count > 0 && node->capture_count == 0;
    for (uint32_t k = 0; k < node->input_count && fixed; k++)
        fixed = node->inputs[k] == RNL_NO_VALUE || flow->value_fixed[node->inputs[k]];
    return fixed;
}

static void find_fixed(rnl_flow *flow)
{
    const rnl_graph *graph = flow->graph;
    for (size_t i = 0; i < graph->value_count; i++)
        flow->value_fixed[i] = graph->values[i].constant != NULL;
    for (size_t i = 0; i < graph->node_count; i++) {
        const rnl_node *node = &graph->nodes[i];
        flow->is_fixed[i] = follows_from_constants(flow, node);
        for (uint32_t k = 0; k < node->output_count && flow->is_fixed[i]; k++)
            if (node->outputs[k] != RNL_NO_VALUE)
                flow->value_fixed[node->outputs[k]] = true;
    }
}

rnl_status rnl_flow_find(const rnl_graph *graph, rnl_zone *zone, rnl_flow *out_flow)
{
    *out_flow = (rnl_flow){.graph = graph};
    TRY(rnl_zone_alloc(zone, graph->node_count, sizeof *out_flow->is_live, &out_flow->is_live));
    TRY(rnl_zone_alloc(zone, graph->node_count, sizeof *out_flow->is_fixed, &out_flow->is_fixed));
    TRY(rnl_zone_alloc(zone, graph->value_count, sizeof *out_flow->value_fixed, &out_flow->value_fixed));
    TRY(rnl_zone_alloc(zone, graph->value_count, sizeof *out_flow->last_read, &out_flow->last_read));
    TRY(rnl_zone_alloc(zone, graph->value_count, sizeof *out_flow->is_output, &out_flow->is_output));
    for (size_t i = 0; i < graph->output_count; i++)
        out_flow->is_output[graph->output_values[i]] = true;
    find_live(out_flow);
    find_fixed(out_flow);
    return RNL_OK;
}

bool rnl_flow_crosses(const rnl_flow *flow, uint32_t value, uint32_t at)
{
    const uint32_t producer = flow->graph->values[value].producer;
    return producer != RNL_NO_NODE && producer < at && flow->last_read[value] > at && !flow->value_fixed[value];
}

/* ---- the part --------------------------------------------------------------------------------------------------- */

typedef struct parting {
    const rnl_flow *flow;
    uint32_t first, end;
    const rnl_dtype *types;
    rnl_graph *part;
    bool *takes;   /* one a node of the graph */
    bool *is_read; /* one a value: by the part's nodes, or given straight to an output */
} parting;

static bool is_inside(const parting *p, uint32_t node)
{
    return node != RNL_NO_NODE && p->takes[node];
}

/* From the last node backwards: one in front of the part is taken when it is fixed and read. */
static void choose_nodes(parting *p)
{
    const rnl_graph *graph = p->flow->graph;
    for (uint32_t i = p->end; i-- > 0;) {
        const rnl_node *node = &graph->nodes[i];
        bool takes = i >= p->first && p->flow->is_live[i];
        for (uint32_t k = 0; k < node->output_count && p->flow->is_fixed[i] && !takes; k++)
            takes = node->outputs[k] != RNL_NO_VALUE && p->is_read[node->outputs[k]];
        p->takes[i] = takes;
        for (uint32_t k = 0; k < node->input_count && takes; k++)
            if (node->inputs[k] != RNL_NO_VALUE)
                p->is_read[node->inputs[k]] = true;
    }
}

static void keep_nodes(parting *p)
{
    rnl_graph *part = p->part;
    size_t kept = 0;
    for (size_t i = 0; i < part->value_count; i++) {
        part->values[i].producer = RNL_NO_NODE;
        part->values[i].input_index = -1;
    }
    for (uint32_t i = 0; i < p->end; i++)
        if (p->takes[i])
            part->nodes[kept++] = part->nodes[i];
    part->node_count = kept;
    part->info.node_count = kept;
    rnl_graph_number_producers(part);
}

/* No other value has this name. */
static rnl_status describe(const parting *p, uint32_t value, rnl_value_info *out_info)
{
    rnl_text text = {0};
    *out_info = (rnl_value_info){.dtype = p->types[value], .rank = SIZE_MAX};
    rnl_text_add(&text, "%s#%u", p->flow->graph->values[value].name, (unsigned)value);
    rnl_status status = text.status;
    if (status == RNL_OK)
        status = rnl_zone_text(&p->part->zone, text.data, text.length, &out_info->name);
    rnl_text_free(&text);
    return status;
}

static bool is_input(const parting *p, uint32_t value)
{
    return p->is_read[value] && !p->flow->graph->values[value].constant &&
           p->part->values[value].producer == RNL_NO_NODE;
}

static rnl_status set_inputs(parting *p)
{
    const rnl_graph *graph = p->flow->graph;
    rnl_graph *part = p->part;
    size_t count = 0;
    for (uint32_t i = 0; i < part->value_count; i++)
        count += is_input(p, i);
    part->input_count = 0;
    TRY(rnl_zone_alloc(&part->zone, count, sizeof *part->inputs, &part->inputs));
    TRY(rnl_zone_alloc(&part->zone, count, sizeof *part->input_values, &part->input_values));
    for (uint32_t i = 0; i < part->value_count; i++) {
        if (!is_input(p, i))
            continue;
        const int32_t own = graph->values[i].input_index;
        if (own >= 0)
            part->inputs[part->input_count] = graph->inputs[own];
        else
            TRY(describe(p, i, &part->inputs[part->input_count]));
        part->values[i].input_index = (int32_t)part->input_count;
        part->input_values[part->input_count++] = i;
    }
    return RNL_OK;
}

static bool is_own_output(const parting *p, uint32_t value)
{
    const uint32_t producer = p->flow->graph->values[value].producer;
    return producer == RNL_NO_NODE ? p->first == 0 : producer >= p->first && producer < p->end;
}

static bool is_read_later(const parting *p, uint32_t value)
{
    const uint32_t producer = p->flow->graph->values[value].producer;
    return producer != RNL_NO_NODE && producer >= p->first && is_inside(p, producer) &&
           rnl_flow_crosses(p->flow, value, p->end);
}

static rnl_status set_outputs(parting *p, size_t *out_own_count)
{
    const rnl_graph *graph = p->flow->graph;
    rnl_graph *part = p->part;
    size_t count = graph->output_count;
    for (uint32_t i = 0; i < part->value_count; i++)
        count += is_read_later(p, i);
    part->output_count = 0;
    TRY(rnl_zone_alloc(&part->zone, count, sizeof *part->outputs, &part->outputs));
    TRY(rnl_zone_alloc(&part->zone, count, sizeof *part->output_values, &part->output_values));
    for (size_t i = 0; i < graph->output_count; i++)
        if (is_own_output(p, graph->output_values[i])) {
            part->outputs[part->output_count] = graph->outputs[i];
            part->output_values[part->output_count++] = graph->output_values[i];
        }
    *out_own_count = part->output_count;
    for (uint32_t i = 0; i < part->value_count; i++)
        if (is_read_later(p, i)) {
            TRY(describe(p, i, &part->outputs[part->output_count]));
            part->output_values[part->output_count++] = i;
        }
    return RNL_OK;
}

static void mark_given(parting *p)
{
    const rnl_graph *graph = p->flow->graph;
    for (size_t i = 0; i < graph->output_count; i++)
        if (is_own_output(p, graph->output_values[i]))
            p->is_read[graph->output_values[i]] = true;
}

rnl_status rnl_graph_part(rnl_graph *graph, const rnl_flow *flow, uint32_t first, uint32_t end, const rnl_dtype *types,
                          rnl_graph **out_part, size_t *out_own_count)
{
    rnl_zone zone = {0};
    parting p = {.flow = flow, .first = first, .end = end, .types = types};
    rnl_status status = RNL_OK;
    *out_part = NULL;
    *out_own_count = 0;
    GOTO(rnl_graph_copy(graph, &p.part));
    GOTO(rnl_zone_alloc(&zone, graph->node_count, sizeof *p.takes, &p.takes));
    GOTO(rnl_zone_alloc(&zone, graph->value_count, sizeof *p.is_read, &p.is_read));
    mark_given(&p);
    choose_nodes(&p);
    keep_nodes(&p);
    GOTO(set_inputs(&p));
    GOTO(set_outputs(&p, out_own_count));
    *out_part = p.part;
    p.part = NULL;
done:
    rnl_graph_release(p.part);
    rnl_zone_free(&zone);
    return status;
}
