/* SPDX-License-Identifier: Apache-2.0 */
/* Products that are forced to go by an implementation with matrix instructions, or with the model of one. */
#ifndef RUNNEL_TESTS_MATRIX_CASE_H
#define RUNNEL_TESTS_MATRIX_CASE_H

#include "support/gemm_case.h"

/* "matrix" with one of ops/gemm_matrix.h's RNL_MATRIX_…; until matrix_force_nothing. One that is not above 0 is none.
 */
void matrix_force(const char *name, int instruction);
void matrix_force_nothing(void);
/* The models' memory and items: not every device has enough. */
bool matrix_has_room(void);
/* Nothing where no instruction is forced; else the forced implementation has to be what runs, where it can. */
void matrix_run(const gemm_case *test);
/* alpha, beta, an addend, batches, gaps, and no terms at all. */
void matrix_run_ends(void);

#endif
