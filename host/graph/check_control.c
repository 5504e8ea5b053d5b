/* SPDX-License-Identifier: Apache-2.0 */
/* If, Loop and Scan: what their graphs take and give must match the node. */
#include "graph/check.h"

#include <inttypes.h>
#include <string.h>

static uint32_t own_inputs(const rnl_graph *graph)
{
    return (uint32_t)graph->input_count - graph->capture_count;
}

static bool refuse_graph(const rnl_node *node, const char *name, rnl_text *reason, const rnl_graph **out_graph)
{
    const rnl_graph *graph = rnl_node_graph(node, name);
    *out_graph = graph;
    if (graph && !graph->refusal)
        return false;
    if (reason && graph)
        rnl_text_add(reason, "its graph '%s' %s", name, graph->refusal);
    else if (reason)
        rnl_text_add(reason, "its graph '%s' is missing", name);
    return true;
}

static bool refuse_count(const char *name, const char *what, size_t has, size_t needs, rnl_text *reason)
{
    if (reason)
        rnl_text_add(reason, "its graph '%s' has %zu %s and needs %zu", name, has, what, needs);
    return true;
}

static bool check_branch(const rnl_node *node, const char *name, rnl_text *reason)
{
    const rnl_graph *graph;
    if (refuse_graph(node, name, reason, &graph))
        return true;
    if (own_inputs(graph) != 0)
        return refuse_count(name, "inputs", own_inputs(graph), 0, reason);
    if (graph->output_count != node->output_count)
        return refuse_count(name, "outputs", graph->output_count, node->output_count, reason);
    return false;
}

/* A body that is called with `inputs` values and gives back all but `first` of the node's outputs, or more. */
static bool check_body(const rnl_node *node, size_t inputs, size_t states, size_t first, rnl_text *reason)
{
    const rnl_graph *graph;
    if (refuse_graph(node, "body", reason, &graph))
        return true;
    if (own_inputs(graph) != inputs)
        return refuse_count("body", "inputs", own_inputs(graph), inputs, reason);
    size_t needs = first + (states > node->output_count ? states : node->output_count);
    if (graph->output_count < needs)
        return refuse_count("body", "outputs", graph->output_count, needs, reason);
    return false;
}

static bool check_loop(const rnl_node *node, rnl_text *reason)
{
    uint32_t own = rnl_node_own_inputs(node), states = own > 2 ? own - 2 : 0;
    return check_body(node, 2 + states, states, 1, reason);
}

static bool check_scan(const rnl_node *node, rnl_text *reason)
{
    uint32_t first = node->opset < 9 ? 1 : 0, own = rnl_node_own_inputs(node);
    int64_t scanned = rnl_node_int(node, "num_scan_inputs", 0);
    if (scanned < 1 || own < first || scanned > own - first) {
        if (reason)
            rnl_text_add(reason, "its attribute 'num_scan_inputs' is %" PRId64 " where it has %u inputs", scanned, own);
        return true;
    }
    return check_body(node, own - first, own - first - (size_t)scanned, 0, reason);
}

bool rnl_check_control(const rnl_node *node, rnl_text *reason)
{
    if (strcmp(node->op_type, "If") == 0)
        return check_branch(node, "then_branch", reason) || check_branch(node, "else_branch", reason);
    if (strcmp(node->op_type, "Loop") == 0)
        return check_loop(node, reason);
    return strcmp(node->op_type, "Scan") == 0 && check_scan(node, reason);
}

/* ---- types ---------------------------------------------------------------------------------------------------- */

/* The node's input that the graph's input `index` has its type from, or RNL_NO_VALUE. */
static uint32_t source_of(const rnl_node *node, uint32_t index)
{
    bool is_scan = strcmp(node->op_type, "Scan") == 0, is_loop = strcmp(node->op_type, "Loop") == 0;
    uint32_t from = index + (is_scan && node->opset < 9 ? 1 : 0);
    if ((!is_scan && !is_loop) || from >= rnl_node_own_inputs(node))
        return RNL_NO_VALUE;
    return node->inputs[from];
}

void rnl_check_inner_types(const rnl_node *node, const rnl_graph *inner, const uint8_t *outer_types, uint8_t *types)
{
    uint32_t own = own_inputs(inner);
    rnl_check_declared_types(inner, types);
    for (uint32_t i = 0; i < inner->input_count; i++) {
        uint32_t value = inner->input_values[i], from = i < own ? source_of(node, i) : RNL_NO_VALUE;
        if (i >= own)
            from = node->inputs[inner->first_capture + (i - own)];
        if (types[value] == RNL_NOT_A_TENSOR && inner->inputs[i].dtype == RNL_DTYPE_NONE)
            types[value] = from == RNL_NO_VALUE ? 0 : outer_types[from];
    }
}

void rnl_check_control_outputs(const rnl_node *node, const rnl_graph *inner, const uint8_t *inner_types, uint8_t *types)
{
    size_t first = strcmp(node->op_type, "Loop") == 0 ? 1 : 0;
    for (uint32_t k = 0; k < node->output_count && first + k < inner->output_count; k++)
        if (node->outputs[k] != RNL_NO_VALUE)
            types[node->outputs[k]] = inner_types[inner->output_values[first + k]];
}
