/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_GRAPH_GRAPH_SPLICE_H
#define RUNNEL_GRAPH_GRAPH_SPLICE_H

#include "graph/graph.h"

/*
 * FlexAttention has graphs that modify its scores or its probabilities: such a node becomes several, the graphs' nodes
 * among them. Before the nodes are sorted.
 */
RNL_NODISCARD rnl_status rnl_graph_splice(rnl_graph *graph);

#endif
