/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_GRAPH_GRAPH_SORT_H
#define RUNNEL_GRAPH_GRAPH_SORT_H

#include "graph/graph.h"

/* Puts the nodes in topological order and numbers the producers anew. A cycle is RNL_INVALID_ARGUMENT. */
RNL_NODISCARD rnl_status rnl_graph_sort(rnl_graph *graph);
/* Sets the producer of every node's outputs. */
void rnl_graph_number_producers(rnl_graph *graph);

#endif
