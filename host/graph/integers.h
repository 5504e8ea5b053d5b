/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_GRAPH_INTEGERS_H
#define RUNNEL_GRAPH_INTEGERS_H

#include "graph/graph.h"

/*
 * Quantised models say what they compute as float32 operators between DequantizeLinear and QuantizeLinear (QDQ), or
 * as MatMulInteger with the scales multiplied in behind it. Returns the graph with QLinearConv and the like in place of
 * those, which compute on the integers: within one step of the quantisation, since they round once. Values keep their
 * indices, nodes theirs; what nobody reads any more stays. The graph itself, retained, where there is nothing to do.
 */
RNL_NODISCARD rnl_status rnl_graph_with_integers(rnl_graph *graph, rnl_graph **out_graph);

#endif
