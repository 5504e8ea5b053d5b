/* SPDX-License-Identifier: Apache-2.0 */
/* How a matrix product is lowered. */
#ifndef RUNNEL_MODEL_MATRIX_H
#define RUNNEL_MODEL_MATRIX_H

#include "model/lower.h"

bool rnl_is_matrix_product(const rnl_node *node);
/* A MatMul or Gemm that can end with a chain. */
bool rnl_matrix_takes_chain(const rnl_planner *planner, const rnl_node *node);
/* … whose second factor is constant and worth packing: it runs as a convolution of single pixels, a row each. */
bool rnl_matrix_is_convolution(const rnl_planner *planner, const rnl_node *node);

/* A product of 8-bit integers that becomes floats: MatMulIntegerToFloat, DynamicQuantizeMatMul. */
bool rnl_is_integer_product(const rnl_node *node);
/* … that can end with a chain, whose first stage adds the bias: *out_bias, or RNL_NO_VALUE. */
bool rnl_integer_product_takes_chain(const rnl_planner *planner, const rnl_node *node, uint32_t *out_bias);

/* Input 0 times input 1, plus input 2 if it is there, in memory of the node's own. */
RNL_NODISCARD rnl_status rnl_lower_projection(rnl_lowering *lowering, rnl_view *out_view);

/* Vectors become matrices: a row on the left, a column on the right; the result gets the axes that its factors lacked.
 */
void rnl_matrix_of_vectors(rnl_view *a, rnl_view *b, rnl_view *target);
/* Of rank 2. */
void rnl_matrix_transpose(rnl_view *view);

#endif
