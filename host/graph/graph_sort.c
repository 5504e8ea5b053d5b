/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Topological order, as near to the file's order as the edges allow: a node follows those of its producers that the
 * file lists too late, otherwise it stays where it is. Walks backwards from each node without recursion.
 */
#include "graph/graph_sort.h"

#include "base/memory.h"
#include <string.h>

enum node_state { NEW, OPEN, DONE };

typedef struct frame {
    uint32_t node, next_input;
} frame;

typedef struct sort_walk {
    const rnl_graph *graph;
    uint8_t *state;
    frame *stack;
    size_t depth, capacity;
    uint32_t *order; /* node indices, sorted */
    size_t order_count;
    bool sorted; /* so far, the file's order */
} sort_walk;

static rnl_status open_node(sort_walk *walk, uint32_t node)
{
    TRY(rnl_grow(&walk->stack, &walk->capacity, walk->depth + 1, sizeof *walk->stack));
    walk->stack[walk->depth++] = (frame){node, 0};
    walk->state[node] = OPEN;
    return RNL_OK;
}

static void close_node(sort_walk *walk, uint32_t node)
{
    walk->state[node] = DONE;
    walk->sorted = walk->sorted && node == walk->order_count;
    walk->order[walk->order_count++] = node;
    walk->depth--;
}

/* The next producer of `top` that is not done, or RNL_NO_NODE. */
static uint32_t next_producer(const sort_walk *walk, frame *top)
{
    const rnl_node *node = &walk->graph->nodes[top->node];
    while (top->next_input < node->input_count) {
        uint32_t value = node->inputs[top->next_input++];
        uint32_t producer = value == RNL_NO_VALUE ? RNL_NO_NODE : walk->graph->values[value].producer;
        if (producer != RNL_NO_NODE && walk->state[producer] != DONE)
            return producer;
    }
    return RNL_NO_NODE;
}

static rnl_status visit(sort_walk *walk, uint32_t start)
{
    TRY(open_node(walk, start));
    while (walk->depth > 0) {
        uint32_t producer = next_producer(walk, &walk->stack[walk->depth - 1]);
        if (producer == RNL_NO_NODE) {
            close_node(walk, walk->stack[walk->depth - 1].node);
            continue;
        }
        if (walk->state[producer] == OPEN) {
            const rnl_node *node = &walk->graph->nodes[producer];
            return FAIL(RNL_INVALID_ARGUMENT, "node %u (%s '%s') depends on its own output", producer, node->op_type,
                        node->name);
        }
        TRY(open_node(walk, producer));
    }
    return RNL_OK;
}

/* Moves each node to its place, one cycle of the permutation after the other; `order` is used up. */
static void permute(rnl_node *nodes, uint32_t *order, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        rnl_node first = nodes[i];
        size_t hole = i;
        while (order[hole] != i) {
            size_t from = order[hole];
            nodes[hole] = nodes[from];
            order[hole] = (uint32_t)hole;
            hole = from;
        }
        nodes[hole] = first;
        order[hole] = (uint32_t)hole;
    }
}

void rnl_graph_number_producers(rnl_graph *graph)
{
    for (size_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].output_count; k++)
            if (graph->nodes[i].outputs[k] != RNL_NO_VALUE)
                graph->values[graph->nodes[i].outputs[k]].producer = (uint32_t)i;
}

rnl_status rnl_graph_sort(rnl_graph *graph)
{
    rnl_status status = RNL_OK;
    sort_walk walk = {.graph = graph, .sorted = true};
    GOTO(rnl_alloc(graph->node_count, 1, &walk.state));
    GOTO(rnl_alloc(graph->node_count, sizeof *walk.order, &walk.order));
    for (size_t i = 0; i < graph->node_count; i++)
        if (walk.state[i] == NEW)
            GOTO(visit(&walk, (uint32_t)i));
    if (!walk.sorted) {
        permute(graph->nodes, walk.order, graph->node_count);
        rnl_graph_number_producers(graph);
    }
done:
    rnl_free(walk.state);
    rnl_free(walk.stack);
    rnl_free(walk.order);
    return status;
}
