/* SPDX-License-Identifier: Apache-2.0 */
/* What all attentions have in common: products, softmax and what stands between. */
#ifndef RUNNEL_MODEL_ATTENTION_H
#define RUNNEL_MODEL_ATTENTION_H

#include "model/lower.h"

/* What rnl_attention.scores gets. */
typedef enum rnl_scores_mode {
    RNL_SCORES_RAW,
    RNL_SCORES_CAPPED,
    RNL_SCORES_BIASED,
    RNL_SCORES_PROBABILITIES
} rnl_scores_mode;

/* Views of rank 4: batch, heads, sequence, size; heads of keys and values divide those of queries. */
typedef struct rnl_attention {
    rnl_view q, k, v, target;
    rnl_view bias;     /* added to the scores, broadcast; RNL_NO_SLOT: none */
    bool may_be_empty; /* the bias may leave a query without any key: it gives 0 */
    double scale;
    float softcap;       /* 0: none */
    rnl_dtype precision; /* of softmax; RNL_DTYPE_NONE: the queries' type */
    rnl_view scores;     /* RNL_NO_SLOT: nobody wants them */
    rnl_scores_mode mode;
} rnl_attention;

/* What the scores of queries of this size are multiplied by; a scale of 0 counts as left out where `zero_is_usual`. */
double rnl_attention_scale(const rnl_node *node, int64_t size, bool zero_is_usual);
RNL_NODISCARD rnl_status rnl_compose_attention(rnl_lowering *lowering, const rnl_attention *attention);

/* alpha times a times b, whose heads divide those of a. */
RNL_NODISCARD rnl_status rnl_attention_product(rnl_lowering *lowering, double alpha, const rnl_view *a,
                                               const rnl_view *b, const rnl_view *target);
/* Of rank up to 4, as rank 4. */
rnl_view rnl_attention_rows(const rnl_view *view);
/* Batch, heads, size, sequence. */
rnl_view rnl_attention_turned(const rnl_view *view);
/* Batch, sequence, heads * size as batch, heads, sequence, size. */
rnl_view rnl_attention_heads(const rnl_view *view, int64_t heads);
/* `past`, if there is one, and `view` behind it, along the sequence, in `target`. */
RNL_NODISCARD rnl_status rnl_attention_append(rnl_lowering *lowering, const rnl_view *past, const rnl_view *view,
                                              const rnl_view *target);
/* Keys or values with those of the past (an input that may be left out), in the output that has them, if it is wanted.
 */
RNL_NODISCARD rnl_status rnl_attention_with_past(rnl_lowering *lowering, size_t past_index, size_t output,
                                                 rnl_view *view);

#endif
