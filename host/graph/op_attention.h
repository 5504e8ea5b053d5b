/* SPDX-License-Identifier: Apache-2.0 */
/* The sizes of an attention, found from its inputs and attributes: the same for inference and for what runs it. */
#ifndef RUNNEL_GRAPH_OP_ATTENTION_H
#define RUNNEL_GRAPH_OP_ATTENTION_H

#include "graph/op.h"

typedef struct rnl_attention_sizes {
    bool packed; /* heads lie within the last dimension: batch, sequence, heads * size */
    int64_t batch, heads, kv_heads, length, kv_length, past, size, v_size;
} rnl_attention_sizes;

/* Attention of ai.onnx. */
RNL_NODISCARD rnl_status rnl_attention_resolve(const rnl_op_context *context, rnl_attention_sizes *out_sizes);

/* RotaryEmbedding of ai.onnx: how many elements of each head turn. */
typedef struct rnl_rotary_sizes {
    bool packed; /* as above */
    int64_t batch, heads, length, size, turned;
} rnl_rotary_sizes;
RNL_NODISCARD rnl_status rnl_rotary_resolve(const rnl_op_context *context, rnl_rotary_sizes *out_sizes);

#endif
