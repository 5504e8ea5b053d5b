/* SPDX-License-Identifier: Apache-2.0 */
/* A graph while its nodes are replaced. Internal to integers*.c. */
#ifndef RUNNEL_GRAPH_INTEGERS_EDIT_H
#define RUNNEL_GRAPH_INTEGERS_EDIT_H

#include "graph/graph.h"

#define RNL_MICROSOFT "com.microsoft"

typedef struct rnl_editor {
    rnl_graph *graph; /* a copy: its own nodes and values */
    uint32_t *reads;  /* one a value that was there at the start; an output of the graph counts as one more */
    size_t value_capacity;
    bool changed;
} rnl_editor;

/* Integers with a scale and a zero point, as QuantizeLinear writes and DequantizeLinear reads them. */
typedef struct rnl_quantity {
    uint32_t values, scale, zero; /* zero: RNL_NO_VALUE, or a constant */
    const rnl_host_tensor *scales;
    rnl_dtype dtype;   /* RNL_U8 or RNL_I8; of a bias RNL_I32 */
    int64_t axis;      /* of more than one scale; not below 0 only when the file says so */
    double zero_point; /* of one scale */
} rnl_quantity;

/* The node that computes the value, or NULL. */
const rnl_node *rnl_editor_producer(const rnl_editor *editor, uint32_t value);
/* The same, and nothing but one node reads what it computes. */
const rnl_node *rnl_editor_own_producer(const rnl_editor *editor, uint32_t value);
const rnl_host_tensor *rnl_editor_constant(const rnl_editor *editor, uint32_t value);
int64_t rnl_tensor_elements(const rnl_host_tensor *tensor);
double rnl_tensor_number(const rnl_host_tensor *tensor, int64_t index);

/* What a QuantizeLinear makes; false where it is of blocks, of another type, or not constant. */
bool rnl_quantity_made(const rnl_editor *editor, const rnl_node *node, rnl_quantity *out);
/* What `value` is the DequantizeLinear of; likewise. */
bool rnl_quantity_behind(const rnl_editor *editor, uint32_t value, rnl_quantity *out);
/* One scale, and a zero point. */
bool rnl_quantity_is_single(const rnl_quantity *q);
/* The same numbers stand for the same values. */
bool rnl_quantity_equals(const rnl_quantity *a, const rnl_quantity *b);

/* A new value with these contents; `data` is copied. */
RNL_NODISCARD rnl_status rnl_editor_add(rnl_editor *editor, rnl_dtype dtype, size_t rank, int64_t elements,
                                        const void *data, uint32_t *out_value);
/* Node `index` computes its outputs by another operator, with the attributes (and the name) of `like`. */
RNL_NODISCARD rnl_status rnl_editor_replace(rnl_editor *editor, uint32_t index, const rnl_node *like,
                                            const char *domain, const char *op_type, const uint32_t *inputs,
                                            uint32_t input_count);

/* ---- what is replaced ---- */

/* The float32 operators in front of a QuantizeLinear. */
RNL_NODISCARD rnl_status rnl_integers_before(rnl_editor *editor, uint32_t index);
/* MatMul and Gemm of quantised factors whose result stays float32. */
RNL_NODISCARD rnl_status rnl_integers_product(rnl_editor *editor, uint32_t index);
/* The Mul (and Add) behind a MatMulInteger. */
RNL_NODISCARD rnl_status rnl_integers_scaled(rnl_editor *editor, uint32_t index);

#endif
