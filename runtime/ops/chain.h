/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise operators that run one after the other on each element without going through memory: on their own
 * (rnl_op_chain), or as the end of another operator (rnl_conv_params.chain, rnl_gemm_params.chain), which applies them
 * to its result before storing it.
 *
 * A chain is a list of stages. A stage's sources are the operator's result, results of earlier stages, operands (other
 * tensors, broadcast to the destination) and scalars; the last stage's result is what is stored. Each distinct list is
 * a kernel of its own: stages become the kernel's defines (clkernels/chain.clh), operands and scalars its arguments.
 *
 * float32, float16 and bfloat16 storage, in any mixture; computed in float32, rounded once, when stored.
 */
#ifndef RUNNEL_OPS_CHAIN_H
#define RUNNEL_OPS_CHAIN_H

#include "ops/map.h"
#include "ops/step_build.h"

#define RNL_CHAIN_MAX_STAGES 12
#define RNL_CHAIN_MAX_OPERANDS 4 /* of an operator's end; rnl_op_chain takes as many */
#define RNL_CHAIN_MAX_SCALARS 8

typedef enum rnl_chain_kind {
    RNL_CHAIN_INPUT,   /* what the operator computed; not in rnl_op_chain */
    RNL_CHAIN_STAGE,   /* the result of stage `index`, an earlier one */
    RNL_CHAIN_OPERAND, /* operands[index] */
    RNL_CHAIN_SCALAR   /* scalars[index] */
} rnl_chain_kind;

typedef struct rnl_chain_source {
    rnl_chain_kind kind;
    size_t index;
} rnl_chain_source;

#define RNL_CHAIN_MAX_SOURCES 6 /* an operator's sources and its parameters */

typedef struct rnl_chain_stage {
    rnl_map_op op;
    rnl_chain_source sources[RNL_CHAIN_MAX_SOURCES]; /* rnl_map_sources(op), then rnl_map_parameters(op) scalars */
} rnl_chain_stage;

typedef struct rnl_chain {
    rnl_chain_stage stages[RNL_CHAIN_MAX_STAGES];
    rnl_view operands[RNL_CHAIN_MAX_OPERANDS]; /* broadcast to the destination from the right */
    float scalars[RNL_CHAIN_MAX_SCALARS];
    size_t stage_count, operand_count, scalar_count;
} rnl_chain;

/* The operator can be a stage: elementwise on floats, with a float result. */
RNL_API bool rnl_chain_takes(rnl_map_op op);
/* Operands and destinations can be stored so. */
RNL_API bool rnl_chain_takes_type(rnl_dtype dtype);

/* Each appends when there is room, writes the source that names it, and returns false when there is none. */
RNL_API bool rnl_chain_add_scalar(rnl_chain *chain, float value, rnl_chain_source *out_source);
RNL_API bool rnl_chain_add_operand(rnl_chain *chain, const rnl_view *view, rnl_chain_source *out_source);
/* `sources` are rnl_map_sources(op); p0 and p1 become scalars when the operator has parameters. */
RNL_API bool rnl_chain_add_stage(rnl_chain *chain, rnl_map_op op, const rnl_chain_source *sources, float p0, float p1,
                                 rnl_chain_source *out_source);

/* dst = the chain's result. INVALID_ARGUMENT when a stage asks for the operator's result. */
RNL_API RNL_NODISCARD rnl_status rnl_op_chain(rnl_step_list *list, const rnl_chain *chain, const rnl_view *dst);

/* ---- for the families that end with a chain (NULL: none) -------------------------------------------------------- */

/* Some stage is a function of dozens of instructions. NULL: no chain. */
bool rnl_chain_is_long(const rnl_chain *chain);

/* Sources name what is there, storage types are floats, operands broadcast to dst. */
RNL_NODISCARD rnl_status rnl_chain_check(const rnl_chain *chain, const rnl_view *dst);
/* The strides with which operand `index` broadcasts to dst. */
RNL_NODISCARD rnl_status rnl_chain_broadcast(const rnl_chain *chain, size_t index, const rnl_view *dst,
                                             int64_t out_stride[RNL_MAX_RANK]);
/* The defines of chain.clh. `steps[i]`: operand i's stride along the kernel's vectors, 0 or 1. */
void rnl_chain_define(rnl_step_builder *step, const rnl_chain *chain, const int64_t *steps);
/* Of a chain of numbers alone (NULL: none) within a kernel: <prefix>STAGES, <prefix>S1 …. */
void rnl_chain_define_inner(rnl_step_builder *step, const char *prefix, const rnl_chain *chain);
/* The kernel's CHAIN_ARGUMENTS: the scalars, and of each operand its view and `width` strides. */
void rnl_chain_arguments(rnl_step_builder *step, const rnl_chain *chain, size_t width,
                         const int64_t (*strides)[RNL_MAX_RANK], size_t stride_count);
/* Arithmetic and memory traffic that the chain adds. */
uint64_t rnl_chain_flops(const rnl_chain *chain, const rnl_view *dst);
uint64_t rnl_chain_bytes(const rnl_chain *chain);

#endif
