/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the operator tests' harness share. */
#ifndef RUNNEL_TESTS_OP_BENCH_H
#define RUNNEL_TESTS_OP_BENCH_H

#include "support/op_test.h"

#define OP_MAX_TENSORS 16

/* Takes the tensor; returns its slot. */
uint32_t op_add_tensor(op_tensor *tensor);
void op_seed(uint64_t seed);
const char *op_noted(void);
/* No guard bands: a kernel that leaves a tensor leaves its buffer, which oclgrind sees. */
bool op_exact_slots(void);

#endif
