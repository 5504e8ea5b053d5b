/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/upgrade.h"

#include "graph/op.h"
#include <string.h>

static bool is_old(const rnl_node *node)
{
    return node->domain[0] == '\0' && node->opset >= RNL_OPSET_OLDEST && node->opset < RNL_OPSET_MIN;
}

/* SIZE_MAX: the file does not say. */
static size_t rank_of(const rnl_graph *graph, uint32_t index)
{
    const rnl_value *value = &graph->values[index];
    if (value->constant)
        return value->constant->rank;
    return value->input_index >= 0 ? graph->inputs[value->input_index].rank : SIZE_MAX;
}

static bool is_legacy_binary(const rnl_node *node)
{
    static const char *const names[] = {"Add", "And", "Div", "Equal", "Greater", "Less",
                                        "Mul", "Or",  "Pow", "Sub",   "Xor"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(node->op_type, names[i]) == 0)
            return true;
    return false;
}

/* The axis of the first input that the second one's first axis belongs to; false where it is aligned at the end. */
static bool get_axis(const rnl_node *node, int64_t *out_axis)
{
    const rnl_attribute *axis = rnl_node_attribute(node, "axis");
    *out_axis = 1;
    if (node->input_count != 2 || node->inputs[0] == RNL_NO_VALUE || node->inputs[1] == RNL_NO_VALUE)
        return false;
    if (strcmp(node->op_type, "PRelu") == 0)
        return true;
    if (!is_legacy_binary(node) || !axis || axis->type != RNL_ATTRIBUTE_INT || !rnl_node_int(node, "broadcast", 0))
        return false;
    *out_axis = axis->i;
    return true;
}

static bool is_dropped(const rnl_node *node, const rnl_attribute *attribute)
{
    const bool axis = is_legacy_binary(node) && strcmp(attribute->name, "axis") == 0;
    return axis || strcmp(attribute->name, "broadcast") == 0 || strcmp(attribute->name, "is_test") == 0 ||
           strcmp(attribute->name, "consumed_inputs") == 0;
}

static rnl_status drop_attributes(rnl_graph *graph, rnl_node *node)
{
    rnl_attribute *kept;
    size_t count = 0;
    TRY(rnl_zone_alloc(&graph->zone, node->attribute_count, sizeof *kept, &kept));
    for (size_t i = 0; i < node->attribute_count; i++)
        if (!is_dropped(node, &node->attributes[i]))
            kept[count++] = node->attributes[i];
    node->attributes = kept;
    node->attribute_count = (uint32_t)count;
    return RNL_OK;
}

/* Behind the node's second input: `trailing` axes of one. The graph has room for one value and one node more. */
static rnl_status add_unsqueeze(rnl_graph *graph, rnl_node *node, size_t rank, size_t trailing)
{
    const uint32_t index = (uint32_t)graph->value_count;
    rnl_attribute *attribute;
    uint32_t *inputs, *ends;
    int64_t *axes;
    TRY(rnl_zone_alloc(&graph->zone, 1, sizeof *attribute, &attribute));
    TRY(rnl_zone_alloc(&graph->zone, trailing, sizeof *axes, &axes));
    TRY(rnl_zone_alloc(&graph->zone, 2, sizeof *inputs, &inputs));
    TRY(rnl_zone_alloc(&graph->zone, 2, sizeof *ends, &ends));
    for (size_t i = 0; i < trailing; i++)
        axes[i] = (int64_t)(rank + i);
    *attribute = (rnl_attribute){.name = "axes", .type = RNL_ATTRIBUTE_INTS, .count = trailing, .ints = axes};
    ends[0] = node->inputs[1];
    ends[1] = index;
    inputs[0] = node->inputs[0];
    inputs[1] = index;
    node->inputs = inputs;
    graph->values[graph->value_count++] =
        (rnl_value){.name = graph->values[ends[0]].name, .producer = (uint32_t)graph->node_count, .input_index = -1};
    graph->nodes[graph->node_count++] = (rnl_node){.name = node->name,
                                                   .domain = "",
                                                   .op_type = "Unsqueeze",
                                                   .opset = RNL_OPSET_MIN,
                                                   .input_count = 1,
                                                   .output_count = 1,
                                                   .inputs = &ends[0],
                                                   .outputs = &ends[1],
                                                   .attribute_count = 1,
                                                   .attributes = attribute};
    return RNL_OK;
}

static rnl_status align(rnl_graph *graph, rnl_node *node)
{
    int64_t axis;
    if (!get_axis(node, &axis))
        return RNL_OK;
    const size_t left = rank_of(graph, node->inputs[0]), right = rank_of(graph, node->inputs[1]);
    if (right == 0 || (strcmp(node->op_type, "PRelu") == 0 && (right != 1 || left == 1)))
        return RNL_OK;
    if (left == SIZE_MAX || right == SIZE_MAX) {
        node->refusal = "the broadcasting of opset 6 needs inputs whose rank the file gives";
        return RNL_OK;
    }
    axis += axis < 0 ? (int64_t)left : 0;
    if (left > RNL_MAX_RANK || right > left || axis < 0 || (uint64_t)axis > left - right) {
        node->refusal = "its second input does not lie within the first along 'axis'";
        return RNL_OK;
    }
    const size_t trailing = left - right - (size_t)axis;
    return trailing ? add_unsqueeze(graph, node, right, trailing) : RNL_OK;
}

/* So many values and nodes more. */
static rnl_status make_room(rnl_graph *graph, size_t more)
{
    rnl_value *values;
    rnl_node *nodes;
    TRY(rnl_zone_alloc(&graph->zone, graph->value_count + more, sizeof *values, &values));
    TRY(rnl_zone_alloc(&graph->zone, graph->node_count + more, sizeof *nodes, &nodes));
    memcpy(values, graph->values, graph->value_count * sizeof *values);
    memcpy(nodes, graph->nodes, graph->node_count * sizeof *nodes);
    graph->values = values;
    graph->nodes = nodes;
    return RNL_OK;
}

rnl_status rnl_graph_upgrade(rnl_graph *graph)
{
    const size_t count = graph->node_count;
    size_t old = 0, aligned = 0;
    int64_t axis;
    for (size_t i = 0; i < count; i++) {
        old += is_old(&graph->nodes[i]);
        aligned += is_old(&graph->nodes[i]) && get_axis(&graph->nodes[i], &axis);
    }
    if (aligned)
        TRY(make_room(graph, aligned));
    for (size_t i = 0; i < count && old; i++) {
        rnl_node *node = &graph->nodes[i];
        if (!is_old(node))
            continue;
        if (strcmp(node->op_type, "Concat") == 0 && !rnl_node_attribute(node, "axis"))
            node->refusal = "it has no 'axis', which was 1 until opset 3";
        TRY(align(graph, node));
        TRY(drop_attributes(graph, node));
        node->opset = RNL_OPSET_MIN;
    }
    return RNL_OK;
}
