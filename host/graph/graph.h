/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph: what a model file says, as values and nodes in topological order. Built by a reader through graph_build.h,
 * immutable afterwards. No OpenCL, no shapes but those that the file declares.
 */
#ifndef RUNNEL_GRAPH_GRAPH_H
#define RUNNEL_GRAPH_GRAPH_H

#include "base/file.h"
#include "base/status.h"
#include "base/zone.h"
#include <runnel/runnel.h>
#include <stdatomic.h>

#define RNL_NO_VALUE UINT32_MAX
#define RNL_NO_NODE UINT32_MAX
#define RNL_MAX_NODE_INPUTS 4096

/* A dense row-major tensor in host memory; data need not be aligned for its type (files give no alignment). */
typedef struct rnl_host_tensor {
    rnl_dtype dtype; /* ONNX's code without contents where runnel has no such type; the check refuses its users */
    size_t rank;
    int64_t shape[RNL_MAX_RANK];
    const void *data;
    size_t size_bytes;
} rnl_host_tensor;

typedef enum rnl_attribute_type {
    RNL_ATTRIBUTE_FLOAT = 1, /* ONNX's AttributeProto.AttributeType */
    RNL_ATTRIBUTE_INT = 2,
    RNL_ATTRIBUTE_STRING = 3,
    RNL_ATTRIBUTE_TENSOR = 4,
    RNL_ATTRIBUTE_GRAPH = 5,
    RNL_ATTRIBUTE_FLOATS = 6,
    RNL_ATTRIBUTE_INTS = 7,
    RNL_ATTRIBUTE_STRINGS = 8 /* up to 14: others, kept by name alone; the check refuses them */
} rnl_attribute_type;

typedef struct rnl_attribute {
    const char *name;
    rnl_attribute_type type;
    size_t count; /* of floats, ints, strings */
    union {
        float f;
        int64_t i;
        const char *s;
        const float *floats;
        const int64_t *ints;
        const char *const *strings;
        const rnl_host_tensor *tensor;
        rnl_graph *graph; /* owned by the node's graph */
    };
} rnl_attribute;

typedef struct rnl_node {
    const char *name, *domain, *op_type; /* never NULL; domain "" is ai.onnx */
    int64_t opset;                       /* of its domain */
    const struct rnl_op_schema *schema;  /* NULL: unknown operator */
    uint32_t input_count, output_count;
    uint32_t capture_count; /* the last inputs: values that the node's subgraphs read by name */
    uint32_t attribute_count;
    const uint32_t *inputs;  /* value indices; RNL_NO_VALUE for an optional one left out */
    const uint32_t *outputs; /* likewise */
    const rnl_attribute *attributes;
    const char *refusal; /* why this node cannot run, as the reader or the check found; NULL: it can */
    const char *instead; /* " + Conv + QuantizeLinear": the nodes that an edition has this one in place of; or NULL */
} rnl_node;

typedef struct rnl_value {
    const char *name;
    uint32_t producer;               /* node index, or RNL_NO_NODE */
    const rnl_host_tensor *constant; /* an initialiser's contents, else NULL */
    int32_t input_index;             /* in the graph's inputs, or -1 */
} rnl_value;

struct rnl_graph {
    atomic_uint references;
    rnl_graph *base; /* retained: what this one is an edition of, which owns all that they share; or NULL */
    struct rnl_registry *registry; /* retained: the caller's operators; NULL: none */
    rnl_zone zone;                 /* owns everything below */
    rnl_map file;                  /* the mapped model, when loaded from a path */
    rnl_map *external;             /* mapped external data files */
    size_t external_count;
    rnl_graph_info info;
    rnl_value *values;
    size_t value_count;
    rnl_node *nodes; /* in topological order */
    size_t node_count;
    rnl_value_info *inputs, *outputs;
    uint32_t *input_values, *output_values; /* value indices */
    size_t input_count, output_count;
    rnl_metadata *metadata;
    size_t metadata_count;
    rnl_operator_info *operators; /* made by the check, when the graph is loaded */
    size_t operator_count;
    size_t checked_count, unsupported_count; /* nodes, those of subgraphs too */
    const char *refusal;                     /* what else stands against running the graph, or NULL */
    /* Graphs that nodes have as attributes, in the file's order; each is released with this one. */
    rnl_graph **subgraphs;
    size_t subgraph_count, subgraph_capacity;
    /* Of a subgraph: its last inputs are captured, from the node's input `first_capture` on. */
    uint32_t capture_count, first_capture;
};

/* An operator of ai.onnx. */
bool rnl_node_is(const rnl_node *node, const char *op_type);
/* Attributes with their defaults; a wrong type counts as absent (the check has refused it before). */
const rnl_attribute *rnl_node_attribute(const rnl_node *node, const char *name);
int64_t rnl_node_int(const rnl_node *node, const char *name, int64_t absent);
float rnl_node_float(const rnl_node *node, const char *name, float absent);
const char *rnl_node_string(const rnl_node *node, const char *name, const char *absent);
/* NULL and *out_count 0 when absent. */
const int64_t *rnl_node_ints(const rnl_node *node, const char *name, size_t *out_count);
const float *rnl_node_floats(const rnl_node *node, const char *name, size_t *out_count);
rnl_graph *rnl_node_graph(const rnl_node *node, const char *name);
/* Inputs without those that subgraphs capture. */
static inline uint32_t rnl_node_own_inputs(const rnl_node *node)
{
    return node->input_count - node->capture_count;
}
/* Adds "node 3 (Conv 'conv1')" to the current error; returns `status`. */
rnl_status rnl_node_error(const rnl_graph *graph, const rnl_node *node, rnl_status status);

#endif
