/* SPDX-License-Identifier: Apache-2.0 */
/* For readers: put the parts in the graph's zone, then finish. */
#ifndef RUNNEL_GRAPH_GRAPH_BUILD_H
#define RUNNEL_GRAPH_GRAPH_BUILD_H

#include "graph/graph.h"

/* The element type of a constant that is no dense tensor. */
#define RNL_NOT_A_TENSOR 255u

/* An empty graph with one reference and this budget for its own (not the file's) memory. */
RNL_NODISCARD rnl_status rnl_graph_create(size_t limit_bytes, rnl_graph **out_graph);

/*
 * A copy to be edited: it has values and nodes of its own, with the same indices, and retains the graph that it comes
 * from, which owns the rest. Room for one more value.
 */
RNL_NODISCARD rnl_status rnl_graph_copy(rnl_graph *base, rnl_graph **out_graph);

/*
 * Sorts the nodes topologically (a cycle is refused, naming a node on it), turns Constant nodes and Identities of
 * initialisers into initialisers, finds each node's schema, counts (the reader has filled the rest of `info`), and
 * makes the operator table; does the same for subgraphs. The reader has filled values, nodes (in file order), inputs,
 * outputs.
 */
RNL_NODISCARD rnl_status rnl_graph_finish(rnl_graph *graph);

#endif
