/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph.h"
#include "base/memory.h"
#include "graph/graph_build.h"
#include <runnel/custom.h>

#include <stddef.h>
#include <string.h>

rnl_graph *rnl_graph_retain(rnl_graph *graph)
{
    if (graph)
        atomic_fetch_add_explicit(&graph->references, 1, memory_order_relaxed);
    return graph;
}

static void release_parts(rnl_graph *graph)
{
    for (size_t i = 0; i < graph->subgraph_count; i++)
        rnl_graph_release(graph->subgraphs[i]);
    rnl_free(graph->subgraphs);
    for (size_t i = 0; i < graph->external_count; i++)
        rnl_map_close(&graph->external[i]);
    rnl_map_close(&graph->file);
    rnl_registry_release(graph->registry);
}

void rnl_graph_release(rnl_graph *graph)
{
    if (!graph || atomic_fetch_sub_explicit(&graph->references, 1, memory_order_acq_rel) != 1)
        return;
    rnl_graph_release(graph->base);
    if (!graph->base)
        release_parts(graph);
    rnl_zone_free(&graph->zone);
    rnl_free(graph);
}

rnl_status rnl_graph_copy(rnl_graph *base, rnl_graph **out_graph)
{
    const size_t after = offsetof(rnl_graph, base); /* others count references meanwhile */
    rnl_graph *copy = NULL;
    rnl_status status = RNL_OK;
    *out_graph = NULL;
    GOTO(rnl_alloc(1, sizeof *copy, &copy));
    atomic_init(&copy->references, 1);
    memcpy((char *)copy + after, (const char *)base + after, sizeof *copy - after);
    copy->zone = (rnl_zone){0};
    copy->base = NULL; /* until nothing can fail */
    GOTO(rnl_zone_alloc(&copy->zone, base->value_count + 1, sizeof *copy->values, &copy->values));
    GOTO(rnl_zone_alloc(&copy->zone, base->node_count, sizeof *copy->nodes, &copy->nodes));
    memcpy(copy->values, base->values, base->value_count * sizeof *copy->values);
    memcpy(copy->nodes, base->nodes, base->node_count * sizeof *copy->nodes);
    copy->base = rnl_graph_retain(base);
    *out_graph = copy;
    return RNL_OK;
done:
    if (copy)
        rnl_zone_free(&copy->zone);
    rnl_free(copy);
    return status;
}

const rnl_value_info *rnl_graph_inputs(const rnl_graph *graph, size_t *out_count)
{
    *out_count = graph->input_count;
    return graph->inputs;
}

const rnl_value_info *rnl_graph_outputs(const rnl_graph *graph, size_t *out_count)
{
    *out_count = graph->output_count;
    return graph->outputs;
}

const rnl_metadata *rnl_graph_metadata(const rnl_graph *graph, size_t *out_count)
{
    *out_count = graph->metadata_count;
    return graph->metadata;
}

void rnl_graph_get_info(const rnl_graph *graph, rnl_graph_info *out_info)
{
    *out_info = graph->info;
}

bool rnl_node_is(const rnl_node *node, const char *op_type)
{
    return node->domain[0] == '\0' && strcmp(node->op_type, op_type) == 0;
}

const rnl_attribute *rnl_node_attribute(const rnl_node *node, const char *name)
{
    for (size_t i = 0; i < node->attribute_count; i++)
        if (strcmp(node->attributes[i].name, name) == 0)
            return &node->attributes[i];
    return NULL;
}

static const rnl_attribute *attribute_of_type(const rnl_node *node, const char *name, rnl_attribute_type type)
{
    const rnl_attribute *attribute = rnl_node_attribute(node, name);
    return attribute && attribute->type == type ? attribute : NULL;
}

int64_t rnl_node_int(const rnl_node *node, const char *name, int64_t absent)
{
    const rnl_attribute *attribute = attribute_of_type(node, name, RNL_ATTRIBUTE_INT);
    return attribute ? attribute->i : absent;
}

float rnl_node_float(const rnl_node *node, const char *name, float absent)
{
    const rnl_attribute *attribute = attribute_of_type(node, name, RNL_ATTRIBUTE_FLOAT);
    return attribute ? attribute->f : absent;
}

const char *rnl_node_string(const rnl_node *node, const char *name, const char *absent)
{
    const rnl_attribute *attribute = attribute_of_type(node, name, RNL_ATTRIBUTE_STRING);
    return attribute ? attribute->s : absent;
}

const int64_t *rnl_node_ints(const rnl_node *node, const char *name, size_t *out_count)
{
    const rnl_attribute *attribute = attribute_of_type(node, name, RNL_ATTRIBUTE_INTS);
    *out_count = attribute ? attribute->count : 0;
    return attribute ? attribute->ints : NULL;
}

const float *rnl_node_floats(const rnl_node *node, const char *name, size_t *out_count)
{
    const rnl_attribute *attribute = attribute_of_type(node, name, RNL_ATTRIBUTE_FLOATS);
    *out_count = attribute ? attribute->count : 0;
    return attribute ? attribute->floats : NULL;
}

rnl_graph *rnl_node_graph(const rnl_node *node, const char *name)
{
    const rnl_attribute *attribute = attribute_of_type(node, name, RNL_ATTRIBUTE_GRAPH);
    return attribute ? attribute->graph : NULL;
}

rnl_status rnl_node_error(const rnl_graph *graph, const rnl_node *node, rnl_status status)
{
    return rnl_error_add(status, "node %zu (%s '%s')", (size_t)(node - graph->nodes), node->op_type, node->name);
}
