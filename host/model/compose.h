/* SPDX-License-Identifier: Apache-2.0 */
/* For operators that are made of others: steps into memory of the node's own, whose shapes and types follow. */
#ifndef RUNNEL_MODEL_COMPOSE_H
#define RUNNEL_MODEL_COMPOSE_H

#include "model/lower.h"
#include "ops/gemm.h"
#include "ops/reduce.h"

/* op(sources…), broadcast. */
RNL_NODISCARD rnl_status rnl_compose_map(rnl_lowering *lowering, rnl_map_op op, const rnl_view *sources, size_t count,
                                         rnl_view *out_view);
RNL_NODISCARD rnl_status rnl_compose_unary(rnl_lowering *lowering, rnl_map_op op, const rnl_view *source,
                                           rnl_view *out_view);
RNL_NODISCARD rnl_status rnl_compose_binary(rnl_lowering *lowering, rnl_map_op op, const rnl_view *a, const rnl_view *b,
                                            rnl_view *out_view);
/* The same with a number as the second operand. */
RNL_NODISCARD rnl_status rnl_compose_with(rnl_lowering *lowering, rnl_map_op op, const rnl_view *a, double number,
                                          rnl_view *out_view);
/* The view itself where it has the type. */
RNL_NODISCARD rnl_status rnl_compose_cast(rnl_lowering *lowering, const rnl_view *source, rnl_dtype dtype,
                                          rnl_view *out_view);
/* Reduced axes stay, of size 1. */
RNL_NODISCARD rnl_status rnl_compose_reduce(rnl_lowering *lowering, rnl_reduce_op op, uint32_t axes,
                                            const rnl_view *source, rnl_view *out_view);
/* A dense copy. */
RNL_NODISCARD rnl_status rnl_compose_dense(rnl_lowering *lowering, const rnl_view *source, rnl_view *out_view);
/* The same elements in another shape; a copy where no strides can say it. */
RNL_NODISCARD rnl_status rnl_compose_reshape(rnl_lowering *lowering, const rnl_view *source, size_t rank,
                                             const int64_t *shape, rnl_view *out_view);
/* rnl_op_gemm with the scratch memory that makes it faster. `c` may be NULL. */
RNL_NODISCARD rnl_status rnl_compose_product(rnl_lowering *lowering, rnl_gemm_params *params, const rnl_view *a,
                                             const rnl_view *b, const rnl_view *c, const rnl_view *target);
/* The int64 sequence start, start + 1, … along one axis of a view of this rank, the other dimensions being 1. */
RNL_NODISCARD rnl_status rnl_compose_range(rnl_lowering *lowering, int64_t start, int64_t count, size_t axis,
                                           size_t rank, rnl_view *out_view);

#endif
