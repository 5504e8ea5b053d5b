/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise kernels that cut their work into pieces, one a work-item: clkernels/pieces.clh. */
#ifndef RUNNEL_OPS_PIECES_H
#define RUNNEL_OPS_PIECES_H

#include "ops/step_build.h"

/* Views whose largest indices fit in int may still need the kernels' long: pieces end beyond the last element. */
bool rnl_pieces_index64(const rnl_dims *dims);
/*
 * The vector for the innermost of coalesced dimensions: at most `widest`, a power of two; 1 where some view's elements
 * are not neighbours there (view 0, the destination) or neither that nor one element (the others).
 */
size_t rnl_pieces_vector(const rnl_dims *dims, size_t widest);
/* The range, and the arguments PIECE_ARGUMENTS. At least one element. */
void rnl_step_pieces(rnl_step_builder *builder, const rnl_dims *dims, size_t vector);

#endif
