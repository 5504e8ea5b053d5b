/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: batched, broadcast, transposed by strides. f32 accumulation for f32, f16 and bf16; integers wrap. */
#ifndef RUNNEL_OPS_GEMM_H
#define RUNNEL_OPS_GEMM_H

#include "ops/chain.h"

typedef struct rnl_gemm_params {
    float alpha, beta;
    const rnl_chain *chain; /* what is done to each result before it is stored; NULL: nothing */
    /* What rnl_op_gemm_pack made of b, read instead of b's memory; NULL: b is read. */
    const rnl_view *packed_b;
    /* What rnl_op_gemm_pack_sums made of b, beside packed_b; NULL: nothing. */
    const rnl_view *packed_sums;
    bool normwise; /* errors may be bounded by norm, not by element: gemm:strassen */
    /* Memory that rnl_gemm_scratch asked for; NULL: none, and a slower way where one is wanted. */
    const rnl_view *scratch;
    /* The part of an implementation's name behind the colon: that one goes first where it applies. NULL: see below. */
    const char *implementation;
    uint32_t variant; /* of that one: 0 as it estimates, n its n-th */
} rnl_gemm_params;

/*
 * dst[…, M, N] = alpha * a[…, M, K] * b[…, K, N] + beta * c. Batch dimensions of a and b broadcast to dst's; c
 * (optional) broadcasts to all of dst. Ranks of a, b >= 2 (a caller makes vectors into matrices). Any strides;
 * transposes are strides. K = 0 gives beta * c. A chain ends products of f32, f16 and bf16.
 *
 * Implementations, best first: gemm:wgmma (NVIDIA's GPUs of compute capability 9.0; f16 and bf16; scratch), gemm:matrix
 * (GPUs with matrix instructions), gemm:clblast (GPUs; f32 without a chain), gemm:tiled (GPUs; scratch for sums in
 * parts), gemm:bf16 (bfloat16, on pocl and processors with the instruction; scratch for b; denormal numbers are zeros),
 * gemm:strassen (CPUs; f32, where errors may be bounded by norm; scratch), gemm:row (CPUs; a row or up to four times
 * much memory), gemm:panel (CPUs; scratch for copies), gemm:portable.
 * RUNNEL_GEMM=wgmma|matrix|clblast|tiled|bf16|strassen|row|panel|portable in the environment forces one where it
 * applies.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_gemm(rnl_step_list *list, const rnl_gemm_params *params, const rnl_view *a,
                                             const rnl_view *b, const rnl_view *c, const rnl_view *dst);

/* The float32 elements of scratch that rnl_op_gemm wants for this product, 0 for none. They hold nothing before or
 * after.
 */
RNL_API RNL_NODISCARD rnl_status rnl_gemm_scratch(rnl_device *device, const rnl_gemm_params *params, const rnl_view *a,
                                                  const rnl_view *b, const rnl_view *c, const rnl_view *dst,
                                                  int64_t *out_floats);

/*
 * A second factor of f32, f16 or bf16 that is used more than once can be packed beforehand. Its packed form depends on
 * the device and on b's shape and type, not on its strides nor on the other factor: one serves every product with b.
 *
 * rnl_gemm_packed: the form's float32 elements; 0: it has none, or products with it would not be faster. The step that
 * rnl_op_gemm_pack appends fills a dense `packed` of at least as many. The view that is then rnl_gemm_params.packed_b
 * goes with a `b` of the same shape and type, whose memory is not read: its slot only has to be one of the list's.
 */
RNL_API RNL_NODISCARD rnl_status rnl_gemm_packed(const rnl_device *device, const rnl_view *b, int64_t *out_floats);
RNL_API RNL_NODISCARD rnl_status rnl_op_gemm_pack(rnl_step_list *list, const rnl_view *b, const rnl_view *packed);

/* The same for gemm:strassen, whose form goes beside that one: products choose. */
RNL_API RNL_NODISCARD rnl_status rnl_gemm_packed_sums(const rnl_device *device, const rnl_view *b, int64_t *out_floats);
RNL_API RNL_NODISCARD rnl_status rnl_op_gemm_pack_sums(rnl_step_list *list, const rnl_view *b, const rnl_view *packed);

/* The implementations' names behind the colon, best first; as many as there is room for. Returns how many there are. */
RNL_API size_t rnl_gemm_names(const char **out_names, size_t capacity);
/* Where the tuning table has what is the fastest for a product: see gemm_choice.h. */
RNL_API RNL_NODISCARD rnl_status rnl_gemm_place(rnl_device *device, const rnl_gemm_params *params, const rnl_view *a,
                                                const rnl_view *b, const rnl_view *c, const rnl_view *dst,
                                                rnl_hash *out_place);

/* Executes an RNL_STEP_CLBLAST_GEMM step: `buffers[i]` is the memory of a, b, c. One call at a time in the process. */
RNL_API RNL_NODISCARD rnl_status rnl_clblast_run(struct rnl_stream *stream, const rnl_clblast_gemm *gemm, cl_mem a,
                                                 cl_mem b, cl_mem c);
/* Compiles what the step will need, so that its first run does not. */
RNL_API RNL_NODISCARD rnl_status rnl_clblast_warm(struct rnl_stream *stream, const rnl_clblast_gemm *gemm);

#endif
