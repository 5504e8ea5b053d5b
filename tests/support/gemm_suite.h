/* SPDX-License-Identifier: Apache-2.0 */
/* What every implementation of matrix products is tested with, beside what is its own. */
#ifndef RUNNEL_TESTS_GEMM_SUITE_H
#define RUNNEL_TESTS_GEMM_SUITE_H

#include "support/gemm_case.h"

void gemm_case_run_all(const gemm_case *tests, size_t count);
#define GEMM_RUN_ALL(tests) gemm_case_run_all(tests, sizeof(tests) / sizeof *(tests))

/*
 * Adds layouts, batches, types, chains, wide indices and special values. `implementation` ("gemm:tiled") must be what
 * runs, on emulated devices only when `runs_emulated`.
 */
void gemm_suite_add(TCase *tests, const char *implementation, bool runs_emulated);

#endif
