/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of 2, 4 and 8 bits in blocks along K, each with a scale and a zero point: what com.microsoft's MatMulNBits
 * has. */
#ifndef RUNNEL_OPS_NBITS_H
#define RUNNEL_OPS_NBITS_H

#include "ops/op.h"

/* All views are dense. */
typedef struct rnl_nbits {
    int bits;
    int64_t n, k, block;         /* block: elements, a multiple of 16 */
    const rnl_view *values;      /* U8: n rows of whole blocks, from a byte's lowest bits on */
    const rnl_view *scales;      /* one for each block; F32, F16 or BF16 */
    const rnl_view *zero_points; /* one for each block: U8, packed like a row of values, or of the scales' type. NULL or
                                    no slot: half of the values' range */
    const rnl_view *groups;      /* I32 [k]: the block whose scale and zero point an element of a row has; or NULL */
} rnl_nbits;

/* dst[n, k] = (value - zero point) * scale, dense, of the scales' type. */
RNL_API RNL_NODISCARD rnl_status rnl_op_nbits_unpack(rnl_step_list *list, const rnl_nbits *matrix, const rnl_view *dst);

/* Rows of a for which rnl_op_nbits_rows is faster than unpacking the matrix; 0: never. */
RNL_API int64_t rnl_nbits_rows_most(const rnl_device *device, const rnl_nbits *matrix);
/* dst[m, n] = a[m, k] * matrix + bias[n], which may be NULL or have no slot. All dense and of the scales' type; no
 * groups. */
RNL_API RNL_NODISCARD rnl_status rnl_op_nbits_rows(rnl_step_list *list, const rnl_nbits *matrix, const rnl_view *a,
                                                   const rnl_view *bias, const rnl_view *dst);

#endif
