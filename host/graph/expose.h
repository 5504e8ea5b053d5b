/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_GRAPH_EXPOSE_H
#define RUNNEL_GRAPH_EXPOSE_H

#include "graph/graph.h"

/* Makes outputs of all that nodes compute for others. Before anybody else has the graph. */
RNL_NODISCARD rnl_status rnl_graph_expose(rnl_graph *graph);

#endif
