/* SPDX-License-Identifier: Apache-2.0 */
/* What a graph knows without inputs: its constants, and what nodes compute from constants alone. Once for a model. */
#ifndef RUNNEL_MODEL_CONSTANTS_H
#define RUNNEL_MODEL_CONSTANTS_H

#include "graph/graph.h"

typedef struct rnl_constants {
    const rnl_host_tensor **tensors; /* one a value; NULL: it depends on inputs, or costs too much to work out */
    rnl_zone zone;                   /* owns what was computed */
} rnl_constants;

/* `captured`: one a value, what the graph around this one knows of it; NULL: there is none. */
RNL_NODISCARD rnl_status rnl_constants_init(rnl_constants *constants, const rnl_graph *graph,
                                            const rnl_host_tensor *const *captured);
void rnl_constants_free(rnl_constants *constants);

#endif
