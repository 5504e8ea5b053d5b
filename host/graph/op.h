/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What runnel knows of each operator apart from running it on a device: shape inference, evaluation of small tensors on
 * the host, and which inputs' contents its output shape depends on. One row an operator, in the op_<family>.c files.
 */
#ifndef RUNNEL_GRAPH_OP_H
#define RUNNEL_GRAPH_OP_H

#include "graph/graph.h"
#include <runnel/custom.h>

/* Tensors of up to this many elements are evaluated on the host when all their inputs are known there. */
#define RNL_HOST_MAX_ELEMENTS 4096

/* One node at known input shapes. */
typedef struct rnl_op_context {
    const rnl_node *node;
    size_t input_count, output_count; /* as the node has them */
    const rnl_tensor_desc *inputs;
    rnl_tensor_desc *outputs; /* infer writes dtype, rank and shape of each */
    void **results;           /* evaluate writes here: memory for outputs[i], allocated by the caller */
} rnl_op_context;

/* Bits of the types that an operator takes in its first input (others follow from it; infer checks what differs). */
#define RNL_TYPE_BIT(dtype) (1u << (dtype)) /* ONNX's codes end at 28 */
#define RNL_TYPES_FLOAT (RNL_TYPE_BIT(RNL_F32) | RNL_TYPE_BIT(RNL_F16) | RNL_TYPE_BIT(RNL_BF16))
#define RNL_TYPES_FLOAT_64 (RNL_TYPES_FLOAT | RNL_TYPE_BIT(RNL_F64))
#define RNL_TYPES_SIGNED (RNL_TYPE_BIT(RNL_I8) | RNL_TYPE_BIT(RNL_I16) | RNL_TYPE_BIT(RNL_I32) | RNL_TYPE_BIT(RNL_I64))
#define RNL_TYPES_UNSIGNED                                                                                             \
    (RNL_TYPE_BIT(RNL_U8) | RNL_TYPE_BIT(RNL_U16) | RNL_TYPE_BIT(RNL_U32) | RNL_TYPE_BIT(RNL_U64))
#define RNL_TYPES_NUMERIC (RNL_TYPES_FLOAT_64 | RNL_TYPES_SIGNED | RNL_TYPES_UNSIGNED)
#define RNL_TYPES_ALL (RNL_TYPES_NUMERIC | RNL_TYPE_BIT(RNL_BOOL))
/* Those that are stored, moved and cast, but not computed with. */
#define RNL_TYPES_SMALL_FLOAT                                                                                          \
    (RNL_TYPE_BIT(RNL_F8E4M3FN) | RNL_TYPE_BIT(RNL_F8E4M3FNUZ) | RNL_TYPE_BIT(RNL_F8E5M2) |                            \
     RNL_TYPE_BIT(RNL_F8E5M2FNUZ) | RNL_TYPE_BIT(RNL_F4E2M1) | RNL_TYPE_BIT(RNL_F8E8M0))
#define RNL_TYPES_SMALL_SIGNED (RNL_TYPE_BIT(RNL_I4) | RNL_TYPE_BIT(RNL_I2))
#define RNL_TYPES_SMALL_UNSIGNED (RNL_TYPE_BIT(RNL_U4) | RNL_TYPE_BIT(RNL_U2))
#define RNL_TYPES_SMALL (RNL_TYPES_SMALL_FLOAT | RNL_TYPES_SMALL_SIGNED | RNL_TYPES_SMALL_UNSIGNED)
/* What QuantizeLinear makes. */
#define RNL_TYPES_QUANTIZED                                                                                            \
    (RNL_TYPE_BIT(RNL_I8) | RNL_TYPE_BIT(RNL_U8) | RNL_TYPE_BIT(RNL_I16) | RNL_TYPE_BIT(RNL_U16) |                     \
     (RNL_TYPES_SMALL & ~RNL_TYPE_BIT(RNL_F8E8M0)))
#define RNL_TYPES_EVERY (RNL_TYPES_ALL | RNL_TYPES_SMALL)

typedef struct rnl_op_schema {
    const char *op_type;
    int since, until;                /* opsets of its domain that this row speaks for, both ends in */
    uint32_t min_inputs, max_inputs; /* UINT32_MAX: any number */
    uint32_t min_outputs, max_outputs;
    uint32_t types;        /* RNL_TYPE_BIT set for input 0; 0 = no input 0 */
    uint32_t shape_inputs; /* bit i: the output's shape depends on the contents of input i */
    rnl_status (*infer)(rnl_op_context *context);
    rnl_status (*evaluate)(rnl_op_context *context); /* NULL: never on the host */
    const char *attributes; /* " axis keepdims ": the known ones; another one makes a node unsupported */
    bool shape_only;        /* evaluate reads only the inputs' shapes (Shape, Size): their contents need not be known */
    const struct rnl_custom_entry *custom; /* a caller's operator (custom.h); NULL: ours */
} rnl_op_schema;

/* The row for an operator at an opset of its domain ("": ai.onnx); NULL when there is none. */
const rnl_op_schema *rnl_op_find(const char *domain, const char *op_type, int64_t opset);
/* All rows of a domain, for tests and tables; NULL and 0 when there are none. */
const rnl_op_schema *const *rnl_op_list(const char *domain, size_t *out_count);

/* Of ai.onnx. */
#define RNL_OPSET_MIN 7
#define RNL_OPSET_MAX 28

#endif
