/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUNNEL_GRAPH_CHECK_H
#define RUNNEL_GRAPH_CHECK_H

#include "base/text.h"
#include "graph/graph_build.h"
#include "graph/op.h"

/* Finds each node's schema and makes the operator table of a sorted graph. */
RNL_NODISCARD rnl_status rnl_graph_make_checks(rnl_graph *graph);

/* ---- Parts, in check_<part>.c ---- */

/*
 * The element types of initialisers and inputs, as ONNX's codes: also codes that runnel has no type for. 0 for what
 * nodes produce, RNL_NOT_A_TENSOR for inputs that are no tensors.
 */
void rnl_check_declared_types(const rnl_graph *graph, uint8_t *out_types);
/* Where the type of an operator's first output comes from. */
typedef enum rnl_type_rule {
    RNL_TYPE_OF_FIRST, /* input */
    RNL_TYPE_OF_SECOND,
    RNL_TYPE_OF_THIRD,
    RNL_TYPE_I64,
    RNL_TYPE_BOOL,
    RNL_TYPE_OF_TO, /* the attribute */
    RNL_TYPE_OF_VALUE,
    RNL_TYPE_QUANTIZED,   /* output_dtype, else the zero point's, else uint8 */
    RNL_TYPE_DEQUANTIZED, /* output_dtype, else the scale's */
    RNL_TYPE_UNKNOWN
} rnl_type_rule;
rnl_type_rule rnl_check_type_rule(const char *domain, const char *op_type);
/* The types of a node's outputs, as far as they follow from its inputs'. */
void rnl_check_output_types(const rnl_node *node, rnl_type_rule rule, uint8_t *types);
/* "float32", "string", "no tensor", …; never NULL. */
const char *rnl_check_type_name(unsigned code);
/* False for the types that runnel has, and for 0. */
bool rnl_check_type_foreign(unsigned code);

/* What stands against running a node: true when something does. `reason` may be NULL, else the words are added to it.
 */
bool rnl_check_node(const rnl_graph *graph, const rnl_node *node, const uint8_t *types, rnl_text *reason);
/* The same for its attributes. */
bool rnl_check_attributes(const rnl_node *node, rnl_text *reason);

/* The same for what the graphs of If, Loop and Scan take and give. */
bool rnl_check_control(const rnl_node *node, rnl_text *reason);
/* The declared types of a node's graph, and those of its inputs that follow from the node's. */
void rnl_check_inner_types(const rnl_node *node, const rnl_graph *inner, const uint8_t *outer_types, uint8_t *types);
/* The types of a node's outputs, from one of its graphs'. */
void rnl_check_control_outputs(const rnl_node *node, const rnl_graph *inner, const uint8_t *inner_types,
                               uint8_t *types);

/* True when `words`, separated and enclosed by spaces, holds this one. */
bool rnl_check_word(const char *words, const char *word);

#endif
