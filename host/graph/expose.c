/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/expose.h"

#include "base/memory.h"
#include <string.h>

enum { UNREAD, READ, OUTPUT };

static void mark(const rnl_graph *graph, uint8_t *marks)
{
    for (size_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].input_count; j++)
            if (graph->nodes[i].inputs[j] != RNL_NO_VALUE)
                marks[graph->nodes[i].inputs[j]] = READ;
    for (size_t i = 0; i < graph->output_count; i++)
        marks[graph->output_values[i]] = OUTPUT;
}

/* The values that become outputs, in the order of the nodes; counts them alone where `out_values` is NULL. */
static size_t list_values(const rnl_graph *graph, const uint8_t *marks, uint32_t *out_values)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->node_count; i++)
        for (uint32_t j = 0; j < graph->nodes[i].output_count; j++) {
            const uint32_t value = graph->nodes[i].outputs[j];
            if (value == RNL_NO_VALUE || marks[value] != READ)
                continue;
            if (out_values)
                out_values[count] = value;
            count++;
        }
    return count;
}

rnl_status rnl_graph_expose(rnl_graph *graph)
{
    rnl_status status = RNL_OK;
    uint8_t *marks = NULL;
    uint32_t *values;
    rnl_value_info *outputs;
    GOTO(rnl_alloc(graph->value_count, 1, &marks));
    mark(graph, marks);
    const size_t own = graph->output_count, more = list_values(graph, marks, NULL);
    GOTO(rnl_zone_alloc(&graph->zone, own + more, sizeof *values, &values));
    GOTO(rnl_zone_alloc(&graph->zone, own + more, sizeof *outputs, &outputs));
    if (own) {
        memcpy(values, graph->output_values, own * sizeof *values);
        memcpy(outputs, graph->outputs, own * sizeof *outputs);
    }
    list_values(graph, marks, values + own);
    for (size_t i = own; i < own + more; i++)
        outputs[i] = (rnl_value_info){.name = graph->values[values[i]].name, .rank = SIZE_MAX};
    graph->output_values = values;
    graph->outputs = outputs;
    graph->output_count = own + more;
done:
    rnl_free(marks);
    return status;
}

bool rnl_graph_output_producer(const rnl_graph *graph, size_t output, rnl_producer *out_producer)
{
    *out_producer = (rnl_producer){0};
    if (output >= graph->output_count)
        return false;
    const uint32_t producer = graph->values[graph->output_values[output]].producer;
    if (producer == RNL_NO_NODE)
        return false;
    const rnl_node *node = &graph->nodes[producer];
    *out_producer =
        (rnl_producer){.node = producer, .name = node->name, .op_type = node->op_type, .domain = node->domain};
    return true;
}
