/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products of 8-bit integers with zero points; results as sums, or scaled to 8 bits or to float32. */
#ifndef RUNNEL_OPS_QGEMM_H
#define RUNNEL_OPS_QGEMM_H

#include "ops/chain.h"

/*
 * Each view may be NULL or have no slot: a zero point of 0, a scale of 1, no bias. Zero points have the type of what
 * they belong to and one element, or one for each row of a or column of b: M or N elements in one dimension, or the
 * shape of a with 1 in place of K (of b likewise), which broadcasts to dst's batch dimensions.
 */
typedef struct rnl_qgemm_params {
    const rnl_view *a_zero_point, *b_zero_point;
    const rnl_view *bias; /* I32, one element or N: added to the sums */
    /* For dst of I8, U8 and F32; F32. One element; b's also one for each column (N elements in one dimension). */
    const rnl_view *a_scale, *b_scale;
    const rnl_view *dst_scale, *dst_zero_point; /* for dst of I8 and U8; one element; F32, and dst's type */
    const rnl_chain *chain;                     /* for dst of F32: what is done to each result before it is stored */
    const rnl_view *packed_b;   /* what rnl_op_qgemm_pack wrote for this b, whose memory is then not read */
    const rnl_view *scratch;    /* memory that rnl_qgemm_scratch asked for; without it a slower way is taken */
    const char *implementation; /* the name behind the colon: it goes first where it applies. NULL: see below */
} rnl_qgemm_params;

/*
 * sum[…, M, N] = (a[…, M, K] - a_zero_point) * (b[…, K, N] - b_zero_point) + bias, exactly, wrapping at 32 bits. a and
 * b are each U8 or I8; dst is I32: sum F32: sum * (a_scale * b_scale), then the chain I8, U8: saturate(round(sum *
 * ((a_scale * b_scale) / dst_scale)) + dst_zero_point), halves to even; a result that is not a number becomes the
 * type's lowest value computed in float32 where there are scales, with the sum rounded to it first. Batch dimensions of
 * a and b broadcast to dst's. Ranks of a and b >= 2. Any strides; transposes are strides. K = 0 gives sums of 0.
 *
 * Implementations, best first: qgemm:vnni and qgemm:madd (pocl on processors that have the instruction), qgemm:dot
 * (GPUs with dot products of packed bytes), qgemm:panel, which all read b as rnl_op_qgemm_pack writes it, and
 * qgemm:portable. RUNNEL_QGEMM=vnni|madd|dot|panel|portable in the environment forces one where it applies.
 */
RNL_API RNL_NODISCARD rnl_status rnl_op_qgemm(rnl_step_list *list, const rnl_qgemm_params *params, const rnl_view *a,
                                              const rnl_view *b, const rnl_view *dst);

/* The I32 elements of scratch that rnl_op_qgemm wants for this product, 0 for none. They hold nothing before or after.
 */
RNL_API RNL_NODISCARD rnl_status rnl_qgemm_scratch(rnl_device *device, const rnl_qgemm_params *params,
                                                   const rnl_view *a, const rnl_view *b, const rnl_view *dst,
                                                   int64_t *out_ints);

/*
 * The size of b as rnl_op_qgemm reads it best, whatever a, params and dst are; 0: b is better left as it is. The form
 * is the same for all devices: it holds b's elements in fours of k and the sums of its columns.
 */
RNL_API RNL_NODISCARD rnl_status rnl_qgemm_packed_bytes(rnl_device *device, const rnl_view *b, size_t *out_bytes);
/* Writes it to `packed`: an I32 view of one dimension with at least as many elements. */
RNL_API RNL_NODISCARD rnl_status rnl_op_qgemm_pack(rnl_step_list *list, const rnl_view *b, const rnl_view *packed);

/*
 * The same on the host, for one matrix: its element (k, n) is the byte at line * line_stride + outer * outer_stride +
 * inner * inner_stride + n * column_stride, where k = (line * outer's number + outer) * inner's number + inner. Of
 * several lines, each is filled up with zeros to a multiple of 4. `target` has the bytes that rnl_qgemm_packed_bytes
 * says of a view of rnl_qgemm_source_rows rows and as many columns, and is aligned for int32.
 */
typedef struct rnl_qgemm_source {
    rnl_dtype dtype; /* I8 or U8 */
    int64_t outer, inner, columns;
    int64_t outer_stride, inner_stride, column_stride;
    int64_t lines, line_stride;
} rnl_qgemm_source;
RNL_API int64_t rnl_qgemm_source_rows(const rnl_qgemm_source *source);
RNL_API void rnl_qgemm_pack_host(const rnl_qgemm_source *source, const void *bytes, void *target);

#endif
