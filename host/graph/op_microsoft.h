/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes and sizes of com.microsoft's operators, for inference and for what runs them. */
#ifndef RUNNEL_GRAPH_OP_MICROSOFT_H
#define RUNNEL_GRAPH_OP_MICROSOFT_H

#include "graph/op_attention.h"

/* FusedMatMul: the order in which a factor's dimensions are multiplied. */
void rnl_fused_matmul_order(const rnl_node *node, bool second, size_t rank, size_t *out_order);

RNL_NODISCARD rnl_status rnl_microsoft_rotary_resolve(const rnl_op_context *context, rnl_rotary_sizes *out_sizes);

/* Attention and MultiHeadAttention; sizes.packed says how the output lies, which is always so. */
RNL_NODISCARD rnl_status rnl_microsoft_attention_resolve(const rnl_op_context *context, rnl_attention_sizes *out_sizes);
RNL_NODISCARD rnl_status rnl_multi_head_resolve(const rnl_op_context *context, rnl_attention_sizes *out_sizes);
/* total_sequence_length must be known; *out_total is that. */
RNL_NODISCARD rnl_status rnl_group_query_resolve(const rnl_op_context *context, rnl_attention_sizes *out_sizes,
                                                 int64_t *out_total);

#endif
