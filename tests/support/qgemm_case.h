/* SPDX-License-Identifier: Apache-2.0 */
/* One product of 8-bit integers, run and compared with a reference in 64-bit integers and float64. */
#ifndef RUNNEL_TESTS_QGEMM_CASE_H
#define RUNNEL_TESTS_QGEMM_CASE_H

#include "ops/qgemm.h"
#include "support/op_test.h"

/* How many elements a zero point, bias or scale has. */
typedef enum qgemm_spread {
    QGEMM_NONE,
    QGEMM_ONE,
    QGEMM_EACH,       /* row or column, in one dimension */
    QGEMM_EACH_BATCH, /* row or column of each matrix, with a 1 in place of K */
} qgemm_spread;

typedef struct qgemm_case {
    rnl_dtype a_type, b_type, dst_type; /* 0: U8, I8, I32 */
    int64_t m, n, k;
    size_t batch_rank;
    int64_t batch[6];
    uint32_t a_ones, b_ones; /* batch dimensions, bits from the left, in which a or b is 1 */
    size_t a_less, b_less;   /* batch dimensions that a or b lacks on the left */
    bool a_transposed, b_transposed, dst_transposed, a_gaps, b_gaps, dst_gaps;
    qgemm_spread za, zb, bias, b_scale;
    bool a_scale, dst_scale, zd;
    bool extremes;   /* elements are the types' lowest and highest */
    bool a_apart;    /* rows of a lie further apart than they are long */
    bool packed;     /* b beforehand; else scratch */
    bool no_scratch; /* nor that */
    size_t chain;    /* 1: v * 0.5 and max(v, -3); 2: + y0 of the last dimension; 3: + y0 of dst's shape, transposed */
} qgemm_case;

typedef struct qgemm_run {
    qgemm_case test;
    op_tensor *a, *b, *dst, *za, *zb, *bias, *a_scale, *b_scale, *dst_scale, *zd, *operand, *packed;
    rnl_chain chain;
    rnl_qgemm_params params;
} qgemm_run;

void qgemm_case_create(qgemm_run *run);
void qgemm_case_enqueue(qgemm_run *run);
/* Runs what is enqueued and compares. */
void qgemm_case_check(qgemm_run *run);
/* All of it, and op_reset; `implementation` (or NULL) must be what runs last. */
void qgemm_case_run(const qgemm_case *test, const char *implementation);
/* The exact sum, before it wraps. */
int64_t qgemm_case_sum(const qgemm_run *run, const int64_t *at);

#endif
