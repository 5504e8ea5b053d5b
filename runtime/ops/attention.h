/* SPDX-License-Identifier: Apache-2.0 */
/* Attention as one step, whose scores are never in memory. For CPUs; elsewhere it is products with softmax between. */
#ifndef RUNNEL_OPS_ATTENTION_H
#define RUNNEL_OPS_ATTENTION_H

#include "ops/op.h"

/*
 * dst[b, h, i] = softmax over j of (scale * query[b, h, i] . key[b, g, j] + bias[b, h, i, j]) times value[b, g, j],
 * with g = h / (heads of query / heads of key). Views of rank 4: batch, heads, rows, elements, which are neighbours.
 */
typedef struct rnl_attention_step {
    rnl_view query, key, value, dst;
    rnl_view bias; /* broadcasts to batch, heads, rows of query, rows of key; RNL_NO_SLOT: none */
    float scale;
    bool empty_gives_zero; /* a row whose bias leaves no key, which is NaN otherwise */
    bool pairs;            /* factors may be rounded to bfloat16, where the device multiplies pairs of them */
} rnl_attention_step;

/* The operands are such that the step can be done, and is better than products and softmax. */
RNL_API bool rnl_op_attention_pays(const rnl_device *device, const rnl_attention_step *attention);
/* On any device; unimplemented where types or layouts are others. */
RNL_API RNL_NODISCARD rnl_status rnl_op_attention(rnl_step_list *list, const rnl_attention_step *attention);

#endif
