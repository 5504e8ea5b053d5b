/* SPDX-License-Identifier: Apache-2.0 */
/* One matrix product, run and compared with a float64 (integers: wrapping 64-bit) reference. */
#ifndef RUNNEL_TESTS_GEMM_CASE_H
#define RUNNEL_TESTS_GEMM_CASE_H

#include "ops/gemm.h"
#include "support/op_test.h"

/* c_rank 0: no addend. c_ones: its dimensions (bits from the right) that are 1. */
typedef struct gemm_case {
    rnl_dtype dtype; /* 0: F32 */
    int64_t m, n, k;
    size_t batch_rank;
    int64_t batch[6];
    uint32_t a_ones, b_ones; /* batch dimensions, bits from the left, in which a or b is 1 */
    size_t a_less, b_less;   /* batch dimensions that a or b lacks on the left */
    bool a_transposed, b_transposed, a_gaps, b_gaps, dst_gaps, dst_transposed;
    float alpha, beta; /* 0, 0: 1, 1 */
    size_t c_rank;
    uint32_t c_ones;
    bool packs_b; /* in a step of its own */
    /* A chain at the end: v * 0.75, then + y0, * y1, y2 - v, + y3 for as many operands as there are, then max(v, -0.5).
     * Of each: the dimensions (bits from the right) that are 1, its type, its layout in memory. */
    size_t operands;
    bool chain;
    uint32_t operand_ones[4];
    rnl_dtype operand_types[4]; /* 0: F32 */
    op_layout operand_layouts[4];
} gemm_case;

typedef struct gemm_run {
    gemm_case test;
    op_tensor *a, *b, *c, *dst, *operands[4];
    rnl_chain chain;
} gemm_run;

/* Sets what 0 stands for. */
void gemm_case_defaults(gemm_case *test);
void gemm_case_create(gemm_run *run);
rnl_gemm_params gemm_case_params(gemm_run *run);
void gemm_case_enqueue(gemm_run *run);
/* Runs what is enqueued and compares. */
void gemm_case_check(gemm_run *run);
/* All of it, and op_reset. */
void gemm_case_run(const gemm_case *test);
op_value gemm_case_reference(void *run, const int64_t *at);

#endif
