/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of a graph: a row of its nodes as a graph of its own. What the nodes read of others' results are inputs of the
 * part, what later nodes read are outputs. Values keep their indices. A node that follows from constants alone belongs
 * to every part that reads it, so that it is worked out there and never travels.
 */
#ifndef RUNNEL_GRAPH_PART_H
#define RUNNEL_GRAPH_PART_H

#include "graph/graph.h"

/* Who reads what. */
typedef struct rnl_flow {
    const rnl_graph *graph;
    bool *is_live;       /* one a node: an output follows from it */
    bool *is_fixed;      /* one a node: it follows from constants alone */
    bool *value_fixed;   /* one a value: a constant, or made by such a node */
    uint32_t *last_read; /* one a value: 1 + the last live node that reads it; 0: none. Outputs do not count */
    bool *is_output;     /* one a value: of the graph */
} rnl_flow;

RNL_NODISCARD rnl_status rnl_flow_find(const rnl_graph *graph, rnl_zone *zone, rnl_flow *out_flow);
/* The value has to travel past a cut in front of node `at`; the graph's inputs do not: they are there for everybody. */
bool rnl_flow_crosses(const rnl_flow *flow, uint32_t value, uint32_t at);

/*
 * The live nodes from `first` to before `end`. `types`: one a value, of what nodes compute. The part's outputs are
 * those of the graph's that it computes (*out_own_count; the part from node 0 on has those that no node computes, too),
 * then what later nodes read. Released by the caller.
 */
RNL_NODISCARD rnl_status rnl_graph_part(rnl_graph *graph, const rnl_flow *flow, uint32_t first, uint32_t end,
                                        const rnl_dtype *types, rnl_graph **out_part, size_t *out_own_count);

#endif
