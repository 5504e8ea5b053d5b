/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/graph_build.h"

#include "base/memory.h"
#include "graph/check.h"
#include "graph/graph_sort.h"
#include "graph/graph_splice.h"
#include "graph/upgrade.h"
#include <string.h>

rnl_status rnl_graph_create(size_t limit_bytes, rnl_graph **out_graph)
{
    *out_graph = NULL;
    rnl_graph *graph;
    TRY(rnl_alloc(1, sizeof *graph, &graph));
    atomic_init(&graph->references, 1);
    graph->zone.limit_bytes = limit_bytes;
    graph->info = (rnl_graph_info){.producer_name = "", .producer_version = "", .graph_name = ""};
    *out_graph = graph;
    return RNL_OK;
}

/* A tensor whose contents are the attribute's own memory, which lives as long as the graph. */
static rnl_status attribute_tensor(rnl_graph *graph, const rnl_attribute *attribute, const rnl_host_tensor **out_tensor)
{
    *out_tensor = NULL;
    if (attribute->type == RNL_ATTRIBUTE_TENSOR) {
        *out_tensor = attribute->tensor;
        return RNL_OK;
    }
    rnl_host_tensor tensor = {.rank = 0};
    switch (attribute->type) {
    case RNL_ATTRIBUTE_FLOAT:
        tensor = (rnl_host_tensor){.dtype = RNL_F32, .data = &attribute->f, .size_bytes = sizeof(float)};
        break;
    case RNL_ATTRIBUTE_INT:
        tensor = (rnl_host_tensor){.dtype = RNL_I64, .data = &attribute->i, .size_bytes = sizeof(int64_t)};
        break;
    case RNL_ATTRIBUTE_FLOATS:
        tensor = (rnl_host_tensor){RNL_F32, 1, {(int64_t)attribute->count}, attribute->floats, attribute->count * 4};
        break;
    case RNL_ATTRIBUTE_INTS:
        tensor = (rnl_host_tensor){RNL_I64, 1, {(int64_t)attribute->count}, attribute->ints, attribute->count * 8};
        break;
    default:
        return RNL_OK;
    }
    rnl_host_tensor *copy;
    TRY(rnl_zone_alloc(&graph->zone, 1, sizeof *copy, &copy));
    *copy = tensor;
    *out_tensor = copy;
    return RNL_OK;
}

/* The forms of a Constant's value that can be tensors; each name has one type. */
static bool is_value_attribute(const rnl_attribute *attribute)
{
    static const struct {
        const char *name;
        rnl_attribute_type type;
    } forms[] = {
        {"value", RNL_ATTRIBUTE_TENSOR},      {"sparse_value", RNL_ATTRIBUTE_TENSOR}, /* made dense by the reader */
        {"value_float", RNL_ATTRIBUTE_FLOAT}, {"value_floats", RNL_ATTRIBUTE_FLOATS},
        {"value_int", RNL_ATTRIBUTE_INT},     {"value_ints", RNL_ATTRIBUTE_INTS}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (strcmp(attribute->name, forms[i].name) == 0)
            return attribute->type == forms[i].type;
    return false;
}

/* The contents of a node's only output, when they follow from the file alone; else NULL. */
static rnl_status constant_of(rnl_graph *graph, const rnl_node *node, const rnl_host_tensor **out_tensor)
{
    *out_tensor = NULL;
    if (node->domain[0] != '\0' || node->refusal || node->output_count != 1)
        return RNL_OK;
    if (strcmp(node->op_type, "Identity") == 0 && node->input_count == 1 && node->attribute_count == 0)
        *out_tensor = node->inputs[0] == RNL_NO_VALUE ? NULL : graph->values[node->inputs[0]].constant;
    else if (strcmp(node->op_type, "Constant") == 0 && node->input_count == 0 && node->attribute_count == 1 &&
             is_value_attribute(&node->attributes[0]))
        TRY(attribute_tensor(graph, &node->attributes[0], out_tensor));
    return RNL_OK;
}

static void count_initializer(rnl_graph *graph, const rnl_host_tensor *constant)
{
    int64_t elements;
    if (!constant)
        return;
    graph->info.initializer_count++;
    if (rnl_shape_elements(constant->shape, constant->rank, &elements))
        graph->info.parameter_count += (uint64_t)elements;
}

/* Takes out the nodes whose outputs are constants. */
static rnl_status fold_constants(rnl_graph *graph)
{
    size_t kept = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        const rnl_node *node = &graph->nodes[i];
        const rnl_host_tensor *constant;
        TRY(constant_of(graph, node, &constant));
        if (!constant) {
            if (kept != i)
                graph->nodes[kept] = *node;
            kept++;
            continue;
        }
        if (node->input_count == 0)
            count_initializer(graph, constant);
        if (node->outputs[0] == RNL_NO_VALUE)
            continue;
        rnl_value *value = &graph->values[node->outputs[0]];
        value->constant = constant;
        value->producer = RNL_NO_NODE;
    }
    if (kept != graph->node_count) {
        graph->node_count = kept;
        rnl_graph_number_producers(graph);
    }
    return RNL_OK;
}

/* Initialisers of the file, before folding makes some of them known by several names. */
static void count_initializers(rnl_graph *graph)
{
    graph->info.initializer_count = 0;
    graph->info.parameter_count = 0;
    for (size_t i = 0; i < graph->value_count; i++)
        count_initializer(graph, graph->values[i].constant);
}

/* What a subgraph captures of a constant is the same constant there. */
static void share_constants(const rnl_graph *graph, const rnl_node *node, rnl_graph *inner)
{
    size_t own = inner->input_count - inner->capture_count;
    for (uint32_t i = 0; i < inner->capture_count; i++)
        inner->values[inner->input_values[own + i]].constant =
            graph->values[node->inputs[inner->first_capture + i]].constant;
}

static rnl_status finish_parts(rnl_graph *graph)
{
    TRY(rnl_graph_upgrade(graph));
    TRY(rnl_graph_splice(graph));
    TRY(rnl_graph_sort(graph));
    count_initializers(graph);
    TRY(fold_constants(graph));
    graph->info.node_count = graph->node_count;
    for (size_t i = 0; i < graph->node_count; i++) {
        const rnl_node *node = &graph->nodes[i];
        for (size_t k = 0; k < node->attribute_count; k++) {
            rnl_graph *inner = node->attributes[k].type == RNL_ATTRIBUTE_GRAPH ? node->attributes[k].graph : NULL;
            if (!inner)
                continue;
            share_constants(graph, node, inner);
            TRY(finish_parts(inner));
        }
    }
    return RNL_OK;
}

rnl_status rnl_graph_finish(rnl_graph *graph)
{
    TRY(finish_parts(graph));
    return rnl_graph_make_checks(graph);
}
