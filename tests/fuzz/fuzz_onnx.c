/* SPDX-License-Identifier: Apache-2.0 */
/* The model reader on any bytes: it refuses them, or makes a graph of which everything can be read. */
#include "graph/graph.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static unsigned sum;

static void read_bytes(const void *data, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum += ((const uint8_t *)data)[i];
}

static void read_text(const char *text)
{
    require(text != NULL);
    read_bytes(text, strlen(text));
}

static void read_tensor(const rnl_host_tensor *tensor)
{
    require(tensor->rank <= RNL_MAX_RANK);
    for (size_t i = 0; i < tensor->rank; i++)
        require(tensor->shape[i] >= 0);
    read_bytes(tensor->data, tensor->size_bytes);
}

static void read_attribute(const rnl_attribute *attribute)
{
    read_text(attribute->name);
    switch (attribute->type) {
    case RNL_ATTRIBUTE_STRING:
        read_text(attribute->s);
        break;
    case RNL_ATTRIBUTE_TENSOR:
        read_tensor(attribute->tensor);
        break;
    case RNL_ATTRIBUTE_FLOATS:
        read_bytes(attribute->floats, attribute->count * sizeof(float));
        break;
    case RNL_ATTRIBUTE_INTS:
        read_bytes(attribute->ints, attribute->count * sizeof(int64_t));
        break;
    case RNL_ATTRIBUTE_STRINGS:
        for (size_t i = 0; i < attribute->count; i++)
            read_text(attribute->strings[i]);
        break;
    default:
        break;
    }
}

/* A node reads only what stands before it. */
static void read_node(const rnl_graph *graph, size_t index)
{
    const rnl_node *node = &graph->nodes[index];
    read_text(node->name);
    read_text(node->domain);
    read_text(node->op_type);
    for (uint32_t i = 0; i < node->input_count; i++) {
        uint32_t value = node->inputs[i];
        require(value == RNL_NO_VALUE || value < graph->value_count);
        if (value != RNL_NO_VALUE && graph->values[value].producer != RNL_NO_NODE)
            require(graph->values[value].producer < index);
        if (value != RNL_NO_VALUE && graph->values[value].producer == RNL_NO_NODE)
            require(graph->values[value].constant || graph->values[value].input_index >= 0);
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        require(node->outputs[i] == RNL_NO_VALUE || graph->values[node->outputs[i]].producer == index);
    for (size_t i = 0; i < node->attribute_count; i++)
        read_attribute(&node->attributes[i]);
}

static void read_infos(const rnl_value_info *infos, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        read_text(infos[i].name);
        require(infos[i].rank == SIZE_MAX || infos[i].rank <= RNL_MAX_RANK);
        for (size_t k = 0; infos[i].rank != SIZE_MAX && k < infos[i].rank; k++)
            if (infos[i].dim_names[k])
                read_text(infos[i].dim_names[k]);
    }
}

static void read_graph(const rnl_graph *graph)
{
    size_t count;
    const rnl_operator_info *rows;
    read_infos(graph->inputs, graph->input_count);
    read_infos(graph->outputs, graph->output_count);
    for (size_t i = 0; i < graph->value_count; i++) {
        read_text(graph->values[i].name);
        if (graph->values[i].constant)
            read_tensor(graph->values[i].constant);
    }
    for (size_t i = 0; i < graph->node_count; i++)
        read_node(graph, i);
    for (size_t i = 0; i < graph->output_count; i++)
        require(graph->output_values[i] < graph->value_count);
    for (size_t i = 0; i < graph->metadata_count; i++) {
        read_text(graph->metadata[i].key);
        read_text(graph->metadata[i].value);
    }
    if (rnl_graph_check(graph, &rows, &count) != RNL_OK)
        read_text(rnl_last_error()->message);
    for (size_t i = 0; i < count; i++)
        read_text(rows[i].reason);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    rnl_graph *graph;
    if (rnl_graph_load_memory(data, size, &graph) == RNL_OK) {
        read_graph(graph);
    } else {
        require(graph == NULL && rnl_last_error()->status != RNL_OK);
        read_text(rnl_last_error()->message);
    }
    rnl_graph_release(graph);
    return 0;
}
