/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of stages with its tensors, run and compared with a float64 evaluation that follows the errors. */
#ifndef RUNNEL_TESTS_CHAIN_CASE_H
#define RUNNEL_TESTS_CHAIN_CASE_H

#include "ops/chain.h"
#include "support/op_test.h"

typedef struct chain_case {
    rnl_chain chain;
    op_tensor *operands[RNL_CHAIN_MAX_OPERANDS], *dst;
} chain_case;

/* The operand becomes the chain's next; values are uniform in [low, high]. Returns the source that names it. */
rnl_chain_source chain_case_operand(chain_case *test, op_tensor *tensor, double low, double high);
rnl_chain_source chain_case_scalar(chain_case *test, double value);
rnl_chain_source chain_case_stage(chain_case *test, rnl_map_op op, const rnl_chain_source *sources, double p0,
                                  double p1);
/* Runs it into test->dst, compares, and resets the bench. */
void chain_case_run(chain_case *test);
/* "S1=Add(y0,k1) …" */
void chain_case_describe(const chain_case *test, char *text, size_t capacity);

#endif
