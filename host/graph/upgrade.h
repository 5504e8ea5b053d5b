/* SPDX-License-Identifier: Apache-2.0 */
/* Files of opset 1 to 6, as PyTorch and Caffe2 wrote them until 2018: their nodes become those of opset 7. */
#ifndef RUNNEL_GRAPH_UPGRADE_H
#define RUNNEL_GRAPH_UPGRADE_H

#include "graph/graph.h"

#define RNL_OPSET_OLDEST 1

/*
 * Opset 6 broadcasts where a node says so, its second input along a given axis; opset 7 broadcasts as numpy does. So an
 * Unsqueeze goes in front of such an input. What else changed since opset 1 has other attributes or inputs, which the
 * check refuses, but for Concat's axis, which must be given. Nodes may stand in any order, and do so afterwards.
 */
RNL_NODISCARD rnl_status rnl_graph_upgrade(rnl_graph *graph);

#endif
