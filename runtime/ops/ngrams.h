/* SPDX-License-Identifier: Apache-2.0 */
/* Counting n-grams in rows of numbers. */
#ifndef RUNNEL_OPS_NGRAMS_H
#define RUNNEL_OPS_NGRAMS_H

#include "ops/op.h"

/* Row-major lists. N-grams of one column stand together; all places are within their lists. */
typedef struct rnl_ngrams {
    rnl_view pool;            /* I64: items */
    rnl_view starts, lengths; /* I32, one an n-gram: the first item, and how many, at least one */
    rnl_view begins;          /* I32, one a counting column and one more: the column's first n-gram */
    rnl_view columns;         /* I32, one a counting column: which of dst's it is */
    rnl_view weights;         /* F32, likewise */
    int64_t distance;         /* that two items may have at most, at least 1 */
    bool once;                /* an n-gram that is there counts as one */
} rnl_ngrams;

/* src: I64, rows x items; dst: F32, rows x columns, of which those that count nothing are left as they are. */
RNL_API RNL_NODISCARD rnl_status rnl_op_ngrams(rnl_step_list *list, const rnl_ngrams *ngrams, const rnl_view *src,
                                               const rnl_view *dst);

#endif
