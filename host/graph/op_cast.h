/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_GRAPH_OP_CAST_H
#define RUNNEL_GRAPH_OP_CAST_H

#include "graph/small_float.h"

/* saturate and round_mode of Cast, CastLike and QuantizeLinear. */
RNL_NODISCARD rnl_status rnl_cast_narrowing(const rnl_node *node, rnl_narrowing *out_narrowing);

#endif
