/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph_splice.h"

#include "base/memory.h"
#include "graph/graph_sort.h"
#include <string.h>

enum { OWN_NODES = 3, OWN_VALUES = 2 }; /* scores, softmax and values; what stands between them */

typedef struct splice {
    rnl_graph *graph;
    const rnl_node *node; /* that is replaced */
} splice;

static bool has_graphs(const rnl_node *node)
{
    return strcmp(node->domain, "ai.onnx.preview") == 0 && strcmp(node->op_type, "FlexAttention") == 0 &&
           (rnl_node_graph(node, "score_mod") || rnl_node_graph(node, "prob_mod"));
}

/* A modifier takes one tensor and gives one. */
static rnl_status check_modifier(const rnl_node *node, const char *name)
{
    const rnl_graph *inner = rnl_node_graph(node, name);
    if (!inner || (inner->input_count - inner->capture_count == 1 && inner->output_count == 1))
        return RNL_OK;
    return FAIL(RNL_INVALID_ARGUMENT,
                "the graph '%s' of FlexAttention '%s' has %zu inputs and %zu outputs; one each is needed", name,
                node->name, inner->input_count - inner->capture_count, inner->output_count);
}

static rnl_status check_node(const rnl_node *node)
{
    TRY(check_modifier(node, "score_mod"));
    TRY(check_modifier(node, "prob_mod"));
    if (rnl_node_own_inputs(node) != 3 || node->output_count != 1)
        return FAIL(RNL_INVALID_ARGUMENT, "FlexAttention '%s' has %u inputs and %u outputs; 3 and one are needed",
                    node->name, rnl_node_own_inputs(node), node->output_count);
    return RNL_OK;
}

/* Room for all that will be added. */
static rnl_status grow(rnl_graph *graph)
{
    size_t nodes = graph->node_count, values = graph->value_count;
    rnl_node *all_nodes;
    rnl_value *all_values;
    for (size_t i = 0; i < graph->node_count; i++) {
        const rnl_node *node = &graph->nodes[i];
        if (!has_graphs(node))
            continue;
        TRY(check_node(node));
        const rnl_graph *parts[] = {rnl_node_graph(node, "score_mod"), rnl_node_graph(node, "prob_mod")};
        nodes += OWN_NODES;
        values += OWN_VALUES;
        for (size_t k = 0; k < 2; k++) {
            nodes += parts[k] ? parts[k]->node_count : 0;
            values += parts[k] ? parts[k]->value_count : 0;
        }
    }
    if (values >= RNL_NO_VALUE || nodes >= RNL_NO_NODE)
        return FAIL(RNL_RESOURCE_EXHAUSTED, "the graph has too many nodes with those of its modifiers");
    if (nodes == graph->node_count)
        return RNL_OK;
    TRY(rnl_zone_alloc(&graph->zone, nodes, sizeof *all_nodes, &all_nodes));
    TRY(rnl_zone_alloc(&graph->zone, values, sizeof *all_values, &all_values));
    memcpy(all_nodes, graph->nodes, graph->node_count * sizeof *all_nodes);
    memcpy(all_values, graph->values, graph->value_count * sizeof *all_values);
    graph->nodes = all_nodes;
    graph->values = all_values;
    return RNL_OK;
}

static uint32_t add_value(rnl_graph *graph, const char *name)
{
    graph->values[graph->value_count] = (rnl_value){.name = name, .producer = RNL_NO_NODE, .input_index = -1};
    return (uint32_t)graph->value_count++;
}

static rnl_status copy_indices(rnl_graph *graph, const uint32_t *indices, size_t count, const uint32_t **out_copy)
{
    uint32_t *copy;
    *out_copy = NULL;
    if (count == 0)
        return RNL_OK;
    TRY(rnl_zone_alloc(&graph->zone, count, sizeof *copy, &copy));
    memcpy(copy, indices, count * sizeof *copy);
    *out_copy = copy;
    return RNL_OK;
}

/* A node with the replaced one's name and the attributes that both have. */
static rnl_status add_node(const splice *made, const char *domain, const char *op_type, int64_t opset,
                           const uint32_t *inputs, uint32_t input_count, uint32_t output)
{
    rnl_graph *graph = made->graph;
    rnl_node *node = &graph->nodes[graph->node_count++];
    *node = (rnl_node){.name = made->node->name,
                       .domain = domain,
                       .op_type = op_type,
                       .opset = opset,
                       .input_count = input_count,
                       .output_count = 1};
    TRY(copy_indices(graph, inputs, input_count, &node->inputs));
    return copy_indices(graph, &output, 1, &node->outputs);
}

/* All attributes but the graphs. */
static rnl_status copy_attributes(const splice *made, rnl_node *node)
{
    rnl_attribute *attributes;
    TRY(rnl_zone_alloc(&made->graph->zone, made->node->attribute_count, sizeof *attributes, &attributes));
    for (size_t i = 0; i < made->node->attribute_count; i++)
        if (made->node->attributes[i].type != RNL_ATTRIBUTE_GRAPH)
            attributes[node->attribute_count++] = made->node->attributes[i];
    node->attributes = attributes;
    return RNL_OK;
}

/* The values of a modifier in the graph: its input is `value`, what it captures the node has as inputs. */
static void map_values(const splice *made, const rnl_graph *inner, uint32_t value, uint32_t *map)
{
    for (size_t i = 0; i < inner->value_count; i++) {
        const int32_t input = inner->values[i].input_index;
        if (input > 0) {
            map[i] = made->node->inputs[inner->first_capture + (uint32_t)input - 1];
        } else if (input == 0) {
            map[i] = value;
        } else {
            map[i] = add_value(made->graph, inner->values[i].name);
            made->graph->values[map[i]].constant = inner->values[i].constant;
        }
    }
}

static rnl_status map_indices(rnl_graph *graph, const uint32_t *map, uint32_t count, const uint32_t **indices)
{
    uint32_t *copy;
    if (count == 0)
        return RNL_OK;
    TRY(rnl_zone_alloc(&graph->zone, count, sizeof *copy, &copy));
    for (uint32_t i = 0; i < count; i++)
        copy[i] = (*indices)[i] == RNL_NO_VALUE ? RNL_NO_VALUE : map[(*indices)[i]];
    *indices = copy;
    return RNL_OK;
}

/* Puts a modifier's nodes behind the others; *value becomes its result. */
static rnl_status insert(const splice *made, const char *name, uint32_t *value)
{
    const rnl_graph *inner = rnl_node_graph(made->node, name);
    rnl_graph *graph = made->graph;
    uint32_t *map;
    if (!inner)
        return RNL_OK;
    TRY(rnl_zone_alloc(&graph->zone, inner->value_count, sizeof *map, &map));
    map_values(made, inner, *value, map);
    for (size_t i = 0; i < inner->node_count; i++) {
        rnl_node *node = &graph->nodes[graph->node_count++];
        *node = inner->nodes[i];
        TRY(map_indices(graph, map, node->input_count, &node->inputs));
        TRY(map_indices(graph, map, node->output_count, &node->outputs));
    }
    *value = map[inner->output_values[0]];
    return RNL_OK;
}

static rnl_status softmax(const splice *made, uint32_t scores, uint32_t probabilities)
{
    rnl_attribute *axis;
    TRY(rnl_zone_alloc(&made->graph->zone, 1, sizeof *axis, &axis));
    *axis = (rnl_attribute){.name = "axis", .type = RNL_ATTRIBUTE_INT, .i = -1};
    TRY(add_node(made, "", "Softmax", made->graph->info.opset, &scores, 1, probabilities));
    rnl_node *node = &made->graph->nodes[made->graph->node_count - 1];
    node->attributes = axis;
    node->attribute_count = 1;
    return RNL_OK;
}

/* The node at `index` becomes the last of those that replace it, so that none has to move. */
static rnl_status replace(rnl_graph *graph, size_t index)
{
    const rnl_node node = graph->nodes[index];
    const splice made = {graph, &node};
    const uint32_t *inputs = node.inputs;
    uint32_t current = add_value(graph, node.name);
    TRY(add_node(&made, node.domain, "FlexAttention.scores", node.opset, inputs, 2, current));
    TRY(copy_attributes(&made, &graph->nodes[graph->node_count - 1]));
    TRY(insert(&made, "score_mod", &current));
    const uint32_t probabilities = add_value(graph, node.name);
    TRY(softmax(&made, current, probabilities));
    current = probabilities;
    TRY(insert(&made, "prob_mod", &current));
    const uint32_t last[] = {current, inputs[2], inputs[0]};
    TRY(add_node(&made, node.domain, "FlexAttention.values", node.opset, last, 3, node.outputs[0]));
    graph->nodes[index] = graph->nodes[--graph->node_count];
    return RNL_OK;
}

rnl_status rnl_graph_splice(rnl_graph *graph)
{
    const size_t count = graph->node_count;
    TRY(grow(graph));
    for (size_t i = 0; i < count; i++)
        if (has_graphs(&graph->nodes[i]))
            TRY(replace(graph, i));
    if (graph->node_count != count)
        rnl_graph_number_producers(graph);
    return RNL_OK;
}
