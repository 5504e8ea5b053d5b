/* SPDX-License-Identifier: Apache-2.0 */
/* A node on the stack, for tests of the operator rows. */
#ifndef RUNNEL_TESTS_OP_NODE_H
#define RUNNEL_TESTS_OP_NODE_H

#include "graph/host_element.h"
#include "graph/op_common.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

#define OP_NODE_MAX 40

typedef struct op_node {
    rnl_node node;
    rnl_op_context context;
    rnl_attribute attributes[16];
    rnl_host_tensor tensors[16];
    uint32_t values[OP_NODE_MAX];
    rnl_tensor_desc inputs[OP_NODE_MAX], outputs[OP_NODE_MAX];
    void *results[OP_NODE_MAX];
} op_node;

/* Initialises in place: the node points into itself. */
static inline void op_node_init(op_node *n, const char *op_type, int64_t opset, size_t outputs)
{
    memset(n, 0, sizeof *n);
    n->node.name = "";
    n->node.domain = "";
    n->node.op_type = op_type;
    n->node.opset = opset;
    n->node.schema = rnl_op_find("", op_type, opset);
    ck_assert_msg(n->node.schema != NULL, "no row for %s of opset %d", op_type, (int)opset);
    n->node.inputs = n->node.outputs = n->values;
    n->node.attributes = n->attributes;
    n->node.output_count = (uint32_t)outputs;
    n->context = (rnl_op_context){&n->node, 0, outputs, n->inputs, n->outputs, n->results};
}

static inline rnl_tensor_desc *op_node_input(op_node *n, rnl_dtype dtype, size_t rank, const int64_t *shape,
                                             const void *host)
{
    ck_assert_uint_lt(n->context.input_count, OP_NODE_MAX);
    rnl_tensor_desc *desc = &n->inputs[n->context.input_count++];
    n->node.input_count++;
    *desc = (rnl_tensor_desc){.dtype = dtype, .rank = rank, .host = host};
    for (size_t i = 0; i < rank && i < RNL_MAX_RANK; i++)
        desc->shape[i] = shape[i];
    return desc;
}

static inline rnl_attribute *op_node_attribute(op_node *n, const char *name, rnl_attribute_type type)
{
    rnl_attribute *attribute = &n->attributes[n->node.attribute_count++];
    *attribute = (rnl_attribute){.name = name, .type = type, .count = 1};
    return attribute;
}

static inline void op_node_int(op_node *n, const char *name, int64_t value)
{
    op_node_attribute(n, name, RNL_ATTRIBUTE_INT)->i = value;
}

static inline void op_node_float(op_node *n, const char *name, float value)
{
    op_node_attribute(n, name, RNL_ATTRIBUTE_FLOAT)->f = value;
}

static inline void op_node_string(op_node *n, const char *name, const char *value)
{
    op_node_attribute(n, name, RNL_ATTRIBUTE_STRING)->s = value;
}

static inline void op_node_ints(op_node *n, const char *name, const int64_t *values, size_t count)
{
    rnl_attribute *attribute = op_node_attribute(n, name, RNL_ATTRIBUTE_INTS);
    attribute->ints = values;
    attribute->count = count;
}

static inline rnl_status op_node_infer(op_node *n)
{
    return n->node.schema->infer(&n->context);
}

/* Allocates the results and evaluates; op_node_free releases them. */
static inline rnl_status op_node_evaluate(op_node *n)
{
    for (size_t i = 0; i < n->context.output_count; i++) {
        int64_t count = rnl_desc_elements(&n->outputs[i]);
        n->results[i] = malloc((size_t)count * rnl_dtype_bytes(n->outputs[i].dtype));
    }
    return n->node.schema->evaluate(&n->context);
}

static inline void op_node_free(op_node *n)
{
    for (size_t i = 0; i < n->context.output_count; i++)
        free(n->results[i]);
}

#endif
